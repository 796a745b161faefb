"""The ladder itself: the answer for each group in a sentence, the difference by rung, and all estimates."""

from collections.abc import Iterator, Mapping
from typing import Any

from tasks.methods.adjusted.algorithm.detection import EFFECT
from tasks.methods.adjusted.report.charts import ladder
from tasks.methods.adjusted.report.lookups import KINDS, OVERLAP, Ladder, poor_support
from tasks.methods.adjusted.report.words import plain
from tasks.reporting.charts.panels import Rows, by_group, told
from tasks.reporting.charts.vega import ACCENT, QUIET, REFERENCE, WARM
from tasks.reporting.material import Shown, listed
from tasks.reporting.numbers import percent, points, significant
from tasks.reporting.section import Cell, Figure, Notice, Panel, Row, Swatch, TableView

MEASURES = {EFFECT: Shown("adjusted difference of denial", "points")}
OWN = ("logit", "own")
_DRAWN: Mapping[tuple[str, str], Swatch] = {
    OWN: Swatch("logit, over the group's own members (judged)", ACCENT, shape="circle"),
    ("lpm", "all"): Swatch("linear probability", QUIET, shape="square"),
    OVERLAP: Swatch("overlap weights", WARM, shape="diamond"),
    ("aipw", "own"): Swatch("doubly robust", REFERENCE, shape="triangle"),
}


def readings(found: Ladder) -> Iterator[str]:
    """What is left of each group's difference among similar applicants."""
    for group in found.others:
        yield f"{group}: {_reading(found, group)}"


def _reading(found: Ladder, group: str) -> str:
    if group in found.withheld:
        return "withheld, because the group is small."
    raw, own = found.estimate(group, 0, OWN), found.estimate(group, found.primary, OWN)
    if own is None or own["value"] is None:
        return f"no adjusted difference. {_sentence(own['reason'] if own else 'no estimate')}"
    weighted = found.estimate(group, own["rung"], OVERLAP) if poor_support(own) else None
    first = own if weighted is None or weighted["value"] is None else weighted
    text = _difference(found, first)
    if raw is not None and raw["value"] is not None and own["rung"]:
        text += f" Without controls the difference is {found.points(raw)}."
    low, high = first["low"], first["high"]
    if low is None or high is None:
        text += f" It has no interval. {_sentence(first['reason'])}"
    else:
        text += " The interval holds zero." if low <= 0 <= high else " The interval does not hold zero."
    if poor_support(own):
        text += (
            f" Only {percent(own['support'])} of the group are where applicants of both groups are found: too few for "
            f"a verdict on the logit, {found.points(own)} over the group's own members."
        )
    return text


def _difference(found: Ladder, row: Mapping[str, Any]) -> str:
    """How much more or less often the group is denied, with the interval."""
    among = f"of like {listed(found.rungs[row['rung']].split(' + '))}" if row["rung"] else "without any control"
    weighted = ", weighted to where applicants of both groups are found" if row["estimator"] == "overlap" else ""
    words = f"denied {points(abs(row['value']))} {'more' if row['value'] >= 0 else 'less'} often".replace("+", "")
    return f"{words} than {found.view.reference} applicants {among}{weighted} ({found.points(row)})."


def _sentence(reason: str) -> str:
    reason = plain(reason)
    return f"{reason[:1].upper()}{reason[1:]}." if reason else "The run made none."


def notices(found: Ladder) -> Iterator[Notice]:
    """What the ladder leaves out stands above it."""
    out = tuple(row for row in found.counted if not row["used"] and row["rows"])
    columns = [str(row["reason"]) for row in found.counted if not row["used"] and not row["rows"]]
    if out:
        points = (
            f"{row['group'] or 'no group'}: {found.count(row['rows'])}, {row['reason']}" for row in found.shown(out)
        )
        yield Notice("Applications left out of the ladder", _left_out(found, out), tuple(points))
    if columns:
        text = "The decision sets these columns, so that holding them fixed would compare what it made."
        yield Notice("Columns left out of the ladder", text, tuple(dict.fromkeys(columns)))


