"""The classes as estimators of scikit-learn: parameters, copies, and frames of several libraries."""

import warnings
from typing import Any, Self

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import check_estimator

import evenhand as eh
from evenhand.fair_classifier import fitting_batch
from evenhand.runs import Data

RNG = np.random.default_rng(5)
N = 160
RACE = pd.Series(np.where(RNG.random(N) < 0.4, "black", "white"), name="race")
X = pd.DataFrame(
    {
        "income": np.round(RNG.normal(50, 10, N) - 5 * (RACE == "black"), 1),
        "loan": np.round(RNG.normal(100, 20, N), 0),
        "purpose": RNG.choice(["buy", "build", "mend"], N),
    }
)
Y = pd.Series((X["income"] - 0.1 * X["loan"] - 6 * (RACE == "black") + RNG.normal(0, 8, N) > 35).astype(int))
NUMBERS = ["income", "loan"]
MODEL = LogisticRegression().fit(X[NUMBERS], Y)
FEW = {"splits": 1, "terms": "none", "estimators": ["logit"], "judged": "logit"}
CLASSES: list[Any] = [
    eh.AdjustedDisparity(reference="white"),
    eh.CounterfactualSituationTesting([("race", "income")], k=5),
    eh.GroupCounterfactuals(MODEL, actionable={"income": "up"}),
    eh.ExplanationConsistency(MODEL, comparable_by=["income"], k=2),
    eh.RecourseAwareRanking(actionable={"income": 1.0}, block_size=10),
    eh.CounterfactualFairClassifier(mediators=["income"]),
]


@pytest.mark.parametrize("estimator", CLASSES, ids=lambda e: type(e).__name__)
def test_parameters_are_those_of_scikit_learn(estimator: Any) -> None:
    copy = clone(estimator)
    assert type(copy) is type(estimator)
    parameters = estimator.get_params(deep=False)
    assert {name: repr(value) for name, value in copy.get_params(deep=False).items()} == {
        name: repr(value) for name, value in parameters.items()
    }
    assert copy.set_params(random_state=7).random_state == 7
    with pytest.raises(eh.errors.NotFittedError, match="is not fitted"):
        _ = copy.by_group


@pytest.mark.parametrize(
    ("sizes", "batch"),
    [((1000, 400), 256), ((1677, 197, 110), 64), ((1000, 41), 32), ((1000, 50, 5), 32), ((20, 10), 256)],
)
def test_a_batch_is_one_that_small_groups_fill(sizes: tuple[int, ...], batch: int) -> None:
    groups = [str(number) for number, size in enumerate(sizes) for _ in range(size)]
    assert fitting_batch(pa.array(groups), 0.8) == batch


def test_reasons_are_compared_with_several_of_the_nearest() -> None:
    def fitted(k: int, **settings: Any) -> eh.ExplanationConsistency:
        reasons = eh.ExplanationConsistency(
            MODEL, comparable_by=NUMBERS, k=k, reference="white", settings={"relabelled_draws": 0, **settings}
        )
        return reasons.fit(X[NUMBERS], Y, sensitive_features=RACE)

    one, few = fitted(1), fitted(5)
    assert few.by_group["n"].tolist() == one.by_group["n"].tolist()
    assert few.by_group["estimate"].between(0, 1).all()
    assert few.by_group["estimate"].tolist() != one.by_group["estimate"].tolist()
    with pytest.raises(eh.errors.SpecError, match="the nearest applicant alone"):
        fitted(5, relabelled_draws=9)


def adjusted(frame: Any, y: Any, groups: Any, **parameters: Any) -> pd.DataFrame:
    fitted = eh.AdjustedDisparity(reference="white", settings=FEW, **parameters)
    return fitted.fit(frame, y, sensitive_features=groups).by_group


@pytest.fixture(scope="module")
def by_pandas() -> pd.DataFrame:
    return adjusted(X, Y, RACE)


def frames() -> list[Any]:
    return [
        pytest.param(pa.Table.from_pandas(X), pa.array(Y), pa.array(RACE), id="pyarrow"),
        pytest.param(pl.from_pandas(X), pl.Series(Y.to_numpy()), pl.Series("race", RACE), id="polars"),
    ]


