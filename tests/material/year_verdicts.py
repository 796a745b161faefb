"""Rows of the table of verdicts for several years, with a truth that is planted."""

import numpy as np
import pyarrow as pa

from tasks.metrics.algorithm.monitoring import Conditions
from tasks.reporting.trends import YearVerdicts

TEXTS = ("theory", "protected_attribute", "group", "reference_group", "decision_maker", "measure", "scale", "side")
LIMITS = {
    "similar_applicants": (0.02, "at_most", "linear", "adjusted_denial_effect"),
    "approval_rates": (0.8, "at_least", "log", "approval_rate_ratio"),
}


def verdict(group, value, se, *, theory="similar_applicants", n=2_000, events=500, **more):
    """One row, with the columns of the table."""
    limit, side, scale, measure = LIMITS[theory]
    known = value is not None
    return {
        "theory": theory,
        "protected_attribute": "race",
        "group": group,
        "reference_group": "white",
        "decision_maker": "lender",
        "measure": measure,
        "role": "primary" if group else "theory",
        "value": value,
        "low": value - 0.02 if known else None,
        "high": value + 0.02 if known else None,
        "se": se if known else None,
        "scale": scale,
        "bias": 0.0,
        "limit": limit,
        "side": side,
        "p_breach": 0.5,
        "p_breach_holm": 0.5,
        "p_within": 0.5,
        "detectable": None,
        "n": n,
        "events": events,
        "n_reference": 20_000,
        "events_reference": 5_000,
        "state": "inconclusive",
        "reason": "the interval lies on both sides of the limit" if known else "withheld",
        "assumption": "none",
        **more,
    }


def whole(theory="similar_applicants"):
    """The row of the theory as a whole."""
    nothing = dict.fromkeys(("limit", "side", "scale", "measure", "bias", "n", "events"))
    return verdict("", None, None, theory=theory) | nothing


def year_of(number, *rows, **more):
    """The verdicts of one year."""
    return YearVerdicts(number, (whole(), *rows), **{"conditions": Conditions(version="1"), **more})


def many_years(years, groups, seed=0):
    """Every group in every year, with effects of 3 points on average."""
    rng = np.random.default_rng(seed)
    return [year_of(2007 + t, *(verdict(g, 0.03 + rng.normal(0, 0.01), 0.01) for g in groups)) for t in range(years)]


def as_table(rows):
    """The rows as an Arrow table, as a lake holds them."""
    floats = {name: pa.float64() for name in ("value", "low", "high", "se", "bias", "limit", "detectable")}
    return pa.Table.from_pylist(
        list(rows), pa.schema([(n, floats.get(n, pa.array([v]).type)) for n, v in rows[-1].items()])
    )
