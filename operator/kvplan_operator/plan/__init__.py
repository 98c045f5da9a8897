"""From an instance to a plan that people can read, compare and check. Pure."""
