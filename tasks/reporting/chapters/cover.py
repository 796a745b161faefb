"""The first page: what was asked, what the audit cannot tell, what identifies the run, and how decisions were read.

It follows the methods that ran: each brings its question, its limits and its headline.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePath

from schemas.audit.model import Model
from tasks.preprocessing import direction
from tasks.reporting.chapters import headlines as headline_rows
from tasks.reporting.chapters.limits import Limits, limits
from tasks.reporting.chapters.waterfall import Waterfall, count_cell
from tasks.reporting.material import Material, listed
from tasks.reporting.methods import MethodSection
from tasks.reporting.numbers import n_cell, value_cell
from tasks.reporting.section import Cell, Row, TableView


@dataclass(frozen=True)
class Cover:
    """What a reader meets before the first result."""

    title: str
    subject: str
    """Whose decisions, and between whom they are compared."""
    questions: tuple[tuple[str, str], ...]
    """Anchor of a chapter, and what it asks."""
    limits: tuple[Limits, ...]
    headlines: TableView
    strip: tuple[tuple[str, str], ...]
    """Label and value of what identifies the run."""
    decisions: tuple[str, ...]
    rates: TableView


def cover(material: Material, falls: tuple[Waterfall, ...], modules: Mapping[str, MethodSection]) -> Cover:
    """The first page of a report with the chapters of ``modules``."""
    s = material.settings
    return Cover(
        title=s.title or s.name,
        subject=_subject(material),
        questions=tuple((anchor, module.QUESTION) for anchor, module in modules.items()),
        limits=limits(material, falls, modules),
        headlines=headline_rows.table(material, modules),
        strip=_strip(material),
        decisions=(
            f"The decision is read from column {s.decision.column}. Favourable to the applicant: "
            f"{listed(s.decision.favourable)}. Unfavourable: {listed(s.decision.unfavourable)}. Rows with any "
            "other value are refused and counted under Exclusions.",
            *(direction.said(row) for row in material.direction),
        ),
        rates=_rates(material),
    )


def _subject(material: Material) -> str:
    s = material.settings
    by = listed(f"{p.name} (reference: {p.reference})" for p in s.protected)
    return f"Decisions of {s.year}, compared by {by}. The questions:"


def _strip(material: Material) -> tuple[tuple[str, str], ...]:
    s = material.settings
    rounding = "" if material.policy.round_to == 1 else f", others rounded to {material.policy.round_to}"
    return (
        ("Run", s.run),
        ("Audit", f"{s.name}, {s.year}"),
        ("Source", f"{s.source.words} ({s.source.kind})"),
        ("Source sha256", s.source_sha256),
        *_read(material),
        ("Code digest", s.code),
        ("Evenhand version", s.version),
        ("Profile", s.profile),
        ("Model", _model(s.model)),
        ("Missing values", {"exclude": "rows refused", "impute": "filled in"}.get(s.missing, s.missing)),
        ("Limits set", str(len(s.thresholds))),
        ("Intervals", f"{100 * s.bootstrap.level:g} %, {s.bootstrap.draws:,} bootstrap draws"),
        ("Least n for a verdict", str(s.bootstrap.minimum_n)),
        ("Disclosure", f"{s.disclosure.profile}: counts below {material.policy.smallest} withheld{rounding}"),
        ("Seed", str(s.seed)),
    )


def _read(material: Material) -> Iterator[tuple[str, str]]:
    """What the source itself says of its rows."""
    for row in material.source_read:
        yield "Rows read", count_cell(row["rows"], material.policy).whole
        yield "Year by the rows", "not in the rows" if row["year"] is None else str(row["year"])


def _model(model: Model) -> str:
    if model.file is not None:
        return f"a given model ({_file_name(model.file.path)})"
    fitted = f"{model.kind.replace('_', ' ')}, {model.split}"
    return {"none": "none", "rule": "a given rule"}.get(model.kind, fitted)


def _file_name(path: str) -> str:
    """The last part of a path of whatever system: where a file lies is nobody's business."""
    return PurePath(path.replace("\\", "/")).name


def _rates(material: Material) -> TableView:
    """Approval rates at a glance."""
    rows: list[Row] = []
    modelled = {view.attribute: view for view in material.views("outcomes", "model")}
    for view in material.views("outcomes", "lender"):
        for group in view.groups:
            own = view.get(group, "approval_rate")
            row: Row = (Cell(view.named(group)), Cell(view.attribute), n_cell(own), value_cell(own, "rate"))
            if modelled:
                row += (value_cell(modelled[view.attribute].get(group, "approval_rate"), "rate"),)
            rows.append(row)
    both = [f"Approved by the {material.model}"] if modelled else []
    header = ("Group", "By", "Applications", "Approved by the lender", *both)
    return TableView("Approval rate by group, as the decision was read", header, tuple(rows))
