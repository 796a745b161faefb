"""The limits that the spec itself sets: of whom each is, what was measured, and its state; those outside first."""

from schemas.tables.verdicts import QUESTIONS, STATES
from schemas.terms import Theory
from tasks.reporting.chapters.decide.facts import Row, Run
from tasks.reporting.chapters.decide.groups import WORST, Groups
from tasks.reporting.charts.numbers import WITHHELD
from tasks.reporting.declared import names
from tasks.reporting.material import Material, capital
from tasks.reporting.numbers import covers, significant, state_cell
from tasks.reporting.section import Cell, Section, TableView

MOST_ROWS = 25
HEADER = ("Group", "Measure", "Whose decisions", "Value", "Interval", "Limit", "State")
SIDES = {"at_least": "at least", "at_most": "at most"}
REST = "The first {n} of {of} limits; report.json and the table of verdicts have all of them."


def own_limits(material: Material, run: Run) -> Section | None:
    """A row a limit and group, in the unit of the measure; None where the spec sets none."""
    rows = [row for row in run.rows if row.theory is Theory.OWN and row.role != "theory"]
    if not rows:
        return None
    groups = Groups(run)
    ordered = sorted(rows, key=lambda row: (row.withheld, WORST.index(row.state)))
    cells = tuple(_cells(row, groups, material) for row in ordered[:MOST_ROWS])
    rest = REST.format(n=MOST_ROWS, of=len(rows)) if len(rows) > MOST_ROWS else ""
    title = QUESTIONS[Theory.OWN]
    return Section(title, "own", tables=(TableView(title, HEADER, cells, whole=len(rows), rest=rest),))


def _cells(row: Row, groups: Groups, material: Material) -> tuple[Cell, ...]:
    measure, _, parameters = row.measure.partition(" ")
    name = capital(names(measure)[0])
    limit = "–" if row.limit is None else f"{SIDES.get(row.side or '', '')} {significant(row.limit)}".strip()
    value = WITHHELD if row.withheld else "not computed" if row.value is None else significant(row.value)
    ends = f"[{', '.join(map(significant, row.ends))}]" if row.ends and covers(measure) else ""
    return (
        Cell(groups.label(row.key) if row.key in groups.order else row.group),
        Cell(f"{name} {parameters}".strip()),
        Cell(material.whose(row.decision_maker)),
        Cell(value, "number" if row.value is not None else "none"),
        Cell(ends or "–", "number" if ends else "none"),
        Cell(limit),
        state_cell(row.state) if not row.withheld else Cell(f"{STATES[row.state]} ({WITHHELD})", "state", row.state),
    )
