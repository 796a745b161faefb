"""The paper's data sets through the real stages: the specs under data/audits/paper against the authors' own matrices.

Encoded features are compared to the last bit, since an edge needs a distance strictly below epsilon. The graph of Adult
(8,342,586 edges) takes too long for a test; it was compared by hand.
"""

import hashlib
import json
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from conftest import REPOSITORY, SHARED
from scipy import sparse

from tasks.in_memory import call_plainly
from tasks.ingest.registry import check_columns
from tasks.pipeline.registry import read_spec
from tasks.plan import plan

GOLDEN, DATA, AUDITS = SHARED / "golden" / "fgce", SHARED / "data", REPOSITORY / "data" / "audits"

pytestmark = pytest.mark.data("golden/fgce")

UNTIL_SCORE, UNTIL_CONNECT = 3, 4
PAPER = {
    "german-credit": ("german_credit/german.data.gz", "old_GermanCredit", "graph.json", UNTIL_CONNECT),
    "compas": ("compas/compas_two_years_no_names.csv.gz", "fast_old_Compas", "summary.json", UNTIL_CONNECT),
    "adult-integer-coded": ("fgce/adult_integer_coded.csv.gz", "fast_old_Adult", "summary.json", UNTIL_SCORE),
}
DEFAULT = {
    "german-credit": ("german_credit/german.data.gz", 1000, {}),
    "compas": (
        "compas/compas_two_years_no_names.csv.gz",
        6167,
        {("filtered", "days_b_screening_arrest"): 1042, ("filtered", "c_charge_desc"): 5},
    ),
    "adult": (
        ("adult/adult.data.gz", "adult/adult.test.gz"),
        46033,
        {("missing_covariate", "workclass"): 2799, ("missing_covariate", "occupation"): 10},
    ),
}


def through(spec_name, files, steps):
    """The tables of the first stages, each whole."""
    path = str(DATA / files) if isinstance(files, str) else json.dumps([str(DATA / file) for file in files])
    text = (AUDITS / f"{spec_name}.yaml").read_text()
    spec = read_spec(text, spec_name, {"source.path": path}).spec
    check_columns(spec)
    return {name: pa.concat_tables(parts) for name, parts in call_plainly(plan(spec).steps[:steps]).items()}


@pytest.fixture(scope="module", params=list(PAPER))
def paper(request):
    file, golden, graph, steps = PAPER[request.param]
    tables = through(f"paper/{request.param}", file, steps)
    features = tables["features"]
    decisions = tables["decisions"].to_pandas().query("decision_maker == 'model'").reset_index(drop=True)
    return SimpleNamespace(
        tables=tables,
        encoded=np.column_stack([features[name].to_numpy() for name in features.column_names[1:]]),
        decisions=decisions,
        stored=np.load(GOLDEN / golden / "matrix.npz"),
        print=json.loads((GOLDEN / golden / "fingerprint.json").read_text()),
        graph=json.loads((GOLDEN / golden / graph).read_text()),
    )


def test_encoded_features_are_the_authors_to_the_last_bit(paper):
    stored = paper.stored["X"]
    assert np.array_equal(paper.encoded.astype(stored.dtype), stored)
    content = np.ascontiguousarray(paper.encoded).tobytes()
    assert hashlib.sha256(content).hexdigest() == paper.print["sha256_float64_C_order"]


def test_columns_stand_in_the_authors_order_with_their_constraints(paper):
    encodings = paper.tables["encodings"].to_pandas()
    assert encodings["feature"].tolist() == [
        name.rsplit("_", 1)[0] if "=" in ours else name
        for name, ours in zip(paper.print["features"], encodings["encoded"], strict=True)
    ]
    enforced = {
        name: rule
        for name, rule in paper.print["constraints"].items()
        if name in paper.print["columns_actually_checked"]
    }
    word = {(True, 1): "up", (True, -1): "down", (False, 0): "immutable"}
    held = encodings[(encodings["constraint"] != "free") & (encodings["feature"] != "race")]
    found = dict(zip(held["feature"], held["constraint"], strict=True))
    assert found == {name: word[tuple(rule)] for name, rule in enforced.items()}


def test_labels_predictions_and_probabilities(paper):
    assert np.array_equal(paper.decisions["outcome"], paper.stored["y"] == 1)
    if "proba" in paper.stored:
        assert np.array_equal(paper.decisions["favourable"], paper.stored["pred"] == 1)
        assert np.abs(paper.decisions["score"] - paper.stored["proba"]).max() < 1e-12


def test_candidates_and_false_negatives(paper):
    held_out = paper.decisions["explained"]
    candidates = np.flatnonzero(held_out & (paper.decisions["score"] > 0.6))
    negatives = np.flatnonzero(held_out & ~paper.decisions["favourable"] & paper.decisions["outcome"])
    assert np.array_equal(candidates, np.sort(paper.stored["candidates"]))
    assert np.array_equal(negatives, np.sort(paper.stored["FN"]))


@pytest.mark.parametrize("paper", ["german-credit", "compas"], indirect=True)
def test_edges_over_rows(paper):
    """Equal rows share a node of ours; the authors keep them apart and link them both ways."""
    expected = paper.graph.get("graph", paper.graph)
    node = paper.tables["feasibility_nodes"]["node"].to_numpy()
    edges = paper.tables["feasibility_edges"]
    rows, nodes = len(node), node.max() + 1
    member = sparse.csr_array((np.ones(rows, np.int64), (np.arange(rows), node)), (rows, nodes))
    ends = (edges["source"].to_numpy(), edges["destination"].to_numpy())
    joined = sparse.csr_array((np.ones(edges.num_rows, np.int64), ends), (nodes, nodes)) + sparse.eye_array(nodes)
    over_rows = sparse.coo_array(member @ joined @ member.T)
    pairs = np.column_stack([over_rows.row, over_rows.col])[over_rows.row != over_rows.col].astype(np.int32)
    pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    assert (rows, len(pairs)) == (expected["nodes"], expected["edges"])
    assert hashlib.sha256(np.ascontiguousarray(pairs).tobytes()).hexdigest() == expected["edges_sha256"]


@pytest.mark.parametrize("name", list(DEFAULT))
def test_distributed_files_are_read_as_they_are(name):
    files, complete, refused = DEFAULT[name]
    tables = through(name, files, 2)
    refusals = tables["refusals"].to_pandas()
    assert refusals.groupby(["reason", "column"]).size().to_dict() == refused
    assert tables["features"].num_rows == complete
    rows = tables["applications"].to_pandas()["source_row"]
    at_ingest = (refusals["stage"] == "ingest").sum()
    assert rows.is_monotonic_increasing
    assert rows.max() == len(rows) + at_ingest == {"german-credit": 1000, "compas": 7214, "adult": 48842}[name]
