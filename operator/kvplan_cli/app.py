"""The ``kvplan`` program: its commands, and errors as one message.

Every deliberate error of the layers below ends here: one message on stderr, exit code 2, no traceback.
``ExitCode`` lists what scripts may rely on.
"""

import sys
from importlib.metadata import version
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from kvplan_cli.commands.demo_plan import demo_plan
from kvplan_cli.commands.diff import diff
from kvplan_cli.commands.explain import explain
from kvplan_cli.commands.fit import fit
from kvplan_cli.commands.plan import plan
from kvplan_cli.commands.show import show_app
from kvplan_cli.commands.table import table
from kvplan_cli.commands.verify import verify
from kvplan_cli.errors import CommandError, ExitCode, reason_of
from kvplan_cli.traces import TraceError
from kvplan_operator.errors import OperatorError
from kvplan_solver.errors import SolverError

DELIBERATE = (CommandError, TraceError, OperatorError, SolverError)
"""Errors whose text is meant for the user."""


class _Commands(TyperGroup):
    """Runs a command and turns what it raises into exit codes."""

    def invoke(self, ctx: Any) -> Any:
        """Run the chosen command."""
        try:
            return super().invoke(ctx)
        except DELIBERATE as error:
            raise _refused(str(error)) from None
        except BrokenPipeError:
            raise  # a reader such as `head` that has enough is no error of ours
        except OSError as error:
            raise _refused(f"{error.filename}: {reason_of(error)}: check the path and its permissions") from None
        except KeyboardInterrupt:
            raise typer.Exit(ExitCode.INTERRUPTED) from None


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
    epilog="Exit codes: 0 done, 1 the answer is no (different, violated, infeasible), 2 bad input, 130 Ctrl-C.",
)
for command in (fit, plan, explain, diff, verify, table):
    app.command()(command)
app.command("demo-plan")(demo_plan)
app.add_typer(show_app, name="show")


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
