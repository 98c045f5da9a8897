"""Standard output as it really is: a narrow encoding, a full disk, a reader that has enough.

A character that the terminal cannot show becomes ``?`` and ends no command. What cannot be written is told by the
name ``stdout``. A reader such as ``head`` that closes the pipe is no error: the program stops quietly, with the exit
code a shell gives to a process that SIGPIPE ended.
"""

import io
import os
import sys


def show_what_can_be_shown() -> None:
    """Replace characters that stdout's encoding lacks."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def abandon_stdout() -> None:
    """Send what is still buffered nowhere, so that the interpreter's own flush at exit cannot fail again."""
    try:
        descriptor = sys.stdout.fileno()
    except (OSError, ValueError):
        return  # not a real file: nothing is flushed at exit
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)
