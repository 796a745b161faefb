"""Several attributes at once: those detected under each of the single attributes, beside the crossed group of its own.

The two ask different things (Alvarez and Ruggieri 2023, section 3.3): a complainant may be detected as a member of the
crossed group and under neither single attribute, and the other way round.
"""

from tasks.methods.cst.report.lookups import Situations, name
from tasks.reporting.material import Shown
from tasks.reporting.numbers import n_cell, value_cell
from tasks.reporting.section import Cell, Row, TableView

MEASURES = {
    "share_multiple_significant": Shown("share significant under every single attribute", "rate"),
    "share_multiple": Shown("share detected under every single attribute", "rate"),
}


def tables(s: Situations) -> tuple[TableView, ...]:
    """Multiple beside intersectional, by number of neighbours."""
    return tuple(_table(s, *each) for each in zip(MEASURES, ("significant", "detected"), strict=True))


def _table(s: Situations, measure: str, said: str) -> TableView:
    variants = [v for v in s.variants if any(m.said["variant"] == v for m in s.view.all(measure))]
    rows: list[Row] = []
    for group in s.others:
        for v in variants:
            for words, of in (("under every single attribute", measure), ("as a group of its own", f"share_{said}")):
                cells = (value_cell(s.get(group, of, v, k), "rate") for k in s.ks)
                rows.append((Cell(group), Cell(name(v)), Cell(words), n_cell(s.get(group, of, v)), *cells))
    header = ("Group", "Variant", "Looked at", "Complainants", *(f"k = {k}" for k in s.ks))
    note = (
        f"Under every single attribute: tested at {s.level} divided by their number, and counted only if significant "
        "under each; who belongs to the reference group of one of them cannot be."
        if said == "significant"
        else "Under every single attribute: delta above tau under each of them."
    )
    return TableView(f"Share {said}, under every single attribute and as a group of its own", header, tuple(rows), note)
