"""From a plan and key rates to the key planner's input and a table that a router can read."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kvplan_operator.plan.index_head import TableVersion, slots_of
from kvplan_operator.plan.planner import Planned
from kvplan_operator.plan.raw_keys import KeyRow, hashed
from kvplan_operator.plan.table_input import PlannedTable, TableInput, plan_table, table_input
from kvplan_solver.cacheroute.key_plan import KeyPlan, Outcome
from kvplan_solver.cacheroute.keys import fingerprint, key_hash
from kvplan_solver.cacheroute.table.decode import read_table
from kvplan_solver.cacheroute.table.index import read_index
from kvplan_solver.errors import InvalidInput
from tests.planning import demo, fleet, inputs, inventory, plan, request_class, sample

SECRET = b"0123456789abcdef"
VERSION = TableVersion(epoch=7, generation=3)
ROWS = [KeyRow("chat", f"tenant-{n}", 3 / (n + 1), 0.001, 400.0) for n in range(20)]
RULE = "header:x-gateway-inference-fairness-id"


def planner_input(planned: Planned, rows: Sequence[KeyRow]) -> TableInput:
    return table_input(planned, hashed(rows, planned.problem, SECRET))


def made_table(planned: Planned, rows: Sequence[KeyRow], before: KeyPlan | None = None) -> PlannedTable:
    rates = hashed(rows, planned.problem, SECRET)
    return plan_table(planned, rates, fingerprint(SECRET), VERSION, before)


def row(**changes: Any) -> KeyRow:
    return replace(ROWS[0], **changes)


def test_slots_are_numbered_by_configuration() -> None:
    names = [slot.name for slot in slots_of(demo().plan)]
    expected = [f"{g.configuration}-{n}" for g in demo().plan.spec.groups for n in range(g.replicas)]
    assert names == expected
    assert len(names) == sum(demo().result.groups)


def test_keys_live_only_where_the_plan_sends_their_class() -> None:
    planned = sample()
    rows = [KeyRow(name, f"{name}-{n}", 0.5, 0.001, 300.0) for name in ("chat", "code") for n in range(30)]
    keys = made_table(planned, rows).keys
    routes = {c.name: {r.configuration for r in c.routes} for c in planned.plan.spec.classes}
    for made in rows:
        home = keys.home(key_hash(SECRET, made.class_name, RULE, made.key))
        assert home
        assert {slot.rsplit("-", 1)[0] for slot in home} <= routes[made.class_name]


def test_planned_load_follows_the_plan() -> None:
    made = planner_input(demo(), ROWS)
    admitted = demo().result.routing.sum(axis=1) @ np.array([4.0, 4.0])
    assert made.fleet.weights.sum() == pytest.approx(admitted)
    listed = sum(r.requests_per_second for r in ROWS)
    assert made.fleet.cold_load.sum() == pytest.approx(8.0 - min(listed, 4.0))


def test_warm_slots_are_what_the_reservations_leave() -> None:
    made = planner_input(demo(), ROWS)
    largest = max(k.kv_capacity_tokens for k in demo().instance.configurations)
    assert made.fleet.warm_slots.min() > 0
    assert made.fleet.warm_slots.max() <= 0.7 * largest / 400


def routing(**spec: Any) -> Planned:
    return plan(inputs(fleet=fleet(routing=spec)))


def test_the_fleets_own_settings_beat_the_estimates() -> None:
    made = planner_input(routing(warmSlotsPerDestination=3, qCapRequestsPerSecondMilli=1500), ROWS)
    assert set(made.fleet.warm_slots.tolist()) == {3}
    assert made.settings.q_cap == 1.5
    assert made.capacity is None
    assert not any("q_cap" in note for note in made.notes)


def test_an_estimated_knee_is_called_one() -> None:
    made = planner_input(demo(), ROWS)
    assert made.capacity is not None
    assert 0 < made.settings.q_cap <= made.capacity.knee
    assert any("estimated knee" in note for note in made.notes)


def test_bytes_admission_bounds_prefixes_per_destination() -> None:
    made = planner_input(routing(admission="Bytes"), ROWS)
    assert made.settings.admission.value == "Bytes"
    assert (made.fleet.byte_limits > 0).all()


def test_an_unknown_reusable_prefix_is_the_shared_one_and_said() -> None:
    made = planner_input(demo(), [row(reusable_tokens=None)])
    assert made.rates.size_bytes.tolist() == [64.0]
    assert any("1 keys have unknown reusable tokens" in note for note in made.notes)


def test_nothing_to_reuse_leaves_no_warm_slots_and_says_so() -> None:
    made = made_table(demo(), [row(reusable_tokens=0.0)])
    assert made.keys.outcome is Outcome.NO_ROOM
    assert any("no key reuses a prefix" in note for note in made.input.notes)


def test_affinity_off_gives_no_key_a_home_and_says_so() -> None:
    made = made_table(routing(affinity="Off"), ROWS)
    assert len(made.keys.keys) == 0
    assert made.input.notes[0] == "routing.affinity is Off: no key gets a fixed home"
    assert read_index(made.encoded.index).document["classes"]


def test_bad_rates_are_dropped_and_counted() -> None:
    made = made_table(demo(), [*ROWS, row(key="odd", requests_per_second=float("nan"))])
    assert made.keys.outcome is Outcome.PLANNED
    assert made.keys.report.dropped.invalid == 1


REFUSED: dict[str, tuple[list[KeyRow], str]] = {
    "a class that the plan does not have": ([row(class_name="batch")], "use one of the classes chat, code"),
    "a key twice": ([row(), row()], "give each key one row"),
}


@pytest.mark.parametrize(("rows", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_rows_are_refused_for(rows: list[KeyRow], message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        planner_input(demo(), rows)
    assert message in str(caught.value)


def test_a_plan_without_groups_has_no_table() -> None:
    idle = plan(inputs(classes=(request_class("chat", arrivals={"requestsPerSecondMilli": 0}),)))
    assert sum(idle.result.groups) == 0
    with pytest.raises(InvalidInput, match="a table needs destinations"):
        planner_input(idle, [])


def test_the_index_carries_the_plan_and_reads_back() -> None:
    made = made_table(demo(), ROWS)
    document = read_index(made.encoded.index).document
    assert (document["epoch"], document["generation"], document["mode"]) == (7, 3, "plan")
    assert document["hash"]["fingerprint"] == fingerprint(SECRET)
    assert demo().plan.metadata.name.endswith(document["planDigest"][:10])
    chat = document["classes"][0]
    planned = demo().plan.spec.classes[0]
    assert chat["routes"] == [route.to_wire() for route in planned.routes]
    assert chat["admitMilli"] == planned.admit_milli
    assert chat["queue"] == {"maxLength": 40, "deadlineMilliseconds": 10_000}
    budgets = {slot["slot"]: slot["budgetTokens"] for slot in document["slots"]}
    assert budgets == {slot.name: slot.budget_tokens for slot in slots_of(demo().plan)}


def test_a_router_finds_the_planned_home_of_a_key() -> None:
    made = made_table(demo(), ROWS)
    table = read_table(read_index(made.encoded.index), {})
    key = key_hash(SECRET, "chat", RULE, "tenant-0")
    found = table.lookup(key)
    assert found is not None
    assert found.destinations == made.keys.home(key)


HEADER_RULES = [
    {"kind": "header", "name": "x-gateway-inference-fairness-id"},
    {"kind": "header", "name": "x-tenant-id"},
]
FIELD_RULES = [{"kind": "field", "name": "prompt_cache_key"}, {"kind": "field", "name": "user"}]
OWN_RULES = {"rules": [{"header": "x-project"}, {"jsonField": "session"}, {"prefixBytes": 2048}]}
ROUTED: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "a class that states nothing": (
        {}, {},
        {
            "keyRules": HEADER_RULES + FIELD_RULES,
            "queue": {"maxLength": 40, "deadlineMilliseconds": 10_000},
            "shed": "429",
        },
    ),
    "a fleet without headers": ({}, {"keyHeaders": []}, {"keyRules": FIELD_RULES}),
    "key rules of its own": (
        {"keys": OWN_RULES}, {},
        {
            "keyRules": [
                {"kind": "header", "name": "x-project"},
                {"kind": "field", "name": "session"},
                {"kind": "prefix", "bytes": 2048},
            ]
        },
    ),
    "no queue": ({"queue": {"maxLength": 0}}, {}, {"queue": {"maxLength": 0, "deadlineMilliseconds": 10_000}}),
    "a short wait": (
        {"queue": {"deadlineMilliseconds": 5}}, {}, {"queue": {"maxLength": 40, "deadlineMilliseconds": 5}},
    ),
    "other groups": ({"shed": "Other"}, {}, {"shed": "other"}),
    "a latency target of a day": (
        {"slo": {"latencyMilliseconds": 86_400_000}}, {},
        {"queue": {"maxLength": 345_600, "deadlineMilliseconds": 3_600_000}},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("spec", "routing", "expected"), ROUTED.values(), ids=ROUTED.keys())
def test_the_index_tells_routers_of(spec: dict[str, Any], routing: dict[str, Any], expected: dict[str, Any]) -> None:
    classes = (request_class("chat", **spec),)
    planned = plan(inputs(fleet=fleet(routing=routing), classes=classes))
    (found,) = read_index(made_table(planned, []).encoded.index).document["classes"]
    assert {name: found[name] for name in expected} == expected


def test_rows_are_hashed_under_the_first_rule_of_their_class() -> None:
    planned = plan(inputs(classes=(request_class("chat", keys={"rules": [{"prefixBytes": 64}]}),)))
    (rate,) = hashed([row()], planned.problem, SECRET)
    assert rate.key == key_hash(SECRET, "chat", "prefix:64", "tenant-0")


def test_classes_are_in_match_order_with_one_entry_per_model() -> None:
    classes = (
        request_class("chat", match={"models": ["a", "b"], "headers": [{"name": "x", "exact": "1"}]}),
        request_class("code", priority=5, match={"headers": [{"name": "x", "prefix": "2"}]}, tenant="acme"),
    )
    index = read_index(made_table(plan(inputs(classes=classes)), []).encoded.index).document
    found = [(c["name"], c["match"], c.get("tenant")) for c in index["classes"]]
    assert found == [
        ("code", {"headers": [{"name": "x", "prefix": "2"}]}, "acme"),
        ("chat", {"headers": [{"name": "x", "exact": "1"}], "model": "a"}, None),
        ("chat", {"headers": [{"name": "x", "exact": "1"}], "model": "b"}, None),
    ]


def test_a_replan_keeps_homes_where_rates_hardly_change() -> None:
    first = made_table(demo(), ROWS)
    again = [replace(r, requests_per_second=r.requests_per_second * 1.01) for r in ROWS]
    second = made_table(demo(), again, before=first.keys)
    hashes = [key_hash(SECRET, r.class_name, RULE, r.key) for r in ROWS]
    assert [second.keys.home(h) for h in hashes] == [first.keys.home(h) for h in hashes]


def test_the_same_table_has_the_same_bytes_whatever_the_order_of_rows() -> None:
    forwards = made_table(demo(), ROWS).encoded
    assert made_table(demo(), ROWS[::-1]).encoded == forwards


def test_two_equal_nodes_share_the_keys() -> None:
    busy = plan(inputs(inventory=inventory(4, 4), fleet=fleet(nodes={"selector": {}, "minGpus": 4})))
    keys = made_table(busy, ROWS).keys
    assert len({slot for r in ROWS for slot in keys.home(key_hash(SECRET, "chat", RULE, r.key))}) > 1
