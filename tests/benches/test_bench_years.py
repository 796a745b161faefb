"""The simulations of monitoring print every figure of the page, the same for the same number of series."""

from benches.years import BENCH


def test_the_same_series_give_the_same_figures_beside_their_targets() -> None:
    rows = BENCH.run(reps=40)
    assert rows == BENCH.run(reps=40)
    ratios = {(row["data"], row["what"]): row["ratio"] for row in rows}
    assert len(ratios) == len(rows)
    assert (
        ratios["honest lender at its limit", "each year alone"]
        > ratios["honest lender at its limit", "confidence sequence"]
    )
    wide, narrow = (ratios[f"group of {n}", "smallest change found in 80 %"] for n in ("200", "20,000"))
    assert wide > 3 * narrow > 0
    assert {row["target"] for row in rows if row["what"].startswith("false alarms, last")} == {"at most 0.06"}
