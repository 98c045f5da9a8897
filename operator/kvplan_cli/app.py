"""The ``kvplan`` program: its commands, and errors as one message.

Every deliberate error of the layers below ends here: one message on stderr, exit code 2, no traceback.
``ExitCode`` lists what scripts may rely on.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from kvplan_cli.commands.approve import approve
from kvplan_cli.commands.cleanup import cleanup
from kvplan_cli.commands.demo_plan import demo_plan
from kvplan_cli.commands.diff import diff
from kvplan_cli.commands.doctor import doctor
from kvplan_cli.commands.explain import explain
from kvplan_cli.commands.export import export
from kvplan_cli.commands.fit import fit
from kvplan_cli.commands.history import history
from kvplan_cli.commands.init import init
from kvplan_cli.commands.plan import plan
from kvplan_cli.commands.rollback import rollback
from kvplan_cli.commands.router import router_app
from kvplan_cli.commands.show import show_app
from kvplan_cli.commands.table import table
from kvplan_cli.commands.verify import verify
from kvplan_cli.errors import CommandError, ExitCode, reason_of
from kvplan_cli.streams import abandon_stdout
from kvplan_cli.traces import TraceError
from kvplan_operator.errors import OperatorError
from kvplan_solver.errors import SolverError

DELIBERATE = (CommandError, TraceError, OperatorError, SolverError)
"""Errors whose text is meant for the user."""


class _Commands(TyperGroup):
    """Runs a command and turns what it raises into exit codes."""

    def make_context(self, *args: Any, **settings: Any) -> Any:
        """Read the arguments; ``--help`` and ``--version`` are printed here."""
        with _errors_as_exit_codes():
            return super().make_context(*args, **settings)

    def invoke(self, ctx: Any) -> Any:
        """Run the chosen command."""
        with _errors_as_exit_codes():
            return super().invoke(ctx)


@contextmanager
def _errors_as_exit_codes() -> Iterator[None]:
    """Deliberate errors and those of the system as one message and an exit code; stdout is written out inside."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except DELIBERATE as error:
        raise _refused(str(error)) from None
    except (BrokenPipeError, SystemExit):  # rich, which prints the help, leaves by SystemExit on a closed pipe
        abandon_stdout()
        raise typer.Exit(ExitCode.READER_GONE) from None
    except OSError as error:
        raise _refused(_told(error)) from None
    except KeyboardInterrupt:
        raise typer.Exit(ExitCode.INTERRUPTED) from None


def _told(error: OSError) -> str:
    """The file and what is wrong with it; an error without a file is that of the stream the result goes to."""
    if error.filename is None:
        abandon_stdout()
        return f"stdout: it cannot be written ({reason_of(error)}): send the output elsewhere"
    return f"{error.filename}: {reason_of(error)}: check the path and its permissions"


def _refused(message: str) -> typer.Exit:
    """Tell what is wrong, and the exit that says so."""
    sys.stderr.write("".join(f"kvplan: {line}\n" for line in message.splitlines()))
    return typer.Exit(ExitCode.BAD_INPUT)


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Plans GPU groups, KV-cache reservations and prefix placement for fleets of vLLM servers.",
    epilog="Exit codes: 0 done, 1 the answer is no (different, violated, infeasible), 2 bad input, 130 Ctrl-C, "
    "141 the reader of stdout left.",
)
FILE_COMMANDS: Sequence[Callable[..., None]] = (fit, plan, explain, diff, verify, table)
CLUSTER_COMMANDS: Sequence[Callable[..., None]] = (approve, history, rollback, export, cleanup, init, doctor)
for command in FILE_COMMANDS:
    app.command()(command)
for command in CLUSTER_COMMANDS:
    app.command(rich_help_panel="On a cluster")(command)
app.command("demo-plan")(demo_plan)
app.add_typer(show_app, name="show")
app.add_typer(router_app, name="router")


def _print_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"kvplan {version('kvplan')}\n")
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Plans GPU groups, KV-cache reservations and prefix placement for fleets of vLLM servers."""
