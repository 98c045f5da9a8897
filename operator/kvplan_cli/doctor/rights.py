"""What the operator's service account may not do of what the operator does, as the API server judges it.

Inputs: the operator's Deployment and settings. Output: a sentence for each kind, about the needs of the operator's
own startup check. SubjectAccessReviews ask and store nothing.
"""

import asyncio

from kvplan_cli.cluster.kinds import SUBJECT_ACCESS_REVIEWS
from kvplan_cli.cluster.reading import Object
from kvplan_cli.cluster.session import Session
from kvplan_operator.kube.resources import LEADER_WORKER_SETS
from kvplan_operator.model.pods import part
from kvplan_operator.settings import Settings


async def missing_rights(session: Session, deployment: Object, settings: Settings | None) -> tuple[str, ...]:
    """A sentence for each kind of which verbs are missing.

    Raises:
        KubeError: SubjectAccessReviews may not be made.
    """
    from kvplan_operator.reconcile import startup  # noqa: PLC0415  loads the client library, an optional extra

    namespace, looked_after = deployment["metadata"]["namespace"], settings.namespaces if settings else ()
    served = await startup.served(session.client, LEADER_WORKER_SETS, namespace)
    needs = (*startup.NEEDS, startup.WORKER_SET_NEED) if served else startup.NEEDS
    asked = (*startup.questions(needs, looked_after), *startup.questions((startup.LEASE_NEED,), (namespace,)))
    account = account_of(deployment)
    allowed = await asyncio.gather(*(_allowed(session, account, question.attributes) for question in asked))
    verbs: dict[str, list[str]] = {}
    for question, yes in zip(asked, allowed, strict=True):
        if not yes:
            verbs.setdefault(question.subject, []).append(question.verb)
    return tuple(f"permission to {', '.join(lacking)} {subject} is missing" for subject, lacking in verbs.items())


def account_of(deployment: Object) -> str:
    """The user that a Deployment's pods are to the API server."""
    spec = part(part(part(deployment, "spec"), "template"), "spec")
    namespace = deployment["metadata"]["namespace"]
    return f"system:serviceaccount:{namespace}:{spec.get('serviceAccountName') or 'default'}"


async def _allowed(session: Session, account: str, attributes: dict[str, str]) -> bool:
    namespace = account.split(":")[2]
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
    review = {
        "apiVersion": SUBJECT_ACCESS_REVIEWS.api_version,
        "kind": SUBJECT_ACCESS_REVIEWS.kind,
        "metadata": {},
        "spec": {"user": account, "groups": groups, "resourceAttributes": attributes},
    }
    answer = await session.client.create(SUBJECT_ACCESS_REVIEWS, review)
    return bool(answer["status"].get("allowed"))
