"""``tidegate tune``: changes parameters of the running gateway through its admin API, and shows what was changed."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from tidegate.cli.admin_api import AdminApi
from tidegate.cli.options import ConfigFile, configured
from tidegate.config.document import scalar
from tidegate.config.flags import set_flags
from tidegate.config.origin import ADMIN_API, dotted
from tidegate.errors import TidegateError

PATH = "/admin/config"


def tune(
    values: Annotated[list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", show_default=False)] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would change.")] = False,
    reset: Annotated[bool, typer.Option("--reset", help="Take back everything that was set this way.")] = False,
    audit: Annotated[bool, typer.Option("--audit", help="Who changed what, the latest first.")] = False,
    admin: Annotated[str | None, typer.Option(help="The admin API, where it is not where the file says.")] = None,
    config: ConfigFile = None,
) -> None:
    """Change parameters of the running gateway; nothing that runs is dropped, and the next start knows none of it.

    KEY=null takes a value back. Without arguments: what is set this way by now.
    """
    api = AdminApi("tune", admin, lambda: configured(config, None, None))
    if reset:
        _tell(api.ask(f"{PATH}?dry_run={int(dry_run)}", "problems", method="DELETE", also=(422,)))
    elif values:
        patch = {dotted(path): scalar(str(value)) for path, value in set_flags(values).items()}
        _tell(api.ask(f"{PATH}?dry_run={int(dry_run)}", "problems", method="PATCH", body=patch, also=(422,)))
    elif audit:
        _print(_audit_lines(api.ask("/admin/audit", "entries")["entries"]))
    else:
        held = api.ask(PATH, "values")
        ours = [key for key, origin in held["origins"].items() if origin == ADMIN_API.place()]
        _print(f"{key}: {held['values'][key]}" for key in ours)


def _tell(answer: dict[str, Any]) -> None:
    """Raises TidegateError with every problem."""
    if answer["problems"]:
        raise TidegateError("\n".join(["nothing was changed:", *answer["problems"]]))
    _print(answer["changes"] or ["nothing differs"])


def _audit_lines(entries: Iterable[dict[str, Any]]) -> Iterable[str]:
    for each in entries:
        at = datetime.fromtimestamp(each["at_unix_s"], UTC).strftime("%Y-%m-%d %H:%M:%S")
        refused = [f"refused: {problem}" for problem in each["problems"]]
        for line in refused or each["changes"] or ["nothing differed"]:
            yield f"{at} {each['who']}: {each['what']}: {line}"


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        typer.echo(line)
