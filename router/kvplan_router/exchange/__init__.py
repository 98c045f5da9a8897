"""What router processes tell each other: requests in flight, at 5 Hz or more (05-router §4)."""
