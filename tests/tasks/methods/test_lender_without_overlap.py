"""A lender whose group has no comparable applicants in the reference group: no method judges it, and each says why."""

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from conftest import SPEC, loans

from schemas.terms import Note
from tasks.in_memory import call_plainly
from tasks.pipeline.registry import read_spec
from tasks.plan import plan

pytestmark = pytest.mark.long

METHODS = {
    "methods.fgce": "null",
    "methods.adjusted": "null",
    "methods.cst": "{ks: [5], k: 5, null_permutations: 0, null_draws: 0, sensitivity: false}",
    "methods.cec": "{relabelled_draws: 19, theta_steps: 0}",
    "methods.gcfn": "{generator: quantile}",
    "columns.income.role": "[covariate, financial]",
    "columns.amount.role": "[mediator]",
}
JUDGED = {
    "st_effect": ("lender", "support", '{"variant":"st"}'),
    "cst_effect": ("lender", "support", '{"variant":"cst"}'),
    "cec_above_own_group": ("model", "matching_support", "{}"),
    "share_changed": ("model", "mediator_support", "{}"),
}
"""Judged measure of each method -> its decision maker, and the measure of its support."""


def measures(folder: Path, frame: pd.DataFrame) -> pd.DataFrame:
    frame.to_csv(folder / "loans.csv", index=False)
    text = SPEC.replace("path: loans.csv", f"path: {folder / 'loans.csv'}")
    spec = read_spec(text, "spec.yaml", METHODS).spec
    tables = call_plainly(plan(spec).steps[:-2])
    found = pa.concat_tables(tables["measures"]).to_pandas().query("group == 'Black'")
    found["parameters"] = found["parameters"].str.replace(" ", "")
    return found.set_index(["measure", "decision_maker", "parameters"])


@pytest.fixture(scope="module")
def poor(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    frame = loans(900)
    frame["income"] = frame["income"].where(frame["race"] != "b", frame["income"] / 30)
    return measures(tmp_path_factory.mktemp("poor"), frame)


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    """Purpose is no result of race in the graph, so that a counterfactual keeps it, too."""
    frame = loans(900)
    frame["purpose"] = frame["purpose"].where(frame["race"] != "b", "build")
    return measures(tmp_path_factory.mktemp("apart"), frame)


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    return measures(tmp_path_factory.mktemp("good"), loans(900))


@pytest.mark.parametrize("measure", JUDGED)
def test_without_overlap_it_is_inconclusive_with_the_reason(measure: str, request: pytest.FixtureRequest) -> None:
    rows = request.getfixturevalue("apart" if measure == "cst_effect" else "poor")
    maker, support, parameters = JUDGED[measure]
    assert rows.loc[support, maker, parameters]["value"] < 0.8
    assert Note.POOR_SUPPORT in rows.loc[measure, maker, "{}"]["note"].split("; ")


@pytest.mark.parametrize("measure", JUDGED)
def test_with_overlap_it_is_not_named(good: pd.DataFrame, measure: str) -> None:
    maker, support, parameters = JUDGED[measure]
    assert good.loc[support, maker, parameters]["value"] > 0.9
    assert Note.POOR_SUPPORT not in good.loc[measure, maker, "{}"]["note"].split("; ")
