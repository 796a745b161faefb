"""The causal graph as a chart: causes left of their effects, protected attributes marked, no line through a box.

Columns are laid out by topological generation. A cause that skips generations runs in a lane of its own through each of
them, as in Sugiyama, Tagawa and Toda (1981), and each generation is ordered by where its neighbours are, so that few
lines cross. Here belong layout and drawing; what the graph says in words is in ``report.causes``.
"""

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import altair as alt
import networkx as nx

from tasks.reporting.charts.vega import ACCENT, QUIET, ROWS, WARM, WIDTHS, panel
from tasks.reporting.section import Panel, Swatch

ATTRIBUTE, REACHED, KEPT = "protected attribute", "would change with it", "stays as it is"

KINDS = {
    ATTRIBUTE: Swatch(ATTRIBUTE, WARM, shape="square"),
    REACHED: Swatch(REACHED, ACCENT, shape="square"),
    KEPT: Swatch(KEPT, QUIET, shape="square"),
}
"""What a column is to the protected attributes."""

_LINE, _LETTER = 13, 6.1
"""Height of a line of text and width of a letter, in pixels."""
_LANE, _GAP = 16, 12
_WIDE, _WIDEST = WIDTHS["full"], 170.0
"""Of the whole, and of a box at most, in pixels."""
_SWEEPS = 4

Boxes = Mapping[str, tuple[float, float, float, float]]
"""Column -> left, right, top and bottom of its box, in pixels."""


class Lane(NamedTuple):
    """Where the edges of a cause run through a generation further right."""

    cause: str
    generation: int


Place = str | Lane


@dataclass(frozen=True)
class Layout:
    """Where everything is, in pixels."""

    boxes: Boxes
    lines: Mapping[tuple[str, str], tuple[tuple[float, float], ...]]
    """Edge -> the points that it runs through; its arrow points right at the last."""
    text: Mapping[str, tuple[str, ...]]
    """Column -> its name, broken into lines."""
    height: float


def graph(title: str, label: str, edges: nx.DiGraph, attributes: frozenset[str]) -> Panel:
    """The chart of a causal graph, whose nodes are named as they are to be printed."""
    made = layout(edges, attributes)
    rows = [*_boxes(edges, attributes, made), *_lines(attributes, made)]
    x = alt.X("x:Q", axis=None, scale=alt.Scale(domain=[0, _WIDE], nice=False))
    y = alt.Y("y:Q", axis=None, scale=alt.Scale(domain=[made.height, 0], nice=False))
    colours = alt.Scale(domain=list(KINDS), range=[swatch.colour for swatch in KINDS.values()])
    colour = alt.Color("kind:N", legend=None, scale=colours)
    stroke = alt.Stroke("kind:N", legend=None, scale=colours)
    base = alt.Chart(ROWS).encode(x=x, y=y)
    box, text, line, arrow = (
        base.transform_filter(alt.datum.part == part) for part in ("box", "text", "line", "arrow")
    )
    boxes = box.mark_rect(fill="#ffffff", strokeWidth=2, cornerRadius=3).encode(
        x2="x2:Q", y2="y2:Q", stroke=stroke, tooltip=[alt.Tooltip("name:N"), "kind:N"]
    )
    drawn = line.mark_line(interpolate="monotone", strokeWidth=1.6).encode(color=colour, detail="edge:N", order="at:Q")
    heads = arrow.mark_point(filled=True, size=60, shape="triangle-right", opacity=1).encode(color=colour)
    words = text.mark_text(baseline="middle").encode(text="name:N")
    return panel(title, label, drawn + boxes + heads + words, rows, round(made.height), span="full")


def layout(edges: nx.DiGraph, attributes: frozenset[str]) -> Layout:
    """Place columns by generation from left to right, and in each from top to bottom."""
    generations = [list(generation) for generation in nx.topological_generations(edges)]
    at = {node: i for i, generation in enumerate(generations) for node in generation}
    roads = {(a, b): [a, *(Lane(a, i) for i in range(at[a] + 1, at[b])), b] for a, b in edges.edges}
    columns = _ordered(generations, roads)
    gap = 56 if len(columns) < 6 else 30
    width = min(_WIDEST, (_WIDE - gap * (len(columns) - 1)) / len(columns))
    text = {node: _broken(node, node in attributes, int((width - 8) / _LETTER)) for node in at}
    tall = 10 + _LINE * max(len(lines) for lines in text.values())
    middle, height = _heights(columns, tall)
    step = (_WIDE - width) / max(1, len(columns) - 1)
    boxes = {
        node: (i * step, i * step + width, middle[node] - tall / 2, middle[node] + tall / 2) for node, i in at.items()
    }
    lines = {edge: tuple(_points(road, boxes, middle, roads, tall)) for edge, road in roads.items()}
    return Layout(boxes, lines, text, height)


