"""Whether missing values tell the decision: approval of those who lack a value, and how far missingness alone goes.

Counts come from a restricted table, and rows that lack one feature overlap with those that lack another. So a row is
withheld where its own count is small, where the difference from a count of the waterfall would be, and where the
waterfall withholds the line of the same feature.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from schemas.tables.missingness import ANY
from schemas.terms import Refusal
from tasks.metrics.algorithm.disclosure import Policy, small
from tasks.preprocessing.algorithm.missingness_tests import beyond_chance
from tasks.reporting.chapters.waterfall import Waterfall, count_cell, rate_cell, withheld_lines
from tasks.reporting.material import Material, listed
from tasks.reporting.numbers import significant
from tasks.reporting.section import Cell, Notice, Row, Section, TableView

TOO_GOOD = 0.98
"""AUC from which on a model of lending decisions is not believed."""
_TELLING = 0.02
"""An AUC of missingness nearer to 0.5 than this tells nothing of note, however many applications there are."""
_REASONS = {Refusal.MISSING_COVARIATE: "missing", Refusal.EXEMPT_COVARIATE: "exempt", ANY: "either"}
Lack = Mapping[str, Any]
"""A row of the table of missing values."""


def chapter(material: Material, falls: tuple[Waterfall, ...]) -> Section:
    """What missingness tells of the decisions, feature by feature."""
    rows = tuple(_row(material, lack, _hidden(material, lack, falls)) for lack in _ordered(material))
    header = ("Feature", "Why", "Applications", "Approved, of those who lack it", "Approved, of those who have it")
    note = (
        "Of all applications whose decision could be read, refused ones included. Exempt: missing in an application "
        "that is exempt from reporting a value. An application may lack several. A count is withheld where it is "
        "small or would, beside the waterfall, give a small one away."
    )
    table = TableView("The lender's approval rate by what is missing", header, rows if len(rows) > 1 else (), note)
    title = "Missing values: do they tell the decision?"
    return Section(
        title, "missing", (_said(material, falls), *_dealt_with(material)), notices=_notices(material), tables=(table,)
    )


def limits(material: Material, falls: tuple[Waterfall, ...]) -> Iterator[str]:
    """What a reader has to know first: how much missingness tells, and whether a model knows too much."""
    if any(lack["missing"] for lack in material.missingness):
        yield _said(material, falls)
    yield from (notice.text for notice in _notices(material))


def _ordered(material: Material) -> list[Lack]:
    """Those features first that most applications lack, and those who lack any last."""
    return sorted(material.missingness, key=lambda lack: (lack["reason"] == ANY, -lack["missing"], lack["feature"]))


def _row(material: Material, lack: Lack, hidden: bool) -> Row:
    policy, feature = material.policy, lack["feature"]
    column = material.settings.columns.get(feature)
    name = "Any feature" if lack["reason"] == ANY else (column.label if column else "") or feature
    n, events, others, approved = (
        int(lack[key]) for key in ("missing", "favourable_missing", "present", "favourable_present")
    )
    cells = (
        count_cell(n, policy, hidden),
        rate_cell(n, events, policy, hidden),
        rate_cell(others, approved, policy, hidden),
    )
    return (Cell(name), Cell(_REASONS[lack["reason"]]), *cells)


def _hidden(material: Material, lack: Lack, falls: tuple[Waterfall, ...]) -> bool:
    """Whether the counts of a row, or what could be had from them and the waterfall, have to be withheld."""
    policy, lines = material.policy, {line for fall in falls[:1] for line in withheld_lines(fall, material.policy)}
    mine = {line for line in lines if line[0] == "preprocess"}
    if _is_small(policy, lack, "missing") or _is_small(policy, lack, "present"):
        return True
    if lack["reason"] == ANY:
        return bool(mine)
    return bool(mine & {("preprocess", lack["reason"], lack["feature"])}) or any(
        small(policy, n, events)
        for n, events in (_of_others(material, lack), (lack["elsewhere"], lack["favourable_elsewhere"]))
    )


def _is_small(policy: Policy, lack: Lack, what: str) -> bool:
    return small(policy, int(lack[what]), int(lack[f"favourable_{what}"]))


def _of_others(material: Material, lack: Lack) -> tuple[int, int]:
    """Applications refused for the same reason that have this feature, and their favourable decisions."""
    same = [each for each in material.missingness if each["reason"] == lack["reason"]]
    refused, approved = (
        sum(int(each[f"{kind}missing"]) - int(each[f"{kind}elsewhere"]) for each in same)
        for kind in ("", "favourable_")
    )
    return refused - int(lack["missing"]), approved - int(lack["favourable_missing"])


def _said(material: Material, falls: tuple[Waterfall, ...]) -> str:
    """How much of the decision can be told from missingness alone."""
    whole = next((lack for lack in material.missingness if lack["reason"] == ANY), None)
    if whole is None or not whole["missing"]:
        return "No application lacks a feature, so that nothing of the decision can be told from what is missing."
    if _hidden(material, whole, falls):
        return "What missing values tell of the decision is withheld: too few applications lack any, or nearly none."
    minimum = material.settings.bootstrap.minimum_n
    if whole["missing"] < minimum or whole["auc"] is None:
        return (
            f"Fewer than {minimum} applications lack a feature, or too few were decided on either way: whether missing "
            "values tell the decision cannot be said."
        )
    said = (
        f"From nothing but which values are missing the lender's decision can be ranked with an AUC of "
        f"{significant(whole['auc'])} (0.5: not at all; cross-validated logistic regression on a flag for each "
        "feature)."
    )
    approved = whole["favourable_missing"] + whole["favourable_present"]
    denied = whole["missing"] + whole["present"] - approved
    if abs(whole["auc"] - 0.5) < _TELLING or not beyond_chance(whole["auc"], approved, denied):
        return (
            f"{said} That is no more than chance gives, which does not rule out that missing values leak the decision."
        )
    return f"{said} Missing values leak the decision: whatever is made of them, a model could read it off them."


def _dealt_with(material: Material) -> Iterator[str]:
    """What this run did with missing values, and what it cannot mend thereby."""
    if not any(lack["missing"] for lack in material.missingness):
        return
    yield {
        "exclude": "Applications that lack a feature were refused, so that no model sees what is missing. That selects "
        "on the decision where missingness tells it: the results hold for complete applications.",
        "impute": "Missing values were filled in. A model may then read the decision off the values that were filled "
        "in; this run is a sensitivity analysis, to be held against one that refuses such applications.",
    }[material.settings.missing]


def _notices(material: Material) -> tuple[Notice, ...]:
    """A warning where a model that was fitted here follows the decisions better than is to be believed."""
    if material.settings.model.kind == "rule":
        return ()
    least = material.settings.bootstrap.minimum_n
    aucs = [m for m in material.metrics if m["metric"] == "auc" and m["n"] >= least]
    largest = {m["protected_attribute"]: m for m in sorted(aucs, key=lambda m: m["n"])}.values()
    known = [m for m in largest if m["value"] is not None and m["value"] >= TOO_GOOD]
    found = [f"{m['group']} ({m['protected_attribute']})" for m in known]
    text = (
        f"The model's AUC is {TOO_GOOD:g} or more for the largest group: {listed(found)}. Lending decisions are hardly "
        "ever told so well from an application: look for a feature that is known only after the decision, or filled in "
        "because of it, before believing anything that is said of this model."
    )
    return (Notice("The model knows too much", text),) if found else ()
