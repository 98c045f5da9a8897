"""Around the core: the endpoints file, readiness, peers' datagrams, estimated ends, the metrics page."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from kvplan_router.core.in_flight import PeerReport
from kvplan_router.core.slot_account import SlotAccount
from kvplan_router.core.values import Ticket, Usage
from kvplan_router.destinations.engines import requests_in
from kvplan_router.destinations.pods import is_ready
from kvplan_router.destinations.slots import Readiness, endpoints_of, places_of
from kvplan_router.envoy.endpoints import Endpoint, EndpointsFile, Status
from kvplan_router.exchange.datagram import PeerMessage, read_message, write_message
from kvplan_router.exchange.peers import Peers, addresses_of
from kvplan_router.metrics.collector import Moment
from kvplan_router.metrics.page import render
from kvplan_router.transport.estimate import LONGEST_SECONDS, EstimatedEnds
from kvplan_router.transport.messages import InFlightMode
from tests.router_script import Script
from tests.unit.router_world import document, request, router, slot

SECRET = b"a secret of a test, long enough"


# ---- places and the endpoints file


def index(*slots: dict[str, Any]) -> dict[str, Any]:
    return {"slots": list(slots)}


PLACES = places_of(
    index(
        slot("a-0", podUID="u0", address="10.0.0.1:8000"),
        slot("a-1", podUID="u1", address="10.0.0.2:8000", state="draining"),
        slot("a-2", podUID="u2", address="10.0.0.3:8000", state="gone"),
        slot("a-3", podUID="u3", address="[2001:db8::1]:8000"),
        slot("a-4", podUID="u4", address=""),
        slot("a-5", podUID="u5", address="no address"),
    )
)


def test_envoy_is_told_of_every_place_it_can_reach_and_what_it_may_do_with_it() -> None:
    told = endpoints_of(PLACES, Readiness(pods=frozenset({"u0", "u1"})))
    assert told == {
        Endpoint("10.0.0.1", 8000, Status.HEALTHY),
        Endpoint("10.0.0.2", 8000, Status.DRAINING),
        Endpoint("2001:db8::1", 8000, Status.UNHEALTHY),
    }


@pytest.mark.parametrize(
    ("readiness", "slots"),
    [
        (Readiness(), None),
        (Readiness(pods=frozenset({"u0", "u3"})), {"a-0", "a-3"}),
        (Readiness(silent=frozenset({"10.0.0.1:8000"})), {p.slot for p in PLACES} - {"a-0"}),
        (Readiness(frozenset({"u0", "u3"}), frozenset({"10.0.0.1:8000"})), {"a-3"}),
    ],
    ids=["nobody says", "the cluster says", "a probe says", "both must agree"],
)
def test_ready_is_what_is_known_to_be(readiness: Readiness, slots: set[str] | None) -> None:
    assert readiness.slots(PLACES) == slots


def test_the_endpoints_file_is_replaced_in_one_step_and_only_when_it_changes(tmp_path: Path) -> None:
    file = EndpointsFile(tmp_path / "endpoints.json")
    assert file.write([Endpoint("10.0.0.2", 80), Endpoint("10.0.0.1", 80)])
    first = (tmp_path / "endpoints.json").stat().st_ino
    assert not file.write([Endpoint("10.0.0.1", 80), Endpoint("10.0.0.2", 80), Endpoint("10.0.0.1", 80)])
    assert file.write([Endpoint("10.0.0.1", 80, Status.DRAINING)])
    assert (tmp_path / "endpoints.json").stat().st_ino != first
    assert [path.name for path in tmp_path.iterdir()] == ["endpoints.json"]
    [assignment] = json.loads((tmp_path / "endpoints.json").read_text())["resources"]
    [endpoint] = assignment["endpoints"][0]["lb_endpoints"]
    assert endpoint["health_status"] == "DRAINING"


@pytest.mark.parametrize(
    ("metadata", "conditions", "ready"),
    [
        ({}, [{"type": "Ready", "status": "True"}], True),
        ({}, [{"type": "Ready", "status": "False"}], False),
        ({"deletionTimestamp": "now"}, [{"type": "Ready", "status": "True"}], False),
        ({}, [], False),
    ],
    ids=["Ready", "not Ready", "going away", "just made"],
)
def test_a_pod_takes_requests_while_it_is_ready_and_stays(
    metadata: dict[str, str], conditions: list[dict[str, str]], ready: bool
) -> None:
    assert is_ready({"metadata": metadata, "status": {"conditions": conditions}}) is ready


def test_requests_held_by_an_engine_are_read_off_its_page() -> None:
    page = b"""# HELP vllm:num_requests_running x
