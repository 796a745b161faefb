"""Who is identified at all: how far the generators part about each applicant, and what their agreement is worth.

Networks that agree may agree on the same wrong answer; networks that part show that nobody knows. So the words come
with the histogram, and never without.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from tasks.methods.gcfn.report.lookups import Generators, Mediated
from tasks.reporting.charts.bins import bins
from tasks.reporting.charts.panels import Rows, by_group, marks, told
from tasks.reporting.charts.vega import ACCENT, QUIET, WARM
from tasks.reporting.material import Measure, Shown, listed
from tasks.reporting.numbers import n_cell, number_cell, value_cell
from tasks.reporting.section import Cell, Figure, Panel, Row, Swatch, TableView

MEASURES = {
    "not_identified_share": Shown("share not identified", "rate"),
    "mediator_spread": Shown("mean spread between networks", "number"),
    "mediator_spread_share": Shown("share by spread between networks", "rate"),
    "unmediated_share": Shown("share who could not be imagined", "rate"),
}
GLOSSARY = {
    "spread": "how far the networks part about an applicant: the standard deviation of what they imagine, in standard "
    "deviations of the mediator, or the share of them that names another category than most; of several mediators the "
    "largest",
    "not identified": "an applicant about whom networks disagree on the decision, or part by more than a set spread",
    "quantile map": "the mediator with the same rank among people alike in the other group as the applicant's own "
    "mediator has among people alike in its own",
}
_BINS = "mediator_spread_share"
_NARROW, _PARTLY, _WIDE = "up to the limit", "on both sides of the limit", "above the limit"
_KINDS = {
    _NARROW: Swatch(f"spread {_NARROW}", ACCENT, shape="square"),
    _PARTLY: Swatch(f"spread {_PARTLY}", QUIET, shape="square"),
    _WIDE: Swatch(f"spread {_WIDE}: not identified", WARM, shape="square"),
}
Bin = tuple[float, float | None]
"""Both ends of a bin; the last has no upper one."""


def words(m: Mediated) -> tuple[str, ...]:
    """What is identified and what is not, under which conditions, and what the networks add to that."""
    g = m.generators
    return (_in_principle(g), _several(g)) if g else ()


def _in_principle(g: Generators) -> str:
    conditions = [
        f"{g.attribute.name} moves none of the covariates",
        f"nothing that is not recorded lies behind both {g.attribute.name} and a mediator",
        "people alike are found in every group",
    ]
    if g.simple:
        conditions.append("what else moves the mediator is one quantity, and moves it in one direction")
        return (
            f"What is identified: {g.mediators[0]} is the one mediator and continuous. What it would have been follows "
            "from an applicant's rank among people alike (the quantile map), up to a flip: with all ranks turned round "
            "the data would look the same, and no data can tell the two apart. That holds only "
            f"{_if(conditions)}."
        )
    how = "the one mediator has categories" if len(g.mediators) == 1 else f"there are {len(g.mediators)} mediators"
    return (
        f"What is not identified: {how} ({listed(g.mediators)}), and then no number of applicants tells what those of "
        "one person would have been. Many answers fit the data equally well and give different people different "
        f"mediators; only the distribution in a group is known. Even that holds only {_if(conditions)}."
    )


def _if(conditions: list[str]) -> str:
    """Conditions as a sentence ends with them; each may hold an `and` of its own."""
    return ", ".join(f"if {said}" for said in conditions[:-1]) + f", and if {conditions[-1]}"


def _several(g: Generators) -> str:
    if not g.several:
        return (
            "Imagined by one generator. It has nothing to disagree with, so that nobody is flagged as not identified: "
            "that is not computed here, and no pass."
        )
    return (
        f"Imagined by {g.settings.networks} networks that were trained independently, and what is told is the worst of "
        "them. That guards against one that came upon an odd answer, and proves nothing: networks of one kind may all "
        "agree on the same wrong answer. Where they disagree it is certain that the answer is not known: an applicant "
        f"is flagged as not identified if their spread is above {g.settings.wide:g} or if they would decide "
        "differently."
    )


def figures(m: Mediated) -> tuple[Figure, ...]:
    """A histogram of the spread for every group, on one scale."""
    order = [_words(ends) for ends in _bins(m)]
    title = f"Spread between networks, by {m.view.attribute}"

    def panel(group: str, rows: Rows, every: Rows) -> Panel:
        most = min(1.0, max(row["high"] for row in every))
        return bins(group, f"{title}: {group}. {told(rows, 'bin')}", rows, order, _kinds(rows), most, "spread")

    caption = (
        "Applicants by how far the networks part about their mediators, in standard deviations of a mediator (of "
        f"categories: the share of networks that name another than most). Above {m.settings.wide:g} an applicant is "
        "flagged as not identified. A bin holds its lower end. A narrow spread does not show that the answer is right."
    )
    return (by_group(title, m.view.groups, lambda group: _points(m, group), panel, caption, _KINDS.values()),)


def _kinds(rows: Rows) -> Mapping[str, Swatch]:
    return {kind: swatch for kind, swatch in _KINDS.items() if any(row["kind"] == kind for row in rows)}


def _ends(m: Measure) -> Bin:
    return float(m.said["from"]), float(m.said["to"]) if "to" in m.said else None


def _bins(m: Mediated) -> list[Bin]:
    return sorted({_ends(each) for each in m.view.all(_BINS)}, key=lambda ends: ends[0])


def _words(ends: Bin) -> str:
    return f"{ends[0]:g} and more" if ends[1] is None else f"{ends[0]:g} to {ends[1]:g}"


def _kind(ends: Bin, wide: float) -> str:
    low, high = ends
    if low >= wide:
        return _WIDE
    return _NARROW if high is not None and high <= wide else _PARTLY


def _found(m: Mediated, group: str) -> dict[Bin, Measure]:
    return {_ends(each): each for each in m.view.all(_BINS) if each.group == group}


def _points(m: Mediated, group: str) -> Iterator[dict[str, Any]]:
    for ends, each in _found(m, group).items():
        named = {"bin": _words(ends), "kind": _kind(ends, m.settings.wide)}
        yield from marks(each, "rate", True, **named)


def tables(m: Mediated) -> tuple[TableView, ...]:
    """Who was imagined and who is identified, and the numbers of the histogram."""
    return _identified(m), _distribution(m)


def _identified(m: Mediated) -> TableView:
    rows: list[Row] = []
    for group in m.view.groups:
        left, flagged = m.get(group, "unmediated_share"), m.get(group, "not_identified_share")
        if left is not None:
            spread = value_cell(m.get(group, "mediator_spread"), "number")
            own = (n_cell(flagged), value_cell(flagged, "rate"), spread)
            rows.append((Cell(group), n_cell(left), value_cell(left, "rate"), *own))
    header = ("Group", "Applicants", "Not imagined", "Imagined", "Not identified, of these", "Mean spread")
    note = (
        "Not imagined: the group has too few applicants for a generator to learn from, or a mediator never varies in "
        "it, or one of the two holds for the reference group. Nothing is said of them, and that is no pass."
    )
    if not m.several:
        note += " One generator has no spread: who is identified was not computed."
    return TableView(f"Who was imagined and who is identified, by {m.view.attribute}", header, tuple(rows), note)


def _distribution(m: Mediated) -> TableView:
    groups = [group for group in m.view.groups if _found(m, group)]
    rows = tuple(
        (number_cell(_words(ends)), *(value_cell(_found(m, group).get(ends), "rate") for group in groups))
        for ends in _bins(m)
    )
    title = f"Spread between networks, by {m.view.attribute}: the numbers of the figure"
    return TableView(title, ("Spread", *groups), rows, folded=True)
