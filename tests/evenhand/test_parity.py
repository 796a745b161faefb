"""Each class gives the figures of the pipeline: on the applications of Boston, and on 5,000 rows of Texas."""

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from conftest import REPOSITORY, SHARED
from points_of_curves import every_measure
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import evenhand as eh
from schemas.audit.partition import unsampled
from tasks.in_memory import tables_through
from tasks.pipeline.registry import METHODS, read_spec

SEED, EXACT = 11, 1e-12
TEXAS = "data/hmda_2022_tx_50k/hmda_tx_2022_sample.csv.gz"
SMALL: dict[str, dict[str, Any]] = {
    "adjusted": {"splits": 3, "terms": "none"},
    "cst": {"ks": [15], "k": 15, "null_permutations": 2, "null_draws": 19, "sensitivity": False},
    "fgce": {"k": 3, "size_matched_draws": 2, "ablation_draws": 1, "resolves": 5, "relabelled_draws": 19},
    "cec": {"substitute": True, "relabelled_draws": 9},
    "gcfn": {"networks": 2, "epochs": 5, "batch": 64, "prediction": {"lambdas": [1.0], "test": 0.2, "epochs": 5}},
    "raguel": {"fewest": 2, "refits": 20},
}
"""Settings with which a method takes seconds, and which change none of its steps."""


class Rows:
    """A table with its spec, as the pipeline and the classes take it."""

    def __init__(self, frame: pd.DataFrame, spec: dict[str, Any], place: Path, features: list[str]) -> None:
        self.frame, self.features = frame, features
        self.spec = spec
        self.file = place / "rows.csv"
        frame.to_csv(self.file, index=False)
        self.complete = frame[features].notna().all(axis=1) & frame["race"].notna()
        numbers = frame.loc[self.complete, features].astype(float)
        self.model = make_pipeline(StandardScaler(), LogisticRegression())
        self.model.fit(numbers, frame.loc[self.complete, "approve"])
        import skops.io  # takes seconds: looks through all of scikit-learn

        self.model_file = place / "model.skops"
        skops.io.dump(self.model, self.model_file)

    def measures(self, method: str, asks_model: bool) -> pd.DataFrame:
        """The table of measures that the pipeline writes, of the rows as a file."""
        model: dict[str, Any] = {"kind": "none"}
        if asks_model:
            model = {"kind": "file", "file": {"path": str(self.model_file), "inputs": "codes"}, "refits": 0}
        values = {
            **self.spec,
            "source": {"kind": "csv", "path": str(self.file), "missing": [""], "exempt": []},
            "decision": {"column": "approve", "favourable": [1], "unfavourable": [0]},
            "model": model,
            "explain": {"decision_makers": ["model" if asks_model else "lender"]},
            "methods": {**dict.fromkeys(METHODS), method: SMALL[method]},
            "seed": SEED,
            "causal_graph": self.spec["causal_graph"] if method == "cst" else {},
        }
        spec = read_spec(yaml.safe_dump(values, sort_keys=False), "rows.yaml").spec
        return every_measure(tables_through(spec, "measure"), spec.protected[0].reference)


