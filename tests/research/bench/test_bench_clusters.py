from research.bench.clusters import MEASURES, Office, lines_of

REPS, ROWS = 10, 800


def test_with_few_officers_who_differ_what_is_judged_covers_and_rows_alone_do_not() -> None:
    rows = {row["what"]: row for row in lines_of(Office(8, crowded=True), REPS, ROWS)}
    assert list(rows) == list(MEASURES)
    assert {row["met"] for row in rows.values()} == {"met"}
    by_rows = float(rows["st_effect"]["found"].split("by rows: ")[1].split(";")[0])
    assert by_rows < 0.7
    assert rows["st_effect"]["ratio"] >= 1 - 1 / REPS
