"""CacheRoute in figures: planning, replanning, the wire format; `python -m tests.bench.bench_cacheroute [KEYS …]`.

Rates are drawn from the distribution fitted to the paper's 128,824 keys: lognormal, σ 1.6482, each key clipped
at 0.29 % of the traffic. A smaller active set is the hottest keys of such a draw. Thirty equal destinations.
Times are CPU seconds of one thread, medians over the stated seeds; nothing here is a test.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from kvplan_solver.cacheroute.inputs import Fleet, KeyRates, Settings, fleet, key_rates
from kvplan_solver.cacheroute.plan import plan_keys
from kvplan_solver.cacheroute.publish import table_keys
from kvplan_solver.cacheroute.replan import moved_pairs, replan_keys
from kvplan_solver.cacheroute.table import EncodedTable, encode_table, read_index, read_table
from tests.bench.report import Row, cpu_seconds, table

DESTINATIONS = 30
TOTAL_RATE = 100.0
SIGMA, CLIP = 1.6482, 0.0029
PAPER_KEYS = 128_824
SIZES = (PAPER_KEYS, 10**6, 10**7)
DRIFT, STEPS = 0.3, 6
SEEDS = (0, 1, 2, 3, 4)
HEAD = {
    "epoch": 1, "generation": 1, "mode": "plan", "hash": {"name": "blake2b-64-v1", "fingerprint": "0" * 16},
    "classes": [], "unmatched": "ColdTail", "grids": {}, "routers": [], "slots": [],
}  # fmt: skip


def fitted_rates(keys: int, seed: int) -> KeyRates:
    """Keys of the fitted distribution; fewer than the paper's are its hottest ones."""
    g = np.random.default_rng(seed)
    size = max(keys, PAPER_KEYS)
    rates = g.lognormal(0.0, SIGMA, size)
    for _ in range(20):  # clipping lowers the total that the clip is a share of
        rates = np.minimum(rates, CLIP * rates.sum())
    hottest = np.argsort(-rates)[:keys]
    hashes = g.integers(0, 2**64, size, dtype=np.uint64)[hottest]
    return key_rates(hashes, rates[hottest] * TOTAL_RATE / rates[hottest].sum())


def destinations(keys: int) -> Fleet:
    """Thirty equal destinations with room for every key."""
    return fleet([f"tp2-{n}" for n in range(DESTINATIONS)], warm_slots=keys)


def settings(backups: bool = True) -> Settings:
    """q_cap at a third above the mean load, as a knee would lie."""
    return Settings(q_cap=TOTAL_RATE / DESTINATIONS * 4 / 3, backups=backups)


def planning(keys: int, seeds: tuple[int, ...]) -> Row:
    """Plan from scratch, without and with planned backups."""
    where = destinations(keys)
    bare, full, excess = [], [], 0.0
    for seed in seeds:
        rates = fitted_rates(keys, seed)
        bare.append(cpu_seconds(partial(plan_keys, rates, where, settings(backups=False))))
        full.append(cpu_seconds(partial(plan_keys, rates, where, settings())))
        loads = plan_keys(rates, where, settings(backups=False)).loads if keys <= PAPER_KEYS else np.ones(1)
        excess = max(excess, float(loads.max() / loads.mean() - 1.0))
    return {
        "keys": f"{keys:,}",
        "plan (s)": f"{statistics.median(bare):.3f}",
        "plan with backups (s)": f"{statistics.median(full):.3f}",
        "largest load over mean − 1": f"{excess:.1e}" if keys <= PAPER_KEYS else "not measured",
        "seeds": str(len(seeds)),
    }