@pytest.fixture(scope="module")
def boston(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    spec = yaml.safe_load((REPOSITORY / "data" / "audits" / "boston1990.yaml").read_text())
    frame = eh.datasets.load_boston()
    parts = {name: spec[name] for name in ("name", "year", "columns", "causal_graph")}
    edges = eh.CausalGraph.from_order(spec["methods"]["cst"]["causal_order"]).edges
    parts["causal_graph"] |= {"edges": [list(edge) for edge in edges]}
    for column in parts["columns"].values():
        column.setdefault("role", "feature")
    parts["protected"] = [{"name": "race", "columns": ["race"], "reference": "white"}]
    return Rows(frame, parts, tmp_path_factory.mktemp("boston"), list(eh.datasets.BOSTON))


@pytest.fixture(scope="module")
def texas(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    spec = yaml.safe_load((REPOSITORY / "data" / "audits" / "hmda-tx-2022.yaml").read_text())
    spec["source"]["path"] = str(SHARED / TEXAS)
    spec["methods"] = {"adjusted": {}, "fgce": None}
    tables = tables_through(read_spec(yaml.safe_dump(spec, sort_keys=False), "texas.yaml").spec, "ingest")
    features = ["income", "loan_amount", "property_value", "loan_to_value_ratio"]
    rows = tables["applications"].to_pandas()
    groups = tables["memberships"].to_pandas()
    race = groups[groups["protected_attribute"] == spec["protected"][0]["name"]].set_index("row_id")["group"]
    rows["race"], rows["approve"] = race.loc[rows["row_id"]].to_numpy(), rows["favourable"].astype(int)
    rows = rows[rows["race"].isin(["White", "Black"])].head(5000).reset_index(drop=True)
    columns = {
        name: {
            "type": "continuous",
            "role": ["financial", "mediator"] if name != "loan_to_value_ratio" else ["covariate"],
            "constraint": "up" if name == "income" else "free",
        }
        for name in features
    }
    parts = {
        "name": "texas",
        "year": 2022,
        "columns": columns,
        "protected": [{"name": "race", "columns": ["race"], "reference": "White"}],
        "causal_graph": {"edges": [["race", "income"], ["income", "loan_amount"]]},
    }
    return Rows(rows[[*features, "approve", "race"]], parts, tmp_path_factory.mktemp("texas"), features)


def adjusted(rows: Rows) -> Any:
    return eh.AdjustedDisparity(settings=SMALL["adjusted"], **_shared(rows))


def situations(rows: Rows) -> Any:
    graph = eh.CausalGraph(**rows.spec["causal_graph"])
    settings = {name: value for name, value in SMALL["cst"].items() if name not in ("k", "ks")}
    return eh.CounterfactualSituationTesting(graph, k=15, settings=settings, **_shared(rows))


def recourse(rows: Rows) -> Any:
    return eh.GroupCounterfactuals(rows.model, settings=SMALL["fgce"], **_shared(rows))


def explanations(rows: Rows) -> Any:
    by = [name for name, column in rows.spec["columns"].items() if "financial" in column.get("role", ())]
    return eh.ExplanationConsistency(rows.model, comparable_by=by, settings=SMALL["cec"], **_shared(rows))


def fair(rows: Rows) -> Any:
    settings = {name: value for name, value in SMALL["gcfn"].items() if name not in ("networks", "epochs")}
    return eh.CounterfactualFairClassifier(networks=2, epochs=5, settings=settings, **_shared(rows))


def ranking(rows: Rows) -> Any:
    return eh.RecourseAwareRanking(model=rows.model, settings=SMALL["raguel"], **_shared(rows))


def _shared(rows: Rows) -> dict[str, Any]:
    reference = rows.spec["protected"][0]["reference"]
    return {"columns": rows.spec["columns"], "reference": reference, "random_state": SEED}


CASES: list[tuple[str, Callable[[Rows], Any], bool]] = [
    ("adjusted", adjusted, False),
    ("cst", situations, False),
    ("fgce", recourse, True),
    ("cec", explanations, True),
    ("gcfn", fair, False),
    ("raguel", ranking, True),
]


def _differences(rows: Rows, method: str, make: Callable[[Rows], Any], asks_model: bool) -> Iterator[str]:
    expected = rows.measures(method, asks_model)
    frame = rows.frame[rows.complete] if method == "gcfn" else rows.frame  # a classifier takes no missing value
    fitted = make(rows).fit(frame[rows.features], frame["approve"], sensitive_features=frame["race"])
    own = fitted.measures_
    own_keys = list(zip(own["group"], own["measure"], map(_key, own["parameters"]), strict=True))
    values = dict(zip(own_keys, own[["estimate", "low", "high", "n"]].to_numpy(float, na_value=np.nan), strict=True))
    maker = "model" if asks_model else "lender"
    expected = expected[(expected["method"] == method) & (expected["decision_maker"] == maker)]
    expected = expected[expected["subgroup"] == 0]
    assert len(expected) > 3, "the pipeline measured nothing"
    for row in expected.itertuples():
        key = (row.group, row.measure, unsampled(row.parameters))
        if key not in values:
            yield f"{key} is missing"
            continue
        # Fits of every earlier column are nearly collinear: the order of columns shows in the twelfth digit.
        exact = 100 * EXACT if row.measure.startswith(("saturated", "excess")) else EXACT
        for name, ours, theirs in zip(
            ("value", "low", "high", "n"), values[key], (row.value, row.low, row.high, row.n), strict=True
        ):
            theirs = math.nan if theirs is None or pd.isna(theirs) else float(theirs)
            if not (math.isnan(ours) and math.isnan(theirs)) and not abs(ours - theirs) <= exact * max(1, abs(theirs)):
                yield f"{key} {name}: {ours} and {theirs}"


def _key(parameters: dict[str, Any]) -> str:
    import json

    return json.dumps(parameters, sort_keys=True)


@pytest.mark.slow
@pytest.mark.parametrize(("method", "make", "asks_model"), CASES, ids=[case[0] for case in CASES])
def test_a_class_gives_the_figures_of_the_pipeline_on_boston(
    boston: Rows, method: str, make: Callable[[Rows], Any], asks_model: bool
) -> None:
    assert list(_differences(boston, method, make, asks_model)) == []


@pytest.mark.slow
@pytest.mark.data(TEXAS)
@pytest.mark.parametrize(("method", "make", "asks_model"), CASES, ids=[case[0] for case in CASES])
def test_a_class_gives_the_figures_of_the_pipeline_on_texas(
    texas: Rows, method: str, make: Callable[[Rows], Any], asks_model: bool
) -> None:
    assert list(_differences(texas, method, make, asks_model)) == []
