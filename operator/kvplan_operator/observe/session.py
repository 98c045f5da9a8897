"""The HTTP session under the Prometheus client: bounded in time and size, true to one host, with a token re-read.

Inputs: a ``PrometheusConnection``. Outputs: responses whose body is read already; anything beyond a bound raises
``QueryFailed``. The environment is not looked at: no proxy, no netrc, so that credentials come from the profile alone.
Blocking; one thread at a time.
"""

import json
import time
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

from requests import PreparedRequest, Response, Session
from requests.auth import AuthBase

from kvplan_operator.observe.profile import PrometheusConnection

_CHUNK_BYTES = 64 * 1024
_ERROR_BYTES = 4 * 1024
_LONGEST_TOKEN = 16 * 1024
_LONGEST_WORDS = 200


class QueryFailed(Exception):
    """A query without a usable answer; the message is for people and holds nothing of a foreign server's body."""


class TokenFile(AuthBase):
    """Adds the bearer token that a file holds now.

    Raises:
        QueryFailed: the file cannot be read or holds no token.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        """Set the header."""
        request.headers["Authorization"] = f"Bearer {self._token()}"
        return request

    def _token(self) -> str:
        try:
            with self._path.open() as file:
                token = file.read(_LONGEST_TOKEN).strip()
        except (OSError, ValueError) as error:
            raise QueryFailed(f"the token file cannot be read ({type(error).__name__})") from error
        if not token or not token.isascii() or not token.isprintable():
            raise QueryFailed("the token file holds no bearer token")
        return token


class BoundedSession(Session):
    """A session for one Prometheus.

    Attributes:
        warnings: what the last answer says it lacks.
    """

    def __init__(self, settings: PrometheusConnection) -> None:
        super().__init__()
        self.trust_env = False
        self.max_redirects = 3
        self.verify = True if settings.ca_file is None else str(settings.ca_file)
        self.warnings: tuple[str, ...] = ()
        self._settings, self._ends = settings, 0.0
        self.hooks["response"].append(self._receive)

    def request(self, *args: Any, **kwargs: Any) -> Response:
        """Send a request; the whole answer must be there within the profile's timeout."""
        self.warnings = ()
        self._ends = time.monotonic() + self._settings.timeout_seconds
        kwargs.update(timeout=self._settings.timeout_seconds, stream=True)
        return super().request(*args, **kwargs)

    def _receive(self, response: Response, **_: object) -> Response:
        """Judge a response and read its body, before the client sees it."""
        if response.is_redirect:
            self._check_redirect(response)
            response.raw = BytesIO(self._read(response, _ERROR_BYTES))
            return response
        if response.status_code != 200:
            raise QueryFailed(_refusal(response.status_code, self._read(response, _ERROR_BYTES)))
        body = self._read(response, self._settings.max_bytes)
        if len(body) > self._settings.max_bytes:
            raise QueryFailed(f"the answer is longer than {self._settings.max_bytes} bytes")
        self.warnings = _warnings(body)
        response.raw = BytesIO(body)
        return response

    def _check_redirect(self, response: Response) -> None:
        target = urlsplit(urljoin(response.url, response.headers["location"]))
        here = urlsplit(self._settings.base)
        if (target.scheme, target.netloc) != (here.scheme, here.netloc):
            response.close()
            raise QueryFailed("the server redirects to another host; give its own address in the profile")

    def _read(self, response: Response, limit: int) -> bytes:
        """The body, or a little more than the limit of it."""
        body = bytearray()
        # read1 returns what has come: read would wait for a full chunk, whatever trickles in.
        while chunk := response.raw.read1(_CHUNK_BYTES, decode_content=True):
            body += chunk
            if time.monotonic() > self._ends:
                response.close()
                raise QueryFailed(f"the answer took longer than {self._settings.timeout_seconds:g} s")
            if len(body) > limit:
                response.close()
                break
        return bytes(body)


def _refusal(status: int, body: bytes) -> str:
    """Prometheus' own words, if it was Prometheus that refused."""
    match _json(body):
        case {"errorType": str(), "error": str() as words}:
            return f"HTTP {status}: {words[:_LONGEST_WORDS]}"
    return f"HTTP {status}"


def _warnings(body: bytes) -> tuple[str, ...]:
    """The answer's warnings; the client drops them. A body without the word is not parsed twice."""
    if b'"warnings"' not in body:
        return ()
    match _json(body):
        case {"warnings": [*words]}:
            return tuple(str(word)[:_LONGEST_WORDS] for word in words[:8])
    return ()


def _json(body: bytes) -> object:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None
