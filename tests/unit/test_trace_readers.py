"""Good traces: every format gives the same requests, and nothing about them is lost or guessed."""

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from kvplan_cli.traces import LoadedTrace, load_trace
from kvplan_operator.model.trace import RequestTrace

ROWS = [(0.0, 10, 5), (1.5, 20, 0), (2.25, 30, 7)]
CSV = "t_s,prompt_tokens,output_tokens\n" + "".join(f"{t},{p},{o}\n" for t, p, o in ROWS)
JSONL = "".join(json.dumps({"t_s": t, "in": p, "out": o}) + "\n" for t, p, o in ROWS)


def load(path: Path, content: bytes, spec: dict[str, str] | None = None, name: str = "chat") -> LoadedTrace:
    path.write_bytes(content)
    return load_trace(path, spec or {}, name)


def facts(trace: RequestTrace) -> list[tuple[float, float, float]]:
    assert trace.arrival_seconds is not None
    assert trace.prompt_tokens is not None
    return list(zip(trace.arrival_seconds, trace.prompt_tokens, trace.output_tokens, strict=True))


def parquet_bytes(columns: dict[str, list[object]], folder: Path) -> bytes:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = folder / "made.parquet"
    parquet.write_table(pyarrow.table(columns), path)
    return path.read_bytes()


def row_bytes(suffix: str, folder: Path) -> bytes:
    if suffix == "parquet":
        times, prompts, outputs = (list(column) for column in zip(*ROWS, strict=True))
        return parquet_bytes({"t_s": times, "in": prompts, "out": outputs}, folder)
    text = {"csv": CSV, "tsv": CSV.replace(",", "\t")}
    return text.get(suffix, JSONL).encode()


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "ndjson", "parquet"])
def test_every_format_gives_the_same_requests(suffix: str, packed: bool, tmp_path: Path) -> None:
    content = row_bytes(suffix, tmp_path)
    path = tmp_path / f"a.{suffix}{'.gz' if packed else ''}"
    loaded = load(path, gzip.compress(content) if packed else content)
    assert facts(loaded.traces[0]) == ROWS
    assert loaded.report.bad.count == 0
    assert loaded.report.empty_outputs == 1


def test_gzip_is_recognised_without_its_suffix(tmp_path: Path) -> None:
    assert facts(load(tmp_path / "a.csv", gzip.compress(CSV.encode())).traces[0]) == ROWS


@pytest.mark.parametrize("line_end", ["\n", "\r\n"], ids=["unix", "dos"])
def test_a_byte_order_mark_semicolons_and_blank_lines_are_taken(line_end: str, tmp_path: Path) -> None:
    text = "\ufeff" + CSV.replace(",", ";").replace("\n", "\n\n").replace("\n", line_end)
    assert facts(load(tmp_path / "a.csv", text.encode()).traces[0]) == ROWS


def test_a_last_line_without_its_end_counts(tmp_path: Path) -> None:
    assert facts(load(tmp_path / "a.csv", CSV.rstrip("\n").encode()).traces[0]) == ROWS


UNITS = {"s": "2", "ms": "2000", "us": "2000000", "iso": "1970-01-01 00:00:02.0000000"}


@pytest.mark.parametrize("unit", UNITS)
def test_arrival_units_become_seconds(unit: str, tmp_path: Path) -> None:
    text = f"when,output_tokens\n{UNITS[unit]},1\n"
    trace = load(tmp_path / "a.csv", text.encode(), {"arrival": "when", "arrivalUnit": unit}).traces[0]
    assert trace.arrival_seconds is not None
    assert trace.arrival_seconds.tolist() == pytest.approx([2.0])


def test_parquet_times_are_dates(tmp_path: Path) -> None:
    when = [datetime(1970, 1, 1, 0, 0, 3, tzinfo=UTC)]
    content = parquet_bytes({"when": list(when), "out": [4]}, tmp_path)
    trace = load(tmp_path / "a.parquet", content, {"arrival": "when", "arrivalUnit": "iso"}).traces[0]
    assert trace.arrival_seconds is not None
    assert trace.arrival_seconds.tolist() == [3.0]


