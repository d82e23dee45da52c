"""What is wrong with a ladder though each of its values is sound."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.config.origin import Path
from tidegate.config.problem import Problem, suggestion
from tidegate.config.settings import Settings

TARGETS = ("light_model", "standby")


def ladder_problems(settings: Settings) -> Iterator[Problem]:
    """Rungs that lead nowhere, and own ladders that cannot stand."""
    for key in TARGETS:
        yield from _target(settings, getattr(settings.ladder, key), ("ladder", key))
    for alias, upstream in settings.upstreams.items():
        here: Path = ("upstreams", alias, "ladder")
        for key in TARGETS:
            target = getattr(upstream.ladder, key)
            yield from _target(settings, target, (*here, key))
            if target == alias:
                yield Problem((*here, key), f"leads back to {alias} itself; name another upstream")
        try:
            upstream.ladder.over(settings.ladder)
        except ValueError as error:
            yield Problem(here, str(error))


def _target(settings: Settings, target: str | None, here: Path) -> Iterator[Problem]:
    if target is not None and target not in settings.upstreams:
        yield Problem(here, f"there is no upstream {target!r}{suggestion(target, settings.upstreams)}")
