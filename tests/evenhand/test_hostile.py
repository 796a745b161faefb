"""Bad input: each fault is an error of the package that names it, and never a traceback of ours from inside."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.linear_model import LogisticRegression

import evenhand as eh

RNG = np.random.default_rng(0)
N = 80
X = pd.DataFrame(
    {
        "income": RNG.normal(50, 10, N),
        "loan": RNG.normal(100, 20, N),
        "purpose": RNG.choice(["buy", "build", "mend"], N),
    }
)
Y = pd.Series(RNG.integers(0, 2, N), name="approved")
NUMBERS = X[["income", "loan"]]
LOGIT = LogisticRegression().fit(NUMBERS, Y)
WORDED = LogisticRegression().fit(NUMBERS, Y.map({1: "approved", 0: "denied"}))
RACE = pd.Series(np.where(np.arange(N) % 3 == 0, "black", "white"), name="race")
MIXED = pd.Series([1, "a"] * (N // 2), dtype=object)


def fit(frame: Any = X, y: Any = Y, groups: Any = RACE, **parameters: Any) -> Any:
    return eh.AdjustedDisparity(**parameters).fit(frame, y, sensitive_features=groups)


FAULTS: dict[str, tuple[Callable[[], Any], str]] = {
    "duplicate index": (lambda: fit(X.set_index(pd.Index([0] * N))), "index of X has 0 more than once"),
    "duplicate columns": (lambda: fit(pd.concat([X, X[["loan"]]], axis=1)), "two columns 'loan'"),
    "column index": (lambda: fit(X.reset_index()), "column 'index'"),
    "column without text name": (lambda: fit(X.rename(columns={"loan": 3})), "column 3"),
    "all missing": (lambda: fit(X.assign(loan=np.nan)), "column 'loan' of X has no value in any row"),
    "one class": (lambda: fit(y=Y * 0), "y has one class only"),
    "one group": (lambda: fit(groups=RACE.map(lambda _: "white")), "'race' has one group only"),
    "no groups": (lambda: fit(groups=None), "sensitive_features are not given"),
    "no rows": (lambda: fit(X[:0], Y[:0], RACE[:0]), "X has no rows"),
    "mixed types": (lambda: fit(X.assign(purpose=MIXED)), "column 'purpose' of X mixes numbers and text"),
    "dates": (lambda: fit(X.assign(loan=pd.Timestamp("2024-01-01"))), "column 'loan' of X holds Datetime"),
    "lists": (lambda: fit(pa.table({"loan": [[1]] * N})), "column 'loan' of X holds List"),
    "infinite": (lambda: fit(X.assign(loan=[np.inf, *X["loan"][1:]])), "column 'loan' of X holds an infinite number"),
    "NaN in y": (lambda: fit(y=Y.where(Y.index != 7)), "y has no value in 1 rows (the first is 7)"),
    "texts without favourable": (lambda: fit(y=Y.map({0: "no", 1: "yes"})), "y holds 'no': say which value favours"),
    "no such favourable": (lambda: fit(favourable="Yes", y=Y.map({0: "no", 1: "yes"})), "favourable value 'Yes'"),
    "no such reference": (lambda: fit(reference="White"), "reference group 'White'; did you mean 'white'?"),
    "other index": (lambda: fit(y=Y.set_axis(range(1, N + 1))), "y has another index than X"),
    "other length": (lambda: fit(y=list(Y)[:-1]), "y has 79 rows, and X has 80"),
    "no frame": (lambda: fit("loans.csv"), "X is a str"),
    "no such block column": (lambda: fit(blocks={"terms": ["lone"]}), "'lone', and X has no such column; did you mean"),
    "no such column": (lambda: fit(columns={"lone": {"type": "continuous"}}), "X has no column 'lone'; did you mean"),
    "no such type": (lambda: fit(columns={"loan": {"type": "number"}}), "columns.loan.type"),
    "no such setting": (lambda: fit(settings={"split": 3}), "split"),
    "three dimensions": (lambda: fit(np.zeros((2, 2, 2))), "X has 3 dimensions"),
    "not fitted": (lambda: eh.AdjustedDisparity().by_group, "AdjustedDisparity is not fitted"),
    "cycle": (lambda: eh.CausalGraph([("a", "b"), ("b", "a")]), "cycle"),
    "node of no column": (
        lambda: eh.CausalGraph([("race", "rent")]).test(X, RACE),
        "the graph has a node 'rent', and X has no such column",
    ),
    "text for tiers": (lambda: eh.CausalGraph.from_order(["race", "income"]), "give a list of tiers"),
    "no graph": (lambda: eh.CausalGraph.of(3), "int is no directed graph"),
    "no model": (lambda: eh.GroupCounterfactuals(3).fit(X, sensitive_features=RACE), "neither predict_proba nor"),
    "model of another frame": (
        lambda: eh.GroupCounterfactuals(lambda frame: frame["rent"]).fit(X, sensitive_features=RACE),
        "the model (function) does not take the frame: 'rent'",
    ),
    "model without decisions": (
        lambda: eh.GroupCounterfactuals(lambda frame: np.ones(len(frame))).fit(X, sensitive_features=RACE),
        "every decision of the model is favourable",
    ),
    "actionable": (
        lambda: eh.GroupCounterfactuals(actionable={"lone": "up"}).fit(X, Y, sensitive_features=RACE),
        "actionable names 'lone', and X has no such column; did you mean 'loan'?",
    ),
    "actionable list": (
        lambda: eh.GroupCounterfactuals(actionable=["loan"]).fit(X, Y, sensitive_features=RACE),
        "actionable is a list; give column -> 'up', 'down' or 'free'",
    ),
    "one text for columns": (
        lambda: eh.ExplanationConsistency(LOGIT, comparable_by="loan").fit(NUMBERS, sensitive_features=RACE),
        "comparable_by is 'loan'; give a list of columns, ['loan']",
    ),
    "classes without favourable": (
        lambda: eh.GroupCounterfactuals(WORDED).fit(NUMBERS, sensitive_features=RACE),
        "the model has the classes ['approved', 'denied']: say which one favours",
    ),
    "class for a model": (
        lambda: eh.GroupCounterfactuals(LogisticRegression).fit(NUMBERS, sensitive_features=RACE),
        "model is the class LogisticRegression; give a fitted model of it",
    ),
    "block of nobody": (
        lambda: eh.RecourseAwareRanking(block_size=0).fit(X, Y, sensitive_features=RACE),
        "block_size is 0; give 1 or more",
    ),
    "scores of both classes": (
        lambda: eh.RecourseAwareRanking().fit(NUMBERS, LOGIT.predict_proba(NUMBERS), sensitive_features=RACE),
        "scores have 2 columns; give one",
    ),
    "edge of three": (lambda: eh.CausalGraph([("a", "b", "c")]), "edge ('a', 'b', 'c') is no pair"),
    "groups without a name": (
        lambda: eh.CounterfactualSituationTesting([("race", "loan")]).fit(X, Y, sensitive_features=list(RACE)),
        "node 'race', and X has no such column; sensitive_features have no name",
    ),
    "numbers as text": (
        lambda: fit(X.assign(loan=[f"${value:,.2f}" for value in X["loan"]])),
        "column 'loan' has numbers as text",
    ),
    "sparse column": (
        lambda: fit(X.assign(loan=pd.arrays.SparseArray(X["loan"]))),
        "column 'loan' of X is sparse; X.sparse.to_dense()",
    ),
    "numbers for groups": (
        lambda: fit(np.zeros((200, 1)), [0, 1] * 100, np.arange(200.0)),
        "has 200 groups, and at most 100 are compared; put numbers into bands",
    ),
    "audit without unfavourable": (
        lambda: eh.audit(
            X.assign(race=RACE, action=["Approved", "Denied", "Withdrawn", "Denied"] * (N // 4)),
            decision="action",
            favourable="Approved",
            protected="race",
        ),
        "'action' holds 'Denied', 'Withdrawn', too: say which of them do not favour",
    ),
    "no lake": (lambda: eh.open("no/such/lake"), "no/such/lake"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_an_error_that_names_it(name: str) -> None:
    call, words = FAULTS[name]
    with pytest.raises(eh.errors.EvenhandError) as caught:
        call()
    assert words in str(caught.value)


def test_a_fault_of_the_frame_is_a_value_error_as_in_scikit_learn() -> None:
    with pytest.raises(ValueError, match="no rows"):
        fit(X[:0])
