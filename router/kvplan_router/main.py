"""``kvplan-router``: read the settings, serve, drain, end.

In: options and environment. Out: a process that answers ext_proc until SIGTERM, and its exit status.
"""

import logging
import sys
from collections.abc import Sequence

import uvloop

from kvplan_router.process import serve
from kvplan_router.settings import CLUSTER, BadSetting, RouterSettings, read_settings
from kvplan_router.source.files import FileSource
from kvplan_solver.cacheroute.keys import weak_secret
from kvplan_solver.errors import InvalidInput

BAD_INPUT = 2


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a router until SIGTERM; returns the exit status."""
    try:
        settings = read_settings(sys.argv[1:] if arguments is None else arguments)
        logging.basicConfig(level=settings.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s")
        uvloop.run(_run(settings))
    except (BadSetting, InvalidInput, OSError) as error:
        sys.stderr.write(f"kvplan-router: {error}\n")
        return BAD_INPUT
    return 0


async def _run(settings: RouterSettings) -> None:
    if settings.table == CLUSTER or settings.readiness == "pods":
        from kvplan_router.in_cluster import serve_in_cluster  # noqa: PLC0415 - its client library takes 45 MB

        await serve_in_cluster(settings, given_secret(settings))
        return
    secret = given_secret(settings)
    if secret is None:
        raise BadSetting("secret-file", "", "give --secret-file, or --fleet-uid for a weak secret")
    await serve(settings, secret, FileSource(settings.table_path))


def given_secret(settings: RouterSettings) -> bytes | None:
    """The hash secret that the settings name, or a weak one of the uid they give; None where they say nothing."""
    if settings.secret_file is not None:
        return settings.secret_file.read_bytes()
    return weak_secret(settings.fleet_uid) if settings.fleet_uid else None
