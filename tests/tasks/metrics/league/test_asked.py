"""Which measures can be held beside each other whatever the size of a partition: by declaration of each method."""

import pytest

from tasks.metrics.league.rows import is_comparable, subjects_of
from tasks.pipeline.registry import METHODS

VERDICT = {
    **{"theory": "approval_rates", "role": "primary", "method": "outcomes", "measure": "approval_rate_ratio"},
    **{"decision_maker": "lender", "protected_attribute": "race", "group": "Black", "reference_group": "white"},
}


@pytest.mark.parametrize("method", METHODS.values(), ids=list(METHODS))
def test_a_method_says_of_every_measure_whether_it_depends_on_the_number_of_rows(method):
    assert method.comparable <= set(method.measures)
    assert bool(method.grows) == (method.comparable != set(method.measures)), "why the others depend on it"
    assert not method.grows.endswith(".")


@pytest.mark.parametrize(
    ("measure", "parameters", "may"),
    [
        ("approval_rate", "{}", True),
        ("denial_rate_difference", "{}", True),
        ("adjusted_effect", "{}", True),
        ("infeasible_share", "{}", False),
        ("infeasible_share", '{"size": 500}', True),
        ("st_effect", "{}", False),
        ("approval_rate_size_matched", "{}", False),
    ],
)
def test_a_measure_may_be_asked_if_it_means_the_same_at_every_size(measure, parameters, may):
    assert is_comparable(measure, parameters) == may


def test_direct_comes_first_and_a_judged_measure_is_there_once():
    direct = {**VERDICT, "theory": "similar_applicants", "method": "adjusted", "measure": "adjusted_effect"}
    beside = {**direct, "role": "beside", "measure": "overlap_effect"}
    watched = {**VERDICT, "role": "watch"}
    whole = {**VERDICT, "theory": "own_limits"}
    rate = {**VERDICT, "subgroup": 0, "parameters": "{}"}
    found = subjects_of(
        [[VERDICT, watched, whole, beside], [direct]], [[rate, {**rate, "subgroup": 1, "measure": "x"}]]
    )
    assert [(each.theory, each.role) for each in found] == [
        ("similar_applicants", "primary"), ("similar_applicants", "beside"), ("approval_rates", "primary"),
    ]  # fmt: skip
