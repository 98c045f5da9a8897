"""The engine's decisions: blocks, prefix cache, scheduler, step time. Pure: no I/O, no clock, no randomness."""
