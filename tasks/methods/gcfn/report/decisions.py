"""Whose decision would change had its mediators been those of another group, and how far scores would move.

The headline is of the network under which most decisions change, never of one that was picked: the mean over networks
stands beside it. Here belong the figure, the tables and the readings of the audited model; how well anybody was
identified is in ``identification``.
"""

from collections.abc import Mapping

from tasks.methods.gcfn.report.charts import shares
from tasks.methods.gcfn.report.lookups import HEADLINE, MEAN, ROUNDED, TO_FAVOURABLE, TO_UNFAVOURABLE, WORST, Mediated
from tasks.reporting.charts.panels import marks, told
from tasks.reporting.charts.vega import ACCENT, QUIET, WARM
from tasks.reporting.material import Measure, Shown, Unit, undrawn
from tasks.reporting.numbers import count, difference_cells, missing_words, n_cell, value, value_cell
from tasks.reporting.section import Cell, Figure, Panel, Row, Swatch, TableView

MEASURES = {
    HEADLINE: Shown("share decided otherwise as a member of another group", "rate"),
    "flip_direction_share": Shown("share decided otherwise, in one direction", "rate"),
    "share_changed": Shown("share that would turn favourable less share that would turn unfavourable", "rate"),
    "relative_change": Shown("change of the score over the own probability of denial", "number"),
    "score_change": Shown("mean change of the score", "number"),
    "score_change_absolute": Shown("mean size of the score's change", "number"),
    "score_change_squared": Shown("mean squared change of the score (CF)", "number"),
    "score_change_quantile": Shown("quantile of the size of the score's change", "number"),
}
_LARGEST, _MEAN = "most of all networks", "mean over networks"
_SHARES: Mapping[str, Swatch] = {
    _LARGEST: Swatch(f"{_LARGEST}, with interval", ACCENT, shape="circle"),
    _MEAN: Swatch(_MEAN, QUIET, shape="diamond"),
}
_TURNED = "In which direction"
_UP, _DOWN = "then favourable", "then unfavourable"
_DIRECTIONS: Mapping[str, Swatch] = {
    _UP: Swatch(f"unfavourable now, {_UP}", WARM, shape="triangle"),
    _DOWN: Swatch(f"favourable now, {_DOWN}", ACCENT, shape="square"),
}
Parts = Mapping[str, tuple[str, Mapping[str, float | str]]]
"""Kind of a mark -> measure and parameters."""


def figures(m: Mediated) -> tuple[Figure, ...]:
    """The share of every group, and its two directions."""
    flips = {_LARGEST: (HEADLINE, WORST)} | ({_MEAN: (HEADLINE, MEAN)} if m.settings.several else {})
    directions = {_UP: ("flip_direction_share", TO_FAVOURABLE), _DOWN: ("flip_direction_share", TO_UNFAVOURABLE)}
    title = f"Decisions that would change, by {m.view.attribute}"
    panels = (
        *_panel(m, "Decided otherwise", flips, {kind: _SHARES[kind] for kind in flips}),
        *_panel(m, _TURNED, directions, _DIRECTIONS),
    )
    drawn = {row["row"] for panel in panels for row in panel.spec["datasets"]["rows"]}
    caption = (
        f"Share of applicants on whom the audited model would have decided otherwise, had their mediators been what "
        f"the generators imagine for a member of {m.view.reference}; members of {m.view.reference} are imagined in "
        "each other group, and stand for the mean over these. "
    )
    turned = any(panel.title == _TURNED for panel in panels)
    caption += "Second panel: the same share by its direction." if turned else "Its directions are not known."
    legend = (*(_SHARES[kind] for kind in flips), *(_DIRECTIONS.values() if turned else ()))
    return (Figure(title, panels, caption + undrawn(m.view.groups, drawn), legend),)


def _panel(m: Mediated, title: str, parts: Parts, kinds: Mapping[str, Swatch]) -> tuple[Panel, ...]:
    rows = [
        row
        for group in m.view.groups
        for what, (measure, at) in parts.items()
        for row in marks(m.get(group, measure, at), "rate", row=group, what=what)
    ]
    if not rows:
        return ()
    label = f"{title}, by {m.view.attribute}. {told(rows, 'row', 'what')}"
    return (shares(title, label, rows, kinds),)


def tables(m: Mediated) -> tuple[TableView, ...]:
    """Decisions, then scores."""
    return _decisions(m), _scores(m)


