"""CST against the reference outputs of the authors' code: every count of the paper's tables, and every complainant.

Loan and law/race come with their counterfactuals. Those of law by gender and by the intersection are made here by least
squares, as notes on the reference code describe, so that counts do not hang on the causal models.
"""

import gzip
import json
import time
from functools import cache
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from conftest import SHARED

from schemas.terms import Kind
from tasks.methods.cst.algorithm import detection as cst
from tasks.methods.cst.algorithm.situations import compare, judge, lay
from tasks.methods.cst.settings import CstSettings
from tasks.numerics.encoding import Columns
from tasks.numerics.problem import Applicants, Counterfactuals, FeasibilityGraph, Problem

GOLDEN, LAW = SHARED / "golden" / "cst", SHARED / "data" / "law_school" / "lsac_law_data_21791.csv.gz"

pytestmark = pytest.mark.data("golden/cst", "data/law_school")

FILES = {"cst": "CSTwo", "cst_with_centres": "CSTwi", "st": "ST"}
DETECTED = {
    "loan": {"cst": [288, 313, 342, 395], "st": [55, 65, 84, 107], "cst_with_centres": [420, 434, 453, 480]},
    "law_race": {"cst": [256, 309, 337, 400], "st": [33, 51, 61, 64], "cst_with_centres": [286, 309, 337, 400]},
    "law_gender": {"cst": [78, 120, 253, 296], "st": [77, 101, 229, 258], "cst_with_centres": [99, 129, 267, 296]},
    "law_crossed": {"cst": [130, 138, 148, 160], "st": [14, 14, 17, 24], "cst_with_centres": [130, 138, 148, 160]},
}
UNFAIR = {"loan": 376, "law_race": 231, "law_gender": 56, "law_crossed": 113}
SIGNIFICANT = {
    "loan": {"cst": [272, 306, 331, 383], "st": [44, 57, 65, 85], "cst_with_centres": [272, 307, 334, 385]},
    "law_race": {"cst": [244, 301, 323, 391], "st": [28, 28, 45, 47], "cst_with_centres": [244, 301, 323, 391]},
    "law_gender": {"cst": [43, 88, 160, 221], "st": [57, 69, 111, 124], "cst_with_centres": [54, 92, 160, 221]},
    "law_crossed": {"cst": [130, 138, 148, 160], "st": [14, 14, 13, 23], "cst_with_centres": [130, 138, 148, 160]},
}
POSITIVE = {
    "loan": {"cst": [0, 0, 0, 0], "st": [45, 50, 77, 118], "cst_with_centres": [0, 0, 0, 0]},
    "law_race": {"cst": [0, 0, 0, 3], "st": [46, 51, 75, 121], "cst_with_centres": [0, 0, 0, 3]},
    "law_gender": {"cst": [57, 128, 73, 104], "st": [44, 144, 108, 159], "cst_with_centres": [42, 111, 73, 93]},
    "law_crossed": {"cst": [0, 0, 0, 0], "st": [25, 29, 40, 57], "cst_with_centres": [0, 0, 0, 0]},
}
MULTIPLE = {"cst": [8, 10, 20, 20], "st": [5, 5, 12, 19], "cst_with_centres": [9, 10, 21, 20]}
COMPLAINANTS = {"loan": 1712, "law_race": 3506, "law_gender": 9537, "law_crossed": 1833}
PUBLISHED = {  # tables 2 and 3, with centres, k = 15
    44: (1.00, 1.00),
    55: (0.65, 0.97),
    150: (-0.04, 0.16),
    203: (-0.01, 0.26),
    218: (0.36, 0.77),
    5: (-0.04, 0.16),
    147: (0.29, 0.71),
    435: (0.18, 0.58),
    1958: (-0.01, 0.26),
    2926: (0.57, 0.93),
}
"""Rows of tables 2 and 3: intervals by complainant."""


def settings(**changed):
    return CstSettings(**(CstSettings.paper | {"k": 15, "interval": "wald", "null_permutations": 0} | changed))


