"""The column spec: parsed strictly, detected only from well-known names."""

from pathlib import Path

import pytest

from kvplan_cli.traces import TraceError
from kvplan_cli.traces.mapping import parse_pairs, read_spec, resolve

KNOWN = {
    "a trace in seconds": (
        ["t_s", "prompt_tokens", "output_tokens"],
        "arrival=t_s,arrivalUnit=s,prompt=prompt_tokens,output=output_tokens",
    ),
    "lengths alone": (["prompt_tokens", "output_tokens"], "prompt=prompt_tokens,output=output_tokens"),
    "prefix blocks in milliseconds": (
        ["t_ms", "in", "out", "h"],
        "arrival=t_ms,arrivalUnit=ms,prompt=in,output=out,blocks=h,blockTokens=512",
    ),
    "the published Azure columns": (
        ["TIMESTAMP", "ContextTokens", "GeneratedTokens"],
        "arrival=TIMESTAMP,arrivalUnit=iso,prompt=ContextTokens,output=GeneratedTokens",
    ),
    "sessions whose times restart": (
        ["session", "t_s", "prompt_tokens", "output_tokens"],
        "prompt=prompt_tokens,output=output_tokens,key=session",
    ),
}


@pytest.mark.parametrize("case", KNOWN, ids=list(KNOWN))
def test_well_known_columns_are_detected(case: str) -> None:
    columns, described = KNOWN[case]
    mapping = resolve({}, columns, Path("a.csv"))
    assert mapping.described() == described
    assert resolve(parse_pairs(described), columns, Path("a.csv")) == mapping


def test_what_the_spec_says_beats_detection_and_an_empty_column_switches_it_off() -> None:
    spec = parse_pairs("arrival=,output=mine,blocks=h,blockTokens=16")
    mapping = resolve(spec, ["t_s", "output_tokens", "mine", "h"], Path("a.csv"))
    assert mapping.columns == ("mine", "h")
    assert mapping.block_tokens == 16


WRONG = {
    "a pair without =": ("arrival", "'arrival' is not key=column"),
    "an unknown key": ("when=t_s", "unknown key 'when'"),
    "a key twice": ("key=a,key=b", "'key=b' repeats a key"),
    "an unknown unit": ("arrivalUnit=hours", "arrivalUnit is 'hours'"),
    "a block of no tokens": ("blockTokens=0", "blockTokens is '0'"),
    "a block of text": ("blockTokens=x", "blockTokens is 'x'"),
    "nothing": ("", "'' is not key=column"),
}


@pytest.mark.parametrize("case", WRONG, ids=list(WRONG))
def test_a_wrong_spec_is_refused_with_a_remedy(case: str) -> None:
    text, problem = WRONG[case]
    with pytest.raises(TraceError) as caught:
        parse_pairs(text)
    assert problem in str(caught.value)


def test_a_spec_file_says_the_same_as_pairs(tmp_path: Path) -> None:
    path = tmp_path / "columns.yaml"
    path.write_text("arrival: t_s\narrivalUnit: ms\nblockTokens: 64\nkey:\n")
    assert read_spec(path) == parse_pairs("arrival=t_s,arrivalUnit=ms,blockTokens=64,key=")


WRONG_FILES = {
    "no mapping": ("- arrival\n", "not a YAML mapping"),
    "no YAML": ("a: [", "no readable YAML"),
    "a list as column": ("arrival: [a]\n", "arrival is ['a']"),
    "an unknown key": ("5: a\n", "unknown key 5"),
}


@pytest.mark.parametrize("case", WRONG_FILES, ids=list(WRONG_FILES))
def test_a_wrong_spec_file_is_refused_with_a_remedy(case: str, tmp_path: Path) -> None:
    text, problem = WRONG_FILES[case]
    path = tmp_path / "columns.yaml"
    path.write_text(text)
    with pytest.raises(TraceError) as caught:
        read_spec(path)
    assert problem in str(caught.value)


def test_a_missing_spec_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"none\.yaml: no readable YAML"):
        read_spec(tmp_path / "none.yaml")
