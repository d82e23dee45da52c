"""SVG by hand: the few shapes that a chart is made of."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

INK, GRID = "#1b1f24", "#d9dde3"
COLORS = (
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f3c8d", "#80ba5a", "#a5673f", "#6b7280",
)  # fmt: skip
"""Okabe and Ito's, told apart by colour-blind people too, and four more."""

DASHES = ' stroke-dasharray="6 4"'

Point = tuple[float, float]


class Canvas:
    def __init__(self, width: int, height: int, title: str) -> None:
        self.width = width
        self.height = height
        self._parts = [f"<title>{escape(title)}</title>", f'<rect width="{width}" height="{height}" fill="#ffffff"/>']

    def text(self, at: Point, text: str, *, anchor: str = "start", size: int = 12, is_bold: bool = False) -> None:
        weight = ' font-weight="600"' if is_bold else ""
        self._parts.append(
            f'<text x="{at[0]:.1f}" y="{at[1]:.1f}" text-anchor="{anchor}" font-size="{size}"{weight}>'
            f"{escape(text)}</text>"
        )

    def line(self, begin: Point, end: Point, color: str = GRID, width: float = 1.0, *, is_dashed: bool = False) -> None:
        self._parts.append(
            f'<line x1="{begin[0]:.1f}" y1="{begin[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}" '
            f'stroke="{color}" stroke-width="{width}"{DASHES if is_dashed else ""}/>'
        )

    def path(self, points: Sequence[Point], color: str, *, is_dashed: bool = False, width: float = 2.0) -> None:
        joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        dashes = DASHES if is_dashed else ""
        self._parts.append(
            f'<polyline points="{joined}" fill="none" stroke="{color}" stroke-width="{width:g}"{dashes}/>'
        )

    def band(self, at: Point, size: Point, color: str, opacity: float, tip: str) -> None:
        """A shade that what is drawn later lies upon."""
        self._parts.append(
            f'<rect x="{at[0]:.1f}" y="{at[1]:.1f}" width="{size[0]:.1f}" height="{size[1]:.1f}" fill="{color}" '
            f'fill-opacity="{opacity:g}"><title>{escape(tip)}</title></rect>'
        )

    def dot(self, at: Point, color: str, tip: str, radius: float = 4.0) -> None:
        self._parts.append(
            f'<circle cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="{radius}" fill="{color}">'
            f"<title>{escape(tip)}</title></circle>"
        )

    def spot(self, at: Point, tip: str) -> None:
        """Not to be seen: tells something where a pointer rests."""
        self._parts.append(
            f'<circle cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="5" fill="transparent"><title>{escape(tip)}</title></circle>'
        )

    def bar(self, at: Point, width: float, height: float, color: str, tip: str) -> None:
        self._parts.append(
            f'<rect x="{at[0]:.1f}" y="{at[1]:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{color}">'
            f"<title>{escape(tip)}</title></rect>"
        )

    def svg(self, at: Point | None = None) -> str:
        """Standing alone, or at a place in another one."""
        place = "" if at is None else f' x="{at[0]:.0f}" y="{at[1]:.0f}"'
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{self.width}" height="{self.height}"{place} '
            f'viewBox="0 0 {self.width} {self.height}" font-family="system-ui, DejaVu Sans, sans-serif" fill="{INK}">'
            + "".join(self._parts)
            + "</svg>"
        )
