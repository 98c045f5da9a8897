"""How a container starts its program, and which pods are of a Deployment. Pure."""

from collections.abc import Sequence

from kvplan_operator.act.arguments import SHORT_FORMS, CommandLine
from kvplan_operator.model.pods import TEMPLATE_HASH_LABEL, Object, labels_of, part, parts


def command_line(container: Object) -> CommandLine:
    """Command and args of a container."""
    command, args = (tuple(map(str, container.get(name) or ())) for name in ("command", "args"))
    return CommandLine(command, args)


def flag_values(words: Sequence[str]) -> dict[str, str]:
    """Flags of a command line by name; the last of several counts, a switch has an empty value."""
    values: dict[str, str] = {}
    for word, following in zip(words, (*words[1:], "-"), strict=False):
        head, joined, value = word.partition("=")
        name = SHORT_FORMS.get(head) or (head[2:].replace("_", "-") if head.startswith("--") else "")
        if name:
            values[name] = value if joined else "" if following.startswith("-") else following
    return values


def is_pod_of(pod: Object, deployment: str) -> bool:
    """Whether a pod is of a Deployment: its ReplicaSet is named after the Deployment and the template's hash."""
    replica_set = f"{deployment}-{labels_of(pod).get(TEMPLATE_HASH_LABEL)}"
    return any(owner.get("name") == replica_set for owner in parts(part(pod, "metadata"), "ownerReferences"))
