"""The connection to Prometheus holds its bounds whatever the server does."""

import asyncio
import gzip
import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
import yaml

from kvplan_operator.errors import SettingsError
from kvplan_operator.model.series import Answer, Reply, Series, Unanswered
from kvplan_operator.observe.profile import PrometheusConnection, PrometheusSettings, connection_to
from kvplan_operator.observe.prometheus import Prometheus
from kvplan_operator.settings import settings_from
from kvplan_solver.errors import InvalidInput
from tests.fake_prometheus import Answering, body, serving, silent_until, vector
from tests.planning import fleet

ONE = vector([({"class": "chat"}, "2.5")])


def ask(url: str, text: str = "up", **settings: Any) -> Reply:
    """The reply of a fresh connection to one query."""
    fields: dict[str, Any] = {"url": url, "timeout_seconds": 2} | settings
    prometheus = Prometheus("test", PrometheusConnection(**fields))
    try:
        return asyncio.run(prometheus.query(text))
    finally:
        prometheus.close()


def reason(reply: Reply) -> str:
    assert isinstance(reply, Unanswered)
    return reply.reason


def test_a_vector_is_read_with_labels_value_and_time() -> None:
    with serving(ONE) as seen:
        reply = ask(seen.url, 'x{a="b"}')
    assert reply == Answer((Series({"class": "chat"}, 2.5, 1000.0),))
    assert seen.queries == ['x{a="b"}']
    assert seen.parameters[0]["timeout"] == ["2s"]
    assert seen.parameters[0]["limit"] == ["20001"]


def test_nan_and_infinity_are_read_and_left_to_the_reader() -> None:
    rows = [({"le": "1"}, "NaN"), ({"le": "2"}, "+Inf"), ({"le": "3"}, "3")]
    with serving(vector(rows)) as seen:
        reply = ask(seen.url)
    assert isinstance(reply, Answer)
    assert len(reply.series) == 3
    assert reply.by("le") == {"3": 3.0}


def test_warnings_of_the_server_come_along() -> None:
    with serving(vector([], warnings=["a store did not answer"])) as seen:
        assert ask(seen.url) == Answer((), ("a store did not answer",))


def test_warnings_of_one_answer_are_not_those_of_the_next() -> None:
    answers = iter([vector([], warnings=["partial"]), ONE])

    async def two(prometheus: Prometheus) -> tuple[Reply, Reply]:
        return await prometheus.query("a"), await prometheus.query("b")

    def each_in_turn(handler: BaseHTTPRequestHandler) -> None:
        next(answers)(handler)

    with serving(each_in_turn) as seen:
        prometheus = Prometheus("test", PrometheusConnection(url=seen.url))
        first, second = asyncio.run(two(prometheus))
        prometheus.close()
    assert isinstance(first, Answer)
    assert isinstance(second, Answer)
    assert (first.warnings, second.warnings) == (("partial",), ())


def redirect(target: str) -> Answering:
    return body(b"", 302, Location=target)


def elsewhere_if_asked(handler: BaseHTTPRequestHandler) -> None:
    """Same host: another path answers."""
    (ONE if handler.path.startswith("/moved") else redirect("/moved/api/v1/query?query=up"))(handler)


HTML = b"<html>a login page with a secret</html>"
REFUSED = json.dumps({"status": "error", "errorType": "execution", "error": "query timed out"}).encode()
UNUSABLE: dict[str, tuple[Answering, str]] = {
    "503 with Prometheus' words": (body(REFUSED, 503), "HTTP 503: query timed out"),
    "an error page that is not Prometheus' is not quoted": (body(HTML, 502), "HTTP 502"),
    "a page instead of JSON": (body(HTML), "the answer is no JSON"),
    "JSON that ends in the middle": (body(b'{"status":"success","data":{"res'), "the answer is no JSON"),
    "JSON of another kind": (body(b"[]"), "the answer is not that of a Prometheus"),
    "no result in it": (body(b'{"status":"success","data":null}'), "the answer is not that of a Prometheus"),
    "a scalar": (body(b'{"data":{"result":[1,"2"]}}'), "instant vector"),
    "a native histogram": (body(b'{"data":{"result":[{"metric":{},"histogram":[1,{}]}]}}'), "instant vector"),
    "a value that is no number": (vector([({}, "many")]), "'many'"),
    "a redirect to another host": (redirect("http://169.254.169.254/latest"), "redirects to another host"),
    "a redirect to another port": (redirect("http://127.0.0.1:1/"), "redirects to another host"),
    "a redirect to another scheme": (redirect("file:///etc/passwd"), "redirects to another host"),
    "too many series": (vector([({"n": str(n)}, "1") for n in range(9)]), "more than 8 series"),
    "too many bytes": (body(b" " * 5000), "longer than 4096 bytes"),
    "too many bytes once unpacked": (body(gzip.compress(b" " * 100_000), Content_Encoding="gzip"), "longer than 4096"),
    "compression that is none": (body(b"plain", Content_Encoding="gzip"), "cannot be read"),
}


