"""Expand `$(NAME)` in commands, arguments and variables by the rules of Kubernetes."""

import re
from collections.abc import Mapping

_TOKEN = re.compile(r"\$\$|\$\(([^)]*)\)")


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Return the text with known variables replaced; `$$` is a dollar sign and what is unknown stays as it is."""

    def replaced(found: re.Match[str]) -> str:
        if found[0] == "$$":
            return "$"
        return variables.get(found[1], found[0])

    return _TOKEN.sub(replaced, text)
