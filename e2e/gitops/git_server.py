"""Serve git repositories over HTTP on loopback, for reading: `python -m e2e.gitops.git_server ROOT PORT`.

Inputs: a directory of bare repositories, a port. Output: git's smart protocol, as `git http-backend` speaks it; this
process adds the HTTP in front of it (RFC 3875). Must not: take pushes, listen anywhere but on 127.0.0.1.
"""

import os
import subprocess
import sys
from email import message_from_bytes
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from e2e.harness.commands import HOST
from e2e.harness.process import Command

_BACKEND = ("git", "http-backend")
_STATUS = "Status"


def command(root: Path, port: int) -> Command:
    """Return the server's command for the repositories below a directory."""
    return Command("git-server", [sys.executable, "-m", "e2e.gitops.git_server", str(root), str(port)])


class GitHandler(BaseHTTPRequestHandler):
    """One request, answered by `git http-backend`."""

    root: Path
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """References, and that the server is there."""
        self._answer(b"")

    def do_POST(self) -> None:
        """What a client has and wants; go-git and git state the length."""
        self._answer(self.rfile.read(int(self.headers.get("Content-Length") or 0)))

    def _answer(self, body: bytes) -> None:
        environment = {**os.environ, **variables(self.root, self.command, self.path, self.headers)}
        done = subprocess.run(_BACKEND, env=environment, input=body, stdout=subprocess.PIPE, check=True)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        fields = message_from_bytes(head)
        self.send_response(int(fields.get(_STATUS, "200").split()[0]))
        for name, value in fields.items():
            if name != _STATUS:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def variables(root: Path, method: str, target: str, headers: Message) -> dict[str, str]:
    """Return the CGI variables of a request; without `http.receivepack` the backend refuses pushes."""
    path, _, query = target.partition("?")
    return {
        "GIT_PROJECT_ROOT": str(root),
        "GIT_HTTP_EXPORT_ALL": "1",
        "GIT_PROTOCOL": headers.get("Git-Protocol", ""),
        "REQUEST_METHOD": method,
        "PATH_INFO": path,
        "QUERY_STRING": query,
        "CONTENT_TYPE": headers.get("Content-Type", ""),
        "CONTENT_LENGTH": headers.get("Content-Length", ""),
        "HTTP_CONTENT_ENCODING": headers.get("Content-Encoding", ""),
    }


def main(root: Path, port: int) -> None:
    """Serve until the process is ended."""
    handler = type("Handler", (GitHandler,), {"root": root})
    ThreadingHTTPServer((HOST, port), handler).serve_forever()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
