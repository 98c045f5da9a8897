"""Ports are lent to one cluster at a time, across processes, and never while something listens on them."""

import socket
import subprocess
import sys

import pytest

from e2e.harness.ports import PortLease

pytestmark = pytest.mark.e2e

HOLDER = """
import sys
from e2e.harness.ports import PortLease
lease = PortLease()
print(*(lease.take() for _ in range(200)), flush=True)
sys.stdin.read()
"""


def test_two_processes_never_hold_the_same_port() -> None:
    holders = [
        subprocess.Popen([sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    held: list[int] = []
    for holder in holders:
        assert holder.stdout is not None
        held += [int(port) for port in holder.stdout.readline().split()]
    for holder in holders:
        holder.communicate("", timeout=20)
    assert len(held) == 600
    assert len(set(held)) == 600


def test_a_port_that_is_listened_on_is_not_lent(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        busy = listener.getsockname()[1]
        monkeypatch.setattr("e2e.harness.ports._RANGE", range(busy, busy + 1))
        with pytest.raises(OSError, match="every port"):
            PortLease().take()


def test_a_released_port_is_lent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("e2e.harness.ports._RANGE", range(19_321, 19_322))
    lease = PortLease()
    port = lease.take()
    with pytest.raises(OSError, match="every port"):
        PortLease().take()
    lease.release()
    again = PortLease()
    assert again.take() == port
    again.release()
