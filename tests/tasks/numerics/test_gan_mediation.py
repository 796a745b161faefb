"""What generators ask of their rows, and covariates that give the category away."""

from dataclasses import replace

import numpy as np
import pytest

from schemas.errors import DataQualityError
from schemas.terms import Kind
from tasks.numerics.encoding import Columns
from tasks.numerics.problem import ALL_COVARIATES, LEAKS, Mediation, leaks, require_seen, require_trainable


def columns(values, kind=Kind.CONTINUOUS, labels=(), prefix="c"):
    p = values.shape[1]
    return Columns(tuple(f"{prefix}{i}" for i in range(p)), (kind,) * p, (labels,) * p, values.astype(float))


def mediation(n=200, k=2, seed=0):
    rng = np.random.default_rng(seed)
    category = np.arange(n) % k
    covariates = columns(rng.normal(size=(n, 2)), prefix="x")
    mediators = columns(rng.normal(size=(n, 2)) + category[:, None], prefix="m")
    return Mediation(covariates, category, tuple("abc"[:k]), mediators)


def test_a_small_category_is_named_with_its_count():
    rows = mediation()
    rows = rows.rows(np.flatnonzero((rows.category == 0) | (np.arange(200) < 30)))
    require_trainable(rows, 15)
    with pytest.raises(DataQualityError, match=r"'a' 100, 'b' 15.*merge categories"):
        require_trainable(rows, 16)


def test_no_mediator_is_refused():
    none = Columns((), (), (), np.zeros((200, 0)))
    with pytest.raises(DataQualityError, match="no column is declared a mediator"):
        require_trainable(replace(mediation(), mediators=none), 10)


def test_a_mediator_constant_within_a_category_is_named():
    rows = mediation()
    rows.mediators.values[rows.category == 1, 1] = 4.0
    with pytest.raises(DataQualityError, match="'m1' has a single value within 'b'"):
        require_trainable(rows, 10)


@pytest.mark.parametrize("part", ["covariates", "mediators"])
def test_missing_values_are_refused(part):
    rows = mediation()
    getattr(rows, part).values[3, 0] = np.nan
    with pytest.raises(DataQualityError, match="missing or infinite"):
        require_trainable(rows, 10)


def test_what_was_not_seen_in_training_is_refused():
    rows = mediation()
    known = rows.template
    require_seen(rows, known)
    with pytest.raises(DataQualityError, match=r"has not seen 'c'; it knows 'a', 'b'"):
        require_seen(mediation(k=3), known)
    with pytest.raises(DataQualityError, match="keep the order"):
        require_seen(replace(rows, categories=("b", "a")), known)
    with pytest.raises(DataQualityError, match=r"mediators must be those of the training.*m0, m1"):
        require_seen(replace(rows, mediators=replace(rows.mediators, categories=(("u", "v"),) * 2)), known)
    with pytest.raises(DataQualityError, match=r"covariates must be those of the training.*x0, x1"):
        require_seen(replace(rows, covariates=replace(rows.covariates, names=("x1", "x0"))), known)
    with pytest.raises(DataQualityError, match="between 0 and 1"):
        require_seen(replace(rows, category=rows.category + 1), known)


def test_only_the_covariate_that_gives_the_category_away_leaks():
    rows = mediation(400, k=3)
    rows.covariates.values[:, 1] = rows.category + np.random.default_rng(1).normal(0, 0.05, 400)
    found = {leak.covariate: leak.auc for leak in leaks(rows, seed=0)}
    assert list(found) == ["x0", "x1", ALL_COVARIATES]
    assert found["x0"] < 0.6
    assert min(found["x1"], found[ALL_COVARIATES]) > LEAKS


def test_without_covariates_nothing_leaks():
    rows = replace(mediation(), covariates=Columns((), (), (), np.zeros((200, 0))))
    assert leaks(rows, seed=0) == ((ALL_COVARIATES, 0.5),)
