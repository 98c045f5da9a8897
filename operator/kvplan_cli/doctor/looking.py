"""What the doctor looks at, all at once: the installation, the operator's rights, each fleet and its pods.

Inputs: a session. Outputs: findings of every check. Reads only, except for SubjectAccessReviews, which ask and store
nothing. What may not be read becomes a warning.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence

from kvplan_cli.cluster.reading import Object, read_fleet
from kvplan_cli.cluster.refusals import is_forbidden
from kvplan_cli.cluster.session import Session
from kvplan_cli.doctor import installation
from kvplan_cli.doctor.attempts import attempt
from kvplan_cli.doctor.findings import Finding, Level, Unknown
from kvplan_cli.doctor.fleet_looks import fleet_facts
from kvplan_cli.doctor.fleets import fleet_checks
from kvplan_cli.doctor.rights import account_of, missing_rights
from kvplan_cli.doctor.settings import operator_settings
from kvplan_operator.api.kinds import KINDS
from kvplan_operator.errors import ManifestError
from kvplan_operator.kube.errors import KubeError, NotServed
from kvplan_operator.kube.request import Request
from kvplan_operator.kube.resources import CUSTOM_RESOURCE_DEFINITIONS, DEPLOYMENTS, LEASES, SERVING_FLEETS
from kvplan_operator.settings import Settings

LEASE_NAME = "kvplan-operator"
OPERATOR_LABELS = "app.kubernetes.io/name=kvplan-operator"


async def examine(session: Session, fleet: str) -> tuple[Finding, ...]:
    """Every check; the fleet is one of the namespace, or all of them where it is not named.

    Raises:
        KubeError: the API server cannot be reached.
        CommandError: there is no fleet of that name.
    """
    version = await session.ask(Request("ask for the version", "GET", "/version"))
    crds, deployments, leases = await asyncio.gather(_crds(session), _operators(session), _leases(session))
    found = [
        installation.api_server(version),
        *installation.crds(crds),
        *installation.operators(deployments),
        *installation.leaders(leases, time.time()),
    ]
    settings: Settings | None = None
    for deployment in deployments if not isinstance(deployments, Unknown) else ():
        settings = await operator_settings(session, deployment)
        missing = await attempt(missing_rights(session, deployment, settings))
        found += installation.permissions(missing, account_of(deployment))
    return (*found, *await _fleets(session, fleet, settings))


async def _fleets(session: Session, name: str, settings: Settings | None) -> list[Finding]:
    """The checks of one fleet, or of each in the namespace."""
    names = [name] if name else await _fleet_names(session)
    found: list[Finding] = []
    for each in names:
        try:
            view = await read_fleet(session, each)
        except ManifestError as error:
            remedy = "correct the object, or use the kvplan that it was written for"
            found.append(Finding(Level.FAIL, "fleet", f"{session.namespace}/{each}", str(error.problems[0]), remedy))
            continue
        found += fleet_checks(await fleet_facts(session, view, settings))
    return found


async def _fleet_names(session: Session) -> list[str]:
    try:
        listing = await session.client.list(SERVING_FLEETS, session.namespace)
    except NotServed:
        return []
    except KubeError as error:
        if is_forbidden(error):
            return []
        raise
    return [item["metadata"]["name"] for item in listing.items]


async def _crds(session: Session) -> Mapping[str, Object | None] | Unknown:
    async def each() -> Mapping[str, Object | None]:
        names = [kind.crd_name for kind in KINDS]
        found = await asyncio.gather(*(session.client.find(CUSTOM_RESOURCE_DEFINITIONS, None, n) for n in names))
        return dict(zip(names, found, strict=True))

    return await attempt(each())


async def _operators(session: Session) -> Sequence[Object] | Unknown:
    async def every() -> Sequence[Object]:
        return (await session.client.list(DEPLOYMENTS, labels=OPERATOR_LABELS)).items

    return await attempt(every())


async def _leases(session: Session) -> Sequence[Object] | Unknown:
    async def every() -> Sequence[Object]:
        return (await session.client.list(LEASES, fields=f"metadata.name={LEASE_NAME}")).items

    return await attempt(every())
