"""Every way in which a trace file cannot be used is one clear error that names file, problem and remedy."""

import gzip
from collections.abc import Mapping
from pathlib import Path

import pytest

from kvplan_cli.traces import TraceError, load_trace

GOOD = b"t_s,prompt_tokens,output_tokens\n0,10,5\n1,20,6\n"

UNUSABLE: dict[str, tuple[str, bytes, Mapping[str, str], str]] = {
    "an empty file": ("a.csv", b"", {}, "the file is empty"),
    "an empty gzip file": ("a.csv.gz", b"", {}, "the file is empty"),
    "a gzip file of nothing": ("a.csv.gz", gzip.compress(b""), {}, "no header line"),
    "a header without rows": ("a.csv", b"t_s,output_tokens\n", {}, "no rows below the header"),
    "a blank first line": ("a.csv", b"\n\n", {}, "no header line"),
    "rows without a header": ("a.csv", b"0,10,5\n1,20,6\n", {}, "names no columns"),
    "a header with an open quote": ("a.csv", b'"t_s,output_tokens\n0,1\n', {}, "the header line is no CSV"),
    "a column name twice": ("a.csv", b"t_s,output_tokens,t_s\n0,1,2\n", {}, "'t_s' stands twice"),
    "no output column": ("a.csv", b"t_s,words\n0,1\n", {}, "no output token column among 't_s', 'words'"),
    "a mapped column that is missing": ("a.csv", GOOD, {"key": "user"}, "no column 'user' for key"),
    "only bad rows": ("a.csv", b"output_tokens\nx\n-1\n", {}, "no good row: 2 bad rows"),
    "a file named gz that is none": ("a.csv.gz", GOOD, {}, "named .gz but not gzip-compressed"),
    "a cut gzip stream": ("a.csv.gz", gzip.compress(GOOD)[:-9], {}, "ends too early"),
    "a gzip stream with a flipped byte": (
        "a.csv.gz", gzip.compress(GOOD)[:-8] + bytes(8), {}, "the gzip stream is damaged",
    ),
    "text in Latin-1": ("a.csv", "output_tokens,société\n1,é\n".encode("latin-1"), {}, "not UTF-8"),
    "text in UTF-16": ("a.csv", GOOD.decode().encode("utf-16"), {}, "not UTF-8 after line 0 (byte 0xff)"),
    "a NUL byte": ("a.csv", GOOD + b"2,3\x00,4\n", {}, "line 4 holds a NUL byte"),
    "a quote that never ends": ("a.csv", GOOD + b'2,"3,4\n5,6,7\n', {}, "line 4 is no CSV"),
    "an unknown format": ("a.xlsx", GOOD, {}, "unknown format '.xlsx'"),
    "a class column and a class name": ("a.csv", GOOD, {"class": "t_s"}, "a class name and a class column"),
    "JSON lines that are no objects": ("a.jsonl", b"[1]\n2\n", {}, "line 1: no JSON object"),
    "JSON lines that are no JSON": ("a.jsonl", b"{oops\n", {}, "line 1: no JSON"),
    "JSON lines with nothing but blanks": ("a.jsonl", b"\n  \n", {}, "the file has no lines"),
    "JSON lines of bottomless nesting": ("a.jsonl", b"[" * 200_000, {}, "line 1: no JSON"),
    "a Parquet file that is none": ("a.parquet", GOOD, {}, "no readable Parquet"),
    "a gzip Parquet file that is none": ("a.parquet.gz", gzip.compress(GOOD), {}, "no readable Parquet"),
}  # fmt: skip


@pytest.mark.parametrize("case", UNUSABLE, ids=list(UNUSABLE))
def test_a_file_that_cannot_be_used_is_one_clear_error(case: str, tmp_path: Path) -> None:
    name, content, spec, problem = UNUSABLE[case]
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(TraceError) as caught:
        load_trace(path, spec, "chat")
    assert problem in str(caught.value)
    assert str(caught.value).startswith(str(path))
    assert caught.value.remedy


BAD_ROWS: dict[str, tuple[str, str]] = {
    "text instead of tokens": ("0,10,five", "output_tokens: not a number ('five')"),
    "no tokens": ("0,10,", "output_tokens: empty"),
    "negative tokens": ("0,-10,5", "prompt_tokens: negative tokens ('-10')"),
    "a fraction of a token": ("0,10,5.5", "output_tokens: not a whole number ('5.5')"),
    "NaN tokens": ("0,10,nan", "output_tokens: NaN ('nan')"),
    "infinite tokens": ("0,10,inf", "output_tokens: infinite or too large ('inf')"),
    "tokens beyond every model": ("0,10,123456789123", "output_tokens: more than 1e+08 tokens"),
    "tokens beyond every float": ("0,10,1e999", "output_tokens: infinite or too large ('1e999')"),
    "digits with underscores": ("0,10,1_000", "output_tokens: not a number ('1_000')"),
    "a negative time": ("-1,10,5", "t_s: negative arrival time ('-1')"),
    "a time in a smaller unit": ("1700000000000000,10,5", "t_s: arrival time too large for its unit"),
    "a missing field": ("0,10", "wrong number of fields (2 instead of 3)"),
    "a field too many": ("0,10,5,7", "wrong number of fields (4 instead of 3)"),
}


