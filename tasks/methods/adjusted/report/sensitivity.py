"""What an unseen column could do: the sentence, the controls beside the robustness value, and benchmarks."""

from collections.abc import Iterator, Mapping
from typing import Any

from tasks.methods.adjusted.report.charts import robustness
from tasks.methods.adjusted.report.lookups import Ladder
from tasks.methods.adjusted.report.words import sentence
from tasks.reporting.charts.panels import Rows, by_group, told
from tasks.reporting.charts.vega import ACCENT, WARM
from tasks.reporting.numbers import percent, points, significant
from tasks.reporting.section import Cell, Figure, Panel, Swatch, TableView

LINEAR = ("lpm", "all")
OF_DENIAL, OF_GROUP = "of denial", "of group membership"
_KINDS = {
    OF_DENIAL: Swatch("share of what is left of denial", ACCENT, shape="circle"),
    OF_GROUP: Swatch("share of what is left of group membership", WARM, shape="diamond"),
}
_MOST = 12
"""Controls drawn in one panel, the strongest first."""
GLOSSARY = {
    "robustness value": "the share of what is left of denial and of group membership that an unseen column would have "
    "to explain, to bring an adjusted difference to zero",
    "E-value": "the risk ratio that an unseen column needs with group and with denial to explain a difference away",
}


def readings(found: Ladder) -> Iterator[str]:
    """The sentence of every group."""
    for group in found.others:
        row = found.estimate(group, found.primary, LINEAR)
        if row is not None and row["rv"] is not None:
            name = row["strongest"] or ""
            one = _controls(found, group).get(name, {})
            explained = one.get("column_of_denial"), one.get("column_of_group")
            yield f"{group}: {sentence(row['rv'], name and found.view.label(name), *explained)}"


def _controls(found: Ladder, group: str) -> dict[str, Mapping[str, Any]]:
    """Controls by name with what they explain themselves, the strongest with denial first."""
    rows = [row for row in found.benchmarks if row["group"] == group and row["column_of_denial"] is not None]
    return {row["column"]: row for row in sorted(rows, key=lambda row: -row["column_of_denial"])}


def figures(found: Ladder) -> tuple[Figure, ...]:
    """A panel for each group: its controls beside what would be needed."""

    def draw(group: str, rows: Rows, _: Rows) -> Panel:
        order = list(dict.fromkeys(row["row"] for row in rows))
        label = f"What controls explain beside the robustness value of {group}. {told(rows, 'row', 'what')}"
        return robustness(group, label, rows, order, _KINDS)

    caption = (
        "Marks: what each control explains of what is left of denial and of membership of the group. Dashed line: the "
        "robustness value, which an unseen column would have to reach with both to bring the difference to zero."
    )
    return (
        by_group("An unseen column", found.others, lambda group: _rows(found, group), draw, caption, _KINDS.values()),
    )


def _rows(found: Ladder, group: str) -> Iterator[dict[str, Any]]:
    own = found.estimate(group, found.primary, LINEAR)
    if own is None or own["rv"] is None:
        return
    for name, row in list(_controls(found, group).items())[:_MOST]:
        for what, field in ((OF_DENIAL, "column_of_denial"), (OF_GROUP, "column_of_group")):
            shown = percent(row[field])
            yield {"row": found.view.label(name), "what": what, "value": row[field], "need": own["rv"], "shown": shown}


def tables(found: Ladder) -> tuple[TableView, ...]:
    """Robustness values by rung, and the benchmarks of the judged rung."""
    return _robustness(found), _benchmarks(found)


def _robustness(found: Ladder) -> TableView:
    rows = []
    for row in found.effects:
        if (row["estimator"], row["average_over"]) == LINEAR and row["rv"] is not None:
            logit = found.estimate(row["group"], row["rung"], ("logit", "own")) or {}
            rows.append(
                (
                    Cell(row["group"]),
                    Cell(found.rungs[row["rung"]]),
                    found.cell(row),
                    Cell(percent(row["rv"]), "number"),
                    _share(row["rv_alpha"]),
                    _ratio(logit.get("e_value")),
                    _ratio(logit.get("e_value_near")),
                    Cell(found.view.label(row["strongest"]) if row["strongest"] else "–"),
                    _points(row["adjusted_by_strongest"]),
                )
            )
    header = (
        *("Group", "Adjusted for", "Linear difference", "Robustness value", "Of its interval"),
        *("E-value", "E-value of its interval", "Strongest control", "Beside one as strong"),
    )
    note = (
        "Robustness value: what an unseen column has to explain of what is left of denial and of membership to bring "
        "the linear difference to zero; of its interval: to bring the interval's end to zero. E-value: of the logit; "
        "of its interval: of the end nearest to zero, 1 where the interval holds zero. "
        "A score that lenders see and these data lack may be stronger than any control."
    )
    return TableView("How strong an unseen column has to be", header, tuple(rows), note)


def _benchmarks(found: Ladder) -> TableView:
    rows = tuple(
        (
            Cell(row["group"]),
            Cell(found.view.label(row["column"])),
            Cell(str(row["times"]), "number"),
            _share(row["of_denial"]),
            _share(row["of_group"]),
            Cell("not possible", "none") if row["value"] is None else found.cell({**row, "reason": ""}),
        )
        for row in found.benchmarks
    )
    header = ("Group", "Control", "Times as strong", "Of denial", "Of membership", "Difference beside it")
    note = (
        "Of denial, of membership: bounds on what an unseen column so strong explains; they are above what the control "
        "itself explains. Not possible: it would explain more than all of the membership (Cinelli and Hazlett 2020)."
    )
    return TableView("Beside unseen columns as strong as the controls", header, rows, note, folded=True)


def _share(value: float | None) -> Cell:
    return Cell("–", "none") if value is None else Cell(percent(value), "number")


def _ratio(value: float | None) -> Cell:
    return Cell("–", "none") if value is None else Cell(significant(value), "number")


def _points(value: float | None) -> Cell:
    return Cell("–", "none") if value is None else Cell(points(value), "number")
