"""What a client reads when it is refused: an error object as engines write it. Standard library only."""

import json
from http import HTTPStatus


def error_body(status: int, reason: str) -> bytes:
    """The JSON body of a refusal.

    Args:
        status: of the HTTP response.
        reason: a sentence for the client.
    """
    error = {"message": reason, "type": HTTPStatus(status).phrase, "code": status}
    return json.dumps({"error": error}).encode()
