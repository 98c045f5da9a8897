"""The scheduler plugin's arithmetic: reservations in request ids, blocks left free, versions refused."""

import pytest

from kvplan_vllm.reservation import Holding, blocks_to_leave, reservation_tokens, to_blocks
from kvplan_vllm.versions import UntestedVersion, check_version


@pytest.mark.parametrize(
    ("request_id", "tokens"),
    [
        pytest.param("cmpl-abc-kvr416-0-1a2b3c4d", 416, id="as vLLM makes it from the router's header"),
        pytest.param("chatcmpl-abc-kvr0-9", 0, id="a reservation of nothing"),
        pytest.param("cmpl-abc", 0, id="no reservation"),
        pytest.param("cmpl-x-kvr9-y-kvr32-0", 32, id="the last one is the router's"),
        pytest.param("cmpl-kvr", 0, id="no number"),
        pytest.param("cmpl-abc-kvr1234567890", 0, id="more digits than any cache has tokens"),
        pytest.param("cmpl-abc-kvr-5", 0, id="a negative number"),
    ],
)
def test_a_reservation_is_read_off_the_request_id(request_id: str, tokens: int) -> None:
    assert reservation_tokens(request_id) == tokens


def test_what_is_left_free_is_what_everyone_may_still_take() -> None:
    running = [Holding(reserved_blocks=8, own_blocks=3), Holding(4, 4)]
    assert blocks_to_leave(running, Holding(reserved_blocks=6, own_blocks=2)) == 5 + 0 + 4


def test_a_request_that_outgrew_its_reservation_takes_nothing_from_others() -> None:
    assert blocks_to_leave([Holding(2, 9)], Holding(1, 1)) == 0


@pytest.mark.parametrize(("tokens", "blocks"), [(0, 0), (1, 1), (32, 1), (33, 2)])
def test_tokens_fill_whole_blocks(tokens: int, blocks: int) -> None:
    assert to_blocks(tokens, 32) == blocks


@pytest.mark.parametrize("version", ["0.32.0", "0.32.0+cpu"])
def test_a_tested_version_is_let_through(version: str) -> None:
    check_version(version)


@pytest.mark.parametrize("version", ["0.33.0", "0.31.1", "0.32.1", "1.0"])
def test_any_other_version_is_refused_with_the_remedy(version: str) -> None:
    with pytest.raises(UntestedVersion, match="leave out --scheduler-cls"):
        check_version(version)
