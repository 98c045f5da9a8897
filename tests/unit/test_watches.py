"""A watch that ends through a fault of ours is noticed: before the first list as an error, later as ill health."""

import asyncio
from typing import Any, cast

import pytest

from kvplan_operator.kube.reflector import Reflector
from kvplan_operator.reconcile.watches import Watches


class Faulty:
    """A reflector that fails once it may, with or without a first list."""

    def __init__(self, *, lists: bool) -> None:
        self.synced, self.may = asyncio.Event(), asyncio.Event()
        if lists:
            self.synced.set()
        else:
            self.may.set()

    async def run(self) -> None:
        await self.may.wait()
        raise KeyError("metadata")


def as_reflector(faulty: Faulty) -> Reflector[Any]:
    return cast(Reflector[Any], faulty)


def test_a_watch_that_fails_before_its_first_list_ends_the_start() -> None:
    async def scenario() -> None:
        watches = Watches()
        with pytest.raises(KeyError):
            await watches.start([as_reflector(Faulty(lists=False))])
        assert watches.broken

    asyncio.run(scenario())


def test_a_watch_that_fails_later_is_ill_health_and_one_that_is_stopped_is_not() -> None:
    async def scenario() -> None:
        good, bad = Faulty(lists=True), Faulty(lists=True)
        watches, stopped = Watches(), Watches()
        await stopped.start([as_reflector(good)])
        await watches.start([as_reflector(bad)])
        assert not watches.broken
        bad.may.set()
        await asyncio.sleep(0)
        await stopped.stop()
        await watches.stop()
        assert (watches.broken, stopped.broken) == (True, False)

    asyncio.run(scenario())
