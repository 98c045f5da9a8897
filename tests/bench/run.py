"""All benchmarks, as Markdown: `python -m tests.bench.run [--write FILE] [SECTION …]`.

Sections: those of ``SECTIONS``. With ``--write`` each section named replaces its older text in the file at the end, so
that an interrupted run leaves the old one; each says when and on what machine it was measured.
"""

import argparse
import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path

from tests.bench import (
    bench_cacheroute,
    bench_mixed,
    bench_newsvendor,
    bench_prefixes,
    bench_router,
    bench_solver,
)
from tests.bench.report import machine

SECTIONS: dict[str, tuple[str, Callable[[], str]]] = {
    "solver": ("Solver", bench_solver.section),
    "newsvendor": ("Closed form of one class", bench_newsvendor.section),
    "cacheroute": ("CacheRoute", bench_cacheroute.section),
    "router": ("Router", bench_router.section),
    "prefixes": ("Shared prefixes of a real trace", bench_prefixes.section),
    "mixed": ("Reservations of a mixed load", bench_mixed.section),
}

HEAD = """# Benchmarks

Figures, not promises: every number here was printed by the command on the machine of its section. Times are CPU
seconds of one thread unless a column says otherwise. What they mean is in [performance.md](performance.md).
"""


def main() -> None:
    """Run the sections asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=", ".join(SECTIONS))
    parser.add_argument("--write", type=Path)
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.sections) - set(SECTIONS))
    if unknown:
        parser.error(f"no section {', '.join(unknown)}: use {', '.join(SECTIONS)}")
    fresh = {}
    for name in arguments.sections or SECTIONS:
        fresh[name] = _measured(name)
        print(fresh[name], flush=True)
    if arguments.write:
        before = arguments.write.read_text(encoding="utf-8") if arguments.write.exists() else ""
        arguments.write.write_text(document(before, fresh), encoding="utf-8")


def _measured(name: str) -> str:
    title, section = SECTIONS[name]
    told = section()
    head = f"Command: `python -m tests.bench.run {name}`. Machine: {machine()}. Date: {datetime.now(UTC):%Y-%m-%d}."
    return f"## {title}\n\n{head}\n\n{told}"


def document(before: str, fresh: dict[str, str]) -> str:
    """The file with the fresh sections in place of their older texts, in the order of ``SECTIONS``."""
    known = {part.splitlines()[0]: part for part in re.split(r"^(?=## )", before, flags=re.MULTILINE)[1:]}
    texts = (fresh.get(name) or known.get(f"## {title}", "") for name, (title, _) in SECTIONS.items())
    return "\n".join([HEAD, *_stripped(texts)])


def _stripped(texts: Iterable[str]) -> Iterable[str]:
    return (text.rstrip() + "\n" for text in texts if text)


if __name__ == "__main__":
    main()
