"""kvplan-engine: a small stand-in for a vLLM server, for tests of the operator and the router.

It schedules, caches prefixes, preempts, counts and shuts down as vLLM 0.32 does, and computes nothing.
"""
