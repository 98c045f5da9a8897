"""All benchmarks, as Markdown: `python -m tests.bench.run [--write FILE] [SECTION …]`.

Sections: solver, newsvendor, cacheroute, router. With ``--write`` the whole file is replaced at the end, so an
interrupted run leaves the old one.
"""

import argparse
from datetime import UTC, datetime
from pathlib import Path

from tests.bench import bench_cacheroute, bench_newsvendor, bench_router, bench_solver
from tests.bench.report import machine

SECTIONS = {
    "solver": ("Solver", bench_solver.section),
    "newsvendor": ("Closed form of one class", bench_newsvendor.section),
    "cacheroute": ("CacheRoute", bench_cacheroute.section),
    "router": ("Router", bench_router.section),
}

HEAD = """# Benchmarks

Figures, not promises: every number here was printed by the command on the machine below. Times are CPU
seconds of one thread unless a column says otherwise. What they mean is in [performance.md](performance.md).
"""


def main() -> None:
    """Run the sections asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=", ".join(SECTIONS))
    parser.add_argument("--write", type=Path)
    arguments = parser.parse_args()
    parts = [HEAD, f"Command: `make bench`. Machine: {machine()}. Date: {datetime.now(UTC):%Y-%m-%d}.", ""]
    unknown = sorted(set(arguments.sections) - set(SECTIONS))
    if unknown:
        parser.error(f"no section {', '.join(unknown)}: use {', '.join(SECTIONS)}")
    for name in arguments.sections or SECTIONS:
        title, section = SECTIONS[name]
        parts += [f"## {title}", "", section(), ""]
        print("\n".join(parts[-4:]), flush=True)
    if arguments.write:
        arguments.write.write_text("\n".join(parts).rstrip() + "\n")


if __name__ == "__main__":
    main()