def replanning(keys: int, seeds: tuple[int, ...]) -> Row:
    """Six steps of drift, each key's rate times a lognormal factor of σ = 0.3 per step."""
    where, shares, fresh_shares, times, excess = destinations(keys), [], [], [], 0.0
    for seed in seeds:
        rates = fitted_rates(keys, seed)
        plan, g = plan_keys(rates, where, settings()), np.random.default_rng(1_000 + seed)
        for _ in range(STEPS):
            rates = replace(rates, rates=rates.rates * np.exp(DRIFT * g.standard_normal(keys)))
            start = time.process_time()
            again = replan_keys(rates, where, settings(), plan)
            times.append(time.process_time() - start)
            fresh = plan_keys(rates, where, settings(), plan)
            shares.append(np.divide(*moved_pairs(plan, again)))
            fresh_shares.append(np.divide(*moved_pairs(plan, fresh)))
            excess = max(excess, again.largest_load / fresh.largest_load - 1.0)
            plan = again
    return {
        "keys": f"{keys:,}",
        "moved pairs, mean": f"{np.mean(shares):.3%}",
        "worst step": f"{np.max(shares):.3%}",
        "fresh LPT would move": f"{np.mean(fresh_shares):.1%}",
        "largest load over fresh LPT − 1, worst": f"{excess:.3f}",
        "replan (s), median / worst": f"{statistics.median(times):.3f} / {max(times):.3f}",
        "seeds": str(len(seeds)),
    }


def wire(keys: int, seeds: tuple[int, ...]) -> Row:
    """Encode and decode a planned table; memory of a process that holds it."""
    columns: dict[str, list[float]] = {"plan + encode (s)": [], "encode (s)": [], "decode (s)": []}
    for seed in seeds:
        rates, where = fitted_rates(keys, seed), destinations(keys)
        start = time.process_time()
        plan = plan_keys(rates, where, settings())
        planned = time.process_time()
        encoded = encode_table("fleet", HEAD, table_keys(plan))
        done = time.process_time()
        columns["plan + encode (s)"].append(done - start)
        columns["encode (s)"].append(done - planned)
        columns["decode (s)"].append(cpu_seconds(partial(read, encoded)))
    bare = encode_table("fleet", HEAD, table_keys(plan_keys(rates, where, settings(backups=False))))
    return {
        "keys": f"{keys:,}",
        "shards": str(len(encoded.shards)),
        "bytes": f"{size(encoded):,}",
        "bytes without backups": f"{size(bare):,}",
        "collided": str(len(encoded.collided)),
        **{name: f"{statistics.median(values):.2f}" for name, values in columns.items()},
        "reader's memory, held / peak (MiB)": memory_of_reading(encoded),
        "seeds": str(len(seeds)),
    }


def read(encoded: EncodedTable) -> object:
    """What a router does with a table."""
    return read_table(read_index(encoded.index), {shard.name: shard.data for shard in encoded.shards})


def size(encoded: EncodedTable) -> int:
    """Bytes of the shards, or of the index where the keys are inline."""
    return sum(len(shard.data) for shard in encoded.shards) or len(encoded.index)


READER = """
import pathlib, resource, sys
from kvplan_solver.cacheroute.table import read_index, read_table
folder = pathlib.Path(sys.argv[1])
shards = {path.stem: path.read_bytes() for path in folder.glob("*.bin")}
table = read_table(read_index((folder / "index.json").read_bytes()), shards)
del shards
held = int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()
status = open("/proc/self/status").read()
peak = int(status.split("VmHWM:")[1].split()[0]) * 1024
print(f"{held / 2**20:.0f} / {peak / 2**20:.0f}")
"""


def memory_of_reading(encoded: EncodedTable) -> str:
    """Resident memory of a fresh interpreter after reading the table, and its peak, MiB."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "index.json").write_text(encoded.index)
        for shard in encoded.shards:
            Path(folder, f"{shard.name}.bin").write_bytes(shard.data)
        found = subprocess.run([sys.executable, "-c", READER, folder], capture_output=True, text=True, check=True)
    return found.stdout.strip()


def section(sizes: tuple[int, ...] = SIZES) -> str:
    """All figures as Markdown."""
    seeds = {keys: SEEDS if keys <= PAPER_KEYS else SEEDS[:3] if keys <= 10**6 else SEEDS[:1] for keys in sizes}
    churn = (128, 512, 4_096, PAPER_KEYS)
    return "\n".join(
        [
            f"Seeds: the first n of {SEEDS}; {DESTINATIONS} destinations; all keys admitted.",
            "",
            table("Plan", [planning(keys, seeds[keys]) for keys in sizes]),
            table("Replan after drift", [replanning(keys, SEEDS) for keys in churn]),
            table("Table on the wire", [wire(keys, seeds[keys]) for keys in sizes if keys <= 10**6]),
        ]
    )


if __name__ == "__main__":
    print(section(tuple(int(word) for word in sys.argv[1:]) or SIZES))
