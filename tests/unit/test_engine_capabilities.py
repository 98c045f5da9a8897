"""Which flags a version knows."""

import pytest

from kvplan_operator.plan.engine_capabilities import CAPABILITIES, OLDEST, knows, unknown_flags, version_of_image

KNOWN: dict[str, tuple[str | None, str, bool]] = {
    "an old flag on the oldest version": ("0.9.2", "max-num-seqs", True),
    "a young flag one release too early": ("0.31.9", "max-num-active-seqs", False),
    "a young flag on its first release": ("0.32.0", "max-num-active-seqs", True),
    "releases count as numbers": ("0.9.0", "shutdown-timeout", False),
    "a major release is later": ("1.0", "max-num-active-seqs", True),
    "nobody states the version": (None, "max-num-active-seqs", True),
    "a flag of the user's own": ("0.9", "enable-lora", True),
}


@pytest.mark.parametrize(("version", "flag", "known"), KNOWN.values(), ids=KNOWN.keys())
def test_a_version_knows_a_flag_since_its_release(version: str | None, flag: str, known: bool) -> None:
    assert knows(version, flag) is known


def test_unknown_flags_are_named_in_order() -> None:
    assert unknown_flags("0.20.1", ["watermark", "max-num-seqs", "max-num-active-seqs"]) == (
        "max-num-active-seqs",
        "watermark",
    )


def test_every_entry_says_how_it_is_known_and_is_no_older_than_the_table() -> None:
    assert all(entry.source and entry.since >= OLDEST for entry in CAPABILITIES.values())


IMAGES = {
    "vllm/vllm-openai:v0.32.0": "0.32.0",
    "registry:5000/team/vllm:0.31.2-cu130": "0.31.2",
    "vllm/vllm-openai:v0.32.0@sha256:abc": "0.32.0",
    "vllm/vllm-openai:latest": None,
    "registry:5000/vllm": None,
    "": None,
}


@pytest.mark.parametrize(("image", "version"), IMAGES.items())
def test_a_tag_states_the_version(image: str, version: str | None) -> None:
    assert version_of_image(image) == version
