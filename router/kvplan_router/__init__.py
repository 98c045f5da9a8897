"""The router: Envoy asks where a request should go, a planned table answers.

``core`` decides and does no I/O; everything around it moves bytes. Of the solver this package imports only
``cacheroute.table``, ``cacheroute.keys`` and ``budget``, which need the standard library alone.
"""
