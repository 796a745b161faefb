"""How many complainants' tests are significant, beside what permuted labels give; both depend on k.

The share detected at tau = 0 is no finding: where nothing but chance is at work, about every other complainant
has a difference above 0. A share counts as found only where it lies above what the same search finds once the labels
are permuted. Here belong the three-way comparison and how it is read; differences are in ``differences``.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from tasks.methods.cst.report.charts.panels import CHANCE, FOUND, beside_chance
from tasks.methods.cst.report.lookups import CF, CST, SHARES, ST, Situations, name
from tasks.reporting.charts.panels import Rows, marks, most, told
from tasks.reporting.charts.vega import ACCENT, QUIET
from tasks.reporting.comparison import capital
from tasks.reporting.material import Measure, undrawn
from tasks.reporting.numbers import count, missing_words, n_cell, number_cell, p_cell, value_cell, written
from tasks.reporting.section import Cell, Figure, Panel, Row, Swatch, TableView

MEASURES = SHARES
HEADLINE = next(iter(SHARES))

_TIMES = 10
"""A group of fewer complainants than this many times k has one control group more than many."""

SHARED = (
    "Complainants of a group share neighbours, so that their tests are not independent and the interval of a share is "
    "narrower than it should be: the range of the permuted labels is the safer yardstick."
)


def words(s: Situations) -> Iterator[str]:
    """What is another search here than a reader expects."""
    if CST not in s.variants and s.settings.generator == "scm" and s.material.settings.causal_graph.edges:
        yield (
            f"No arrow of the causal graph leads out of {s.view.attribute}, so that nobody is imagined in another "
            "group: situation testing (ST) only."
        )
    if s.crossed:
        yield (
            "Several attributes are crossed here. The test group of a complainant are its nearest among everybody "
            f"outside its own group, and not only among {s.view.reference}; it is imagined as a member of that group."
        )


def readings(s: Situations) -> tuple[str, ...]:
    """One sentence for every group of complainants; too few people, and nothing found, are no pass."""
    return tuple(_reading(s, group) for group in s.others)


def _reading(s: Situations, group: str) -> str:
    own = s.get(group, HEADLINE, s.main)
    if own is None:
        return f"{group}: nobody could be tested with k = {s.settings.k}. Nothing can be said, and that is no pass."
    if own.value is None or own.n is None:
        return f"{group}: the share significant is {missing_words(own)}. Nothing can be said, and that is no pass."
    said = f"{group}: {written(own.value, 'rate')} of {count(own.n)} complainants have a significant test"
    if own.n < s.minimum:
        return f"{said}, but fewer than {s.minimum} complainants are too few to say, and that is no pass."
    alike = (
        f" Each control group holds {s.settings.k} of them, so that they overlap: read it as few comparisons."
        if is_small(own.n, s.settings.k)
        else ""
    )
    return f"{said} ({name(s.main)}, k = {s.settings.k}). {_against(s, group, own)}{alike}"


def is_small(n: int, k: int) -> bool:
    """Whether a group is so small beside k that its control groups overlap much."""
    return n < _TIMES * k


def _against(s: Situations, group: str, own: Measure) -> str:
    """The share against permuted labels; the reader is told if it is no more than they give."""
    null = s.get(group, f"{HEADLINE}_null", s.main)
    if null is None or None in (null.value, null.low, null.high):
        return "The labels were not permuted in this run, so that what chance alone finds is not known."
    mean, low, high = (written(x or 0.0, "rate") for x in (null.value, null.low, null.high))
    chance = f"With the labels permuted it is {mean} on average ({low} to {high}; {null.n} permutations)"
    if (own.value or 0.0) <= (null.high or 0.0):
        return f"{chance}: not distinguishable from chance. That does not show that there is nothing to find."
    difference = s.get(group, f"{HEADLINE}_null_difference", s.main)
    if difference is None or difference.low is None or difference.low <= 0:
        return f"{chance}; the share lies above that, but sampling error reaches into it: no difference can be told."
    return f"{chance}: more than chance finds. Why, this figure cannot say."


def figures(s: Situations) -> tuple[Figure, ...]:
    """Share significant of every group beside permuted labels, by CST and by ST on one scale."""
    rows = {variant: [row for group in s.others for row in _points(s, group, variant)] for variant in s.shown}
    every = [row for found in rows.values() for row in found]
    seen = {row["group"] for row in every}
    order = [group for group in s.others if group in seen]
    panels = tuple(_panel(s, variant, found, order, most(every)) for variant, found in rows.items() if order)
    caption = (
        f"Share of each group's complainants whose test is significant at {s.level} after Benjamini-Hochberg, among "
        f"their {s.settings.k} nearest on either side. Grey: the same search with the labels permuted, mean and range. "
        f"What lies inside it is not distinguishable from chance. {SHARED}"
    )
    legend = (Swatch("found, with interval", ACCENT), Swatch("labels permuted, with range", QUIET))
    title = f"Complainants with a significant test, by {s.view.attribute}"
    return (Figure(title, panels, caption + s.counted + undrawn(s.others, seen), legend),)


def _points(s: Situations, group: str, variant: str) -> Iterator[dict[str, Any]]:
    for what, measure in ((FOUND, HEADLINE), (CHANCE, f"{HEADLINE}_null")):
        yield from marks(s.get(group, measure, variant), "rate", closed=True, group=group, what=what)


def _panel(s: Situations, variant: str, rows: Rows, order: list[str], end: float) -> Panel:
    around = {CST: "around the imagined applicant", ST: "around the applicant as it is"}[variant]
    title = f"{name(variant)}: test group {around}"
    label = f"{title}, by {s.view.attribute}. {told(rows, 'group', 'what')}"
    return beside_chance(title, label, rows, order, end)


def tables(s: Situations) -> tuple[TableView, ...]:
    """The variants side by side at every number of neighbours, and each share beside permuted labels."""
    return (*(_three_way(s, measure) for measure in SHARES), _null(s))


def _three_way(s: Situations, measure: str) -> TableView:
    shown = SHARES[measure]
    variants = [v for v in s.variants if not (v == CF and measure == HEADLINE)]
    rows = tuple(_variant(s, group, v, measure) for group in s.others for v in s.having(group, measure, variants))
    named = " / ".join(name(v) for v in variants)
    title = f"{capital(shown.words)}, {named} by number of neighbours"
    header = ("Group", "Variant", "Complainants", *(f"k = {k}" for k in s.ks))
    return TableView(title, header, rows, _note(s, measure))


def _variant(s: Situations, group: str, variant: str, measure: str) -> Row:
    found = [s.get(group, measure, variant, k) for k in s.ks]
    known = next((m for m in found if m), None)
    return (Cell(group), Cell(name(variant)), n_cell(known), *(value_cell(m, "rate") for m in found))


def _note(s: Situations, measure: str) -> str:
    if measure == HEADLINE:
        cf = " CF has no test: it says of each complainant yes or no, and stands with the shares detected."
        return (
            f"For the choice of files to read; depends on k. In brackets: intervals. {SHARED}{cf * (CF in s.variants)}"
        )
    half = (
        f"Depends on k. Detected: delta above tau = {s.settings.tau:g}, whether or not chance would give as much: this "
        "share is no finding by itself: what permuted labels give stands in the next table."
    )
    return half + (" CF looks at no neighbours and is the same at every k." if CF in s.variants else "")


def _null(s: Situations) -> TableView:
    """Both shares at the headline's k beside those that permuted labels give."""
    rows = tuple(
        row
        for group in s.others
        for variant in s.shown
        for measure in SHARES
        for row in _beside(s, group, variant, measure)
    )
    header = ("Group", "Variant", "Share", "Found", "Labels permuted", "Difference", "p", "Permutations")
    note = (
        "A test that the attribute moves nothing at all: labels are permuted among applicants alike in the categories "
        "that it does not reach, the causal model is fitted again, and the same search is run. Where finances differ "
        "it does not hold, even if nobody is harmed. In square brackets: intervals; in round ones, for permuted "
        "labels, their range. p: one more than the permutations with a share as high, over one more than all."
    )
    return TableView(f"Beside permuted labels, k = {s.settings.k}", header, rows, note)


def _beside(s: Situations, group: str, variant: str, measure: str) -> Iterable[Row]:
    own, null, difference = (s.get(group, f"{measure}{end}", variant) for end in ("", "_null", "_null_difference"))
    if null is None:
        return
    gap = value_cell(difference, "rate") if difference else Cell("–", "none")
    p = s.view.get(group, f"{HEADLINE}_p") if (measure, variant) == (HEADLINE, s.main) else None
    draws = Cell("–", "none") if null.n is None else number_cell(count(null.n))
    yield (
        Cell(group),
        Cell(name(variant)),
        Cell(SHARES[measure].words.removeprefix("share ")),
        value_cell(own, "rate"),
        value_cell(null, "rate"),
        gap,
        p_cell(p.value if p else None),
        draws,
    )
