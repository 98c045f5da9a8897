"""What a Prometheus that the user names says of a fleet: the operator's own queries, asked from here.

Inputs: an address, the fleet, its pods. Output: ``Measured``. Engines and routers are not asked: their pods are seldom
within reach of a command. No credentials are sent.
"""

import time
from collections.abc import Mapping

from kvplan_cli.cluster.reading import FleetView
from kvplan_cli.errors import CommandError, MissingExtra
from kvplan_operator.model.engine_pods import pod_beginnings, pods_by_configuration
from kvplan_operator.model.fleet_queries import fleet_queries, rate_window_seconds
from kvplan_operator.model.measurement import Looked, measured_from
from kvplan_operator.model.replies import Replies
from kvplan_operator.model.series import Reply, Unanswered
from kvplan_operator.model.snapshot import ClusterView, Measured

DEADLINE_SECONDS = 20.0
_OPTION = "--prometheus"


async def measured_by(url: str, view: FleetView, around: ClusterView) -> Measured:
    """What it says now.

    Raises:
        CommandError: no query was answered.
        InvalidInput: an address that is none.
    """
    engines = pod_beginnings(pods_by_configuration(view.fleet, around.pods))
    replies = await answers_of(url, fleet_queries(view.fleet, view.classes, engines))
    return measured_from(
        Looked(
            view.fleet, view.classes, around.pods, Replies(replies, url, time.time(), rate_window_seconds(view.fleet))
        )
    )


async def answers_of(url: str, queries: Mapping[str, str]) -> Mapping[str, Reply]:
    """The replies to some queries.

    Raises:
        CommandError: none was answered: the address is wrong, or nothing listens there.
        MissingExtra: the Prometheus client is not installed.
        InvalidInput: an address that is none.
    """
    try:
        from kvplan_operator.observe.prometheus import Prometheus  # noqa: PLC0415  loads a client, an optional extra
    except ImportError:
        raise MissingExtra(_OPTION, "prometheus-api-client", "operator") from None
    from kvplan_operator.observe.profile import connection_to  # noqa: PLC0415  as above

    prometheus = Prometheus(_OPTION, connection_to("the command line", _OPTION, url))
    try:
        replies = await prometheus.query_all(queries, DEADLINE_SECONDS)
    finally:
        prometheus.close()
    silent = [reply.reason for reply in replies.values() if isinstance(reply, Unanswered)]
    if silent and len(silent) == len(replies):
        raise CommandError(_OPTION, f"{url} gives no answer ({silent[0]})", "give the address of a Prometheus API")
    return replies
