"""Classes and keys: which class a request has, and which key."""

import json
from typing import Any

import pytest

from kvplan_router.core.body import prefix_value
from kvplan_router.core.classes import Match
from kvplan_router.core.keys import NoKey, compile_rules, key_of
from kvplan_router.core.values import Request
from kvplan_solver.cacheroute.keys import key_hash
from kvplan_solver.errors import InvalidInput
from tests.unit.router_world import SECRET

CHAT = b'{"model": "m", "messages": [{"role": "user", "content": "hello"}], "user": "u"}'
EXACT = {"headers": [{"name": "X-Class", "exact": "chat"}]}

MATCHES: dict[str, tuple[dict[str, Any], dict[str, str], bytes | None, bool | None]] = {
    "no condition takes everything": ({}, {}, None, True),
    "an exact header": (EXACT, {"x-class": "chat"}, None, True),
    "another value of it": (EXACT, {"x-class": "chat2"}, None, False),
    "a header that is not there": (EXACT, {}, None, False),
    "a prefix": ({"headers": [{"name": "x-class", "prefix": "ch"}]}, {"x-class": "chat"}, None, True),
    "another prefix": ({"headers": [{"name": "x-class", "prefix": "co"}]}, {"x-class": "chat"}, None, False),
    "presence, where no value is asked for": ({"headers": [{"name": "x-class"}]}, {"x-class": ""}, None, True),
    "a model in a header needs no body": ({"model": "m"}, {"x-gateway-model-name": "m"}, None, True),
    "a model needs the body": ({"model": "m"}, {}, None, None),
    "a model in the body": ({"model": "m"}, {}, CHAT, True),
    "another model": ({"model": "n"}, {}, CHAT, False),
    "a body that is none": ({"model": "m"}, {}, b"", False),
    "a wrong header settles it without the body": ({"model": "m"} | EXACT, {}, None, False),
}  # fmt: skip


@pytest.mark.parametrize("sentence", MATCHES)
def test_a_class_matches(sentence: str) -> None:
    match, headers, body, expected = MATCHES[sentence]
    assert Match(match, "x-gateway-model-name").holds(Request(headers, 0.0, body)) is expected


RULES: list[dict[str, Any]] = [
    {"kind": "header", "name": "X-Tenant-ID"},
    {"kind": "field", "name": "prompt_cache_key"},
    {"kind": "field", "name": "user"},
    {"kind": "prefix", "bytes": 9},
]

KEYS: dict[str, tuple[dict[str, str], bytes | None, tuple[str, str | bytes] | None]] = {
    "the header comes first": ({"x-tenant-id": "t"}, CHAT, ("header:x-tenant-id", "t")),
    "an empty header finds nothing": ({"x-tenant-id": ""}, CHAT, ("field:user", "u")),
    "a field": ({}, b'{"prompt_cache_key": "k", "user": "u"}', ("field:prompt_cache_key", "k")),
    "a field that is no text finds nothing": ({}, b'{"prompt_cache_key": 7, "user": "u"}', ("field:user", "u")),
    "the first bytes of the prompt": (
        {},
        b'{"model": "m", "cache_salt": "s", "prompt": "hello there"}',
        ("prefix:9", b"\0\0\0\x01m\0\0\0\x01s\x1fhello th"),
    ),
    "nothing at all": ({}, b"{}", None),
    "no body": ({}, b"", None),
    "a body that is no object": ({}, b"[1]", None),
}


@pytest.mark.parametrize("sentence", KEYS)
def test_the_first_rule_that_finds_a_value_makes_the_key(sentence: str) -> None:
    headers, body, expected = KEYS[sentence]
    rules = compile_rules(RULES, "chat", SECRET)
    assert key_of(rules, Request(headers, 0.0, body)) == (expected and key_hash(SECRET, "chat", *expected))


def test_the_body_is_needed_only_where_no_header_comes_first() -> None:
    rules = compile_rules(RULES, "chat", SECRET)
    assert key_of(rules, Request({}, 0.0)) is NoKey.NEED_BODY
    assert isinstance(key_of(rules, Request({"x-tenant-id": "t"}, 0.0)), int)


def test_a_rule_without_the_name_it_needs_is_left_out() -> None:
    assert compile_rules([{"kind": "header"}, {"kind": "field"}, {"kind": "prefix"}], "chat", SECRET) == ()


def test_a_secret_that_is_too_short_is_refused() -> None:
    with pytest.raises(InvalidInput, match="16 to 64 bytes"):
        compile_rules(RULES, "chat", b"short")


TEXTS: dict[str, tuple[Any, bytes]] = {
    "messages": ([{"role": "user", "content": "a"}, {"role": "tool", "content": "b"}], b"user\x1fa\x1etool\x1fb\x1e"),
    "text parts stand one after the other": (
        [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}],
        b"user\x1fab\x1e",
    ),
    "other parts are canonical JSON": (
        [{"role": "user", "content": [{"type": "image_url", "image_url": {"b": 1, "a": 2}}]}],
        b'user\x1f{"image_url":{"a":2,"b":1},"type":"image_url"}\x1e',
    ),
    "a message without content is JSON": ([{"role": "x"}], b'x\x1f{"role":"x"}\x1e'),
    "plain text": ("a prompt", b"\x1fa prompt\x1e"),
    "a list of prompts": (["a", "b"], b"\x1fa\x1e\x1fb\x1e"),
    "token ids": ([1, 2], b"\x1f1\x1e\x1f2\x1e"),
    "a lone surrogate": ("\ud800", b"\x1f\xed\xa0\x80\x1e"),
}


@pytest.mark.parametrize("sentence", TEXTS)
@pytest.mark.parametrize("field", ["messages", "input", "prompt"])
def test_the_canonical_text_of(sentence: str, field: str) -> None:
    value, text = TEXTS[sentence]
    assert prefix_value({field: value}, 4096) == b"\0" * 8 + text


def test_the_order_of_fields_and_blanks_do_not_matter() -> None:
    one = {"model": "m", "messages": [{"role": "user", "content": [{"type": "x", "y": 1}]}]}
    again = json.loads(json.dumps({"messages": [{"content": [{"y": 1, "type": "x"}], "role": "user"}], "model": "m"}))
    assert prefix_value(one, 100) == prefix_value(again, 100)


def test_model_and_salt_are_part_of_the_key_and_cannot_pose_as_each_other() -> None:
    values = [
        prefix_value({"model": model, "cache_salt": salt, "prompt": "p"}, 9)
        for model, salt in (("ab", ""), ("a", "b"), ("", "ab"), ("", ""))
    ]
    assert len(set(values)) == 4


def test_only_the_first_bytes_count() -> None:
    assert prefix_value({"prompt": "hello there"}, 6) == prefix_value({"prompt": "hello world"}, 6)
    assert prefix_value({"prompt": "hello there"}, 9) != prefix_value({"prompt": "hello world"}, 9)
