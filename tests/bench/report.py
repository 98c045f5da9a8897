"""What every benchmark shares: CPU seconds, the machine's line, Markdown tables."""

import platform
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path

Row = dict[str, str]


def cpu_seconds(work: Callable[[], object]) -> float:
    """CPU seconds of one call; the work is one thread, so an idle core takes as long by the clock."""
    start = time.process_time()
    work()
    return time.process_time() - start


def table(title: str, rows: Sequence[Row]) -> str:
    """Rows as a Markdown table under a heading."""
    names = list(rows[0])
    lines = [" | ".join(names), " | ".join("---" for _ in names), *(" | ".join(row.values()) for row in rows)]
    return "\n".join([f"### {title}", "", *(f"| {line} |" for line in lines), ""])


def machine() -> str:
    """The machine and the libraries, in a line."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    cpu = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "unknown CPU")
    libraries = ", ".join(f"{name} {version(name)}" for name in ("numpy", "highspy"))
    system = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    return f"{cpu}, {system}, {libraries}"
