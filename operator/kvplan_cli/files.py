"""Files a command leaves behind: each of them whole, the old one or the new one.

Inputs: texts and documents. Output: files. Each text goes to a temporary file in the target directory first;
only when all are on disk are they renamed into place, one after the other. So an error while writing (a full disk,
a text that is no UTF-8) touches no target. The set as a whole is not atomic: a crash, or a name that cannot be
replaced, between two renames leaves new files beside old ones.
"""

import os
import re
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import yaml


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks, for people to read and diff, and quotes what kubectl misreads."""


_MISREAD = re.compile(r"[yYnN]|[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+|0o[0-7]+")
"""Plain texts that PyYAML takes for texts and kubectl's reader for truth values and numbers."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else "'" if _MISREAD.fullmatch(text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def yaml_documents(documents: Iterable[Mapping[str, object]]) -> str:
    """YAML documents as ``kubectl apply -f`` reads them, keys in the order given."""
    return "---\n".join(
        yaml.dump(dict(document), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)
        for document in documents
    )


def write_all(directory: Path, texts: Mapping[str, str | bytes]) -> list[Path]:
    """Write every text (as UTF-8) or image to its file name in a directory, each file whole.

    Names may lie in a folder of the directory. Nothing is renamed into place before everything is on disk; the renames
    themselves are one by one (see the module).

    Returns:
        The paths written, in the order of the mapping.

    Raises:
        OSError: a directory cannot be made or written (no target has been touched then), or a target cannot be
            replaced, such as a folder of that name (those before it are new then).
    """
    for folder in {(directory / name).parent: None for name in texts}:
        folder.mkdir(parents=True, exist_ok=True)
    staged: list[tuple[Path, Path]] = []
    try:
        staged.extend((_staged(directory, text), directory / name) for name, text in texts.items())
        for temporary, target in staged:
            temporary.replace(target)
    finally:
        for temporary, _ in staged:
            temporary.unlink(missing_ok=True)
    return [target for _, target in staged]


def _staged(directory: Path, text: str | bytes) -> Path:
    descriptor, name = tempfile.mkstemp(dir=directory, prefix=".kvplan-")
    try:
        with os.fdopen(descriptor, "wb") as handle:
            handle.write(text if isinstance(text, bytes) else text.encode("utf-8"))
            handle.flush()
            os.fsync(handle.fileno())
        os.chmod(name, 0o644)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return Path(name)
