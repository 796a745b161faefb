"""Rows of a regression with groups, clusters and levels, and their splits into batches."""

from itertools import pairwise

import numpy as np
from hypothesis import strategies as st

from tasks.methods.adjusted.algorithm.streamed import Batch

GROUPS = (1, 2)
ROWS = 600


def drawn(seed=0, n=ROWS):
    """Intercept, two groups, income in dollars, three more columns; 17 clusters."""
    return drawn_in_levels(seed, n)[0]


def drawn_in_levels(seed=0, n=ROWS):
    """The same, and one of 11 levels of each row."""
    rng = np.random.default_rng(seed)
    group = rng.choice(3, n, p=[0.6, 0.25, 0.15])
    numbers = rng.normal(size=(n, 3))
    x = np.column_stack([np.ones(n), group == 1, group == 2, rng.normal(60_000, 9_000, n), numbers])
    cluster, level = rng.integers(0, 17, n).astype(np.int32), rng.integers(0, 11, n).astype(np.int32)
    linear = -1.3 + 0.7 * x[:, 1] - 0.4 * x[:, 2] + numbers @ [0.8, -0.5, 0.1] + 0.1 * level
    y = (rng.random(n) < 1 / (1 + np.exp(-linear))).astype(float)
    return Batch(y, x, cluster), level


def split(whole, cuts):
    """The rows in batches that end at the cuts; each call is a pass."""
    ends = [0, *sorted(cuts), len(whole.y)]
    return lambda: (whole.rows(slice(start, stop)) for start, stop in pairwise(ends))


cuts = st.lists(st.integers(0, ROWS), max_size=12)
"""Places of cuts; equal ones make empty batches."""
