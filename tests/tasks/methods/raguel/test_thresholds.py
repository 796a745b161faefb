"""Thresholds by group decide as those that fairlearn chooses when it looks at every score."""

import numpy as np
import pytest
from fairlearn.postprocessing import ThresholdOptimizer

from tasks.methods.raguel.algorithm.lists import Constraint, Scores, decided


@pytest.mark.parametrize("constraint", ["demographic_parity", "equalized_odds"])
@pytest.mark.parametrize("digits", [2, 12])
def test_scores_that_count_for_one_leave_the_decisions_of_all(constraint: Constraint, digits: int) -> None:
    rng = np.random.default_rng(5)
    group = rng.choice(3, 2_000, p=[0.7, 0.2, 0.1]).astype(np.int32)
    index = rng.normal(size=2_000) + 0.3 * group
    scores, label = np.round(1 / (1 + np.exp(-index)), digits), rng.random(2_000) < 1 / (1 + np.exp(-0.7 * index))
    every = ThresholdOptimizer(estimator=Scores(), constraints=constraint, prefit=True, predict_method="predict_proba")
    every.fit(scores[:, None], label.astype(np.int64), sensitive_features=group)
    theirs = every.predict(scores[:, None], sensitive_features=group, random_state=1) > 0
    ours = decided(scores, label, group, constraint, 1)
    assert 0.1 < ours.mean() < 0.95
    assert np.mean(ours != theirs) <= 0.002, "of several best mixtures another may be drawn from"
    assert (ours == label).mean() == pytest.approx((theirs == label).mean(), abs=0.002)
