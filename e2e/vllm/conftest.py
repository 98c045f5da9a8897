"""Fixtures of the tests on the real vLLM (`make e2e-vllm`)."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from e2e.harness.ports import PortLease
from e2e.harness.process import Process
from e2e.harness.readiness import answers, until
from e2e.vllm import server, tiny_model_path
from e2e.vllm.environment import vllm_python

START_SECONDS = 600.0
Serve = Callable[..., str]


@pytest.fixture(scope="session")
def python() -> Path:
    """The Python of vLLM's environment, installed on first use."""
    return vllm_python()


@pytest.fixture(scope="session")
def model(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the tiny model."""
    directory = tmp_path_factory.mktemp("model")
    subprocess.run([python, tiny_model_path(), directory], check=True)
    return directory


@pytest.fixture
def serve(python: Path, model: Path, tmp_path: Path) -> Iterator[Serve]:
    """Start a server with the flags given; return the URL it answers on. All end with the test."""
    ports = PortLease()
    with ExitStack() as stack:
        stack.callback(ports.release)

        def start(*flags: str, name: str = "vllm") -> str:
            port = ports.take()
            process = Process(server.command(python, model, port, flags, name), tmp_path)
            stack.callback(process.stop)
            process.start()
            url = f"http://{server.HOST}:{port}"
            until(lambda: answers(f"{url}/health"), f"{name} healthy", process, START_SECONDS)
            return url

        yield start
