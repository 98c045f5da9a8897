"""The pure decision core: no I/O, no clock, no randomness of its own.

Requests and documents in, decisions and plain measured values out. ``decide.Router`` is the one entry;
time arrives as an argument (monotonic seconds) and randomness as a ``random.Random``.
Source: 05-router; contracts docs/contracts/dispatch.md, index.md and key-hash.md.
"""
