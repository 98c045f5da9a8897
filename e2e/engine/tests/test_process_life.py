"""The command as a process: start-up, SIGTERM in its two modes, a dead engine."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

PATIENCE = 30.0
"""Seconds; a process that takes longer has failed."""
SECOND_STEPS = ("--stand-in-step-milliseconds", "20")
LONG = {"prompt": "hi", "max_tokens": 100, "ignore_eos": True}


@dataclass
class Running:
    """A started stand-in."""

    process: subprocess.Popen[str]
    port: int

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)

    def ask(self, path: str, body: dict[str, Any] | None = None) -> tuple[int, str]:
        connection = self.connect()
        try:
            connection.request("POST" if body else "GET", path, json.dumps(body) if body else None)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def exit_code(self) -> int:
        return self.process.wait(PATIENCE)


@contextmanager
def started(*flags: str) -> Iterator[Running]:
    command = [sys.executable, "-m", "kvplan_engine", "serve", "tiny", "--port", "0", *flags]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        guard = threading.Timer(PATIENCE, process.kill)
        guard.start()
        try:
            yield Running(process, _port(process))
        finally:
            guard.cancel()
            process.kill()


def _port(process: subprocess.Popen[str]) -> int:
    return int(_log_line(process, r"Listening on http://127\.0\.0\.1:(\d+)"))


def _log_line(process: subprocess.Popen[str], pattern: str) -> str:
    """What the first matching line of the log has in the pattern's group."""
    assert process.stderr is not None
    for line in process.stderr:
        if found := re.search(pattern, line):
            return found.group(1)
    raise AssertionError(f"the process ended without a line like {pattern}")


def _open_stream(running: Running) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
    """A stream of which the first token has arrived."""
    connection = running.connect()
    connection.request("POST", "/v1/completions", json.dumps({**LONG, "stream": True}))
    response = connection.getresponse()
    assert response.readline().startswith(b"data: ")
    return connection, response


def test_idle_it_ends_at_once_and_well() -> None:
    with started() as running:
        running.stop()
        assert running.exit_code() == 0


def test_a_drain_finishes_what_is_in_flight_and_refuses_what_is_new() -> None:
    with started("--shutdown-timeout", "20", *SECOND_STEPS) as running:
        connection, response = _open_stream(running)
        running.stop()
        status, text = running.ask("/v1/completions", {**LONG, "max_tokens": 1})
        while status == 200:  # the signal may take a moment to arrive
            status, text = running.ask("/v1/completions", {**LONG, "max_tokens": 1})
        assert (status, "cannot schedule new futures after shutdown" in text) == (500, True)
        assert running.ask("/health")[0] == 200
        assert response.read().endswith(b"data: [DONE]\n\n")
        connection.close()
        assert running.exit_code() == 0


def test_a_drain_that_takes_too_long_cuts_off() -> None:
    with started("--shutdown-timeout", "0.2", *SECOND_STEPS) as running:
        connection, response = _open_stream(running)
        running.stop()
        with pytest.raises((http.client.IncompleteRead, ConnectionError)):
            response.read()
        connection.close()
        assert running.exit_code() == 0


def test_without_a_timeout_open_requests_get_neither_data_nor_an_error() -> None:
    with started(*SECOND_STEPS) as running:
        connection, response = _open_stream(running)
        running.stop()
        _wait_until_refused(running)
        connection.sock.settimeout(0.5)
        with pytest.raises(TimeoutError):
            response.read()  # what was under way when the signal came may still arrive, and then nothing
        assert running.process.poll() is None
        connection.close()
        response.close()
        assert running.exit_code() == 0


def _wait_until_refused(running: Running) -> None:
    while True:
        try:
            running.ask("/health")
        except ConnectionError:
            return


def test_before_its_start_up_time_is_over_the_port_is_closed_and_sigterm_ends_it() -> None:
    port = _free_port()
    command = [sys.executable, "-m", "kvplan_engine", "--port", str(port), "--stand-in-startup-seconds", "3600"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert _log_line(process, r"ready in (\d+) s") == "3600"
        with pytest.raises(ConnectionRefusedError):
            Running(process, port).ask("/health")
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def test_pods_on_one_machine_listen_on_addresses_of_their_own() -> None:
    flags = ["serve", "tiny", "--host", "0.0.0.0", "--port", "0"]  # noqa: S104  (overruled by the environment)
    command = [sys.executable, "-m", "kvplan_engine", *flags]
    environment = os.environ | {"STAND_IN_HOST": "127.0.0.9"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert _log_line(process, r"Listening on http://([\d.]+):") == "127.0.0.9"
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0


def test_a_dead_engine_makes_health_fail_and_requests_too() -> None:
    with started() as running:
        running.process.send_signal(signal.SIGUSR1)
        status = 200
        while status == 200:
            status, _ = running.ask("/health")
        assert status == 503
        assert running.ask("/v1/completions", LONG)[0] == 500
        running.stop()
        assert running.exit_code() == 0


def test_a_port_that_is_taken_exits_with_1() -> None:
    with started() as running:
        command = [sys.executable, "-m", "kvplan_engine", "--port", str(running.port)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert done.returncode == 1
        assert "Traceback" not in done.stderr
