"""A published run by hand, for files that are made of it: groups, attributes and names as asked for."""

from collections.abc import Sequence
from typing import Any

from schemas.tables.applications import VALIDATIONS
from schemas.tables.verdicts import PUBLISHED_SOURCE_READ, PUBLISHED_VERDICTS, PUBLISHED_WATERFALL, VERDICTS, published
from schemas.terms import State, Theory
from tasks.pipeline.registry import validated
from tasks.reporting.material import Material, Measure, ReportSettings
from tasks.reporting.stage import READ

REFERENCE = "white"
HOSTILE = ("=HYPERLINK(1)", "+1", "-x", "@y", "\ttab", "\rreturn", "<script>alert(1)</script>", "bell\x07")


def settings(attributes: Sequence[str] = ("race",)) -> ReportSettings:
    """Of an audit of these protected attributes."""
    from conftest import SPEC
    from yaml import safe_load

    from schemas.audit.spec import AuditSpec

    raw = safe_load(SPEC)
    raw["methods"], raw["causal_graph"] = {}, {}
    raw["protected"] = [{"name": name, "columns": [name], "reference": REFERENCE} for name in attributes]
    said = {"run": "loans-2024-0123456789", "run_day": "2026-11-27", "source_sha256": "ab" * 32, "code": "cd" * 32}
    return ReportSettings.of(validated(AuditSpec, raw), **said, effective_spec="", version="0.1")


def material(
    groups: Sequence[str] = ("Black", "Asian"), attributes: Sequence[str] = ("race",), withheld: Sequence[str] = ()
) -> Material:
    """A reference group and others by each attribute; the numbers of groups that are ``withheld`` are null."""
    named = [(attribute, group) for attribute in attributes for group in (REFERENCE, *groups)]
    measures = tuple(_rate(attribute, group, i, group in withheld) for i, (attribute, group) in enumerate(named))
    judged = [each for each in named if each[1] != REFERENCE]
    wholes = [_verdict(theory, "", "", role="theory") for theory in Theory]
    each = [_verdict(theory, *key, withheld=key[1] in withheld) for theory in Theory for key in judged]
    tables: dict[str, tuple[dict[str, Any], ...]] = {
        **{table.name: () for table in READ},
        PUBLISHED_VERDICTS.name: tuple(wholes + each),
        PUBLISHED_SOURCE_READ.name: ({"source": "loans.csv", "sha256": "ab" * 32, "rows": 500, "year": None},),
        published(VALIDATIONS).name: tuple(_check(i) for i in range(3)),
        PUBLISHED_WATERFALL.name: (_fall(0, "source", 500), _fall(1, "used", None)),
    }
    return Material(settings(attributes), measures, tables)


def _rate(attribute: str, group: str, i: int, withheld: bool) -> Measure:
    numbers = dict.fromkeys(("value", "low", "high", "n", "events")) if withheld else {
        "value": 0.675 + i / 1000, "low": 0.6, "high": 0.75, "n": 1200 - i, "events": 810
    }  # fmt: skip
    return Measure(
        "loans", 2024, "outcomes", "lender", attribute, group, None, 0, "approval_rate", "{}", **numbers,
        p=None, q=None, state="no_limit", reason="",
    )  # fmt: skip


def _verdict(
    theory: Theory, attribute: str, group: str, role: str = "primary", withheld: bool = False
) -> dict[str, Any]:
    numbers = {"value": 0.126, "low": 0.061, "high": 0.182, "plain_low": 0.06, "plain_high": 0.19, "limit": 0.02}
    known = {} if withheld or role == "theory" else {**numbers, "side": "at_most", "n": 197, "scale": "linear"}
    own = {
        "theory": theory.value, "protected_attribute": attribute, "group": group, "role": role,
        "decision_maker": "lender", "method": "adjusted", "measure": "adjusted_effect",
        "state": State.OUTSIDE.value, "reason": "beyond the limit", "assumption": "none", "withheld": withheld,
    }  # fmt: skip
    return {column.name: (known | own).get(column.name) for column in VERDICTS.columns}


def _check(i: int) -> dict[str, Any]:
    told = {"stage": "ingest", "table": "applications", "expectation": "expect_column_values_to_not_be_null"}
    counts = {"elements": 500, "unexpected": 12 * (i == 2), "success": i != 2, "quarantined": i == 2}
    return {**told, "column": f"c{i}", "expected": "{}", "severity": "critical", **counts}


def _fall(line: int, kind: str, n: int | None) -> dict[str, Any]:
    own = {"protected_attribute": "race", "line": line, "kind": kind, "group": "All", "n": n, "withheld": n is None}
    return {**dict.fromkeys(column.name for column in PUBLISHED_WATERFALL.columns), **own}
