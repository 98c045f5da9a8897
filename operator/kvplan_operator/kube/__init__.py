"""The API server as dictionaries: one thin client, watches with caches, a Lease, events."""
