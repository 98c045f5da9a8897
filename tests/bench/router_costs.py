"""What a request costs and how many fit through: CPU by way, where it goes, requests per second, delay.

In: a pace. Out: tables. CPU per request is user and system time of the processes between client and destinations; it
says more than latencies where others use the machine too.
"""

from contextlib import ExitStack
from statistics import median

from tests.bench.data_plane import DESTINATIONS
from tests.bench.report import Row, table
from tests.bench.router_ways import (
    LARGE,
    SMALL,
    Pace,
    Round,
    Rounds,
    counted,
    follow_no_retries,
    look_up,
    micros,
    peers,
    plain,
    rounds_of,
    routed,
    routed_by_body,
    standing,
)
from tests.bench.wrk import Load

TRANSPORTS = ("native", "aio")
PLAIN = plain().name
PAUSE_MILLISECONDS = 32
"""Of each of 16 connections: 500 requests a second, while answers are fast."""
MANY, WORKERS = 64, 2


def costs(pace: Pace) -> str:
    """CPU of a request, at both sizes, by every way; and where it goes."""
    lean = routed("native", ", retries not followed", follow_no_retries)
    others, missing = peers("consistent_hash", "cache_aware")
    ours = [way for t in TRANSPORTS for way in (look_up(t), routed(t), routed_by_body(t))]
    with ExitStack() as stack:
        planes = standing(stack, (plain(), *ours, lean, *others))
        small = rounds_of(planes, Load(SMALL, seconds=pace.seconds), pace.rounds)
        large = rounds_of(planes, Load(LARGE, seconds=pace.seconds), pace.rounds)
    return "\n".join([_cost_table(small, "2 KB"), _cost_table(large, "220 KB"), _split(small), missing])


def _cost_table(rounds: Rounds, title: str) -> str:
    alone = micros(rounds[PLAIN], "Envoy")
    rows = [_cost_row(name, found, alone) for name, found in rounds.items()]
    return table(
        f"CPU of a request, {title} prompts, 16 connections, {DESTINATIONS} destinations, one Envoy worker", rows
    )


def _cost_row(name: str, rounds: list[Round], alone: float) -> Row:
    router, envoy = micros(rounds, "router"), micros(rounds, "Envoy")
    whole = median(sum(r.micros.values()) for r in rounds)
    return {
        "way": name,
        "router, µs": f"{router:.0f}" if router else "–",
        "Envoy, µs": f"{envoy:.0f}" if envoy else "–",
        "router / Envoy alone": f"{router / alone:.2f}",
        "both / Envoy alone": f"{whole / alone:.2f}",
        **counted(rounds),
    }


def _split(rounds: Rounds) -> str:
    """The look-up has the same transport and no decision worth the name, so the rest is the decision."""
    alone = micros(rounds[PLAIN], "Envoy")
    rows = [_split_row(transport, rounds, alone) for transport in TRANSPORTS]
    return table("Where the CPU of a 2 KB request goes, µs, key in a header", rows)


def _split_row(transport: str, rounds: Rounds, alone: float) -> Row:
    whole = rounds[routed(transport).name]
    below = micros(rounds[look_up(transport).name], "router")
    return {
        "transport": transport,
        "gRPC and its libraries, our exchange": f"{below:.0f}",
        "our decision": f"{micros(whole, 'router') - below:.0f}",
        "Envoy, asking": f"{micros(whole, 'Envoy') - alone:.0f}",
        "Envoy, all else": f"{alone:.0f}",
    }


def throughput(pace: Pace) -> str:
    """Requests per second with as many Envoy workers as the smallest machine has cores."""
    others, missing = peers("consistent_hash", "cache_aware", workers=WORKERS)
    ours = [routed(transport, workers=WORKERS) for transport in TRANSPORTS]
    with ExitStack() as stack:
        planes = standing(stack, (plain(WORKERS), *ours, *others))
        rounds = rounds_of(planes, Load(SMALL, MANY, pace.seconds), pace.rounds)
    rows = [{"way": name, **counted(found)} for name, found in rounds.items()]
    return table(f"Throughput, 2 KB prompts, {MANY} connections, {WORKERS} Envoy workers", rows) + missing


def delays(pace: Pace) -> str:
    """What asking adds to the delay of an answer while the machine has time."""
    others, missing = peers("consistent_hash", "cache_aware")
    load = Load(SMALL, seconds=2 * pace.seconds, pause_milliseconds=PAUSE_MILLISECONDS)
    with ExitStack() as stack:
        planes = standing(stack, (plain(), *map(routed, TRANSPORTS), *others))
        rounds = rounds_of(planes, load, pace.rounds)
    alone = _percentiles(rounds[PLAIN])
    rows = [_delay_row(name, found, alone) for name, found in rounds.items()]
    return table("Delay at 500 requests/s, 2 KB prompts", rows) + missing


def _percentiles(rounds: list[Round]) -> tuple[float, float]:
    return median(r.answered.p50 for r in rounds), median(r.answered.p95 for r in rounds)


def _delay_row(name: str, rounds: list[Round], alone: tuple[float, float]) -> Row:
    p50, p95 = _percentiles(rounds)
    return {
        "way": name,
        "P50, ms": f"{p50:.2f}",
        "P50 added": f"{p50 - alone[0]:.2f}",
        "P95, ms": f"{p95:.2f}",
        "P95 added": f"{p95 - alone[1]:.2f}",
        **counted(rounds),
    }
