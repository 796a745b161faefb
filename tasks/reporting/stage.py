"""Report: the measures of a run as pages that a reviewer can read offline, and as JSON.

Sections are made of text, tables and figures; ``pages`` makes files of them that need neither network nor script.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from schemas.tables.applications import ENCODINGS, MEMBERSHIPS, MODEL_METRICS, REFUSALS
from schemas.tables.counterfactuals import (
    CAUSAL_CHECKS,
    CAUSAL_EFFECTS,
    GENERATOR_CHECKS,
    GENERATOR_HISTORY,
    MEDIATOR_EFFECTS,
)
from schemas.tables.feasibility import FEASIBILITY_FACTS
from schemas.tables.measures import MEASURES
from schemas.tables.missingness import MISSINGNESS
from schemas.tables.report import REPORT_INDEX
from schemas.tables.source import DECISION_DIRECTION, SOURCE_READ, told
from schemas.tables.validations import VALIDATIONS
from schemas.tables.verdicts import VERDICTS
from tasks.metrics.algorithm.disclosure import Policy, rounded
from tasks.pipeline.registry import tables_shown
from tasks.pipeline.stage import Produced, stage
from tasks.preprocessing.direction import warnings
from tasks.reporting.chapters import verdicts as verdicts_chapter
from tasks.reporting.chapters.appendix import encodings as encodings_section
from tasks.reporting.chapters.appendix import expectations, quality
from tasks.reporting.chapters.cover import cover
from tasks.reporting.chapters.missingness import chapter as missing_chapter
from tasks.reporting.chapters.waterfall import chapter as waterfall_chapter
from tasks.reporting.chapters.waterfall import waterfall
from tasks.reporting.material import Material, ReportSettings
from tasks.reporting.methods import MethodSection, section_modules
from tasks.reporting.pages import page
from tasks.reporting.section import Section

__all__ = ["ReportSettings", "report"]


@stage(
    reads=(
        MEASURES,
        VERDICTS,
        REFUSALS,
        VALIDATIONS,
        MEMBERSHIPS,
        ENCODINGS,
        MODEL_METRICS,
        FEASIBILITY_FACTS,
        CAUSAL_CHECKS,
        CAUSAL_EFFECTS,
        MISSINGNESS,
        MEDIATOR_EFFECTS,
        GENERATOR_CHECKS,
        GENERATOR_HISTORY,
        DECISION_DIRECTION,
        SOURCE_READ,
        *tables_shown(),
    ),
    writes=(REPORT_INDEX,),
    resources=("reporting/templates/*",),
    balanced=False,
)
def report(
    measures: pa.Table,
    verdicts: pa.Table,
    refusals: pa.Table,
    validations: pa.Table,
    memberships: pa.Table,
    encodings: pa.Table,
    model_metrics: pa.Table,
    facts: pa.Table,
    causal_checks: pa.Table,
    causal_effects: pa.Table,
    missingness: pa.Table,
    *others: pa.Table,
    settings: ReportSettings,
) -> Produced:
    """The pages of a run and the same as JSON.

    ``others`` are the tables of generators, the check of the decision column and what was read, in the order of
    ``Material``, and those that chapters of methods read.
    """
    of_models = (model_metrics, facts, causal_checks, causal_effects, missingness)
    material = Material.of(settings, measures, *of_models, *others)
    held = validations.to_pylist()
    falls = tuple(waterfall(refusals, memberships, p.name) for p in settings.protected)
    modules = section_modules(settings.methods.running())
    methods = tuple(module.chapter(material) for module in modules.values())
    sections = (
        waterfall_chapter(material, falls),
        missing_chapter(material, falls),
        *methods,
        quality(material, held),
        encodings_section(material, encodings.to_pylist()),
    )
    front = cover(material, falls, modules)
    rows, words = verdicts.to_pylist(), {k: v for module in modules.values() for k, v in module.MEASURES.items()}
    shared = {"settings": settings, "material": material, "front": front}
    files = {
        "report.html": page(
            "report.html.j2",
            figures=True,
            **shared,
            sections=sections,
            theories=verdicts_chapter.theories_table(rows, settings.verdicts),
            judged=verdicts_chapter.rows_table(rows, material, words),
            overall=verdicts_chapter.overall(rows, settings.verdicts),
            summary=verdicts_chapter.summary(rows, settings.verdicts),
            glossary=_glossary(modules),
        ),
        "quality.html": page("quality.html.j2", figures=False, **shared, tables=expectations(material, held)),
        "report.json": _json(material, measures, rows, sections),
    }
    index = REPORT_INDEX.build(file=list(files), bytes=[len(content) for content in files.values()])
    return Produced({REPORT_INDEX.name: index}, files=files)


def _glossary(modules: Mapping[str, MethodSection]) -> dict[str, str]:
    own = {
        "reference group": "the group that the others are compared with",
        "interval": "the values that the rows of this audit do not speak against: of shares, their differences and "
        "ratios by score methods, of other means by drawing the rows again (bootstrap). Where nothing differs there "
        "is none (no spread)",
        "range": "in round brackets: between which values what was drawn lies. It is no interval",
        "p, q": "p: how often chance alone gives a comparison as extreme; q: the same after taking the number of "
        "comparisons into account (Benjamini-Hochberg)",
        "insufficient evidence": "too few people, no interval, or an interval that reaches over a limit; not a pass",
        "withheld": "not printed, because the number rests on few people or would give such a number away",
        "undefined": "the measure has no value here, for instance a mean over nobody",
        "refused row": "a row that a stage could not use, kept with its reason",
    }
    found = {term: words for module in modules.values() for term, words in module.GLOSSARY.items()}
    return dict(sorted((own | found).items(), key=lambda item: item[0].lower()))


def _json(
    material: Material, measures: pa.Table, rows: Sequence[Mapping[str, Any]], sections: Sequence[Section]
) -> bytes:
    """The same results for machines, and only what the pages may show."""
    s = material.settings
    said = s.model_dump(mode="json", exclude={"source": {"path", "vintage_file"}, "model": {"file": {"path"}}})
    content: dict[str, Any] = {
        "settings": said,
        "read": next((_read(row, material.policy) for row in material.source_read), None),
        "state": verdicts_chapter.overall(rows, s.verdicts),
        "theories": verdicts_chapter.published(rows),
        "warnings": [text for row in material.direction for text in warnings(row, s.decision)],
        "measures": {"columns": measures.column_names, "rows": [list(row.values()) for row in measures.to_pylist()]},
        "tables": {section.anchor: _tables(section) for section in sections},
        "facts": [dict(fact) for fact in material.facts],
    }
    return json.dumps(content, ensure_ascii=False, allow_nan=False).encode()


def _read(row: Mapping[str, Any], policy: Policy) -> dict[str, Any]:
    """What was read; rows are people, and counted as all that is published."""
    return {**told(row), "rows": None if 0 < row["rows"] < policy.smallest else rounded(policy, row["rows"])}


def _tables(section: Section) -> list[dict[str, Any]]:
    """A section's tables as printed."""
    mine = [
        {"title": t.title, "header": t.header, "rows": [[cell.whole for cell in row] for row in t.rows], "note": t.note}
        for t in section.tables
    ]
    return mine + [t for part in section.parts for t in _tables(part)]
