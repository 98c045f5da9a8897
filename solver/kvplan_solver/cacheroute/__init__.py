"""CacheRoute, planned: which keys get a fixed home, how many replicas, where, and the table that says so.

Imports nothing on its own, so that a router can use ``cacheroute.table`` and ``cacheroute.keys`` with the
standard library alone.
"""