def _decisions(m: Mediated) -> TableView:
    rows: list[Row] = []
    for group in m.view.groups:
        found = m.get(group, HEADLINE)
        compared = difference_cells(m.get(group, f"{HEADLINE}_difference"), "rate", group == m.view.reference)
        if found is not None:
            cells = (
                *(value_cell(m.get(group, HEADLINE, MEAN), "rate") for _ in range(m.settings.several)),
                value_cell(m.get(group, "flip_direction_share", TO_FAVOURABLE), "rate"),
                value_cell(m.get(group, "flip_direction_share", TO_UNFAVOURABLE), "rate"),
                _of_others(m, group, "share_changed", "rate"),
            )
            rows.append((*_first(m, group, found), value_cell(found, "rate"), *cells, *compared))
    header = (
        *("Group", "Imagined as", "Applicants imagined", "Decided otherwise"),
        *("Mean over networks",) * m.settings.several,
        *("Then favourable", "Then unfavourable", "Net", f"Difference from {m.view.reference}", "p", "q"),
    )
    note = (
        "Decided otherwise: by the audited model, on the imagined mediators. In brackets: intervals of the "
        f"applicants; they know nothing of how sure the generators are. The difference is from {m.view.reference}, "
        "whose members are imagined elsewhere; with more than two groups it has no p."
    )
    note += (
        " Net: then favourable less then unfavourable, the mean over networks; above 0 where belonging to the group "
        "harms by this model and these mediators."
    )
    if m.settings.several:
        note += (
            " Decided otherwise and its directions are of the network under which most are: the largest of several "
            "shares is rather too large than too small, the more so in a small group."
        )
    return TableView(f"Decisions that would change, by {m.view.attribute}", header, tuple(rows), note)


def _first(m: Mediated, group: str, found: Measure) -> Row:
    return (Cell(m.view.named(group)), Cell(m.imagined_as(group)), n_cell(found))


def _of_others(m: Mediated, group: str, measure: str, unit: Unit) -> Cell:
    """A measure that there is only of groups outside the reference group."""
    return Cell("", "none") if group == m.view.reference else value_cell(m.get(group, measure), unit)


def _scores(m: Mediated) -> TableView:
    rows: list[Row] = []
    for group in m.view.groups:
        found = [m.get(group, name) for name in ("score_change", "score_change_absolute", "score_change_squared")]
        if found[0] is not None:
            mean, size, squared = (value_cell(each, "number") for each in found)
            relative = _of_others(m, group, "relative_change", "number")
            largest = value_cell(m.quantile(group), "number")
            rows.append((*_first(m, group, found[0]), mean, relative, size, largest, squared))
    header = (
        *("Group", "Imagined as", "Applicants imagined", "Mean change", "Over own denial", "Mean size"),
        *(f"{100 * m.settings.quantile:g} % are smaller than", "Mean square (CF)"),
    )
    unit = "the sum of the rule" if m.material.model == "rule" else "the model's score, between 0 and 1"
    worst = " Size, quantile and square are of the network under which they are largest." if m.settings.several else ""
    note = (
        f"Change of {unit}: as imagined less as it is, so that below 0 the model would have been less favourable; a "
        f"mean change of 0 may hide changes in both directions.{worst} CF is what the paper measures unfairness by. "
        "Over own denial: all changes together over all own probabilities of denial. In brackets: intervals."
    )
    note += f" {ROUNDED}" * m.coarse
    return TableView(f"How far scores would move, by {m.view.attribute}", header, tuple(rows), note)


def readings(m: Mediated) -> tuple[str, ...]:
    """A sentence for each group on what would change, and on how much of it nothing is known."""
    return tuple(_reading(m, group) for group in m.view.groups)


def _reading(m: Mediated, group: str) -> str:
    found = m.get(group, HEADLINE)
    if found is None:
        return f"{group}: nobody could be imagined. Nothing can be said, and that is no pass."
    if found.value is None:
        return f"{group}: {missing_words(found)}. Nothing can be said, and that is no pass."
    if found.n is not None and found.n < m.minimum:
        few = f"{group}: {count(found.n)} applicants were imagined, fewer than the {m.minimum} that a reading needs."
        return f"{few} Too few to say, and that is no pass."
    up, down = (value(m.get(group, "flip_direction_share", at), "rate") for at in (TO_FAVOURABLE, TO_UNFAVOURABLE))
    mean = (
        f" On average over networks it is {value(m.get(group, HEADLINE, MEAN), 'rate')}." if m.settings.several else ""
    )
    by = ", by the network under which most are" if m.settings.several else ""
    return (
        f"{group}, imagined as {m.imagined_as(group)}: {value(found, 'rate')} of {count(found.n or 0)} applicants "
        f"would be decided on otherwise{by} (then favourable {up}, then unfavourable {down}).{mean} {_unsure(m, group)}"
    )


def _unsure(m: Mediated, group: str) -> str:
    """How many are not identified: a share of flips is never told without it."""
    if not m.settings.several:
        return "How many of them are identified one generator cannot show."
    found = m.get(group, "not_identified_share")
    if found is None or found.value is None:
        return f"The share that is not identified is {missing_words(found)}."
    return (
        f"Not identified, because networks disagree about the decision or part by more than {m.settings.wide:g}: "
        f"{value(found, 'rate')}."
    )
