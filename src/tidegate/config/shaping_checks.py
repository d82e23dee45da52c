"""Classes that are named and not there, and floors that together are more than all."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.config.origin import Path
from tidegate.config.problem import Problem, suggestion
from tidegate.config.settings import Settings

_HIGH: Path = ("shaping", "gpu_utilization_high_percent")


def shaping_problems(settings: Settings) -> Iterator[Problem]:
    """What no class, rule or model can get wrong alone."""
    for index, rule in enumerate(settings.shaping.rules):
        here: Path = ("shaping", "rules", index)
        yield from _class(settings, (*here, "service_class"), rule.service_class)
        if rule.model is not None and rule.model not in settings.upstreams:
            hint = suggestion(rule.model, settings.upstreams)
            yield Problem((*here, "model"), f"there is no upstream {rule.model!r}{hint}")
    for alias, upstream in settings.upstreams.items():
        for name in upstream.limits.max_wait_s:
            yield from _class(settings, ("upstreams", alias, "limits", "max_wait_s", name), name)
    pacing, high = settings.shaping.pacing, settings.shaping.gpu_utilization_high_percent
    if pacing.enabled and pacing.low_load_percent >= high:
        told = f"must be below shaping.gpu_utilization_high_percent ({high}), got {pacing.low_load_percent}"
        yield Problem(("shaping", "pacing", "low_load_percent"), told, also=(_HIGH,))
    floors = {name: each.floor for name, each in settings.classes.items() if each.floor}
    if sum(floors.values()) > 1:
        also = tuple(("classes", name, "floor") for name in floors)
        yield Problem(("classes",), f"the floors of {', '.join(floors)} are more than 1 together", also=also)


def _class(settings: Settings, here: Path, name: str) -> Iterator[Problem]:
    if name not in settings.classes:
        at_key = here[-1] == name
        yield Problem(here, f"there is no class {name!r}{suggestion(name, settings.classes)}", at_key=at_key)
