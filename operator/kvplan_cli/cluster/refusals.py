"""What the API server refuses, as one message with the remedy.

Input: a ``KubeError``. Output: a ``CommandError``. Pure.
"""

from kvplan_cli.errors import CommandError
from kvplan_operator.api.labels import GROUP
from kvplan_operator.kube.errors import Conflict, KubeError, NotServed, Refused, Throttled, Unavailable

UNAUTHORIZED, FORBIDDEN = 401, 403


def as_command_error(error: KubeError) -> CommandError:
    """The message of a refusal that nobody caught."""
    return CommandError("cluster", _one_line(str(error)), _remedy(error))


def is_forbidden(error: KubeError) -> bool:
    """Whether permission is what is missing."""
    return isinstance(error, Refused) and error.code == FORBIDDEN


def _remedy(error: KubeError) -> str:
    if isinstance(error, NotServed):
        return f"install the CRDs of {GROUP} (kubectl apply -f crds/), or choose the right cluster with --context"
    if isinstance(error, Unavailable):
        return "check that the kubeconfig names the right server and that it can be reached"
    if isinstance(error, Throttled | Conflict):
        return "try again"
    if is_forbidden(error):
        return "ask for that permission, or use another user with --context"
    if error.code == UNAUTHORIZED:
        return "log in again: the credentials of the kubeconfig are not accepted"
    return "see what the server says and correct it"


def _one_line(text: str) -> str:
    return " ".join(text.split())
