"""A small HTTP server that tests run in a pod: it tells what it was given and what was done to it.

`pod_server.py ADDRESS PORT DIRECTORY`: GET /ready and /alive answer 200 until GET /unready and /die; GET /file/NAME
answers a file of DIRECTORY, GET /environment the variables, GET /configmaps what the API server says about those of the
pod's namespace. SIGTERM ends it with exit code 0 and a word in its log. It imports the standard library alone.
"""

import json
import os
import signal
import ssl
import sys
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


class Server(BaseHTTPRequestHandler):
    """Answers GET."""

    directory = Path()
    broken: frozenset[str] = frozenset()

    def do_GET(self) -> None:
        """Answer."""
        status, body = self._answer(self.path)
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _answer(self, path: str) -> tuple[int, bytes]:
        if path in ("/unready", "/die"):
            Server.broken |= {{"/unready": "/ready", "/die": "/alive"}[path]}
        if path in self.broken:
            return 503, b""
        if path == "/environment":
            return 200, json.dumps(dict(os.environ)).encode()
        if path == "/configmaps":
            return own_configmaps()
        if path.startswith("/file/"):
            file = self.directory / path.removeprefix("/file/")
            return (200, file.read_bytes()) if file.exists() else (404, b"")
        return 200, b"ok"


def own_configmaps() -> tuple[int, bytes]:
    """What the API server answers to this pod about the ConfigMaps of its namespace."""
    account = Path(os.environ["ACCOUNT"])
    namespace = (account / "namespace").read_text()
    url = f"{os.environ['API_SERVER']}/api/v1/namespaces/{namespace}/configmaps"
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {(account / 'token').read_text()}"})  # noqa: S310
    trusted = ssl.create_default_context(cafile=str(account / "ca.crt"))
    try:
        with urllib.request.urlopen(request, timeout=10, context=trusted) as response:  # noqa: S310
            return 200, response.read()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read()


def stop(*_: Any) -> None:
    """End as a program does that was asked to."""
    print("SIGTERM", flush=True)
    os._exit(0)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, stop)
    Server.directory = Path(sys.argv[3])
    print("started", flush=True)
    ThreadingHTTPServer((sys.argv[1], int(sys.argv[2])), Server).serve_forever()