def _ordered(generations: list[list[str]], roads: Mapping[tuple[str, str], list[Place]]) -> list[list[Place]]:
    """Columns and lanes of each generation, ordered by the mean place of those that they are joined to."""
    columns: list[list[Place]] = [list(generation) for generation in generations]
    joined = nx.Graph()
    for road in roads.values():
        nx.add_path(joined, road)
        for lane in road:
            if isinstance(lane, Lane) and lane not in columns[lane.generation]:
                columns[lane.generation].append(lane)
    for _ in range(_SWEEPS):
        for here, beside in [
            *zip(columns[1:], columns, strict=False),
            *zip(columns[-2::-1], columns[:0:-1], strict=False),
        ]:
            where = {place: (i + 0.5) / len(beside) for i, place in enumerate(beside)}
            own = {place: (i + 0.5) / len(here) for i, place in enumerate(here)}
            near = {p: [where[n] for n in joined[p] if n in where] if p in joined else [] for p in here}
            here.sort(key=lambda p: (sum(near[p]) / len(near[p]) if near[p] else own[p], own[p]))
    return columns


def _heights(columns: list[list[Place]], tall: float) -> tuple[dict[Place, float], float]:
    """The middle of every box and lane, each generation centred."""
    size = [[tall if isinstance(place, str) else _LANE for place in column] for column in columns]
    total = [sum(sizes) + _GAP * (len(sizes) - 1) for sizes in size]
    height = max(total) + 2
    middle = {}
    for column, sizes, whole in zip(columns, size, total, strict=True):
        y = (height - whole) / 2
        for place, each in zip(column, sizes, strict=True):
            middle[place], y = y + each / 2, y + each + _GAP
    return middle, height


def _points(
    road: list[Place],
    boxes: Boxes,
    middle: Mapping[Place, float],
    roads: Mapping[tuple[str, str], list[Place]],
    tall: float,
) -> Iterator[tuple[float, float]]:
    """From the right side of the cause through its lanes to the left side of the effect, each at its own height."""
    cause, effect = str(road[0]), str(road[-1])
    into = sorted((r[-2] for r in roads.values() if r[-1] == effect), key=lambda place: middle[place])
    slot = (into.index(road[-2]) + 0.5) / len(into) - 0.5
    start, end = boxes[cause][1], boxes[effect][0]
    yield start, middle[cause]
    yield start + 8, middle[cause]
    spans = sorted({(left, right) for left, right, *_ in boxes.values()})
    for lane in road:
        if isinstance(lane, Lane):
            yield from ((x, middle[lane]) for x in spans[lane.generation])
    y = middle[effect] + slot * 0.7 * tall
    yield end - 12, y
    yield end - 5, y


def _broken(name: str, attribute: bool, letters: int) -> tuple[str, ...]:
    """A name in lines that fit, and under a protected attribute what it is: colours do not print."""
    lines = textwrap.wrap(name.replace("_", " "), max(6, letters), max_lines=4, placeholder="…")
    return (*lines, *("(protected)",) * attribute)


def _boxes(edges: nx.DiGraph, attributes: frozenset[str], made: Layout) -> Iterator[dict[str, Any]]:
    reached = set().union(*(nx.descendants(edges, name) for name in attributes if name in edges))
    for node, (left, right, top, bottom) in made.boxes.items():
        kind = ATTRIBUTE if node in attributes else REACHED if node in reached else KEPT
        yield {"part": "box", "name": node, "kind": kind, "x": left, "x2": right, "y": top, "y2": bottom}
        lines = made.text[node]
        for i, words in enumerate(lines):
            y = (top + bottom) / 2 + (i - (len(lines) - 1) / 2) * _LINE
            yield {"part": "text", "name": words, "kind": kind, "x": (left + right) / 2, "y": y}


def _lines(attributes: frozenset[str], made: Layout) -> Iterator[dict[str, Any]]:
    """Edges out of a protected attribute in its colour, the others in grey."""
    for (cause, effect), points in made.lines.items():
        own = {"edge": f"{cause} → {effect}", "kind": ATTRIBUTE if cause in attributes else KEPT}
        for i, (x, y) in enumerate(points):
            yield {"part": "line", **own, "at": i, "x": x, "y": y}
        yield {"part": "arrow", **own, "x": points[-1][0], "y": points[-1][1]}
