"""The pieces of HTML that a load report is put together from. Every text is escaped here, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from tidegate.simulate.canvas import Canvas


@dataclass(frozen=True, slots=True)
class Cell:
    """Text of a table, perhaps with a look of its own and something said where a pointer rests."""

    text: str
    look: str = ""
    tip: str = ""
    html: str = ""
    """In place of ``text``, made by this package."""


Row = Sequence[str | Cell]


def table(heads: Sequence[str | Cell], rows: Iterable[Row], look: str = "") -> str:
    """Wide ones scroll inside their own box, not the page."""
    head = "".join(_cell(each, "th") for each in heads)
    body = "".join(f"<tr>{''.join(_cell(each, 'td') for each in row)}</tr>" for row in rows)
    kind = f' class="{look}"' if look else ""
    return f'<div class="scroll"><table{kind}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _cell(cell: str | Cell, tag: str) -> str:
    if isinstance(cell, str):
        return f"<{tag}>{escape(cell)}</{tag}>"
    look = f' class="{cell.look}"' if cell.look else ""
    tip = f' title="{escape(cell.tip, quote=True)}"' if cell.tip else ""
    return f"<{tag}{look}{tip}>{cell.html or escape(cell.text)}</{tag}>"


def section(title: str, *parts: str, words: str = "") -> str:
    """Nothing where there is nothing to show."""
    inside = "".join(parts)
    if not inside:
        return ""
    said = f'<p class="words">{escape(words)}</p>' if words else ""
    return f"<section><h2>{escape(title)}</h2>{said}{inside}</section>"


def figures(canvases: Iterable[Canvas]) -> str:
    return "".join(f"<figure>{canvas.svg()}</figure>" for canvas in canvases)


def beside(canvases: Sequence[Canvas]) -> str:
    """Two in a row where the page is wide enough."""
    return f'<div class="pair">{figures(canvases)}</div>' if canvases else ""


def named(pairs: Iterable[tuple[str, str]], look: str = "facts") -> str:
    """A list of names and what belongs to each."""
    inside = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(text)}</dd></div>" for name, text in pairs)
    return f'<dl class="{look}">{inside}</dl>' if inside else ""


def lines(texts: Iterable[str], look: str = "") -> str:
    """A list of sentences."""
    kind = f' class="{look}"' if look else ""
    inside = "".join(f"<li>{escape(text)}</li>" for text in texts)
    return f"<ul{kind}>{inside}</ul>" if inside else ""


def folded(title: str, inside: str) -> str:
    """Closed until somebody opens it."""
    return f"<details><summary>{escape(title)}</summary>{inside}</details>" if inside else ""


@dataclass(frozen=True, slots=True)
class Tab:
    """One of several views, of which one is seen at a time; all of them on paper."""

    title: str
    html: str


def tabs(group: str, views: Sequence[Tab], first: int) -> str:
    """Without a script: radio buttons and rules of the style sheet. One view needs no buttons."""
    if len(views) == 1:
        return views[0].html
    buttons = "".join(
        f'<input type="radio" name="{group}" id="{group}{index}"{" checked" if index == first else ""}>'
        f'<label for="{group}{index}">{escape(view.title)}</label>'
        for index, view in enumerate(views)
    )
    panels = "".join(f'<div class="panel"><h3>{escape(view.title)}</h3>{view.html}</div>' for view in views)
    rules = ",".join(f"#{group}{index}:checked~.panels>.panel:nth-child({index + 1})" for index, _ in enumerate(views))
    return f'<style>{rules}{{display:block}}</style><div class="tabs">{buttons}<div class="panels">{panels}</div></div>'
