"""The operator's process: ``kvplan-operator``, or ``kopf run -m kvplan_operator.main``.

Inputs: settings from a file and variables (``settings``). Output: an exit code: 0 after SIGTERM, 1 when the Lease was
lost, the port was taken or kopf failed, 2 for settings that cannot be used, 3 for a cluster without the CRDs or
permissions.
"""

import argparse
import asyncio
import sys
from importlib.metadata import version

import kopf

from kvplan_operator.errors import SettingsError
from kvplan_operator.logs import configure_logs
from kvplan_operator.reconcile import handlers
from kvplan_operator.settings import FILE_VARIABLE, PREFIX, Settings, read_settings


def run() -> None:
    """Run until told to end; ``--help`` and ``--version`` are printed here."""
    _parser().parse_args()
    try:
        settings = read_settings()
    except SettingsError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(handlers.SETTINGS_REFUSED)
    configure_logs(settings.log_level)
    sys.exit(asyncio.run(_operate(settings)))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kvplan-operator",
        description="Plans fleets of vLLM servers and carries the accepted plans out.",
        epilog=f"Settings come from the YAML file that {FILE_VARIABLE} names and from variables {PREFIX}*, which win.",
    )
    parser.add_argument("--version", action="version", version=f"kvplan {version('kvplan')}")
    return parser


async def _operate(settings: Settings) -> int:
    memo = kopf.Memo(settings=settings)
    try:
        await kopf.operator(
            standalone=True, clusterwide=not settings.namespaces, namespaces=settings.namespaces, memo=memo
        )
    except Exception as error:  # the last line of the process, with the code that says why
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return int(memo.get("exit_code", handlers.FAILED))
    shell = memo.get("shell")
    return int(memo.get("exit_code", 0)) or (shell.exit_code if shell is not None else 0)


if __name__ == "__main__":
    run()
