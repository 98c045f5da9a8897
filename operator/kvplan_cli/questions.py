"""Questions before something is done that a person should have read about.

Input: a question. Output: yes or no. Where nobody can answer (no terminal) it is refused, never taken for a yes.
"""

import sys

import typer

from kvplan_cli.errors import CommandError


def agreed(question: str) -> bool:
    """Whether the person at the terminal says yes.

    Raises:
        CommandError: there is no terminal to ask on.
    """
    if not sys.stdin.isatty():
        raise CommandError("--yes", "this asks before it writes, and there is no terminal to answer on", "give --yes")
    return typer.confirm(question, err=True)