def problem(frame, imagined, attributes, protected, favourable, singles=(), crossed=False):
    """The rows of a frame as a problem; ``favourable`` decides on a frame."""
    nominal = [not pd.api.types.is_numeric_dtype(frame[name]) for name in attributes]
    categories = [tuple(sorted(frame[n].unique())) if c else () for n, c in zip(attributes, nominal, strict=True)]
    values = [
        np.column_stack(
            [
                pd.Categorical(of[name], known).codes if known else of[name].to_numpy(float)
                for name, known in zip(attributes, categories, strict=True)
            ]
        ).astype(float)
        for of in (frame, imagined)
    ]
    kinds = tuple(Kind.NOMINAL if each else Kind.CONTINUOUS for each in nominal)
    n = len(frame)
    # those of the reference group, too: they are themselves but for rounding, and the imagined data are scaled with it
    imagined = Counterfactuals(np.arange(n), values[1], favourable(imagined))
    columns = Columns(tuple(attributes), kinds, tuple(categories), values[0])
    applicants = Applicants(columns, favourable(frame), (), crossed, imagined, singles=singles)
    nobody = np.zeros(n, np.int32)
    group = protected.astype(np.int32)
    graph = FeasibilityGraph(np.zeros(n + 1, np.int64), np.zeros(0, np.int64), np.zeros(0))
    yes = favourable(frame)
    return Problem(
        np.zeros((n, 0)), nobody[:0], (), group, ("others", "protected"), 0, ~yes, yes, nobody, graph, 0, applicants
    )


def accepted(frame):
    return (np.round(0.6 * frame["UGPA"] + 0.4 * frame["LSAT"], 3) >= 20.8).to_numpy()


def law_frame():
    """Law: the 21,790 rows, with the groups as 0 and 1."""
    law = pd.read_csv(LAW, index_col=0)
    law = law[law["region_first"] != "PO"].reset_index(drop=True)
    return law.assign(female=(law["sex"] == 1) * 1.0, nonwhite=(law["race"] != "White") * 1.0)


def done(law, cause, others):
    """do(cause := 0): effects by least squares, LSAT rounded for the regression and before its effect is taken away."""
    against = np.column_stack([np.ones(len(law)), law[cause], *(law[other] for other in others)])
    imagined = law.copy()
    for name, low, high in (("LSAT", 10, 48), ("UGPA", 0, 4)):
        known = law[name].round() if name == "LSAT" else law[name]
        effect = np.linalg.lstsq(against, known.to_numpy(float), rcond=None)[0][1]
        imagined[name] = np.clip(np.round(known - effect * law[cause], 3), low, high)
    return imagined


def loan_problem():
    factual, imagined = (pd.read_csv(GOLDEN / f"loan_{kind}.csv.gz") for kind in ("factual", "counterfactual"))
    columns = ["AnnualSalary", "AccountBalance"]
    factual = factual.astype({"AnnualSalary": float})
    return problem(factual, imagined, columns, factual["Gender"] == 1, lambda f: (f["LoanApproval"] > 0).to_numpy())


def race_problem():
    factual, imagined = (pd.read_csv(GOLDEN / f"law_race_{kind}.csv.gz") for kind in ("factual", "counterfactual"))
    columns = ["Gender", "LSAT", "UGPA"]
    return problem(factual, imagined, columns, factual["Race"] != "White", lambda f: (f["Y"] == 1).to_numpy())


def gender_problem():
    law = law_frame()
    return problem(law, done(law, "female", ["nonwhite"]), ["LSAT", "UGPA"], law["female"] == 1, accepted)


def crossed_problem():
    law = law_frame().assign(both=lambda f: f["female"] * f["nonwhite"])
    singles = (gender_problem(), race_problem())
    return problem(law, done(law, "both", []), ["LSAT", "UGPA"], law["both"] == 1, accepted, singles, crossed=True)


MAKE = {"loan": loan_problem, "law_race": race_problem, "law_gender": gender_problem, "law_crossed": crossed_problem}


@pytest.fixture(scope="module")
def results():
    """Every data set through the method, with the CPU seconds of all of them together."""
    cst.detect(MAKE["loan"](), settings(), np.random.default_rng(0))  # compiled before the clock starts
    problems = {name: make() for name, make in MAKE.items()}
    start = time.process_time()
    found = {name: cst.detect(of, settings(), np.random.default_rng(0)) for name, of in problems.items()}
    return SimpleNamespace(found=found, seconds=time.process_time() - start)


def events(detected, measure, variant):
    """How many complainants have it, by k."""
    said = [t for t in detected.tallies if t.measure == measure and t.parameters.get("variant") == variant]
    return [int(t.counts[t.values == 1].sum()) for t in said]


