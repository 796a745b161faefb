"""Rows for each setting of each group: which of many are kept, and what stands for a parameter that a measure lacks."""

import json
from collections.abc import Mapping

from tasks.reporting.declared import Block, Declared
from tasks.reporting.evidence_tables import BySettingOfGroup
from tasks.reporting.material import Measure, View
from tasks.reporting.text import TableView

SAID = Declared.model_validate(
    {
        "title": "Ranks",
        "short": "Ranks",
        "question": "Who stands where?",
        "page": "path-to-approval",
        "method": ["By cost."],
        "measures": {"cost": {"words": "cost", "unit": "number", "meaning": "Mean cost."}},
        "values": {"order": "as found", "list": "rank by rank"},
        "cannot": ["Much."],
        "evidence": [{"title": "Costs", "along": ["order"], "columns": [{"measure": "cost"}]}],
    }
)


def measure(group: str, value: float, **parameters: float | str) -> Measure:
    said = json.dumps(parameters)
    whose = ("example", 1990, "ranks", "model", "race", group, None, 0)
    return Measure(*whose, "cost", said, value, None, None, 40, None, None, None, "information", "")


def table(*rows: Measure, most: int = 25, along: str = "order") -> TableView:
    block: Mapping[str, object] = {**SAID.evidence[0].model_dump(), "along": (along,)}
    found = BySettingOfGroup(Block.model_validate(block), SAID, View(rows, "model", "race", "white")).table(
        "Costs", "r"
    )
    assert found is not None
    return found.view(most)


def test_a_missing_parameter_has_the_words_of_its_name() -> None:
    shown = table(measure("white", 2.0), measure("white", 1.0, order="list"), measure("white", 3.0, order="any"))
    assert shown.header == ("Group", "Order", "n", "Cost")
    assert [tuple(cell.text for cell in row) for row in shown.rows] == [
        ("white (reference)", "as found", "40", "2"),
        ("white (reference)", "rank by rank", "40", "1"),
        ("white (reference)", "any", "40", "3"),
    ]


def test_of_many_names_those_with_the_largest_values_are_kept_in_their_order() -> None:
    rows = [measure(group, float(i % 7), order=f"o{i:02}") for group in ("white", "Black") for i in range(20)]
    kept = [(row[0].text, row[1].text) for row in table(*rows, most=6).rows]
    assert kept == [(group, name) for group in ("white (reference)", "Black") for name in ("o05", "o06", "o13")]


def test_of_many_numbers_few_at_equal_distances_are_kept() -> None:
    rows = [measure("white", 9.0 - i, rank=float(i)) for i in range(9)]
    assert [row[1].text for row in table(*rows, most=3, along="rank").rows] == ["0", "4", "8"]