@pytest.mark.parametrize("case", BAD_ROWS, ids=list(BAD_ROWS))
def test_a_bad_row_is_left_out_counted_and_named_by_line(case: str, tmp_path: Path) -> None:
    row, reason = BAD_ROWS[case]
    path = tmp_path / "a.csv"
    path.write_bytes(GOOD + row.encode() + b"\n3,40,8\n")
    loaded = load_trace(path, {}, "chat")
    assert loaded.traces[0].output_tokens.tolist() == [5, 6, 8]
    assert (loaded.report.rows, loaded.report.bad.count) == (4, 1)
    line, found = loaded.report.bad.examples[0]
    assert (line, found[: len(reason)]) == (4, reason)


BAD_OBJECTS: dict[str, tuple[str, str]] = {
    "a broken line": ("{", "no JSON"),
    "a list instead of an object": ("[1]", "no JSON object"),
    "a missing field": ('{"t_ms": 1, "in": 3}', "out: empty"),
    "a truth value": ('{"t_ms": 1, "in": 3, "out": true}', "out: not a number (True)"),
    "a list of tokens": ('{"t_ms": 1, "in": 3, "out": [4]}', "out: not a number ([4])"),
    "an integer of hundreds of digits": (f'{{"t_ms": 1, "in": 3, "out": {"9" * 400}}}', "out: infinite or"),
    "an integer of thousands of digits": (f'{{"t_ms": 1, "in": 3, "out": {"9" * 5000}}}', "no JSON"),
    "NaN": ('{"t_ms": 1, "in": 3, "out": NaN}', "out: NaN"),
    "blocks that are no list": (
        '{"t_ms": 1, "in": 3, "out": 4, "h": {"a": 1}}',
        "h: blocks are no list of ids",
    ),
    "blocks that are fractions": (
        '{"t_ms": 1, "in": 3, "out": 4, "h": [0.5]}',
        "h: blocks are no list of ids",
    ),
}


@pytest.mark.parametrize("case", BAD_OBJECTS, ids=list(BAD_OBJECTS))
def test_a_bad_object_is_left_out_counted_and_named_by_line(case: str, tmp_path: Path) -> None:
    row, reason = BAD_OBJECTS[case]
    path = tmp_path / "a.jsonl"
    path.write_text('{"t_ms": 0, "in": 3, "out": 4, "h": [0]}\n' + row + "\n")
    report = load_trace(path, {}, "chat").report
    assert (report.rows, report.bad.count) == (2, 1)
    line, found = report.bad.examples[0]
    assert (line, found[: len(reason)]) == (2, reason)


def test_a_file_without_line_ends_is_refused_before_it_fills_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kvplan_cli.traces.text.MAX_LINE", 50)
    path = tmp_path / "a.csv"
    path.write_bytes(GOOD + b"1" * 51)
    with pytest.raises(TraceError, match="line 4 is longer than 50 characters"):
        load_trace(path, {}, "chat")


def test_the_first_bad_rows_are_named_and_all_are_counted_by_kind(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(GOOD + b"2,1,x\n" * 7 + b"2,-1,1\n" * 2)
    bad = load_trace(path, {}, "chat").report.bad
    assert bad.count == 9
    assert [line for line, _ in bad.examples] == [4, 5, 6, 7, 8]
    assert bad.by_kind == (("output_tokens: not a number", 7), ("prompt_tokens: negative tokens", 2))
    assert bad.summary().startswith("9 bad rows (7 × output_tokens: not a number, 2 × ")


def test_a_row_with_two_problems_counts_once_for_the_first(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(GOOD + b"-1,-1,x\n")
    bad = load_trace(path, {}, "chat").report.bad
    assert bad.by_kind == (("t_s: negative arrival time", 1),)


def test_a_quoted_field_over_two_lines_keeps_the_line_numbers_right(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b'text,output_tokens\n"one\ntwo",3\nplain,x\nplain,4\n')
    report = load_trace(path, {}, "chat").report
    assert report.bad.examples == ((4, "output_tokens: not a number ('x')"),)


def test_a_missing_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"nowhere\.csv: cannot be read"):
        load_trace(tmp_path / "nowhere.csv", {}, "chat")


def test_a_folder_is_an_error_that_names_it(tmp_path: Path) -> None:
    folder = tmp_path / "folder.csv"
    folder.mkdir()
    with pytest.raises(TraceError, match=r"folder\.csv: cannot be read"):
        load_trace(folder, {}, "chat")


def test_parquet_without_pyarrow_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(b"PAR1")
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(TraceError, match=r"pip install 'kvplan\[traces\]'"):
        load_trace(path, {}, "chat")


def test_a_packed_parquet_file_beyond_the_limit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kvplan_cli.traces.parquet_table.MAX_UNPACKED_BYTES", 100)
    path = tmp_path / "a.parquet.gz"
    path.write_bytes(gzip.compress(bytes(101)))
    with pytest.raises(TraceError, match="unpacks to more than"):
        load_trace(path, {}, "chat")
