"""What is read off a watched object is read once; of a copy, which may change, every time."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from kvplan_operator.kube.pods import project_pod
from kvplan_operator.model.pods import requested_gpus
from kvplan_operator.model.watched import Watched
from kvplan_solver.errors import InvalidInput
from tests.planning import pod

GPU = "nvidia.com/gpu"


def test_a_value_is_read_once_by_name_and_an_error_every_time() -> None:
    item, reads = Watched({}), list[str]()

    def read() -> int:
        reads.append("read")
        return len(reads)

    assert [item.once("a", read), item.once("a", read), item.once("b", read)] == [1, 1, 2]
    odd = project_pod(pod("odd") | {"spec": {"containers": [{"resources": {"requests": {GPU: "half"}}}]}})
    for _ in range(2):
        with pytest.raises(InvalidInput):
            requested_gpus(odd, GPU)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copy_is_a_plain_object(copied: Callable[[Any], Any]) -> None:
    seen = project_pod(pod("one", gpus=1))
    assert requested_gpus(seen, GPU) == 1
    other = copied(seen)
    assert type(other) is dict
    other["spec"] = {"containers": [{"resources": {"requests": {GPU: "4"}}}]}
    assert (requested_gpus(other, GPU), requested_gpus(seen, GPU)) == (4, 1)