@pytest.mark.parametrize(("answer", "words"), UNUSABLE.values(), ids=UNUSABLE.keys())
def test_an_unusable_answer_is_a_reason_and_no_error(answer: Answering, words: str) -> None:
    with serving(answer) as seen:
        said = reason(ask(seen.url, max_series=8, max_bytes=4096))
    assert words in said
    assert "secret" not in said
    assert "127.0.0.1" not in said


def test_a_redirect_on_the_same_host_is_followed() -> None:
    with serving(elsewhere_if_asked) as seen:
        assert isinstance(ask(seen.url), Answer)


def test_a_redirect_with_a_body_without_end_is_cut_short() -> None:
    def endless_redirect(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(302)
        handler.send_header("Location", "/api/v1/query")
        handler.end_headers()
        handler.close_connection = True
        try:
            while True:
                handler.wfile.write(b" " * 65_536)
        except OSError:
            return

    with serving(endless_redirect) as seen:
        assert isinstance(ask(seen.url), Unanswered)
    assert len(seen.parameters) == 4  # three redirects are followed


def test_a_server_that_is_not_there_is_a_reason() -> None:
    assert "connection failed" in reason(ask("http://127.0.0.1:1"))


def test_an_answer_that_trickles_in_ends_by_the_timeout() -> None:
    done = threading.Event()

    def trickle(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "100000")
        handler.end_headers()
        while not done.wait(0.02):
            try:
                handler.wfile.write(b" ")
            except OSError:
                return

    with serving(trickle) as seen:
        said = reason(ask(seen.url, timeout_seconds=0.2))
        done.set()
    assert "took longer than 0.2 s" in said


def test_an_idle_connection_that_the_server_closed_is_opened_again() -> None:
    def answer_and_close(handler: BaseHTTPRequestHandler) -> None:
        ONE(handler)
        handler.close_connection = True  # without saying so in a header

    async def twice(prometheus: Prometheus) -> list[Reply]:
        return [await prometheus.query("up") for _ in range(3)]

    with serving(answer_and_close) as seen:
        prometheus = Prometheus("test", PrometheusConnection(url=seen.url))
        replies = asyncio.run(twice(prometheus))
        prometheus.close()
    assert all(isinstance(reply, Answer) for reply in replies)


def test_silence_ends_by_the_timeout() -> None:
    done = threading.Event()
    with serving(silent_until(done)) as seen:
        said = reason(ask(seen.url, timeout_seconds=0.2))
        done.set()
    assert "no answer in time" in said


def test_slow_queries_leave_the_answers_of_fast_ones() -> None:
    done = threading.Event()

    def answer(handler: BaseHTTPRequestHandler) -> None:
        if "slow" in handler.path:
            done.wait(10)
        else:
            ONE(handler)

    async def both(prometheus: Prometheus) -> dict[str, Reply]:
        try:
            return await prometheus.query_all({"a": "fast", "b": "slow"}, 2.0)
        finally:
            done.set()

    with serving(answer) as seen:
        prometheus = Prometheus("test", PrometheusConnection(url=seen.url))
        replies = asyncio.run(both(prometheus))
        prometheus.close()
    assert isinstance(replies["a"], Answer)
    assert "no answer within 2 s" in reason(replies["b"])


def test_no_more_queries_run_at_once_than_the_profile_allows() -> None:
    running, most, lock = [0], [0], threading.Lock()
    together = threading.Barrier(2, timeout=5)

    def answer(handler: BaseHTTPRequestHandler) -> None:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        together.wait()
        with lock:
            running[0] -= 1
        ONE(handler)

    with serving(answer) as seen:
        prometheus = Prometheus("test", PrometheusConnection(url=seen.url), concurrency=2)
        replies = asyncio.run(prometheus.query_all({str(n): "up" for n in range(6)}, 10.0))
        prometheus.close()
    assert all(isinstance(reply, Answer) for reply in replies.values())
    assert most == [2]


def test_the_token_is_read_again_for_every_query(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first\n")

    async def rotate(prometheus: Prometheus) -> None:
        await prometheus.query("up")
        token.write_text("second\n")
        await prometheus.query("up")

    with serving(ONE) as seen:
        prometheus = Prometheus("test", PrometheusConnection(url=seen.url, token_file=token))
        asyncio.run(rotate(prometheus))
        prometheus.close()
    assert seen.authorizations == ["Bearer first", "Bearer second"]


TOKENS = {"absent": None, "empty": "\n", "two lines": "a\nb", "no ASCII": "ü"}


@pytest.mark.parametrize("content", TOKENS.values(), ids=TOKENS.keys())
def test_without_a_usable_token_nothing_is_sent(tmp_path: Path, content: str | None) -> None:
    token = tmp_path / "token"
    if content is not None:
        token.write_text(content)
    with serving(ONE) as seen:
        assert "token file" in reason(ask(seen.url, token_file=token))
    assert seen.queries == []


def test_credentials_of_the_environment_are_not_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login someone password something\n")
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with serving(ONE) as seen:
        assert isinstance(ask(seen.url), Answer)
    assert seen.authorizations == [None]


def test_a_certificate_of_an_unknown_authority_is_refused(tmp_path: Path, authority: "Authority") -> None:
    with serving_tls(authority) as url:
        assert "not trusted" in reason(ask(url))
        assert isinstance(ask(url, ca_file=authority.certificate), Answer)


BAD_PROFILES: dict[str, dict[str, Any]] = {
    "another scheme": {"url": "ftp://prometheus"},
    "no host": {"url": "http://"},
    "credentials in the address": {"url": "http://someone:something@prometheus"},
    "a query in the address": {"url": "http://prometheus?x=1"},
    "no time": {"url": "http://prometheus", "timeout_seconds": 0},
}


@pytest.mark.parametrize("fields", BAD_PROFILES.values(), ids=BAD_PROFILES.keys())
def test_a_profile_that_makes_no_sense_is_refused(fields: dict[str, Any]) -> None:
    text = yaml.safe_dump({"prometheus": {"profiles": {"test": fields}}})
    with pytest.raises(SettingsError, match=r"prometheus\.profiles\.test") as caught:
        settings_from(text, {})
    assert "something" not in str(caught.value)


def test_an_address_of_the_command_line_that_makes_no_sense_is_refused() -> None:
    for fields in BAD_PROFILES.values():
        if "timeout_seconds" not in fields:
            with pytest.raises(InvalidInput, match="--prometheus") as caught:
                connection_to("the command line", "--prometheus", fields["url"])
            assert "something" not in str(caught.value)


SETTINGS = PrometheusSettings(
    profiles={"default": PrometheusConnection(url="http://prometheus:9090", token_file=Path("/token"))},
    allowed_urls=("http://other:9090/",),
)


def test_a_fleet_uses_the_profile_it_names() -> None:
    assert SETTINGS.connection_of(fleet()).connection.url == "http://prometheus:9090"


def test_an_allowed_address_is_used_without_credentials() -> None:
    name, profile = SETTINGS.connection_of(fleet(prometheus={"url": "http://other:9090"}))
    assert name == profile.url
    assert (profile.url, profile.token_file, profile.ca_file) == ("http://other:9090", None, None)


REFUSED_SOURCES = {
    "a profile the operator does not have": ({"profile": "mine"}, "the operator has: default"),
    "an address not on the list": ({"url": "http://169.254.169.254"}, "allowed URLs"),
    "an address that only begins like an allowed one": ({"url": "http://other:9090.evil"}, "allowed URLs"),
    "a profile's address without its name": ({"url": "http://prometheus:9090"}, "allowed URLs"),
}


@pytest.mark.parametrize(("wanted", "words"), REFUSED_SOURCES.values(), ids=REFUSED_SOURCES.keys())
def test_a_fleet_cannot_send_the_operator_anywhere(wanted: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        SETTINGS.connection_of(fleet(prometheus=wanted))


class Authority:
    """A certificate of 127.0.0.1, signed by itself."""

    def __init__(self, directory: Path) -> None:
        from datetime import UTC, datetime, timedelta
        from ipaddress import ip_address

        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec

        key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
        address = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
        now = datetime.now(UTC)
        signed = (
            x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(address, critical=True)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(key, hashes.SHA256())
        )
        self.certificate, self.key = directory / "cert.pem", directory / "key.pem"
        self.certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
        plain = serialization.NoEncryption()
        encoded = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
        self.key.write_bytes(encoded)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def serving_tls(authority: Authority) -> Any:
    from contextlib import contextmanager
    from http.server import ThreadingHTTPServer

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            ONE(self)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    @contextmanager
    def run() -> Any:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(authority.certificate, authority.key)
        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            server.handle_error = lambda *_: None  # type: ignore[method-assign]
            server.socket = context.wrap_socket(server.socket, server_side=True)
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
            thread.start()
            yield f"https://127.0.0.1:{server.server_port}"
            server.shutdown()
            thread.join()

    return run()
