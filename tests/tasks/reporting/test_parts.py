"""Parts of a group: their sizes are measured of parts alone, and still have a column."""

from tasks.reporting.declared import Block, Shown, declared
from tasks.reporting.evidence_tables import ByGroup
from tasks.reporting.material import Measure, View

SIZES = {"component_nodes": 30.0, "component_candidates": 20.0}


def measured(measure: str, value: float, part: int, group: str = "Black") -> Measure:
    identity = ("loans", 2024, "fgce", "lender", "race", group, None, part, measure, "{}")
    return Measure(*identity, value, None, None, 50, None, None, None, "information", "")


def test_sizes_of_parts_have_columns_and_whole_groups_have_none() -> None:
    rows = [measured(name, value, 1) for name, value in SIZES.items()]
    rows += [measured("infeasible_share", 0.2, part) for part in (0, 1)]
    block = Block(title="Parts", parts=True, columns=tuple(Shown(measure=m) for m in ("infeasible_share", *SIZES)))
    view = View(tuple(rows), "lender", "race", "white", ("white", "Black"))
    table = ByGroup(block, declared("fgce"), view).table("Parts", "run")
    assert table is not None
    cells = [[each.cell.text for each in line.cells] for line in table.lines]
    assert [row[0] for row in cells] == ["Black", "Black, part 1"]
    assert cells[0][3:] == ["–", "–"]
    assert cells[1][3:] == ["30", "20"]
