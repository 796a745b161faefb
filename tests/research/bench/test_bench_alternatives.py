"""The bench of alternatives in its small form: what is true of a lender, and its interval."""

import pytest

from research.bench.alternatives import covered


@pytest.mark.slow
def test_a_gain_looks_better_where_it_was_chosen_and_its_interval_holds_the_truth() -> None:
    outcomes = [outcome for seed in range(6) if (outcome := covered(seed, rows=2_000, candidates=20)) is not None]
    assert len(outcomes) >= 4
    assert sum(inside for inside, _, _ in outcomes) >= len(outcomes) - 1
    assert sum(above for _, above, _ in outcomes) <= 1
