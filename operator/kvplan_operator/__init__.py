"""The operator of kvplan. ``api``, ``model`` and ``plan`` are pure: no I/O, no clock, no unseeded chance."""
