"""Calibration of samples on Texas 2022: 200 draws of 2,000 complainants from 20,000 rows cover what all of them say."""

import numpy as np
import pytest
from conftest import SHARED

from research.cst.bench import texas
from research.figures import TEXAS_FILE


@pytest.mark.data(str(TEXAS_FILE))
@pytest.mark.long
def test_samples_of_texas_cover_the_effect_and_the_share():
    """Groups together within 93 to 97 %; one group within three errors of a simulation of 200 draws."""
    found = list(texas(SHARED))
    for measure in ("st_effect", "share_detected"):
        own = {name: each for name, each in found if each.measure == measure}
        assert {"Black", "Asian", "female"} <= set(own)
        assert 0.93 <= np.mean([each.share for each in own.values()]) <= 0.97, own
        assert all(0.90 <= each.share <= 0.99 for each in own.values()), own
        assert all(each.spread == pytest.approx(each.error, rel=0.15) for each in own.values()), own