@pytest.mark.parametrize("name", MAKE)
def test_counts_of_the_tables(results, name):
    detected = results.found[name]
    assert len(detected.findings.row) == COMPLAINANTS[name]
    assert (detected.findings.refusal == "").all()
    for variant in FILES:
        assert events(detected, "share_detected", variant) == DETECTED[name][variant]
        assert events(detected, "share_positive", variant) == POSITIVE[name][variant]
    assert events(detected, "share_detected", "cf") == [UNFAIR[name]]


@pytest.mark.parametrize("variant", MULTIPLE)
def test_multiple_discrimination(results, variant):
    assert events(results.found["law_crossed"], "share_multiple", variant) == MULTIPLE[variant]


def test_multiple_discrimination_by_counterfactual_fairness(results):
    assert events(results.found["law_crossed"], "share_multiple", "cf") == [5]


@cache
def judged(name, **changed):
    """Tests by variant, and the rows of the complainants."""
    of, chosen = MAKE[name](), settings(**changed)
    compared = compare(lay(of, chosen, of.group, of.applicants.counterfactuals), 1, np.flatnonzero(of.group))
    return {variant: judge(pair, chosen) for variant, pair in compared.pairs.items()}, compared.row


def test_law_by_race_without_gender_in_the_distance():
    tests, _ = judged("law_race", attributes=("LSAT", "UGPA"))
    found = {variant: int((of.delta[0] > 0).sum()) for variant, of in tests.items()}
    assert found == {"cst": 243, "st": 34, "cst_with_centres": 284}


@pytest.mark.parametrize("name", MAKE)
def test_significant_complainants_before_many_tests_are_accounted_for(name):
    tests, _ = judged(name)
    for variant, counts in SIGNIFICANT[name].items():
        found = (tests[variant].low > 0) & (tests[variant].delta > 0)
        assert found.sum(axis=1).tolist() == counts


@pytest.mark.parametrize("name", ["loan", "law_race"])
def test_every_complainant(name):
    tests, row = judged(name)
    for variant, file in FILES.items():
        for at, k in enumerate(settings().ks):
            golden = pd.read_csv(GOLDEN / f"{name}_{file}_k{k}.csv.gz")
            of, golden = tests[variant], {name: golden[name].to_numpy() for name in golden}
            assert golden["individual"].tolist() == row.tolist()
            np.testing.assert_allclose(of.pair.control_share[at], golden["p_c"], rtol=0, atol=1e-12)
            np.testing.assert_allclose(of.pair.test_share[at], golden["p_t"], rtol=0, atol=1e-12)
            assert of.pair.control_n[at].tolist() == golden["n_c"].tolist()
            assert of.pair.test_n[at].tolist() == golden["n_t"].tolist()
            np.testing.assert_allclose(of.delta[at], golden["delta_p"], rtol=0, atol=1e-12)
            np.testing.assert_allclose(of.low[at], golden["ci_lo"], rtol=0, atol=1e-12)
            np.testing.assert_allclose(of.high[at], golden["ci_hi"], rtol=0, atol=1e-12)


def test_published_intervals():
    tests, row = judged("loan")
    of = tests["cst_with_centres"]
    for complainant, ends in PUBLISHED.items():
        at = np.searchsorted(row, complainant)
        assert (of.low[0, at], of.high[0, at]) == pytest.approx(ends, abs=0.01)


@pytest.mark.parametrize(("name", "attributes"), [("loan", 2), ("law_race", 3)])
def test_neighbours(results, name, attributes):
    """Golden distances are divided by 3, ours by the number of attributes that the distance looks at.

    The golden files list equal distances in another order than that in which they were chosen.
    """
    pieces = list(results.found[name].evidence.pieces())
    row, role, other, value = (
        np.concatenate([getattr(each, column) for each in pieces]) for column in ("row", "role", "other", "value")
    )
    packed = (GOLDEN / f"{name}_CSTwo_k15_neighbours.jsonl.gz").read_bytes()
    for golden in map(json.loads, gzip.decompress(packed).decode().splitlines()):
        mine = row == golden["id"]
        for of_role, key in (("control", "ctr"), ("test", "tst")):
            of = mine & (role == of_role)
            assert sorted(other[of]) == sorted(golden[key])
            np.testing.assert_allclose(value[of] * attributes / 3, golden[f"{key}_d"], rtol=1e-12, atol=1e-12)


def test_the_whole_grid_takes_less_than_20_cpu_seconds(results):
    assert results.seconds < 20
