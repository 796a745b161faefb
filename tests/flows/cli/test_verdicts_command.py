"""What `evenhand verdicts` says of groups that are withheld: which they are, and a way on."""

import pytest

from flows.cli.results import way_on


@pytest.mark.parametrize(
    ("groups", "named"),
    [([], None), (["Black"], "Black"), (["Black", "white", "Black"], "Black, white"), (list("abcd"), "4 groups")],
)
def test_withheld_groups_have_a_way_on(groups: list[str], named: str | None) -> None:
    rows = [{"group": "shown", "withheld": False}, *({"group": group, "withheld": True} for group in groups)]
    said = way_on(rows)
    assert [sentence.split(":")[0] for sentence in said] == ([] if named is None else [named])
    assert all(sentence.endswith("--set disclosure.profile=internal") for sentence in said)
