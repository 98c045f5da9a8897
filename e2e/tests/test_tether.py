"""A tethered process ends with its owner, however the owner ends, and takes its own children along."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from e2e.harness.errors import ProcessDied
from e2e.harness.process import Command, Process
from e2e.tests.support import DEADLINE_SECONDS, ended, eventually

pytestmark = pytest.mark.e2e

# Starts a tethered shell whose own child sleeps, says both process ids, and waits to be killed.
OWNER = """
import signal, sys
from pathlib import Path
from e2e.harness.process import Command, Process
script = "sleep 600 & echo $$ $! > pids.new; mv pids.new pids; wait"
directory, data = Path(sys.argv[1]), Path(sys.argv[2])
Process(Command("shell", ["env", "-C", directory, "sh", "-c", script], remove=[data]), directory).start()
signal.pause()
"""

DEAF = "trap '' TERM; touch {ready}; while :; do sleep 0.1; done"


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_nothing_survives_the_end_of_the_owner(tmp_path: Path, how: signal.Signals) -> None:
    data = tmp_path / "data"
    data.mkdir()
    with subprocess.Popen([sys.executable, "-c", OWNER, str(tmp_path), str(data)]) as owner:
        eventually((tmp_path / "pids").exists, "the tethered shell says its process ids")
        shell, sleeper = (int(pid) for pid in (tmp_path / "pids").read_text().split())
        owner.send_signal(how)
        assert owner.wait(DEADLINE_SECONDS) == -how
    assert ended(shell)
    assert ended(sleeper)
    eventually(lambda: not data.exists(), "the data directory is removed")


def test_a_process_that_ignores_sigterm_is_killed_after_its_grace(tmp_path: Path) -> None:
    script = DEAF.format(ready=tmp_path / "ready")
    process = Process(Command("deaf", ["sh", "-c", script], grace_seconds=0.2), tmp_path)
    process.start()
    eventually((tmp_path / "ready").exists, "the process runs")
    pid = process.pid
    process.stop()
    assert ended(pid)
    assert not process.running


BREEDER = """
trap '' TERM
for n in $(seq 8); do (trap '' TERM; while :; do sleep 0.002; done) & echo $! >> pids; done
touch {ready}; wait
"""


def test_nothing_survives_however_fast_descendants_come_and_go(tmp_path: Path) -> None:
    for n in range(5):
        ready, directory = tmp_path / f"ready-{n}", tmp_path / str(n)
        directory.mkdir()
        script = BREEDER.format(ready=ready)
        process = Process(
            Command("breeder", ["env", "-C", str(directory), "sh", "-c", script], grace_seconds=0.1), tmp_path
        )
        process.start()
        eventually(ready.exists, "all of them run")
        process.stop()
        assert [pid for pid in (directory / "pids").read_text().split() if Path(f"/proc/{pid}").exists()] == []


def test_a_process_may_be_started_again_after_a_crash(tmp_path: Path) -> None:
    script = f"echo alive; touch {tmp_path / 'ready'}; exec sleep 600"
    process = Process(Command("server", ["sh", "-c", script]), tmp_path)
    for _ in range(2):
        process.start()
        eventually((tmp_path / "ready").exists, "the process runs")
        (tmp_path / "ready").unlink()
        process.kill()
        assert not process.running
    assert process.log.read_text() == "alive\nalive\n"


def test_the_end_of_a_process_is_told_with_the_end_of_its_log(tmp_path: Path) -> None:
    process = Process(Command("broken", ["sh", "-c", "echo cannot bind port 1; exit 3"]), tmp_path)
    process.start()
    assert process.wait(DEADLINE_SECONDS)
    with pytest.raises(ProcessDied, match=r"broken does not run; its log .*broken\.log ends with:\ncannot bind port 1"):
        _ = process.pid
    process.stop()
