"""The power that is printed from one table, against new lenders of the same law: a small form at fixed seeds."""

import numpy as np
import pytest

from research.bench.lenders import SHAPES, Shape, equal_files
from research.bench.power import ATTRIBUTE, BENCH, LAWS, NEAR, Law, judge_of, printed, simulated
from schemas.tables.readings import WRITTEN_BY_ADJUST
from tasks.methods.adjusted.adjust.examination import tables_of
from tasks.methods.adjusted.adjust.power import rows_of_part
from tasks.methods.adjusted.adjust.rows import table_of
from tasks.methods.adjusted.algorithm.examined import examine
from tasks.metrics.readings import facts_of, seen_in_part

SMALL = 60
ERROR = 2.33 * (0.5 / SMALL) ** 0.5
"""The 1 % point of the difference of two shares of so many, at its widest."""


@pytest.mark.parametrize(
    "law",
    [
        pytest.param(LAWS[0], marks=pytest.mark.long, id="equal"),
        pytest.param(LAWS[3], marks=pytest.mark.slow, id="unlike officers"),
    ],
)
def test_printed_power_is_that_of_new_lenders(law: Law) -> None:
    shares, truth = (make(law, SMALL, 3, 2500) for make in (printed, simulated))
    assert all(abs(share - true) <= NEAR + ERROR for share, true in zip(shares, truth, strict=True))
    assert shares[0] <= 0.10
    assert shares == sorted(shares)  # more harm on the same copies is seen more often


def test_the_same_seed_gives_the_same_shares_and_more_copies_only_add() -> None:
    law = Law(next(shape for shape in SHAPES if shape.name == "honest"), (0.10, 0.30))
    assert printed(law, 3, 5, 400) == printed(law, 3, 5, 400)
    assert printed(law, 6, 5, 1200)[-1] > 0.5


def test_the_bench_has_a_row_for_each_size_of_harm() -> None:
    assert "--reps" in BENCH.options
    rows = BENCH.run(rows=300, reps=1)
    assert [row["data"] for row in rows] == [law.shape.name for law in LAWS for _ in (0.0, *law.points)]
    assert all(row["found"].startswith("printed") for row in rows)


@pytest.mark.slow
def test_harm_of_the_told_size_in_a_part_of_200_is_seen_in_four_of_five() -> None:
    judge = judge_of(equal_files(np.random.default_rng([9, 1]), 8000).files)
    examination = judge.examinations[ATTRIBUTE]
    results = examine(examination.files, examination.rules, examination.rng())
    rows = tables_of(examination.identity, examination.files, results, None, 0.02)
    (facts,) = facts_of({table.name: table_of(table, rows[table.name]) for table in WRITTEN_BY_ADJUST}).values()
    seen = seen_in_part(facts, judge.verdicts)
    assert seen is not None
    assert seen.n == 200
    law = Law(Shape("equal", 8000, equal_files, ()), (seen.points,), part="purpose: cash")
    members = (examination.files.group == 1) & rows_of_part(examination.files, law.part)
    assert abs(members.sum() - 200) < 30
    assert 0.6 <= printed(law, SMALL, 9)[-1] <= 0.95
