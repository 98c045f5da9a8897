"""Golden files of the table contract: every implementation, writer or reader, must reproduce them.

``KVPLAN_REGENERATE=1`` rewrites the files from this implementation; review the difference like code.
"""

import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from kvplan_solver.cacheroute.keys import HASH_NAME, fingerprint, key_hash, to_hex
from kvplan_solver.cacheroute.table import (
    EncodedTable,
    Home,
    TableKeys,
    encode_table,
    json_schema,
    read_index,
    read_table,
)

GOLDEN = Path(__file__).parent / "table"
SCHEMA = Path(__file__).parents[2] / "docs/contracts/index.schema.json"
SECRET = b"kvplan contract secret 1"
REGENERATE = os.environ.get("KVPLAN_REGENERATE") == "1"

KEYS = [
    ("chat", "header:x-tenant-id", "acme"),
    ("chat", "header:x-tenant-id", "Zoë & söhne"),
    ("chat", "field:prompt_cache_key", ""),
    ("code", "field:user", "acme"),
    ("summarise", "prefix:512", "You are a careful assistant."),
]


def head(mode: str) -> dict[str, Any]:
    """A head that uses every field of the schema."""
    routes = [{"configuration": "tp2", "shareMilli": 1000, "reservationTokens": 2048}] if mode == "plan" else []
    return {
        "epoch": 1_760_000_000,
        "generation": 7,
        "mode": mode,
        **({"planDigest": "5f" * 32, "blockTokens": 16} if mode == "plan" else {}),
        "hash": {"name": HASH_NAME, "fingerprint": fingerprint(SECRET)},
        "classes": [
            {
                "name": "chat",
                "match": {"model": "chat-large", "headers": [{"name": "x-class", "exact": "chat"}]},
                "keyRules": [
                    {"kind": "header", "name": "x-tenant-id"},
                    {"kind": "field", "name": "prompt_cache_key"},
                    {"kind": "prefix", "bytes": 512},
                ],
                "tenant": "acme",
                "routes": routes,
                "admitMilli": 1000,
                "reservedPromptTokens": 1536,
                "maxPromptTokens": 8192,
                "maxOutputTokens": 1024,
                "cachedPrefixTokens": 512,
                "queue": {"maxLength": 64, "deadlineMilliseconds": 2000},
                "shed": "429",
            }
        ],
        "unmatched": "ColdTail",
        "grids": {"promptTokens": [16, 64, 256, 1024, 4096], "interarrivalMicroseconds": [100, 1000, 10000]},
        "routers": [{"identity": "router-0/0", "shareMilli": 500}, {"identity": "router-1/0", "shareMilli": 500}],
        "slots": [
            {
                "slot": f"tp2-{n}",
                "configuration": "tp2",
                "budgetTokens": 100_000,
                "weightMilli": 1000,
                "podUID": f"0000000{n}-0000-4000-8000-000000000000",
                "podName": f"chat-tp2-{n}",
                "address": f"10.0.0.{n}:8000",
                "state": state,
            }
            for n, state in enumerate(["serving", "serving", "draining"])
        ],
    }


def table_keys() -> TableKeys:
    homes = (
        Home(("tp2-0", "tp2-1"), None),
        Home(("tp2-0",), "tp2-1"),
        Home(("tp2-1",), "tp2-0"),
        Home(("tp2-1",), "tp2-2"),
    )
    hashes = [key_hash(SECRET, *key) for key in KEYS]
    return TableKeys(homes, hashes, [9.5, 4.25, 2.0, 1.0, 0.5], [0, 1, 2, 2, 3])


CASES: dict[str, EncodedTable] = {
    "observe": encode_table("demo", head("observe"), TableKeys((), [], [], [])),
    "inline": encode_table("demo", head("plan"), table_keys()),
    "sharded": encode_table("demo", head("plan"), table_keys(), inline_keys_max=0),
}


