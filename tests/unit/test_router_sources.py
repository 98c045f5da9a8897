"""Where tables come from: files, mounted volumes, the expansion of shards, and refusals that change nothing."""

import asyncio
import os
from collections.abc import AsyncIterator, Coroutine, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from e2e.router.tables import SECRET, WrittenTable
from kvplan_router.source.expansion import ExpansionFailed, expand
from kvplan_router.source.files import FileSource
from kvplan_router.source.keeper import EXPANSION_FAILED, INSTALL_FAILED, TableKeeper
from kvplan_solver.cacheroute.keys import fingerprint, key_hash
from kvplan_solver.cacheroute.table import EncodedTable, Index, RefusalReason, Table, TableRefused, read_index

PLAIN = WrittenTable(["127.0.0.1:8000", "127.0.0.1:8001"], homes={"a": [0], "b": [0, 1]})
SHARDED = replace(PLAIN, inline_keys_max=0)


def run(test: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(test, 30))


async def first(texts: AsyncIterator[bytes], number: int) -> list[bytes]:
    return [await anext(texts) for _ in range(number)]


def test_a_file_is_read_once_and_again_when_it_is_replaced(tmp_path: Path) -> None:
    async def scenario() -> None:
        texts = FileSource(tmp_path / "index.json", look_seconds=0.001).texts()
        waiting = asyncio.ensure_future(anext(texts))
        await asyncio.sleep(0)
        (tmp_path / "index.json").write_text("one")
        assert await waiting == b"one"
        (tmp_path / "new").write_text("two")
        (tmp_path / "new").replace(tmp_path / "index.json")
        assert await anext(texts) == b"two"

    run(scenario())


def test_a_volume_of_the_kubelet_changes_by_a_swap_of_links(tmp_path: Path) -> None:
    """``index.json`` → ``..data/index.json`` → ``..<time>/index.json``: only the middle link is replaced."""
    for name, text in (("..1", "one"), ("..2", "two")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "index.json").write_text(text)
    (tmp_path / "..data").symlink_to("..1")
    (tmp_path / "index.json").symlink_to("..data/index.json")

    async def scenario() -> None:
        texts = FileSource(tmp_path, look_seconds=0.001).texts()
        assert await anext(texts) == b"one"
        (tmp_path / "..tmp").symlink_to("..2")
        (tmp_path / "..tmp").replace(tmp_path / "..data")
        assert await anext(texts) == b"two"

    run(scenario())


def test_of_an_oversized_file_no_more_is_read_than_shows_that_it_is(tmp_path: Path) -> None:
    (tmp_path / "index.json").write_bytes(b" " * 3_000_000)
    [text] = run(first(FileSource(tmp_path).texts(), 1))
    assert len(text) == 1_048_577
    with pytest.raises(TableRefused, match="Oversized"):
        read_index(text)


def expanded(encoded: EncodedTable, shards: Mapping[str, bytes] | None = None) -> Table:
    text = encoded.index.encode()
    given = {shard.name: shard.data for shard in encoded.shards} if shards is None else shards
    table: Table = run(expand(read_index(text), text, given, fingerprint(SECRET)))
    return table


def test_an_expanded_table_is_mapped_and_finds_what_was_written() -> None:
    table = expanded(SHARDED.encoded())
    home = table.lookup(key_hash(SECRET, "chat", "header:x-tenant-id", "b"))
    assert home is not None
    assert home.destinations == ("tp1-0", "tp1-1")
    assert table.lookup(key_hash(SECRET, "chat", "header:x-tenant-id", "unknown")) is None
    assert (len(table), table.nbytes, table.order) == (2, 24, (1, 1))
    assert {type(column) for column in table.columns} == {memoryview}


@pytest.mark.parametrize(
    ("shards", "reason"),
    [({}, RefusalReason.SHARD_MISSING), ({"flip": b""}, RefusalReason.SHARD_DIGEST)],
    ids=["a missing shard", "a torn shard"],
)
def test_a_bad_shard_is_refused_by_the_child_with_its_reason(shards: dict[str, bytes], reason: RefusalReason) -> None:
    encoded = SHARDED.encoded()
    given = {encoded.shards[0].name: encoded.shards[0].data[:-1]} if shards else {}
    with pytest.raises(TableRefused) as refused:
        expanded(encoded, given)
    assert refused.value.reason is reason


def test_a_child_that_dies_is_no_refusal_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kvplan_router.source.expansion.sys.executable", "/bin/false")
    with pytest.raises(ExpansionFailed, match="status 1"):
        expanded(SHARDED.encoded())


class Texts:
    """A source of given texts."""

    def __init__(self, *texts: str, shards: Mapping[str, bytes] | None = None) -> None:
        self._texts, self._shards = texts, shards or {}

    async def texts(self) -> AsyncIterator[bytes]:
        for text in self._texts:
            yield text.encode()

    async def shards(self, names: Iterable[str]) -> Mapping[str, bytes]:
        return {name: self._shards[name] for name in names if name in self._shards}


def kept(source: Texts, fails: bool = False) -> tuple[TableKeeper, list[tuple[int, int]]]:
    installed: list[tuple[int, int]] = []

    def install(index: Index, table: Table) -> None:
        assert index.order == table.order
        if fails:
            raise KeyError("a fault of ours")
        installed.append(index.order)

    keeper = TableKeeper(source, install, fingerprint(SECRET), clock=lambda: 77.0)
    run(keeper.run())
    return keeper, installed


def test_newer_tables_follow_each_other_and_everything_else_is_counted() -> None:
    one, two = PLAIN.text(), PLAIN.next().text()
    foreign = two.replace('"ColdTail"', '"Reject"')
    conflicting = replace(PLAIN.next(), homes={}).text()
    keeper, installed = kept(Texts("", one, two, one, foreign, conflicting, two[:-40], two))
    assert installed == [(1, 1), (1, 2), (1, 2)]
    assert keeper.refusals == {"IndexChecksum": 3, "Stale": 1, "ConflictingGeneration": 1}
    assert (keeper.order, keeper.since, keeper.loaded.is_set()) == ((1, 2), 77.0, True)


def test_a_recreated_index_wins_over_a_higher_generation() -> None:
    _, installed = kept(Texts(replace(PLAIN, generation=9).text(), replace(PLAIN, epoch=2).text()))
    assert installed == [(1, 9), (2, 1)]


def test_a_table_with_shards_is_fetched_and_expanded() -> None:
    encoded = SHARDED.encoded()
    shards = {shard.name: shard.data for shard in encoded.shards}
    _, installed = kept(Texts(encoded.index, shards=shards))
    assert installed == [(1, 1)]


def test_a_shard_that_never_comes_is_asked_for_again_and_then_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kvplan_router.source.keeper.RETRY_SECONDS", 0.0)
    keeper, installed = kept(Texts(SHARDED.text()))
    assert (installed, keeper.refusals) == ([], {"ShardMissing": 1})


def test_a_fault_of_ours_leaves_the_old_table_and_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    keeper, _ = kept(Texts(PLAIN.text()), fails=True)
    assert (keeper.refusals, keeper.order) == ({INSTALL_FAILED: 1}, (0, 0))
    monkeypatch.setattr("kvplan_router.source.expansion.sys.executable", os.fspath("/bin/false"))
    encoded = SHARDED.encoded()
    keeper, _ = kept(Texts(encoded.index, shards={s.name: s.data for s in encoded.shards}))
    assert keeper.refusals == {EXPANSION_FAILED: 1}
