"""The effects on each group, in points: total (CST), direct (ST), what lies between them, and the randomization p.

These are the headlines. Shares of complainants detected or significant depend on k and are in ``significance``.
"""

from collections.abc import Iterator

from tasks.methods.cst.report.lookups import CST, ST, Situations, name
from tasks.reporting.material import Measure, Shown
from tasks.reporting.numbers import interval_text, missing_words, n_cell, p_cell, points, value_cell
from tasks.reporting.section import Cell, Row, TableView

MEASURES = {
    "cst_effect": Shown("CST effect", "points"),
    "st_effect": Shown("ST effect", "points"),
    "mediated_effect": Shown("through the graph's mediators", "points"),
    "st_effect_p": Shown("p of the randomization test", "number"),
    "excess_share_of_denials": Shown("excess share of denials", "rate"),
    "share_significant_p": Shown("p of the share significant, labels permuted", "number"),
}
TOTAL, DIRECT, BETWEEN, P, EXCESS, _ = MEASURES

_NUMERATORS = {"adjusted": "adjusted", "raw": "as counted"}


def readings(s: Situations) -> Iterator[str]:
    """One sentence for every group that has an effect, or why it has none."""
    for group in s.others:
        total, direct = (s.view.get(group, measure) for measure in (TOTAL, DIRECT))
        if direct is not None or total is not None:
            parts = (_said(total, "had they belonged to the reference group"), _said(direct, "among equals"))
            yield f"{group}: {'; '.join(part for part in parts if part)}. An effect is no verdict: a limit makes one."


def _said(m: Measure | None, words: str) -> str:
    if m is None:
        return ""
    if m.value is None:
        return f"{MEASURES[m.measure].words} {missing_words(m)}" + (f" ({m.note})" if m.note else "")
    return f"{points(m.value)} {interval_text(m, 'points')} more denials {words}".replace("  ", " ")


def tables(s: Situations) -> tuple[TableView, ...]:
    """Both effects with their difference and p, and the excess share of denials."""
    return _effects(s), _excess(s)


def _effects(s: Situations) -> TableView:
    found = [m for measure in (TOTAL, DIRECT) for m in s.view.all(measure)]
    rows: list[Row] = []
    for group in s.others if found else ():
        cells = [s.view.get(group, measure) for measure in (TOTAL, DIRECT, BETWEEN)]
        p = s.view.get(group, P)
        shown = (value_cell(m, "points") for m in cells)
        rows.append((Cell(group), n_cell(cells[1]), *shown, p_cell(p.value if p else None)))
    header = ("Group", "Complainants", "CST effect (total)", "ST effect (direct)", "Through the graph's mediators", "p")
    note = (
        "Denials of the group less those of comparable members of the reference group, in percentage points, above 0 "
        f"to the group's cost; {s.settings.k} neighbours on either side, regression-adjusted for what neighbours "
        "still differ in. In brackets: 95 % intervals, which count every decision once and, for CST, the estimation "
        "of the causal model. p: labels permuted among applicants of like propensity, of an ST effect no higher."
    )
    return TableView(f"Effects on denial, by {s.view.attribute}", header, tuple(rows), note)


def _excess(s: Situations) -> TableView:
    variants = [v for v in (CST, ST) if any(m.said["variant"] == v for m in s.view.all(EXCESS))]
    rows: list[Row] = []
    for group in s.others:
        for variant in variants:
            found = [s.view.get(group, EXCESS, {"numerator": each, "variant": variant}) for each in _NUMERATORS]
            cells = (value_cell(m, "rate") for m in found)
            rows.append((Cell(group), Cell(name(variant)), n_cell(found[0]), *cells))
    header = ("Group", "Variant", "Complainants", *(words.capitalize() for words in _NUMERATORS.values()))
    note = (
        "Share of the group's denials that comparable members of the reference group did not meet: of all complainants "
        "together, and of no single one. Adjusted is the one to read: like the effects it takes out what neighbours "
        "still differ in, and came nearer to the truth on simulated lenders. As counted it carries the group's "
        "finances, and so has no interval. Descriptive: no verdict rests on either."
    )
    return TableView(f"Excess share of denials, by {s.view.attribute}", header, tuple(rows), note)
