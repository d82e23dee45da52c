"""A group of commands of which one need not be named."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup


class RunsByDefault(TyperGroup):
    """What does not begin with the name of a command is an argument of ``run``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args or (args[0] not in self.commands and args[0] != "--help"):
            args = ["run", *args]
        return super().parse_args(ctx, args)