def _left_out(found: Ladder, out: Rows) -> str:
    """How many, and how often they were denied beside the others; a small number is not told."""
    rows, denied = (sum(row[name] for row in out) for name in ("rows", "denied"))
    used, denied_used = (sum(row[name] for row in found.counted if row["used"]) for name in ("rows", "denied"))
    same = "Every rung uses the same applications."
    if found.small(rows, denied) or not used:
        return f"A small number of applications is on no rung. {same}"
    return (
        f"{found.count(rows)} of {found.count(rows + used)} applications are on no rung; {percent(denied / rows)} of "
        f"them were denied, and {percent(denied_used / used)} of the others. {_gaps(found, out)} {same}"
    )


def _gaps(found: Ladder, out: Rows) -> str:
    """The difference of denial shares among the rows left out, group minus reference, for each group."""
    base = _denied(found, out, found.view.reference)
    told_of = {group: _denied(found, out, group) for group in found.others}
    words = (
        f"{group} {'too few to tell' if base is None or share is None else points(found.coarsely(share - base))}"
        for group, share in told_of.items()
    )
    return f"Difference of the denied share from {found.view.reference} applicants among them: {', '.join(words)}."


def _denied(found: Ladder, out: Rows, group: str) -> float | None:
    """Share of a group's rows left out that were denied; None where it is withheld, or there are none."""
    rows, denied = (sum(row[name] for row in out if row["group"] == group) for name in ("rows", "denied"))
    hidden = group in found.withheld or not rows or found.small(rows, denied)
    return None if hidden else float(denied / rows)


def figures(found: Ladder) -> tuple[Figure, ...]:
    """A panel for each group: its difference by rung and estimator."""
    kinds = {KINDS[kind]: _DRAWN[kind] for kind in found.kinds if kind in _DRAWN}
    order = [found.rung(number) for number in sorted(found.rungs)]

    def draw(group: str, rows: Rows, every: Rows) -> Panel:
        label = f"Adjusted difference of denial of {group} by rung. {told(rows, 'row', 'what')}"
        return ladder(group, label, rows, order, kinds, every)

    caption = (
        f"Difference of the probability of denial from {found.view.reference}, in percentage points, with intervals. "
        "Each rung adds a block of columns in which applicants are made alike. Dashed: no difference."
    )
    title = f"The denial ladder, by {found.view.attribute}"
    return (by_group(title, found.others, lambda group: _rows(found, group), draw, caption, kinds.values()),)


def _rows(found: Ladder, group: str) -> Iterator[dict[str, Any]]:
    for row in found.effects:
        kind = row["estimator"], row["average_over"]
        if row["group"] == group and kind in _DRAWN and row["value"] is not None:
            ends = {"value": row["value"], "low": row["low"], "high": row["high"]}
            yield {"row": found.rung(row["rung"]), "what": KINDS[kind], **ends, "shown": found.points(row)}


def tables(found: Ladder) -> tuple[TableView, ...]:
    """All estimates, a line for each group and rung."""
    rows = [_line(found, group, number) for group in found.others for number in sorted(found.rungs)]
    header = (
        "Group",
        "Adjusted for",
        "Applications",
        "Denied",
        *(KINDS[kind] for kind in found.kinds),
        "Odds ratio",
        "Remarks",
    )
    note = (
        "Differences of the probability of denial, group minus reference, in percentage points (pp). Own members: "
        "averaged over the group itself; all rows: as textbooks print it. An odds ratio may rise while the difference "
        "falls. The linear model takes curvature for a difference; it stands beside and never decides. Terms added are "
        "hinges and products of columns that tell denial or a group, on the judged rung."
    )
    return (TableView(f"The denial ladder, by {found.view.attribute}", header, tuple(rows), note),)


def _line(found: Ladder, group: str, number: int) -> Row:
    every = [found.estimate(group, number, kind) for kind in found.kinds]
    first = next((row for row in every if row is not None), None)
    odds = next((row["odds_ratio"] for row in every if row is not None and row["odds_ratio"] is not None), None)
    counts = ("withheld",) * 2 if first is None else (found.count(first["n"]), found.count(first["events"]))
    return (
        Cell(group),
        Cell(found.rungs[number] + (" (judged)" if number == found.primary else "")),
        *(Cell(count, "number" if first is not None else "none") for count in counts),
        *(found.cell(row) for row in every),
        Cell("–", "none") if odds is None else Cell(significant(odds), "number"),
        Cell(
            "; ".join(
                dict.fromkeys(
                    each for row in every if row is not None for each in plain(row["reason"]).split("; ") if each
                )
            )
        ),
    )
