"""What goes wrong at the command's edge, and the exit codes that tell a script how it went.

::

    CommandError            a file, directory or option that cannot be used (subject, problem, remedy)
    └── MissingExtra        an optional dependency that a chosen option needs

Errors of the layers below (``SolverError``, ``OperatorError``, ``TraceError``) reach the user in the same
way: one message on stderr, exit code 2, no traceback.
"""

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of every command."""

    OK = 0
    """Done; for `diff`, the plans are equal."""
    NEGATIVE = 1
    """Done, and the answer is no: different, violated, or infeasible."""
    BAD_INPUT = 2
    """Nothing was done: the message names object, field, value and remedy."""
    READER_GONE = 141
    """The reader of stdout closed the pipe, as `head` does; nothing is wrong."""
    INTERRUPTED = 130
    """Ctrl-C; nothing half-written."""


class CommandError(Exception):
    """A file, directory or option that cannot be used; the message ends with the remedy."""

    def __init__(self, subject: object, problem: str, remedy: str) -> None:
        self.subject, self.problem, self.remedy = str(subject), problem, remedy
        super().__init__(f"{subject}: {problem}: {remedy}")


class MissingExtra(CommandError):
    """An optional dependency is not installed."""

    def __init__(self, option: str, library: str, extra: str) -> None:
        super().__init__(option, f"{library} is not installed", f"install it with: pip install 'kvplan[{extra}]'")


def reason_of(error: OSError) -> str:
    """What the operating system said, in a few words."""
    return error.strerror or type(error).__name__
