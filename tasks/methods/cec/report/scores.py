"""How far the reasons of comparable applicants lie apart, drawn and tabled beside two yardsticks.

CEC above its floor is the headline, never CEC: two applicants who differ have different reasons in any model. The floor
holds what they differ in by financial features; what they differ in otherwise shows within a group as well. Here belong
the score, its yardsticks and the decisions that flip; how they are read is in ``reading``.
"""

from collections.abc import Iterator
from typing import Any

from tasks.methods.cec.report.charts import (
    CORNER,
    EDGE,
    FLOOR,
    OWN_GROUP,
    POINT,
    SCORE,
    YARDSTICKS,
    beside_floor,
    plane,
)
from tasks.methods.cec.report.lookups import PAIR, Pair, Reasons
from tasks.methods.cec.report.reading import HEADLINE
from tasks.reporting.charts.panels import told
from tasks.reporting.material import Measure, Shown, undrawn
from tasks.reporting.numbers import value
from tasks.reporting.section import Figure, Panel, TableView

MEASURES = {
    HEADLINE: Shown("CEC above floor", "number"),
    "cec": Shown("CEC", "number"),
    "cec_floor": Shown("matching floor of CEC", "number"),
    "cec_within_group": Shown("CEC within the group", "number"),
    "cec_above_within_group": Shown("CEC above that within the group", "number"),
    "cec_above_own_group": Shown("CEC above the own group, held against relabelled groups", "number"),
    "flip_share": Shown("share of pairs decided on differently", "rate"),
}
_CORNERS = {
    "A: same decision, same reasons": (0.02, 0.03),
    "B: same decision, other reasons": (0.02, 0.97),
    "C: other decision, same reasons": (0.98, 0.03),
    "D: other decision, other reasons": (0.98, 0.97),
}
"""Where the names of the regimes stand in the plane."""
_HALF = 0.5
"""Share of pairs from which on most are decided on differently."""


def figures(s: Reasons) -> tuple[Figure, ...]:
    """Every pair of groups beside its floor, and the same in the plane of flips and scores."""
    rows = [row for pair in s.pairs for row in _points(s, pair)]
    seen = {row["words"] for row in rows}
    order = [pair.numbered for pair in s.pairs if pair.words in seen]
    label = f"CEC beside its yardsticks. {told(rows, 'pair', 'what')}"
    panels = (beside_floor("Beside both yardsticks", label, rows, order), *_plane(s)) if rows else ()
    caption = (
        "How far the model's reasons for two comparable applicants lie apart, from 0 (the same) to 1 (opposite), on "
        "average over pairs. Grey: the matching floor, the same for a model that knows only the financial features, on "
        "the same pairs; what lies above it comes from whatever else the audited model uses. Within the group: the "
        "same applicants, matched with others of their own group, who may differ in all that too. An arrow leads from "
        "the group to the group that its members are matched with. Second panel: CEC against the share of pairs "
        f"decided on differently. The horizontal line is theta = {s.settings.theta:g}; left of the vertical line most "
        "pairs are decided on alike. A point is an average: its corner says where most weight lies, and the regimes "
        "themselves are counted below."
    )
    legend = tuple(YARDSTICKS.values())
    title = f"Reasons apart, by {s.view.attribute}"
    return (Figure(title, panels, caption + s.counted + undrawn((pair.words for pair in s.pairs), seen), legend),)


def _points(s: Reasons, pair: Pair) -> Iterator[dict[str, Any]]:
    for what, measure in ((SCORE, "cec"), (OWN_GROUP, "cec_within_group"), (FLOOR, "cec_floor")):
        m = s.get(pair, measure)
        if m is not None and m.value is not None:
            low, high = _ends(m)
            said = {"pair": pair.numbered, "words": pair.words, "what": what, "shown": value(m, "number")}
            yield {**said, "group": pair.group, "value": m.value, "low": low, "high": high}


def _ends(m: Measure) -> tuple[float | None, float | None]:
    return (m.value if m.low is None else m.low), (m.value if m.high is None else m.high)


def _plane(s: Reasons) -> Iterator[Panel]:
    points = [row for pair in s.pairs for row in _in_plane(s, pair)]
    if points:
        label = f"CEC against the share of pairs decided on differently. {told(points, 'of')}"
        yield plane("Against decisions that differ", label, [*points, *frame(s.settings.theta)])


def _in_plane(s: Reasons, pair: Pair) -> Iterator[dict[str, Any]]:
    score, flips, floor = (s.get(pair, measure) for measure in ("cec", "flip_share", "cec_floor"))
    if score is None or flips is None or score.value is None or flips.value is None:
        return
    (low, high), (flip_low, flip_high) = _ends(score), _ends(flips)
    yield {
        **{"part": POINT, "of": pair.words, "number": str(pair.number), "group": pair.group},
        **{"right": pair.to == s.view.reference},
        **{"flip": flips.value, "flip_low": flip_low, "flip_high": flip_high},
        **{"cec": score.value, "low": low, "high": high, "floor": floor.value if floor else None},
        "shown": f"{value(score, 'number')}; {value(flips, 'rate')}",
    }


def frame(theta: float) -> Iterator[dict[str, Any]]:
    """The lines between the regimes, and their names in the corners."""
    yield {"part": EDGE, "cec": theta}
    yield {"part": EDGE, "flip": _HALF}
    for words, (flip, cec) in _CORNERS.items():
        yield {"part": CORNER, "flip": flip, "cec": cec, "words": words, "right": flip > _HALF}


def tables(s: Reasons) -> tuple[TableView, ...]:
    """The headline beside what it is made of, and the same applicants within their own group."""
    return _above_floor(s), _across(s)


def _above_floor(s: Reasons) -> TableView:
    columns = {
        **PAIR,
        "Pairs compared": s.n("cec"),
        "Unmatched": s.events("unmatched_share"),
        "CEC above floor": s.values(HEADLINE, "number"),
        "CEC": s.values("cec", "number"),
        "Matching floor": s.values("cec_floor", "number"),
        "Flips": s.values("flip_share", "rate"),
    }
    note = (
        "Read CEC above floor: it is CEC less the matching floor of the same pairs, and CEC by itself says nothing. "
        "Unmatched: applicants without a comparable one. Flips: share of pairs whose two members the model decides on "
        "differently. In brackets: intervals; pairs that share a match make them narrower than they should "
        "be. No group's score is compared with another's: they are of different pairs, with different floors."
    )
    return TableView.of(f"CEC above its matching floor, by {s.view.attribute}", s.pairs, columns, note)


def _across(s: Reasons) -> TableView:
    made = any(s.view.all(measure) for measure in ("cec_within_group", "cec_above_within_group"))
    columns = {
        **PAIR,
        "Compared both ways": s.n("cec_above_within_group"),
        "CEC": s.values("cec", "number"),
        "CEC within the group": s.values("cec_within_group", "number"),
        "Above that within": s.values("cec_above_within_group", "number"),
        "Under relabelled groups": s.values("cec_above_own_group_null", "number"),
    }
    note = (
        "The same applicants, matched with the nearest others of their own group with the same outcome. A small group "
        "has fewer to choose from, so that its own matches lie further off: its score within is rather too large than "
        "too small, and the difference rather too small. In brackets: intervals. Under relabelled groups: mean and "
        "range of that difference where the groups are exchanged among applicants who are as likely, by their columns, "
        "to be of the group. Hold the difference against this mean, and not against 0."
    )
    title = f"CEC across and within groups, by {s.view.attribute}"
    return TableView.of(title, s.headline if made else (), columns, note)
