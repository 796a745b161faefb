"""The data page: what the run is made of, which rows it left out, which checks it passed, and how to verify it."""

from collections.abc import Iterator
from typing import Any

from schemas.tables.source import DECISION_DIRECTION, LEAKAGE, SOURCE_READ
from schemas.tables.validations import VALIDATIONS
from schemas.tables.verdicts import AGREEMENT, BEARS_ON
from tasks.preprocessing import direction, leakage
from tasks.reporting.chapters.agreement import agreement
from tasks.reporting.chapters.checks import checks
from tasks.reporting.chapters.decide.groups import Groups
from tasks.reporting.chapters.decide.reading import GROUP, run_of
from tasks.reporting.chapters.exclusions import exclusions, missing
from tasks.reporting.chapters.mitigations import mitigations
from tasks.reporting.chapters.model import encodings, model, too_good
from tasks.reporting.chapters.own_limits import own_limits
from tasks.reporting.chapters.questions.declaration import in_words
from tasks.reporting.charts.numbers import MINUS
from tasks.reporting.material import Material, listed
from tasks.reporting.numbers import count
from tasks.reporting.section import Cell, Link, Listing, Notice, Section, TableView


def quality(material: Material) -> Section:
    """All parts of the page; warnings before them."""
    run = run_of(material)
    found = agreement(material.named(AGREEMENT.name), Groups(run), in_words), own_limits(material, run)
    parts = (
        _identity(material),
        exclusions(material),
        missing(material),
        _decision(material),
        model(material),
        *(each for each in (mitigations(material), *found) if each),
        encodings(material),
        checks(material.named(VALIDATIONS.name), material.settings.run),
        _again(material),
    )
    link = Link("Definitions of all words and measures", "method.html")
    return Section(
        "Can these data carry an answer?", "quality", notices=tuple(warnings(material)), parts=parts, links=(link,)
    )


def warnings(material: Material) -> Iterator[Notice]:
    """What has to be known before any figure is read."""
    yield from _lacking(material)
    for row in material.named(DECISION_DIRECTION.name):
        if row["reversed"]:
            yield Notice("Approved and denied may be exchanged", _direction(material, row))
    yield from _leakage(material)
    broken = [row for row in material.named(VALIDATIONS.name) if not row["success"] and not row["quarantined"]]
    if broken:
        tables = ", ".join(dict.fromkeys(row["table"] for row in broken))
        yield Notice("Checks of tables failed", f"{count(len(broken))} expectations failed, of: {tables}.")
    yield from too_good(material)


def _lacking(material: Material) -> Iterator[Notice]:
    """What the audit asks for and the data of its year do not have: columns, and groups of an attribute."""
    year, lacking = material.settings.year, material.settings.source.lacking
    columns = tuple(name for name in lacking if GROUP not in name)
    groups = tuple(name for name in lacking if GROUP in name)
    if columns:
        said = f"The data of {year} do not have {listed(columns)}, which the audit asks for. "
        yield Notice("The year lacks columns", said + "No part of this audit uses them; years that have them say more.")
    if groups:
        yield Notice("The year lacks groups", f"In the data of {year} nobody belongs to {listed(groups)}.")


def _leakage(material: Material) -> Iterator[Notice]:
    """Columns that alone tell the decision, though not so well that the audit stopped."""
    told = [leakage.said(row, material.label(row["feature"])) for row in material.named(LEAKAGE.name)]
    if told:
        ask = "Make sure that applicants, and not the decision, gave these values."
        yield Notice("Columns that tell the decision", " ".join((*told, ask)))


def _direction(material: Material, row: Any) -> str:
    """The check of the decision column in words; without its numbers where they are withheld."""
    signed = (each.rpartition(" ") for each in row["columns"].split(", ") if each)
    row = {**row, "columns": ", ".join(f"{material.label(name)} {MINUS if s == '-' else s}" for name, _, s in signed)}
    if row["auc"] is None and row["decided_by"] == "columns":
        return f"Columns with a direction ({row['columns']}) rank the decision; how well is withheld."
    if row["reversed"] and row["auc"] is not None and row["high"] is not None:
        return " ".join(direction.warnings(row, material.settings.decision)).removeprefix("columns_swapped: ")
    return direction.said(row)


def _decision(material: Material) -> Section:
    """Whether the decision column is read the right way round."""
    said = tuple(_direction(material, row) for row in material.named(DECISION_DIRECTION.name) if not row["reversed"])
    return Section("The decision column", "decision", said or ("See the warning at the top.",))


def _identity(material: Material) -> Section:
    """What identifies the run: data, code, settings and seed."""
    settings = material.settings
    read = next(iter(material.named(SOURCE_READ.name)), None)
    rows = None if read is None else read["rows"]
    strip = {
        "Run": settings.run,
        "Audit": f"{settings.name}, {settings.year}",
        "Source": settings.source.words if read is None else read["source"],
        "Rows of the source": "withheld" if rows is None else count(rows),
        "Source, sha256": settings.source_sha256,
        "Code, digest": settings.code,
        "Version": f"evenhand {settings.version}",
        "Profile": settings.profile,
        "Methods": ", ".join(settings.methods.running()),
        "Seed": str(settings.seed),
        "Resamples": f"{count(settings.bootstrap.draws)}, level {settings.bootstrap.level:g}",
        "Missing values": settings.missing,
        "Disclosure profile": settings.disclosure.profile,
        "Legal frame named": _frame(settings.verdicts.frame),
    }
    table = TableView("What identifies the run", ("What", "Value"), tuple((Cell(k), Cell(v)) for k, v in strip.items()))
    spec = Listing("The spec as it was run", settings.effective_spec)
    return Section("The run", "run", tables=(table,), listings=(spec,))


def _frame(name: str) -> str:
    """The frame, and the claim that each theory can be evidence for by it, as far as we read it."""
    claims = "; ".join(f"{theory}: {claim}" for theory, claim in BEARS_ON.get(name, {}).items())
    return f"{name} ({claims})" if claims else name


def _again(material: Material) -> Section:
    """Commands that make the run again, and that show whether its files were changed."""
    settings = material.settings
    words = (
        "Save the spec above as spec.yaml. The same source, code and spec give the same bytes.",
        "The second command compares every file of the run with its recorded digest.",
    )
    commands = f"evenhand audit spec.yaml\nevenhand verify {settings.run}"
    return Section(
        "Make it again, and verify it", "again", words, listings=(Listing("Commands", commands, folded=False),)
    )
