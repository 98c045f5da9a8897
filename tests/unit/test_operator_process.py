"""The process as a whole: what it loads, what kopf is asked for, which settings the documents name."""

import re
import subprocess
import sys
from pathlib import Path

import kopf

from kvplan_operator.reconcile import handlers
from kvplan_operator.settings import PREFIX, PrometheusConnection, Settings

DOCUMENT = Path(__file__).parents[2] / "docs" / "operator.md"


def test_the_controller_loads_no_solver_library() -> None:
    code = "import sys, kvplan_operator.main; print([n for n in ('highspy', 'cvxpy') if n in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert loaded.stdout.strip() == "[]"


def test_kopf_is_asked_for_events_alone() -> None:
    registry = kopf.get_default_registry()
    assert len(registry._watching.get_all_handlers()) == 3
    for others in (registry._indexing, registry._changing, registry._spawning, registry._webhooks):
        assert list(others.get_all_handlers()) == []


def test_kopf_neither_peers_nor_posts_nor_scans() -> None:
    settings = kopf.OperatorSettings()
    handlers.configure_kopf(settings)
    assert settings.peering.standalone
    assert not settings.posting.enabled
    assert settings.scanning.disabled


def variables(section: type, before: str = "") -> set[str]:
    """Paths of all single settings below a section."""
    found = set[str]()
    for name, field in section.model_fields.items():  # type: ignore[attr-defined]
        inner = field.annotation
        if isinstance(inner, type) and hasattr(inner, "model_fields"):
            found |= variables(inner, f"{before}{name}.")
        elif name != "profiles":
            found.add(f"{before}{name}")
    return found


def test_the_documents_name_every_setting_with_its_default_and_no_other() -> None:
    rows = dict(re.findall(r"^\| `([a-z_.]+)` \|([^|]*)\|", DOCUMENT.read_text(), re.MULTILINE))
    profile = {f"prometheus.profiles.name.{name}" for name in variables(PrometheusConnection)}
    assert set(rows) == variables(Settings) | profile
    for path, stated in rows.items():
        if path.startswith("prometheus.profiles"):
            continue
        value: object = Settings()
        for step in path.split("."):
            value = getattr(value, step)
        shown = f"{value:g}" if isinstance(value, float) else str(value) if value not in ((), "", None) else ""
        assert stated.strip("` ") == shown, path


def test_the_prefix_of_variables_is_the_one_in_the_documents() -> None:
    assert f"{PREFIX}LEASE_DURATION_SECONDS" in DOCUMENT.read_text()
