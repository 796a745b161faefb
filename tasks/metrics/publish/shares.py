"""Shares in tables beside the measures, with so few digits that they do not tell what counts are rounded for.

0.438 is 28 of 64, whatever these are rounded to elsewhere; 0.4 is a share of 63 and of 65 people, too.
"""

from collections.abc import Mapping
from typing import Any

from tasks.metrics.publish.algorithm import digits
from tasks.metrics.publish.algorithm.profiles import small
from tasks.metrics.publish.fates import Fates

Row = Mapping[str, Any]
_OF_N = ("inside", "comparable", "unmatched", "support")
_OF_CATEGORY = {"factual": "n", "imagined": "n", "there": "n_there"}
"""Shares of those with a category; quantiles where the row has none."""
_METRICS = {
    **{"accuracy": "", "predicted_denial_rate": ""},
    **{"true_positive_rate": "approved", "false_positive_rate": "denied"},
}
"""Shares among the metrics of a model, and of whom."""


def denominator(name: str, row: Row, fates: Fates) -> int | None:
    """How many people a number of a row is a share of; None where it is no share."""
    if name in _OF_N:
        return _count(row["n"])
    if name in _OF_CATEGORY and row.get("category") is not None:
        return _count(row[_OF_CATEGORY[name]])
    if name == "value" and row.get("metric") in _METRICS:
        of = _METRICS[row["metric"]]
        return fates.of_lender(row["protected_attribute"], row["group"], of) if of else _count(row["n"])
    return None


def _count(n: int | None) -> int | None:
    return n or None


def share(value: float, n: int, row: Row, fates: Fates) -> float | None:
    """A share of ``n`` people as printed; None where those with or without it are few and the profile looks at them."""
    policy, having = fates.policy, value * n
    if policy.events_too and small(policy, n, round(having)):
        return None
    whose = row["protected_attribute"], row.get("group") or "", row.get("decision_maker", "")
    exact = fates.base_of(*whose, n) == 1
    return round(value, digits.decimals(n) if exact else digits.blunt(n)) + 0.0


def is_of_few(name: str, row: Row) -> bool:
    """Whether a number is a quantile over so few that it is one person's value."""
    if name not in _OF_CATEGORY or row.get("quantile") is None:
        return False
    return (row[_OF_CATEGORY[name]] or 0) < digits.ENOUGH