def test_unsorted_times_are_sorted_with_their_rows_and_reported(tmp_path: Path) -> None:
    text = "t_s,output_tokens,h\n3,30,7 8\n1,10,1\n2,20,5 6 9\n4,40,\n"
    loaded = load(tmp_path / "a.csv", text.encode())
    trace = loaded.traces[0]
    assert trace.arrival_seconds is not None
    assert trace.blocks is not None
    assert trace.arrival_seconds.tolist() == [1, 2, 3, 4]
    assert trace.output_tokens.tolist() == [10, 20, 30, 40]
    assert trace.blocks.lengths.tolist() == [1, 3, 2, 0]
    assert trace.blocks.ids.tolist() == [1, 5, 6, 9, 7, 8]
    assert "2 requests were out of order in time and were sorted" in loaded.report.remarks()


def test_a_class_column_splits_the_file_by_class(tmp_path: Path) -> None:
    text = "t_s,output_tokens,kind\n0,1,code\n1,2,chat\n2,3,code\n3,4,\n"
    loaded = load(tmp_path / "a.csv", text.encode(), {"class": "kind"}, name="")
    assert {trace.name: trace.output_tokens.tolist() for trace in loaded.traces} == {
        "chat": [2],
        "code": [1, 3],
    }
    assert loaded.report.bad.examples == ((5, "kind: empty"),)


def test_an_empty_key_is_no_key(tmp_path: Path) -> None:
    trace = load(tmp_path / "a.csv", b"output_tokens,user\n1,ann\n2,\n3,bob\n4,ann\n", {"key": "user"}).traces[0]
    assert trace.keys is not None
    assert trace.keys.tolist() == [0, -1, 1, 0]
    assert trace.key_names == ("ann", "bob")


SPELLINGS = {
    "a JSON list": '{"out": 1, "h": [4, 5]}',
    "a JSON list as text": '{"out": 1, "h": "[4, 5]"}',
    "numbers separated by blanks": '{"out": 1, "h": "4 5"}',
    "numbers separated by bars": '{"out": 1, "h": "4|5"}',
    "numbers as texts": '{"out": 1, "h": ["4", "5"]}',
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_blocks_are_read_in_every_spelling(spelling: str, tmp_path: Path) -> None:
    blocks = load(tmp_path / "a.jsonl", SPELLINGS[spelling].encode()).traces[0].blocks
    assert blocks is not None
    assert blocks.ids.tolist() == [4, 5]


def test_block_hashes_of_any_kind_keep_their_identity(tmp_path: Path) -> None:
    big = 2**64 - 1
    rows = [{"out": 1, "h": ["ab", big, -7]}, {"out": 1, "h": ["ab", big, -8]}]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    blocks = load(tmp_path / "a.jsonl", text.encode()).traces[0].blocks
    assert blocks is not None
    first, second = blocks.ids[:3].tolist(), blocks.ids[3:].tolist()
    assert first[:2] == second[:2]
    assert len({*first, *second}) == 4


def test_an_optional_field_may_be_absent_from_the_first_object(tmp_path: Path) -> None:
    trace = load(tmp_path / "a.jsonl", b'{"out": 1}\n{"out": 2, "h": [3]}\n').traces[0]
    assert trace.blocks is not None
    assert trace.blocks.lengths.tolist() == [0, 1]


def test_rows_beyond_one_chunk_are_all_there(tmp_path: Path) -> None:
    count = 20_000
    text = "output_tokens\n" + "\n".join(map(str, range(count))) + "\nx\n"
    loaded = load(tmp_path / "a.csv", text.encode())
    assert np.array_equal(loaded.traces[0].output_tokens, np.arange(count))
    assert loaded.report.bad.examples == ((count + 2, "output_tokens: not a number ('x')"),)