vllm:num_requests_running{engine="0",model_name="m"} 3.0
vllm:num_requests_waiting{engine="0",model_name="m"} 2.0
vllm:num_requests_waiting_by_reason{engine="0",reason="capacity"} 2.0
vllm:num_requests_running{engine="1",model_name="m"} 1.0
"""
    assert requests_in(page) == 6
    assert requests_in(b"something else") is None


# ---- peers


def test_a_datagram_says_what_was_written_and_leaves_zeros_out() -> None:
    message = PeerMessage("router-1", 5, (7, 8), {"a-0": 3, "a-1": 0})
    assert read_message(write_message(message, SECRET), SECRET) == PeerMessage("router-1", 5, (7, 8), {"a-0": 3})


@pytest.mark.parametrize("at", [0, 15, 16, 30, -1])
def test_a_datagram_that_was_altered_or_cut_or_is_foreign_is_nothing(at: int) -> None:
    data = bytearray(write_message(PeerMessage("r", 1, (1, 1), {"a-0": 1}), SECRET))
    data[at] ^= 1
    assert read_message(bytes(data), SECRET) is None
    data[at] ^= 1
    assert read_message(bytes(data[:-2]), SECRET) is None
    assert read_message(bytes(data), b"another secret, as long") is None
    assert read_message(b"", SECRET) is None


def test_two_thousand_slots_fit_a_datagram() -> None:
    held = {f"llama-70b-tp8-pp2-{n}": n * 7919 % 512 for n in range(2048)}
    assert read_message(write_message(PeerMessage("r", 1, (1, 1), held), SECRET), SECRET) is not None


def test_of_two_reports_the_later_counts_and_our_own_never() -> None:
    peers = Peers("me", SECRET, clock=lambda: 9.0)

    def arrive(identity: str, sequence: int, count: int) -> None:
        peers.datagram_received(write_message(PeerMessage(identity, sequence, (1, 2), {"a-0": count}), SECRET), None)

    arrive("other", 2, 20)
    arrive("other", 1, 10)
    arrive("me", 3, 30)
    assert peers.reports == {"other": PeerReport("other", {"a-0": 20}, (1, 2), 9.0)}


def test_a_peer_that_is_silent_for_long_is_forgotten() -> None:
    now: Iterator[float] = iter([0.0, 599.0, 601.0])
    peers = Peers("me", SECRET, clock=lambda: next(now))
    peers.datagram_received(write_message(PeerMessage("other", 1, (1, 1), {}), SECRET), None)
    peers.forget_silent()
    assert "other" in peers.reports
    peers.forget_silent()
    assert peers.reports == {}


def test_identities_that_are_addresses_are_peers() -> None:
    names = ["10.0.0.1:9004", "10.0.0.2:9004", "[2001:db8::1]:9004", "a-pod"]
    assert addresses_of(names, "10.0.0.1:9004") == {("10.0.0.2", 9004), ("2001:db8::1", 9004)}


# ---- estimated ends


def test_requests_whose_streams_ended_end_when_their_engine_holds_fewer_the_oldest_first() -> None:
    now = [0.0]
    script = Script([])
    estimate = EstimatedEnds(script, lambda: now[0])
    account = SlotAccount("a-0")
    tickets = [Ticket(account, 100, "chat", 0.0) for _ in range(4)]
    for moment, ticket in enumerate(tickets):
        now[0] = float(moment)
        estimate.finish(ticket)
    estimate.reading({"a-0": 1}, asked=2.5)  # the fourth is younger than the reading
    assert [ticket for ticket, _ in script.finished] == tickets[:2]
    assert estimate.error == {"a-0": 2}
    estimate.reading({"a-0": 5}, asked=9.0)
    assert (len(script.finished), estimate.error) == (2, {"a-0": -3})
    now[0] = LONGEST_SECONDS + 10
    estimate.reading({}, asked=now[0])
    assert [ticket for ticket, _ in script.finished] == tickets
    assert set(script.ended) == {None}  # nobody saw when


def test_a_request_whose_tokens_were_seen_has_ended() -> None:
    script = Script([])
    ticket = Ticket(SlotAccount("a-0"), 100, "chat", 0.0)
    EstimatedEnds(script, lambda: 0.0).finish(ticket, Usage(1, 2), 3.0)
    assert (script.finished, script.ended) == ([(ticket, Usage(1, 2))], [3.0])


# ---- metrics


def page(accept: str) -> tuple[str, str]:
    subject = router(document())
    for _ in range(5):
        subject.decide(request(x_tenant_id="somebody"))
    subject.review_keys()
    moment = Moment(subject.state(), subject.measurements(), 1.5, {"Stale": 2}, InFlightMode.TRAILERS)
    body, content_type = render("shop/chat", moment, accept)
    return body.decode(), content_type


def test_the_page_is_clean_openmetrics_where_the_scraper_takes_it() -> None:
    text, content_type = page("application/openmetrics-text; version=1.0.0")
    assert content_type.startswith("application/openmetrics-text")
    families = {family.name for family in text_string_to_metric_families(text)}  # type: ignore[no-untyped-call]
    assert text.endswith("# EOF\n")
    assert families >= {
        f"kvplan_router_{name}"
        for name in (
            "requests", "prompt_tokens", "output_tokens", "output_sampling_ratio", "interarrival_seconds",
            "key_requests", "key_error", "in_flight", "reserved_tokens", "queue_seconds", "table_generation",
            "table_age_seconds", "reuse_gap_seconds",
        )
    }  # fmt: skip


def test_the_page_names_no_tenant_and_no_key_but_its_hash() -> None:
    text, _ = page("")
    assert "somebody" not in text
    assert (
        len(re.findall(r'kvplan_router_key_requests_total\{class="chat",fleet="shop/chat",key="[0-9a-f]{16}"\}', text))
        == 1
    )
    assert 'kvplan_router_table_refusals_total{fleet="shop/chat",reason="Stale"} 2.0' in text
    assert 'kvplan_router_in_flight_mode{fleet="shop/chat",mode="trailers"} 1.0' in text
