"""Keep the Helm chart's copies and its table of values what their sources are.

``python tools/chart.py`` writes, ``--check`` says what is out of date and ends with 1. Inputs: ``crds/``,
``manifests/``, the chart's values and schema. Outputs: ``charts/kvplan/crds``, ``charts/kvplan/files`` and the table in
``docs/install.md``.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
CHART = ROOT / "charts" / "kvplan"
MANIFESTS = ROOT / "manifests"
DOCUMENT = ROOT / "docs" / "install.md"
BEGIN, END = "<!-- values: begin -->\n", "<!-- values: end -->\n"
_HEADER = "# Written by tools/chart.py from manifests/.\n"


def generated() -> dict[Path, str]:
    """Path and text of everything that has its source elsewhere."""
    monitoring = MANIFESTS / "components" / "monitoring"
    return {
        **{CHART / "crds" / crd.name: crd.read_text() for crd in sorted((ROOT / "crds").glob("*.yaml"))},
        CHART / "files" / "roles.yaml": _mapping({role["metadata"]["name"]: role["rules"] for role in _roles()}),
        CHART / "files" / "monitors.yaml": _mapping({item["metadata"]["name"]: item for item in _monitors(monitoring)}),
        CHART / "files" / "envoy.yaml": (MANIFESTS / "router" / "envoy.yaml").read_text(),
        CHART / "files" / "dashboard.json": (monitoring / "dashboard.json").read_text(),
        DOCUMENT: _with_table(DOCUMENT.read_text()),
    }


def stale() -> list[Path]:
    """Files that differ from their source, and copies whose source is gone."""
    wanted = generated()
    changed = [path for path, text in wanted.items() if not path.exists() or path.read_text() != text]
    extra = [path for folder in ("crds", "files") for path in (CHART / folder).iterdir() if path not in wanted]
    return changed + extra


def _documents(*files: Path) -> Iterator[dict[str, Any]]:
    for file in files:
        yield from yaml.safe_load_all(file.read_text())


def _roles() -> Iterator[dict[str, Any]]:
    for item in _documents(MANIFESTS / "base" / "rbac.yaml", MANIFESTS / "router" / "rbac.yaml"):
        if item["kind"] in ("Role", "ClusterRole"):
            yield item


def _monitors(folder: Path) -> Iterator[dict[str, Any]]:
    return _documents(*(folder / name for name in ("service-monitor.yaml", "pod-monitors.yaml", "alerts.yaml")))


def _mapping(value: Mapping[str, Any]) -> str:
    return _HEADER + yaml.safe_dump(dict(value), sort_keys=False, width=120)


def _with_table(text: str) -> str:
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + _table() + END + after


def _table() -> str:
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    rows = [f"| `{path}` | `{_shown(default)}` | {about} |" for path, default, about in _rows(schema, values, "")]
    return "\n".join(["| value | default | meaning |", "|---|---|---|", *rows]) + "\n"


def _rows(schema: Mapping[str, Any], values: Mapping[str, Any], path: str) -> Iterator[tuple[str, Any, str]]:
    """Path, default and meaning of each value that the schema describes."""
    for name, part in schema.get("properties", {}).items():
        if name not in values:
            continue
        inner = part.get("properties")
        if (
            inner
            and part.get("additionalProperties") is False
            and any("description" in each for each in inner.values())
        ):
            yield from _rows(part, values[name], f"{path}{name}.")
        else:
            yield f"{path}{name}", values[name], part["description"]


def _shown(default: object) -> str:
    return json.dumps(default)


def main() -> int:
    """Write, or check."""
    parser = argparse.ArgumentParser(description="Keep the Helm chart's copies and its table of values up to date.")
    parser.add_argument("--check", action="store_true", help="write nothing; end with 1 where something is stale")
    if parser.parse_args().check:
        old = stale()
        for path in old:
            sys.stderr.write(f"{path.relative_to(ROOT)} is out of date: run python tools/chart.py\n")
        return 1 if old else 0
    wanted = generated()
    for path in stale():
        if path in wanted:
            path.write_text(wanted[path])
        else:
            path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
