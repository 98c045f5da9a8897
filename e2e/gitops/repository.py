"""A git repository as a team has it: a bare one that is served, and a working copy that commits and pushes.

Inputs: a directory that the server serves, a name, files as text or manifests. Outputs: commits. The caller's own git
configuration, hooks and identity play no part.
"""

import os
import subprocess
from pathlib import Path

import yaml

from e2e.harness.errors import BedError
from e2e.harness.kubectl import Manifest

BRANCH = "main"
_IDENTITY = {
    "GIT_AUTHOR_NAME": "A Person",
    "GIT_AUTHOR_EMAIL": "person@example.invalid",
    "GIT_COMMITTER_NAME": "A Person",
    "GIT_COMMITTER_EMAIL": "person@example.invalid",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
}


class Repository:
    """One repository.

    Attributes:
        name: of the bare repository, as in its URL.
        directory: of the working copy.
    """

    def __init__(self, root: Path, name: str) -> None:
        """Create both.

        Args:
            root: directory of the bare repositories.
            name: without the ending.
        """
        self.name = f"{name}.git"
        self.directory = root.with_name(f"{root.name}-{name}-copy")
        bare = root / self.name
        _git(root, "init", "--quiet", "--bare", f"--initial-branch={BRANCH}", str(bare))
        _git(root, "clone", "--quiet", str(bare), str(self.directory))
        self._git("checkout", "--quiet", "-B", BRANCH)

    def write(self, file: str, *manifests: Manifest) -> None:
        """Write manifests into a file of the working copy."""
        path = self.directory / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump_all(manifests, sort_keys=False))

    def remove(self, file: str) -> None:
        """Remove a file from the working copy."""
        (self.directory / file).unlink()

    def push(self, message: str) -> str:
        """Commit everything, push, and return the commit."""
        self._git("add", "--all")
        self._git("commit", "--quiet", f"--message={message}")
        return self._published()

    def revert(self, commit: str = "HEAD") -> str:
        """`git revert` a commit, push, and return the new one."""
        self._git("revert", "--no-edit", commit)
        return self._published()

    @property
    def head(self) -> str:
        """The commit that is pushed."""
        return self._git("rev-parse", "HEAD")

    def _published(self) -> str:
        self._git("push", "--quiet", "origin", BRANCH)
        return self.head

    def _git(self, *arguments: str) -> str:
        return _git(self.directory, *arguments)


def _git(directory: Path, *arguments: str) -> str:
    environment = {**os.environ, **_IDENTITY}
    argv = ["git", "-C", str(directory), *arguments]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BedError(f"git {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout.strip()
