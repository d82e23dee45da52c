"""One mistake in the configuration, and the near miss that may have been meant."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from tidegate.config.origin import Path, dotted


@dataclass(frozen=True, slots=True)
class Problem:
    """``message`` says what is wrong and what would be right; ``path`` where."""

    path: Path
    message: str
    also: tuple[Path, ...] = ()
    """The other keys it lies between: it counts only while they are sound themselves."""
    at_key: bool = False
    """Points at the key (an unknown one) instead of at its value."""
    place: str = ""
    """Set where no origin can tell it: broken YAML, an unset variable."""
    name: str | None = None
    """Shown instead of the dotted path."""

    def without_value(self, raw: str) -> Problem:
        """The same, with ``${NAME}`` in place of a value that may be a secret."""
        told = re.sub(r",? got .*$", "", self.message, flags=re.DOTALL)
        return self if told == self.message else replace(self, message=f"{told} (from {raw})")

    def render(self, place: str, name: str | None = None) -> str:
        """``file:line:col: section.key: message``."""
        shown = self.name if self.name is not None else name or dotted(self.path)
        return ": ".join(part for part in (self.place or place, shown, self.message) if part)


def suggestion(word: str, known: Iterable[str]) -> str:
    """`` (did you mean "x"?)`` for the nearest of ``known``, or nothing."""
    by_plain = {each.lower(): each for each in sorted(known)}
    near = difflib.get_close_matches(word.lower(), list(by_plain), n=1, cutoff=0.6)
    return f' (did you mean "{by_plain[near[0]]}"?)' if near else ""
