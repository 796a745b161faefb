"""What is said of groups that are withheld as a whole: whose they are and a way on, and not which of them is small."""

from typing import Any

import pytest

from flows.runs.disclosure import counted, withheld_groups

ROW = {
    "protected_attribute": "race",
    "part": 0,
    "decision_maker": "",
    "base": "source",
    "reason": "",
    "event": "",
    "fate": "shown",
}


def rows(**fates: str) -> list[dict[str, Any]]:
    return [ROW | {"group": group, "fate": fate} for group, fate in fates.items()]


def test_groups_that_are_withheld_are_named_with_a_way_on() -> None:
    [said] = withheld_groups(rows(Black="withheld_small", white="withheld_with", Asian="shown"), "strict")
    assert said.startswith("Withheld: Black, white: the profile `strict` withholds")
    assert said.endswith("For your own eyes: --set disclosure.profile=internal")
    [other] = withheld_groups(rows(Black="withheld_with", white="withheld_small"), "strict")
    assert other == said, "it is not told which is small"
    assert len(said) <= 240


@pytest.mark.parametrize("fields", [{"group": "All"}, {"part": 1}, {"base": "candidates"}, {"fate": "rounded"}])
def test_parts_and_roundings_are_no_withheld_group(fields: dict[str, Any]) -> None:
    assert withheld_groups([ROW | {"group": "Black", "fate": "withheld_small"} | fields], "strict") == []


def test_many_groups_are_counted() -> None:
    many = rows(**{f"group {i}": "withheld_small" for i in range(9)})
    assert withheld_groups(many, "public")[0].startswith("Withheld: group 0, group 1, group 2 and 6 more: ")
    assert counted(many) == "9 of 9 populations withheld"