def golden(path: Path, content: bytes) -> bytes:
    """The golden bytes; rewritten first when regenerating."""
    if REGENERATE:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return path.read_bytes()


def as_json(value: object) -> bytes:
    return (json.dumps(value, indent=1, sort_keys=True) + "\n").encode()


def test_keys_hash_to_the_golden_values() -> None:
    vectors = {
        "name": HASH_NAME,
        "secretHex": SECRET.hex(),
        "fingerprint": fingerprint(SECRET),
        "keys": [
            {"class": c, "rule": rule, "value": value, "hash": to_hex(key_hash(SECRET, c, rule, value))}
            for c, rule, value in KEYS
        ],
    }
    assert golden(GOLDEN / "key-hash.json", as_json(vectors)) == as_json(vectors)


@pytest.mark.parametrize("case", CASES)
def test_writer_reproduces_the_golden_index_and_shards(case: str) -> None:
    encoded = CASES[case]
    assert golden(GOLDEN / f"{case}.index.json", encoded.index.encode()).decode() == encoded.index
    for shard in encoded.shards:
        assert golden(GOLDEN / f"{shard.name}.bin", shard.data) == shard.data


@pytest.mark.parametrize("case", CASES)
def test_reader_finds_in_the_golden_files_what_was_written(case: str) -> None:
    index = read_index((GOLDEN / f"{case}.index.json").read_bytes())
    shards = {path.stem: path.read_bytes() for path in sorted(GOLDEN.glob("*.bin"))}
    table = read_table(index, shards, fingerprint=fingerprint(SECRET))
    found = {to_hex(key_hash(SECRET, *key)): table.lookup(key_hash(SECRET, *key)) for key in KEYS}
    lookups = {
        key: home and {"destinations": list(home.destinations), "backup": home.backup or ""}
        for key, home in found.items()
    }
    assert golden(GOLDEN / f"{case}.lookups.json", as_json(lookups)) == as_json(lookups)
    assert table.order == (1_760_000_000, 7)
    assert len(table) == (0 if case == "observe" else len(KEYS))


def test_no_text_of_a_key_reaches_the_published_table() -> None:
    for case in ("inline", "sharded"):
        published = CASES[case].index + "".join(shard.data.decode("latin-1") for shard in CASES[case].shards)
        assert "söhne" not in published
        assert "careful assistant" not in published


def test_published_schema_is_the_one_the_reader_checks() -> None:
    assert golden(SCHEMA, as_json(json_schema())) == as_json(json_schema())
    jsonschema.Draft202012Validator.check_schema(json_schema())


@pytest.mark.parametrize("case", CASES)
def test_golden_index_satisfies_the_published_schema(case: str) -> None:
    document = json.loads((GOLDEN / f"{case}.index.json").read_text())
    jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text())).validate(document)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("mode",), "Plan"),
        (("generation",), -1),
        (("generation",), "7"),
        (("hashBits",), 32),
        (("unmatched",), None),
        (("classes", 0, "shed"), "503"),
        (("classes", 0, "admitMilli"), 1001),
        (("classes", 0, "keyRules", 0, "kind"), "cookie"),
        (("classes", 0, "extra"), 1),
        (("slots", 0, "slot"), "tp2"),
        (("slots", 0, "state"), "Serving"),
        (("inline", "keys", "XYZ"), 0),
        (("inline", "homes", 0, "destinations"), []),
        (("top", 0, "hash"), "0"),
        (("grids", "promptTokens"), []),
    ],
)
def test_schema_and_reader_refuse_the_same_documents(path: tuple[Any, ...], value: object) -> None:
    from kvplan_solver.cacheroute.table.index import SHAPE

    document = json.loads(CASES["inline"].index)
    place = document
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    assert list(jsonschema.Draft202012Validator(json_schema()).iter_errors(document))
    with pytest.raises(ValueError, match="index"):
        SHAPE.check(document, "index")
