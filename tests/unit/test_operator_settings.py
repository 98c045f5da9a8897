"""Settings of the operator: a file, variables over it, and refusals that name the field."""

from pathlib import Path

import pytest

from kvplan_operator.errors import SettingsError
from kvplan_operator.settings import Settings, read_settings, settings_from


def test_without_anything_the_defaults_hold_and_no_url_is_allowed() -> None:
    settings = settings_from("", {})
    assert settings == Settings()
    assert settings.solver.concurrency == 2
    assert settings.prometheus.allowed_urls == ()
    assert (settings.lease.duration_seconds, settings.lease.renew_seconds, settings.lease.retry_seconds) == (15, 10, 2)


def test_variables_win_over_the_file() -> None:
    text = "namespaces: [a]\nlease: {name: from-file, namespace: ops}\n"
    settings = settings_from(text, {"KVPLAN_NAMESPACES": "b, c,", "KVPLAN_LEASE_NAME": "from-variable"})
    assert settings.namespaces == ("b", "c")
    assert (settings.lease.name, settings.lease.namespace) == ("from-variable", "ops")


def test_variables_that_kubernetes_adds_for_services_are_passed_over() -> None:
    added = {
        "KVPLAN_PORT": "tcp://10.0.0.1:80",
        "KVPLAN_SERVICE_HOST": "10.0.0.1",
        "KVPLAN_ROUTER_PORT_9002_TCP": "tcp://10.0.0.2:9002",
        "KVPLAN_METRICS_SERVICE_PORT": "8080",
    }
    assert settings_from("", added) == Settings()


def test_prometheus_variables_make_the_default_profile() -> None:
    settings = settings_from(
        "prometheus: {profiles: {team: {url: 'https://team.example'}}}",
        {"KVPLAN_PROMETHEUS_URL": "http://prometheus:9090", "KVPLAN_PROMETHEUS_TOKEN_FILE": "/var/run/token"},
    )
    connections = settings.prometheus
    assert set(connections.profiles) == {"default", "team"}
    assert connections.profiles["default"].url == "http://prometheus:9090"
    assert connections.profiles["default"].token_file == Path("/var/run/token")


def test_listen_has_a_host_and_a_port() -> None:
    assert settings_from("", {"KVPLAN_LISTEN": "127.0.0.1:9000"}).listen_address == ("127.0.0.1", 9000)
    assert settings_from("", {"KVPLAN_LISTEN": ":9000"}).listen_address == ("", 9000)


@pytest.mark.parametrize(
    ("text", "environment", "named"),
    [
        pytest.param("leas: {}", {}, "leas", id="a section that does not exist"),
        pytest.param("lease: {nam: x}", {}, "lease.nam", id="a field that does not exist"),
        pytest.param("lease: 3", {}, "lease", id="a number for a section"),
        pytest.param("lease: 3", {"KVPLAN_LEASE_NAME": "x"}, "lease", id="a number where a variable is in"),
        pytest.param("- a", {}, "mapping", id="a list"),
        pytest.param("a: [", {}, "YAML", id="no YAML"),
        pytest.param("", {"KVPLAN_SOLVER_CONCURRENCY": "0"}, "KVPLAN_SOLVER_CONCURRENCY", id="no solver at all"),
        pytest.param("", {"KVPLAN_TICKS_SPACING_SECONDS": "soon"}, "ticks.spacing_seconds", id="no number"),
        pytest.param("", {"KVPLAN_LEASE_RENEW_SECONDS": "20"}, "retry_seconds < renew_seconds", id="never renewed"),
        pytest.param("", {"KVPLAN_PROMETHEUS_URL": "ftp://x"}, "prometheus.profiles.default.url", id="no http"),
        pytest.param("", {"KVPLAN_LISTEN": "everywhere"}, "listen", id="no port"),
        pytest.param("", {"KVPLAN_LOG_LEVEL": "LOUD"}, "log_level", id="no log level"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_refused_by_name(text: str, environment: dict[str, str], named: str) -> None:
    with pytest.raises(SettingsError) as refused:
        settings_from(text, environment)
    assert named in str(refused.value)


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(SettingsError, match="/no/such/file"):
        read_settings({"KVPLAN_CONFIG": "/no/such/file"})


def test_the_file_that_a_variable_names_is_read(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("solver: {concurrency: 5}\n")
    assert read_settings({"KVPLAN_CONFIG": str(file)}).solver.concurrency == 5
