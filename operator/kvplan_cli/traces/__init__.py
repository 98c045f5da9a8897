"""Trace input: request files and published distributions become arrays, with every bad row counted."""

from kvplan_cli.traces.errors import TraceError
from kvplan_cli.traces.reader import LoadedTrace, TraceReport, load_trace

__all__ = ["LoadedTrace", "TraceError", "TraceReport", "load_trace"]
