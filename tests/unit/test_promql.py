"""Query text is safe and bounded whatever the objects hold."""

import re
from collections.abc import Callable

import pytest

from kvplan_operator.model.engine_pods import pod_beginnings
from kvplan_operator.model.fleet_queries import Ask, fleet_queries, lengths_key
from kvplan_operator.model.promql import increase, labelled_union, selector, sum_by
from kvplan_solver.errors import InvalidInput
from tests.measuring import measured_class_of
from tests.planning import ROOT, fleet

SELECTORS = {
    "plain": ({"fleet": "ns/demo"}, 'm{fleet="ns/demo"}'),
    "quotes end no string": ({"a": 'x"} or vector(1) #'}, 'm{a="x\\"} or vector(1) #"}'),
    "a backslash escapes nothing": ({"a": 'x\\"'}, 'm{a="x\\\\\\""}'),
    "none": ({}, "m{}"),
}


@pytest.mark.parametrize(("labels", "text"), SELECTORS.values(), ids=SELECTORS.keys())
def test_label_values_stay_within_their_quotes(labels: dict[str, str], text: str) -> None:
    assert selector("m", labels) == text


REFUSED: dict[str, Callable[[], object]] = {
    "a metric that is an expression": lambda: selector("a[5m]", {}),
    "a label that is an expression": lambda: selector("a", {'x="",y': "z"}),
    "a line break in a value": lambda: selector("a", {"x": "1\n2"}),
    "a long value": lambda: selector("a", {"x": "y" * 513}),
    "a label to sum by": lambda: sum_by(("a) (b",), "x"),
    "a pod's name that is an expression": lambda: selector("a", {}, beginning={"pod": ["x|.*"]}),
    "the name of a part": lambda: labelled_union({'a","': "x"}),
}


@pytest.mark.parametrize("make", REFUSED.values(), ids=REFUSED.keys())
def test_what_no_query_may_carry_is_refused(make: Callable[[], object]) -> None:
    with pytest.raises(InvalidInput, match="query"):
        make()


def test_pieces_make_an_expression() -> None:
    grown = sum_by(("class", "le"), increase(selector("m_bucket", {"fleet": "a/b"}), 600))
    assert grown == 'sum by (class,le) (increase(m_bucket{fleet="a/b"}[600s]))'
    assert labelled_union({"x": "1"}) == 'label_replace(1,"part","x","","")'


def test_a_fleet_with_many_classes_asks_no_more_than_one_with_few() -> None:
    few = fleet_queries(fleet(), [measured_class_of("a")], ["demo-"])
    assert few == fleet_queries(fleet(), [measured_class_of(f"class-{n}") for n in range(100)], ["demo-"])
    assert set(few) == set(Ask) - {Ask.OUTPUT_TOKENS_BEFORE}


def test_engines_are_asked_about_by_how_their_pods_are_called() -> None:
    (caches,) = [text for ask, text in fleet_queries(fleet(), [], ["a-1.b", "c"]).items() if ask == Ask.ENGINE_CACHES]
    assert 'vllm:cache_config_info{namespace="default",pod=~"(a-1[.]b|c).*"}' in caches
    assert not set(fleet_queries(fleet(), [])) & {Ask.ENGINE_SUMS, Ask.ENGINE_CACHES, Ask.ENGINE_BATCHES}


BEGINNINGS: dict[str, tuple[dict[str, list[str]], tuple[str, ...]]] = {
    "no pod": ({"tp1": []}, ()),
    "one pod is its own beginning": ({"tp1": ["demo-x-abc"]}, ("demo-x-abc",)),
    "pods of one configuration": ({"tp1": ["demo-x-abc", "demo-y-def"]}, ("demo-",)),
    "configurations apart": ({"tp1": ["chat-a", "chat-b"], "tp2": ["big-a"]}, ("big-a", "chat-")),
    "one covers the other": ({"tp1": ["demo-a", "demo-b"], "tp2": ["demo-c-1", "demo-c-2"]}, ("demo-",)),
    "nothing in common": ({"tp1": ["a", "b"], "tp2": ["c"]}, ("",)),
}


@pytest.mark.parametrize(("pods", "expected"), BEGINNINGS.values(), ids=BEGINNINGS.keys())
def test_beginnings_of_names_are_few_and_miss_no_pod(pods: dict[str, list[str]], expected: tuple[str, ...]) -> None:
    assert pod_beginnings(pods) == expected


def test_the_window_before_is_asked_only_for_an_automatic_radius() -> None:
    auto = fleet(uncertainty={"radius": {"auto": True}, "windowSeconds": 900})
    assert "[900s] offset 900s" in fleet_queries(auto, [])[Ask.OUTPUT_TOKENS_BEFORE]


@pytest.mark.parametrize("routing", [{"mode": "Off"}, {"affinity": "Off"}])
def test_keys_are_not_asked_for_where_no_table_is_made(routing: dict[str, str]) -> None:
    asked = set(fleet_queries(fleet(routing=routing), []))
    assert not asked & {Ask.KEY_REQUESTS, Ask.KEY_ERRORS, Ask.REUSE_GAPS}


OWN: dict[str, tuple[dict[str, object], str]] = {
    "labels of the user's own": ({"metric": "my_tokens", "matchLabels": {"app": "x"}}, '{app="x",namespace="default"}'),
    "another tenant's namespace": ({"metric": "m", "matchLabels": {"namespace": "bank"}}, '{namespace="default"}'),
    "no labels": ({"metric": "m"}, '{fleet="default/demo",class="chat",namespace="default"}'),
}


@pytest.mark.parametrize(("given", "labels"), OWN.values(), ids=OWN.keys())
def test_a_class_reads_a_histogram_of_its_own_namespace_only(given: dict[str, object], labels: str) -> None:
    chat = measured_class_of(outputLengths={"prometheus": given})
    text = fleet_queries(fleet(), [chat])[lengths_key("chat")]
    assert f"{given['metric']}_bucket{labels}[3600s]" in text


def test_the_routers_own_histogram_is_not_asked_for_twice() -> None:
    chat = measured_class_of(outputLengths={"prometheus": {}})
    assert lengths_key("chat") not in fleet_queries(fleet(), [chat])


def test_the_documentation_lists_every_series_that_is_asked_for() -> None:
    auto = fleet(uncertainty={"radius": {"auto": True}})
    text = " ".join(fleet_queries(auto, [], ["demo-"]).values())
    asked = {re.sub("_(bucket|sum|count)$", "", name) for name in re.findall(r"(?:kvplan_router_|vllm:)\w+", text)}
    listed = set(re.findall(r"^\| ((?:kvplan_router_|vllm:)\w+) \|", (ROOT / "docs" / "metrics.md").read_text(), re.M))
    assert asked == listed
