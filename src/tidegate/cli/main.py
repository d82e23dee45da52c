"""The ``tidegate`` command line.

Each command is a function of its own name in a file of its own name (``check.check``), annotated for
Typer. Only the one that runs is imported, so that ``tidegate --help`` stays quick. A
``TidegateError`` that leaves a command is printed, a line per problem, and ends with exit status 1.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import typer

from tidegate.errors import ConfigError, TidegateError

COMMANDS: Mapping[str, str] = {
    "serve": "Run the gateway in front of your engines.",
    "check": "Find every mistake in the configuration.",
    "explain": "Say what is configured and why, or what became of one request.",
    "tune": "Change parameters of the running gateway.",
    "simulate": "Run a scenario on virtual engines and a virtual clock.",
    "load": "Send a plan of requests to a service, and judge what its users would have seen.",
    "drill": "Break it on purpose, and see what users would have seen.",
    "plan": "Work out memory, slots and lengths before anything is started.",
    "schema": "Print the JSON Schema of tidegate.yaml, for editors.",
}


def app(arguments: Sequence[str] | None = None) -> None:
    """Run one command line. Ends by SystemExit: 0 done, 1 a problem that was told, 2 wrong usage, 130 interrupted."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        commands(given)(given, prog_name="tidegate")
    except ConfigError as error:
        for problem in error.problems:
            typer.echo(problem, err=True)
        sys.exit(1)
    except TidegateError as error:
        typer.echo(f"tidegate: {error}", err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


def commands(arguments: Sequence[str]) -> typer.Typer:
    """All commands by name, and the one that ``arguments`` name for real."""
    wanted = next((each for each in arguments if not each.startswith("-")), "")
    every = typer.Typer(
        add_completion=False, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False
    )
    every.callback()(_tidegate)
    for name, summary in COMMANDS.items():
        found = _function(name) if name == wanted else _not_loaded
        if isinstance(found, typer.Typer):
            every.add_typer(found, name=name, short_help=summary)
        else:
            every.command(name, short_help=summary)(found)
    return every


def _function(name: str) -> Callable[..., Any]:
    """The command, or a group of commands (a ``Typer``)."""
    found: Callable[..., Any] = getattr(importlib.import_module(f"tidegate.cli.{name}"), name)
    return found


def _not_loaded() -> None:
    """Stands for a command that this command line does not run."""


def _print_version(wanted: bool) -> None:
    if wanted:
        versions = importlib.import_module("importlib.metadata")
        build = importlib.import_module("tidegate.cli.build").build()
        typer.echo(f"tidegate {versions.version('tidegate')} ({build})")
        raise typer.Exit


def _tidegate(
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """The stability layer for LLM inference."""


if __name__ == "__main__":
    app()
