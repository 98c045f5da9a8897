"""Locks and images: every lock holds what its source asks for, and the Dockerfile installs nothing but locks."""

import re
import runpy
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
SOURCES = runpy.run_path(str(ROOT / "tools" / "lock.py"))["sources"]()
DOCKERFILE = (ROOT / "Dockerfile").read_text()


def pins(lock: str) -> dict[str, str]:
    """Versions by name."""
    text = (ROOT / "requirements" / f"{lock}.txt").read_text()
    return dict(re.findall(r"^([a-z0-9-]+)==([^ ]+)", text, re.MULTILINE))


@pytest.mark.parametrize("lock", SOURCES)
def test_a_lock_holds_what_its_source_asks_for(lock: str) -> None:
    found = pins(lock)
    for requirement in map(Requirement, SOURCES[lock]):
        name = requirement.name.lower().replace("_", "-")
        assert name in found, requirement
        assert requirement.specifier.contains(found[name]), f"{requirement}: run make lock"


@pytest.mark.parametrize("lock", SOURCES)
def test_every_pin_has_a_hash(lock: str) -> None:
    text = (ROOT / "requirements" / f"{lock}.txt").read_text()
    for entry in re.split(r"\n(?=[a-z0-9-]+==)", text)[1:]:
        assert "--hash=sha256:" in entry, entry


def test_the_dockerfile_installs_nothing_from_an_index_but_locks() -> None:
    installs = re.findall(r"^RUN .*pip install (.*)$", DOCKERFILE, re.MULTILINE)
    assert len(installs) >= 4
    for install in installs:
        assert "--require-hashes --requirement" in install or "--no-deps --no-index" in install, install


def stages() -> dict[str, str]:
    """Text of each stage of the Dockerfile."""
    parts = re.split(r"^FROM \S+ AS (\S+)$", DOCKERFILE, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


@pytest.mark.parametrize("target", ["operator", "router"])
def test_a_target_is_what_its_manifests_say(target: str) -> None:
    assert f'ENTRYPOINT ["kvplan-{target}"]' in stages()[target]
    assert f"kvplan-{target}" in PROJECT["project"]["scripts"]
    assert "USER 65532:65532" in stages()["runtime"]


def test_the_context_holds_only_what_the_dockerfile_copies() -> None:
    copied = {
        word for line in re.findall(r"^COPY (?!--from)(.*) \S+$", DOCKERFILE, re.MULTILINE) for word in line.split()
    }
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert {word.partition("/")[0] for word in copied} == allowed
    assert all((ROOT / word).exists() for word in copied)
