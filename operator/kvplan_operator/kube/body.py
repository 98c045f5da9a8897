"""A request body that asks the fence once more, after the connection stands and before its first byte leaves.

Inputs: a document and, for a leader's writes, the fence. Outputs: bytes on the wire. A process that was stopped while
it waited for a connection sends nothing when it goes on: the API server acts on whole bodies only.
"""

import json
from typing import Any

from aiohttp.abc import AbstractStreamWriter
from aiohttp.payload import Payload

from kvplan_operator.kube.fence import Fence


class Body(Payload):
    """JSON of any size; aiohttp warns of its own payloads above 1 MiB, less than a full ConfigMap has."""

    _autoclose = True  # nothing is open

    def __init__(self, document: Any, content_type: str, fence: Fence | None) -> None:
        super().__init__(
            json.dumps(document, separators=(",", ":"), allow_nan=False).encode(), content_type=content_type
        )
        self._fence = fence
        self._size = len(self._value)

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """The body as text."""
        return bytes(self._value).decode(encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        """Send the body.

        Raises:
            LeadershipLost: when the fence no longer holds; the connection is then closed without the body.
        """
        if self._fence is not None:
            self._fence.check()
        await writer.write(self._value)
