"""Who is identified at all: how far the generators part about each applicant, and what their agreement is worth.

Networks that agree may agree on the same wrong answer; networks that part show that nobody knows. So the words come
with the histogram, and never without.
"""

from collections.abc import Callable, Mapping

from tasks.methods.gcfn.report.lookups import Generators, Mediated
from tasks.reporting.charts.histogram import Bin, Histogram
from tasks.reporting.charts.panels import Rows, by_group, told
from tasks.reporting.charts.rows import bins
from tasks.reporting.charts.vega import ACCENT, QUIET, WARM
from tasks.reporting.material import Shown, listed
from tasks.reporting.numbers import n_cell, value_cell
from tasks.reporting.section import Cell, Figure, Panel, Swatch, TableView

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
_NARROW, _PARTLY, _WIDE = "up to the limit", "on both sides of the limit", "above the limit"
_KINDS = {
    _NARROW: Swatch(f"spread {_NARROW}", ACCENT, shape="square"),
    _PARTLY: Swatch(f"spread {_PARTLY}", QUIET, shape="square"),
    _WIDE: Swatch(f"spread {_WIDE}: not identified", WARM, shape="square"),
}


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
    if not g.settings.several:
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
    found = _histogram(m)
    order = [_words(ends) for ends in found.bins]
    title = f"Spread between networks, by {m.view.attribute}"

    def panel(group: str, rows: Rows, every: Rows) -> Panel:
        most = min(1.0, max(row["high"] for row in every))
        return bins(group, f"{title}: {group}. {told(rows, 'bin')}", rows, order, _kinds(rows), most, "spread")

    caption = (
        "Applicants by how far the networks part about their mediators, in standard deviations of a mediator (of "
        f"categories: the share of networks that name another than most). Above {m.settings.wide:g} an applicant is "
        "flagged as not identified. A bin holds its lower end. A narrow spread does not show that the answer is right."
    )
    return (by_group(title, m.view.groups, found.marks, panel, caption, _KINDS.values()),)


def _kinds(rows: Rows) -> Mapping[str, Swatch]:
    return {kind: swatch for kind, swatch in _KINDS.items() if any(row["kind"] == kind for row in rows)}


def _words(ends: Bin) -> str:
    return f"{ends[0]:g} and more" if ends[1] == float("inf") else f"{ends[0]:g} to {ends[1]:g}"


def _histogram(m: Mediated) -> Histogram:
    wide = m.settings.wide
    return Histogram(
        m.view,
        "mediator_spread_share",
        _words,
        lambda b: _WIDE if b[0] >= wide else _NARROW if b[1] <= wide else _PARTLY,
    )


def tables(m: Mediated) -> tuple[TableView, ...]:
    """Who was imagined and who is identified, and the numbers of the histogram."""
    return _identified(m), _distribution(m)


def _identified(m: Mediated) -> TableView:
    columns: dict[str, Callable[[str], Cell]] = {
        "Group": Cell,
        "Applicants": lambda group: n_cell(m.get(group, "unmediated_share")),
        "Not imagined": lambda group: value_cell(m.get(group, "unmediated_share"), "rate"),
        "Imagined": lambda group: n_cell(m.get(group, "not_identified_share")),
        "Not identified, of these": lambda group: value_cell(m.get(group, "not_identified_share"), "rate"),
        "Mean spread": lambda group: value_cell(m.get(group, "mediator_spread"), "number"),
    }
    note = (
        "Not imagined: the group has too few applicants for a generator to learn from, or a mediator never varies in "
        "it, or one of the two holds for the reference group. Nothing is said of them, and that is no pass."
    )
    if not m.settings.several:
        note += " One generator has no spread: who is identified was not computed."
    known = [group for group in m.view.groups if m.get(group, "unmediated_share")]
    return TableView.of(f"Who was imagined and who is identified, by {m.view.attribute}", known, columns, note)


def _distribution(m: Mediated) -> TableView:
    found = _histogram(m)
    groups = [group for group in m.view.groups if found.of(group)]
    title = f"Spread between networks, by {m.view.attribute}: the numbers of the figure"
    return found.table(title, "Spread", groups, found.bins)
