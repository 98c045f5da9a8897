"""The gRPC side of a transport without Envoy: health by service name, drains, TLS whose certificate changes."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import grpc.aio
import pytest
from envoy.service.ext_proc.v3 import external_processor_pb2 as ext_proc
from envoy.service.ext_proc.v3 import external_processor_pb2_grpc as ext_proc_grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from e2e.harness.pki import Authority
from kvplan_router.core.slot_account import SlotAccount
from kvplan_router.core.values import Outcome, Pick, Released, Shed, Ticket, Wait
from kvplan_router.transport.aio import AioTransport, Listener
from kvplan_router.transport.exchange_state import ExchangeRules
from kvplan_router.transport.interface import Transport
from kvplan_router.transport.names import EXT_PROC_SERVICE
from kvplan_router.transport.tls import ReloadingCertificate
from tests.router_script import Script

pytestmark = pytest.mark.e2e

FOLLOW = ("", "readiness", EXT_PROC_SERVICE)
SERVING, NOT_SERVING = health_pb2.HealthCheckResponse.SERVING, health_pb2.HealthCheckResponse.NOT_SERVING


def pick() -> Pick:
    return Pick(("10.0.0.1:80",), {}, Outcome.COLD, Ticket(SlotAccount("a-0"), 1, "chat", 0.0))


@pytest.fixture(params=["aio", "native"])
def kind(request: pytest.FixtureRequest) -> str:
    """Which transport; both pass the same tests."""
    if request.param == "native":
        pytest.importorskip("kvplan_router_native", reason="the extension is not built")
    name: str = request.param
    return name


def opened_transport(kind: str, script: Script, pair: Path | None) -> Transport:
    if kind == "native":
        from kvplan_router.transport.native import NativeListener, NativeTransport

        return NativeTransport(script, NativeListener("127.0.0.1:0", pair, pair), ExchangeRules())
    credentials = ReloadingCertificate(pair, pair).credentials() if pair else None
    return AioTransport(script, Listener("127.0.0.1:0", credentials), ExchangeRules())


@asynccontextmanager
async def serving(kind: str, script: Script, pair: Path | None = None) -> AsyncIterator[Transport]:
    """A transport; ``pair`` holds its certificate and key."""
    transport = opened_transport(kind, script, pair)
    await transport.start()
    await transport.set_serving(True)
    yield transport
    await transport.stop()


@asynccontextmanager
async def channel(transport: Transport) -> AsyncIterator[grpc.aio.Channel]:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{transport.port}") as opened:
        yield opened


async def health(opened: grpc.aio.Channel, *names: str) -> list[int]:
    stub = health_pb2_grpc.HealthStub(opened)
    return [(await stub.Check(health_pb2.HealthCheckRequest(service=name))).status for name in names]


def head() -> ext_proc.ProcessingRequest:
    return ext_proc.ProcessingRequest(request_headers=ext_proc.HttpHeaders())


async def test_every_name_follows_readiness_but_liveness(kind: str) -> None:
    async with serving(kind, Script([])) as transport, channel(transport) as opened:
        assert await health(opened, *FOLLOW, "liveness") == [SERVING] * 4
        await transport.set_serving(False)
        assert await health(opened, *FOLLOW, "liveness") == [NOT_SERVING] * 3 + [SERVING]
        with pytest.raises(grpc.aio.AioRpcError, match="NOT_FOUND"):
            await health(opened, "somebody else")


async def test_a_drain_tells_who_watches_still_serves_and_lets_go_of_what_is_held(kind: str) -> None:
    script = Script([pick(), pick()])
    async with serving(kind, script) as transport, channel(transport) as opened:
        stub = ext_proc_grpc.ExternalProcessorStub(opened)
        held = stub.Process()
        await held.write(head())
        await held.read()
        draining = asyncio.create_task(transport.drain(lame_duck_seconds=0.5, grace_seconds=5))
        await asyncio.sleep(0.1)
        assert await health(opened, EXT_PROC_SERVICE) == [NOT_SERVING]
        late = stub.Process()
        await late.write(head())
        assert (await late.read()).HasField("request_headers")
        assert await held.read() is grpc.aio.EOF
        assert await held.code() is grpc.StatusCode.OK
        await draining
    assert len(script.finished) == 2


async def test_a_waiting_request_is_answered_when_there_is_room_and_at_its_deadline(kind: str) -> None:
    first, second = (Wait(name, time.monotonic() + 0.3) for name in ("first", "second"))
    script = Script([first, second])
    async with serving(kind, script) as transport, channel(transport) as opened:
        stub = ext_proc_grpc.ExternalProcessorStub(opened)
        calls = [stub.Process(), stub.Process()]
        for call in calls:
            await call.write(head())
            more_time = await call.read()
            assert more_time.override_message_timeout.ToMilliseconds() > 300
        script.to_release = [Released("first", pick())]
        transport.look()
        assert (await calls[0].read()).HasField("request_headers")
        script.to_release = [Released("second", Shed(429, 1, "no room"))]
        assert (await calls[1].read()).immediate_response.status.code == 429
    assert len(script.looked) == 2


async def test_a_client_that_leaves_gives_everything_back(kind: str) -> None:
    script = Script([pick(), Wait("w", time.monotonic() + 60)])
    async with serving(kind, script) as transport, channel(transport) as opened:
        stub = ext_proc_grpc.ExternalProcessorStub(opened)
        for _ in range(2):
            call = stub.Process()
            await call.write(head())
            await call.read()
            call.cancel()
        async with asyncio.timeout(5):
            while not (script.finished and script.abandoned):
                await asyncio.sleep(0.01)
    assert (len(script.finished), [ticket for ticket, _ in script.abandoned]) == (1, ["w"])


def replace(certificate: Path, issued: Path) -> None:
    certificate.write_bytes(issued.read_bytes())


async def reached(transport: Transport, authority: Authority) -> bool:
    trusted = grpc.ssl_channel_credentials(authority.certificate.read_bytes())
    async with grpc.aio.secure_channel(f"localhost:{transport.port}", trusted) as opened:
        try:
            await asyncio.wait_for(health(opened, ""), 3)
        except (grpc.aio.AioRpcError, TimeoutError):
            return False
    return True


async def test_a_new_certificate_is_used_from_the_next_connection_and_a_torn_one_never(
    kind: str, tmp_path: Path
) -> None:
    old, new = Authority(tmp_path / "old"), Authority(tmp_path / "new")
    pair = tmp_path / "tls.pem"
    replace(pair, old.server("router"))
    async with serving(kind, Script([]), pair) as transport:
        assert (await reached(transport, old), await reached(transport, new)) == (True, False)
        pair.write_text("half a certificate")
        assert await reached(transport, old)
        replace(pair, new.server("router"))
        assert (await reached(transport, new), await reached(transport, old)) == (True, False)
