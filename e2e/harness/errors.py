"""Errors of the bed: every message names what failed, why and what to do.

::

    BedError
    ├── BuildFailed      a component did not compile, or no Go toolchain was to be had
    ├── ProcessDied      a component ended while something waited for it
    ├── NotReady         a component did not become ready within its deadline
    └── KubectlFailed    the API server refused a command
"""


class BedError(Exception):
    """The bed could not do what was asked."""


class BuildFailed(BedError):
    """A component could not be built."""


class ProcessDied(BedError):
    """A component of the bed ended by itself."""


class NotReady(BedError):
    """A component did not become ready in time."""


class KubectlFailed(BedError):
    """A kubectl command ended with an error.

    Attributes:
        code: exit status of kubectl.
        stderr: what it printed for people, unchanged.
    """

    def __init__(self, command: str, code: int, stderr: str) -> None:
        super().__init__(f"{command}: exit status {code}: {stderr.strip()}")
        self.code = code
        self.stderr = stderr
