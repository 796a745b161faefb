"""Sizes of intervals where rows of an officer hang together, at fixed seeds."""

from research.bench.clusters import ESTIMATES, JUDGED, Office, lines_of

REPS, ROWS = 10, 800


def test_with_few_officers_who_differ_what_is_judged_holds_its_size_and_rows_alone_do_not() -> None:
    rows = {row["what"]: row for row in lines_of(Office(8, crowded=True), REPS, ROWS)}
    assert set(rows) == set(ESTIMATES)
    assert {name: rows[name]["met"] for name in JUDGED} == dict.fromkeys(JUDGED, "met")
    assert rows["situations by rows"]["ratio"] > 0.3
    assert rows["situations by clusters"]["ratio"] <= 1 / REPS
    assert rows["situations by rows"]["target"] is None
