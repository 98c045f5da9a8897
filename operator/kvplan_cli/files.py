"""Files a command leaves behind: all of them written completely, or none of them touched.

Inputs: texts and documents. Output: files. Each text goes to a temporary file in the target directory first;
only when all are on disk are they renamed into place.
"""

import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import yaml


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks, which people can read and diff."""


def _block_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _block_text)


def yaml_documents(documents: Iterable[Mapping[str, object]]) -> str:
    """YAML documents as ``kubectl apply -f`` reads them, keys in the order given."""
    return "---\n".join(
        yaml.dump(dict(document), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)
        for document in documents
    )


def write_all(directory: Path, texts: Mapping[str, str | bytes]) -> list[Path]:
    """Write every text (as UTF-8) or image to its file name in a directory, all or nothing.

    Returns:
        The paths written, in the order of the mapping.

    Raises:
        OSError: the directory cannot be made or written; no target has been touched then.
    """
    directory.mkdir(parents=True, exist_ok=True)
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