@pytest.mark.slow
def test_results_by_row_are_frames_of_the_same_library() -> None:
    ranking = eh.RecourseAwareRanking(actionable={"income": 1.0}, block_size=10, reference="white")
    frame = pl.from_pandas(X)
    ranking.fit(frame, Y.to_numpy(), sensitive_features=pl.Series("race", RACE))
    ranked = ranking.transform(frame)
    assert isinstance(ranked, pl.DataFrame)
    assert ranked["row"].to_list() == list(range(N))
    with pytest.raises(eh.errors.InputError, match="column 'loan' of X has no value in any row"):
        ranking.fit(frame.with_columns(loan=pl.lit(None, pl.Float64)), Y.to_numpy(), sensitive_features=RACE.to_list())


@pytest.mark.parametrize(("frame", "y", "groups"), frames())
def test_frames_of_other_libraries_give_the_same_figures(
    frame: Any, y: Any, groups: Any, by_pandas: pd.DataFrame
) -> None:
    other = adjusted(frame, y, groups)
    pd.testing.assert_frame_equal(other.rename_axis("race"), by_pandas, rtol=0, atol=1e-12)


@pytest.mark.slow
def test_lists_and_texts_as_decisions_give_the_same_figures(by_pandas: pd.DataFrame) -> None:
    texts = Y.map({0: "denied", 1: "approved"}).tolist()
    other = adjusted(X, texts, RACE, favourable="approved")
    pd.testing.assert_frame_equal(other, by_pandas, rtol=0, atol=1e-12)


def test_a_reference_and_groups_are_taken_as_python_has_them() -> None:
    for groups, reference in ((RACE == "white", True), ((RACE == "white") + 0.0, 1.0), (RACE.values, "white")):
        data = Data.of(X, Y, groups, None)
        assert data.protected(reference)[0]["reference"] in ("true", "1", "white")


@pytest.mark.slow
def test_results_by_row_keep_the_index_and_the_kind_of_frame() -> None:
    labelled = X.set_index(pd.Index([f"L{i}" for i in range(N)], name="id"))
    groups, decisions = RACE.set_axis(labelled.index), Y.set_axis(labelled.index)
    settings = {"fewest": 2, "refits": 0, "block_counts": [5], "tolerances": [0.5], "probes": 5}
    ranking = eh.RecourseAwareRanking(settings=settings, reference="white")
    places = ranking.fit(labelled, decisions, sensitive_features=groups).transform(labelled)
    assert places.index.equals(labelled.index)
    denied = decisions == 0
    assert places["rank"].notna().sum() <= denied.sum()
    assert places.loc[~denied, "rank"].isna().all()
    with pytest.raises(eh.errors.InputError, match="holds 'sell', which fit has not seen"):
        ranking.transform(labelled.assign(purpose="sell"))
    with pytest.raises(eh.errors.InputError, match="row 'L999' is not in the list"):
        ranking.transform(labelled.rename(index={"L3": "L999"}))
    table = pa.Table.from_pandas(X)
    native = ranking.fit(table, pa.array(Y), sensitive_features=pa.array(RACE)).transform(table)
    assert isinstance(native, pa.Table)
    assert nw.from_native(native, eager_only=True)["row"].to_list() == list(range(N))


@pytest.mark.slow
def test_groups_of_two_features_are_crossed() -> None:
    sex = pd.Series(np.where(np.arange(N) % 2 == 0, "female", "male"), name="sex")
    both = pd.concat([RACE, sex], axis=1)
    fitted = eh.AdjustedDisparity(reference=("white", "male"), settings=FEW).fit(X, Y, sensitive_features=both)
    assert fitted.reference_ == "white and male"
    assert set(fitted.by_group.index) == {"black and female", "black and male", "white and female"}


def test_a_model_is_a_pipeline_a_classifier_or_a_function() -> None:
    settings = {"size_matched_draws": 0, "ablations": False, "resolves": 0, "relabelled_draws": 0}

    def decide(frame: pd.DataFrame) -> Any:
        return MODEL.predict(frame[NUMBERS])

    figures = []
    for model in (MODEL, decide):
        search = eh.GroupCounterfactuals(model, settings=settings, reference="white")
        figures.append(search.fit(X[NUMBERS], sensitive_features=RACE).by_group)
    pd.testing.assert_frame_equal(*figures)


