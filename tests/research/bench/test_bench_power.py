"""The power that is printed from one table, against new lenders of the same law: a small form at fixed seeds."""

import pytest

from research.bench.power import BENCH, LAWS, NEAR, Law, printed, simulated
from research.bench.lenders import SHAPES

SMALL = 60
ERROR = 2.33 * (0.5 / SMALL) ** 0.5
"""The 1 % point of the difference of two shares of so many, at its widest."""


@pytest.mark.slow
@pytest.mark.parametrize("law", [LAWS[0], LAWS[3]], ids=["equal", "unlike officers"])
def test_printed_power_is_that_of_new_lenders(law: Law) -> None:
    shares, truth = (make(law, SMALL, 3, 2500) for make in (printed, simulated))
    assert all(abs(share - true) <= NEAR + ERROR for share, true in zip(shares, truth, strict=True))
    assert shares[0] <= 0.10
    assert shares == sorted(shares)  # more harm on the same copies is seen more often


def test_the_same_seed_gives_the_same_shares_and_more_copies_only_add() -> None:
    law = Law(SHAPES[-1], (0.10, 0.30))
    assert printed(law, 3, 5, 400) == printed(law, 3, 5, 400)
    assert printed(law, 6, 5, 1200)[-1] > 0.5


def test_the_bench_has_a_row_for_each_size_of_harm() -> None:
    assert "--reps" in BENCH.options
    rows = BENCH.run(rows=300, reps=1)
    assert [row["data"] for row in rows] == [law.shape.name for law in LAWS for _ in (0.0, *law.points)]
    assert all(row["found"].startswith("printed") for row in rows)
