"""What follows the @ in a scenario's name."""

from __future__ import annotations

from tidegate.errors import ConfigError


def positive_number(name: str, argument: str, default: float) -> float:
    """``default`` for an empty argument. Raises ConfigError unless it is a number above 0."""
    if not argument:
        return default
    try:
        value = float(argument)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise ConfigError([f"{name}@{argument}: expected a number above 0, such as {name}@{default:g}"])
    return value


def one_of(name: str, argument: str, choices: tuple[str, ...]) -> str:
    """The first choice is the default, chosen by an empty argument; it may be the empty one."""
    if not argument:
        return choices[0]
    if argument not in choices:
        known = ", ".join(f"{name}@{choice}" if choice else name for choice in choices)
        raise ConfigError([f"{name}@{argument}: choose one of {known}"])
    return argument


def nothing(name: str, argument: str) -> None:
    if argument:
        raise ConfigError([f"{name}@{argument}: {name} takes no argument"])
