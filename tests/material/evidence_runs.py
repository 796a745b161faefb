"""Runs for evidence pages, made by hand: rows of measures, a declaration, and the material of both."""

import json
from dataclasses import dataclass
from pathlib import Path

from conftest import SPEC, spec_of

from tasks.reporting.declared import Declared
from tasks.reporting.material import Material, Measure, ReportSettings

REFERENCE = "white"
ATTRIBUTE = """  - name: NAME
    columns: [race]
    groups: {white: [w], Black: [b]}
    reference: white
"""
WORDS = {"words": "share", "unit": "rate", "meaning": "Share of a group."}


def row(group, measure, value, *, at=None, low=None, high=None, n=100, maker="lender", attribute="race", **more):
    """A row of measures of the method ``outcomes``."""
    told = {"subgroup": 0, "events": None, "p": None, "q": None, "state": "no_limit", "reason": "", "note": ""} | more
    compared = any(measure.endswith(form) for form in ("_difference", "_ratio"))
    told.setdefault("reference_group", REFERENCE if compared else None)
    return Measure(
        dataset="example",
        year=1990,
        method=told.pop("method", "outcomes"),
        decision_maker=maker,
        protected_attribute=attribute,
        group=group,
        measure=measure,
        parameters=json.dumps(at or {}, sort_keys=True),
        value=value,
        low=low,
        high=high,
        n=n,
        **told,
    )


def settings(attributes=("race",)):
    """Settings of a report with these protected attributes."""
    protected = SPEC[SPEC.index("  - name: race") : SPEC.index("columns:\n")]
    text = SPEC.replace(protected, "".join(ATTRIBUTE.replace("NAME", each) for each in attributes))
    made = spec_of(Path("/nowhere"), text)
    return ReportSettings.of(
        made,
        run="loans-1",
        run_day="2026-11-27",
        source_sha256="0",
        code="0",
        effective_spec="name: loans\n",
        version="0.1",
    )


def material(rows, attributes=("race",), **tables):
    """The material of a page."""
    return Material(settings(attributes), tuple(rows), tables)


def declaration(*blocks, **more):
    """A declaration with these blocks; measures that it does not name are shares."""
    found = {"title": "Example", "short": "E", "question": "Is it so?", "page": "approval-rates"}
    found |= {"method": ["It looks."], "cannot": ["Why."]}
    names = {name for block in blocks for name in _names(block)}
    measures = dict.fromkeys(sorted(names), WORDS) | more.pop("measures", {})
    return Declared.model_validate({**found, "measures": measures, "evidence": list(blocks), **more})


def _names(block):
    return [column["measure"] for column in block.get("columns", ())] + [
        block[key] for key in ("measure",) if key in block
    ]


@dataclass(frozen=True)
class Words:
    """The words of a table, cell by cell."""

    header: tuple
    rows: list
    note: str

    @classmethod
    def of(cls, table):
        """A table as printed, with plain spaces and minus signs."""
        plain = str.maketrans({"\N{NO-BREAK SPACE}": " ", "\N{MINUS SIGN}": "-"})
        return cls(table.header, [[cell.whole.translate(plain) for cell in row] for row in table.rows], table.note)
