"""Options of a router process: arguments, environment, refusals that name option, value and remedy."""

from pathlib import Path

import pytest

from kvplan_router.settings import BadSetting, RouterSettings, read_settings, split_address
from kvplan_router.transport.messages import InFlightMode

LEAST = ["--fleet=shop/chat", "--insecure=yes"]


def test_the_least_that_starts_a_router_is_a_fleet_and_how_to_listen() -> None:
    settings = read_settings(LEAST, {})
    assert (settings.namespace, settings.fleet, settings.fleet_label) == ("shop", "chat", "shop/chat")
    assert settings.in_flight is InFlightMode.TRAILERS
    assert settings.insecure


def test_every_option_can_come_from_the_environment_and_an_argument_wins() -> None:
    environment = {"KVPLAN_ROUTER_FLEET": "a/b", "KVPLAN_ROUTER_SAMPLE_MILLI": "5", "KVPLAN_ROUTER_INSECURE": "yes"}
    settings = read_settings(["--sample-milli=7", "--peers=10.0.0.1:9004, 10.0.0.2:9004"], environment)
    assert (settings.fleet_label, settings.sample_milli) == ("a/b", 7)
    assert settings.peers == ("10.0.0.1:9004", "10.0.0.2:9004")


def test_defaults_of_options_and_of_the_type_agree() -> None:
    given = read_settings([*LEAST, "--identity=router"], {})
    assert given == RouterSettings(namespace="shop", fleet="chat", insecure=True)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--insecure=yes"], "--fleet is ''"),
        (["--fleet=chat", "--insecure=yes"], "write namespace/name"),
        (["--fleet=a/b"], "give --certificate and --key, or --insecure yes"),
        ([*LEAST, "--listen=9002"], "--listen is '9002': write host:port"),
        ([*LEAST, "--admin=0.0.0.0:99999"], "--admin is '0.0.0.0:99999'"),
        ([*LEAST, "--peers=10.0.0.1"], "--peers is '10.0.0.1'"),
        ([*LEAST, "--sample-milli=1001"], "an integer from 0 to 1000"),
        ([*LEAST, "--grace-seconds=nan"], "write seconds"),
    ],
)
def test_a_value_that_cannot_be_used_is_named_with_its_remedy(arguments: list[str], says: str) -> None:
    with pytest.raises(BadSetting, match=says.replace("(", r"\(")):
        read_settings(arguments, {})


def test_an_unknown_choice_ends_the_process_as_wrong_arguments_do(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        read_settings(LEAST, {"KVPLAN_ROUTER_IN_FLIGHT": "guess"})
    assert "invalid choice: 'guess'" in capsys.readouterr().err


def test_addresses_may_be_ipv6() -> None:
    assert split_address("listen", "[::]:9002") == ("::", 9002)


def test_paths_are_paths() -> None:
    settings = read_settings([*LEAST, "--table=/run/table", "--secret-file=/run/secret"], {})
    assert (settings.table_path, settings.secret_file) == (Path("/run/table"), Path("/run/secret"))
