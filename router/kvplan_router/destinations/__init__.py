"""Where the engines are, whether they take requests, and what they run."""