def test_the_path_of_a_denied_row_begins_with_it_and_ends_with_an_approved_one() -> None:
    settings = {"size_matched_draws": 0, "ablations": False, "resolves": 0, "relabelled_draws": 0}
    search = eh.GroupCounterfactuals(MODEL, settings=settings, reference="white")
    search.fit(X[NUMBERS], sensitive_features=RACE)
    findings = search.findings_
    row = findings.index[findings["verdict"] == "feasible"][0]
    path = search.path(row)
    decisions = MODEL.predict(path)
    assert path.index[0] == row
    assert (decisions[0], decisions[-1]) == (0, 1)
    pd.testing.assert_frame_equal(path, X.loc[path.index, NUMBERS], check_dtype=False)
    with pytest.raises(eh.errors.NotComputedError, match="has no path"):
        search.path(int(np.flatnonzero(MODEL.predict(X[NUMBERS]) == 1)[0]))
    coverage = search.curve("coverage_at_k", over="k")
    assert coverage.groupby("group")["estimate"].apply(lambda e: e.is_monotonic_increasing).all()


@pytest.mark.slow
def test_mediators_may_all_be_categories() -> None:
    mediators = ["purpose", "sector"]
    fair = eh.CounterfactualFairClassifier(mediators, networks=1, epochs=2, reference="white", settings={"batch": 16})
    frame = X.assign(sector=np.random.default_rng(3).choice(["north", "south"], N))
    fair.fit(frame, Y, sensitive_features=RACE)
    assert fair.unfairness_["estimate"].between(0, 1).all()
    imagined = fair.counterfactuals(frame, RACE)
    assert list(imagined.columns) == ["to_group", *mediators]
    assert set(imagined["purpose"]) <= {"buy", "build", "mend"}
    checks = fair.checks_.set_index("name")
    assert {"advantage", "converged", "support"} <= set(checks.index)
    low = (checks["side"] == "least") & (checks["value"] < checks["limit"])
    high = (checks["side"] == "most") & (checks["value"].abs() > checks["limit"])
    assert (checks["passed"].dropna().astype(bool) == ~(low | high)[checks["passed"].notna()]).all()


class ByFirstColumn(eh.CounterfactualFairClassifier):
    """Groups by the first column, as scikit-learn's checks have none; rows repeated, as generators need 20 a group."""

    def fit(self, X: Any, y: Any = None) -> Self:  # type: ignore[override]  # noqa: N803 as scikit-learn
        X = X.to_numpy() if isinstance(getattr(X, "columns", None), pd.RangeIndex) else X  # noqa: N806
        X, y = (part if hasattr(part, "columns") or hasattr(part, "tocsr") else np.asarray(part) for part in (X, y))  # noqa: N806
        groups = np.arange(X.shape[0] if X.ndim else 0) % 2
        if isinstance(X, np.ndarray) and X.ndim == 2 and X.size and X.dtype.kind in "fiu":
            first = np.nan_to_num(X[:, 0].astype(float))
            groups = (np.argsort(np.argsort(first, kind="stable")) >= len(first) // 2).astype(int)
            if len(X) < 200 and np.size(y) == len(X):
                X, y, groups = np.vstack([X] * 6), np.concatenate([y] * 6), np.concatenate([groups] * 6)  # noqa: N806
        y = None if np.ndim(y) == 0 else y
        return super().fit(X, y, sensitive_features=np.array(["below", "above"])[groups])


@pytest.mark.slow
def test_the_classifier_passes_the_checks_of_scikit_learn() -> None:
    small = ByFirstColumn(networks=1, epochs=1, settings={"batch": 2})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outcomes = check_estimator(small, on_skip=None, on_fail=None)
    failed = {o["check_name"]: str(o["exception"])[:200] for o in outcomes if o["status"] == "failed"}
    assert failed == {}
    assert sum(o["status"] == "passed" for o in outcomes) >= 50
