"""Where tables come from, and how one takes effect: all of it or nothing."""
