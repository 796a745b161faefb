"""Peers: 0.5 to 2 times the applications in the same areas and products; tracts; the screen of a whole year."""

import duckdb
import numpy as np
import pandas as pd
import pytest

from schemas.audit.source import Source
from schemas.errors import SpecError
from tasks.ingest.vintages.peers import keep_condition, peers_of, screened, tracts


def rows_of(lender, n, *, area="12420", purpose="1", minority=20.0, made=0.5, spread=1.0, race="White"):
    of = {"lender_id": lender, "msa_md": area, "state_code": "TX", "loan_purpose": purpose, "lien_status": "1"}
    of |= {"open_end_line_of_credit": "2", "loan_type": "1", "tract_minority_pct": minority, "derived_race": race}
    of |= {"tract_fips11": f"48{int(minority):09d}", "tract_1_4_family_units": 500.0, "rate_spread": spread}
    of |= {"derived_ethnicity": "Not Hispanic or Latino"}
    frame = pd.DataFrame([of] * n)
    frame["action_taken"] = ["1" if i < made * n else "3" for i in range(n)]
    frame["rate_spread"] = frame["rate_spread"].where(frame["action_taken"] == "1")
    return frame


@pytest.fixture
def connection():
    with duckdb.connect() as opened:
        yield opened


def laid(connection, *frames):
    connection.register("rows", pd.concat(frames))
    return "rows"


def test_peers_lend_as_much_in_the_same_areas_and_products(connection):
    rows = laid(
        connection,
        rows_of("me", 100),
        rows_of("half", 50),
        rows_of("less", 49),
        rows_of("twice", 200),
        rows_of("more", 201),
        rows_of("elsewhere", 100, area="26420"),
        rows_of("otherwise", 100, purpose="3"),
    )
    found = peers_of(connection, rows, "me")
    assert found.applications == 100
    assert found.peers["lender_id"].to_pylist() == ["half", "twice"]
    assert found.peers["times"].to_pylist() == [0.5, 2.0]


def test_purchased_loans_are_no_applications(connection):
    rows = laid(connection, rows_of("me", 100), rows_of("buyer", 100).assign(action_taken="6"))
    assert peers_of(connection, rows, "me").peers.num_rows == 0


def test_an_area_narrows_and_a_lender_without_applications_has_none(connection):
    rows = laid(connection, rows_of("me", 100), rows_of("me", 60, area="26420"), rows_of("small", 60, area="26420"))
    assert peers_of(connection, rows, "me", "26420").peers["lender_id"].to_pylist() == ["small"]
    assert peers_of(connection, rows, "me").peers.num_rows == 0
    assert peers_of(connection, rows, "nobody").applications == 0


def test_tracts_of_the_lender_and_of_its_peers_stand_side_by_side(connection):
    rows = laid(
        connection,
        rows_of("me", 90),
        rows_of("me", 10, minority=80.0),
        rows_of("peer", 60, minority=80.0),
        rows_of("peer", 60),
        rows_of("other", 1000, minority=80.0),
    )
    peers = peers_of(connection, rows, "me").peers
    counted = tracts(connection, "(SELECT * FROM rows WHERE lender_id = 'me')", rows, "me", peers).to_pylist()
    by_minority = {row["minority"]: (row["applications"], row["peer_applications"]) for row in counted}
    assert by_minority == {20.0: (90, 60), 80.0: (10, 60)}


def test_the_screen_finds_the_lender_that_keeps_away_and_the_one_that_charges_more(connection):
    honest = [rows_of(f"honest {i}", n, minority=m) for i in range(4) for n, m in ((400, 20.0), (300, 80.0))]
    away = [rows_of("away", 600), rows_of("away", 60, minority=80.0)]
    dear = [rows_of("dear", 500), rows_of("dear", 200, minority=80.0, race="Black or African American", spread=1.4)]
    rows = screened(connection, laid(connection, *honest, *away, *dear)).to_pandas().set_index("lender_id")
    assert rows.index[0] == "away"
    assert rows.loc["away", "ratio"] < 0.3
    assert rows.loc["honest 1", "ratio"] > 0.9
    assert rows.loc["dear", "black_spread"] == pytest.approx(0.4)
    assert rows.loc["dear", "black_loans"] == 100
    assert rows.loc["honest 1", "peers"] == 5


def test_share_and_that_of_peers_are_of_the_same_cells_and_the_rest_is_named(connection):
    frames = [rows_of("me", 400), rows_of("me", 100, minority=80.0), rows_of("peer", 400), rows_of("peer", 100)]
    alone = rows_of("me", 300, minority=80.0, area="26420")
    rows = screened(connection, laid(connection, *frames, alone)).to_pandas().set_index("lender_id")
    assert rows.loc["me", "share"] == pytest.approx(100 / 500)
    assert rows.loc["me", "peers_share"] == 0
    assert rows.loc["me", "left_out"] == pytest.approx(300 / 800)


def test_a_single_loan_of_a_product_has_the_variance_of_the_others(connection):
    black, rng = "Black or African American", np.random.default_rng(1)
    frames = [rows_of("me", 400, made=1.0, purpose=p) for p in ("1", "2")]
    frames += [rows_of("me", n, made=1.0, race=black, purpose=p) for n, p in ((40, "1"), (1, "2"))]
    rows = pd.concat(frames, ignore_index=True)
    rows["rate_spread"] = rng.normal(1, 0.5, len(rows))
    row = screened(connection, laid(connection, rows)).to_pylist()[0]
    kinds = rows.groupby(["loan_purpose", "derived_race"])["rate_spread"]
    (v, w1, w2), one = (kinds.var()[[("1", black), ("1", "White"), ("2", "White")]]), 1
    expected = np.sqrt(40**2 * (v / 40 + w1 / 400) + one * (v + w2 / 400)) / 41
    assert row["black_loans"] == 41
    assert row["black_se"] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("keep", "kept"),
    [
        ({"loan_purpose": ["1"]}, 60),
        ({"tract_minority_pct": {"minimum": 50}}, 40),
        ({"rate_spread": "present"}, 50),
        ({"kind": ["buy"], "lien_status": ["1"]}, 60),
        ({"way": ["made"]}, 50),
        ({}, 100),
    ],
)
def test_rows_are_kept_as_the_audit_keeps_them(connection, keep, kept):
    rows = laid(connection, rows_of("me", 60), rows_of("me", 40, purpose="2", minority=80.0))
    derive = {"kind": {"column": "loan_purpose", "values": {"buy": ["1"], "mend": ["2"]}}}
    derive["way"] = {"rows": {"made": {"action_taken": ["1"], "rate_spread": "present"}}}
    source = Source.model_validate({"kind": "hmda", "path": "lar.csv", "keep": keep, "derive": derive})
    assert connection.sql(f"SELECT count(*) FROM {rows} WHERE {keep_condition(source)}").fetchall() == [(kept,)]


def test_rows_are_not_kept_by_a_column_that_other_lenders_do_not_have():
    source = Source.model_validate({"kind": "hmda", "path": "lar.csv", "keep": {"branch": ["1"]}})
    with pytest.raises(SpecError, match="no column 'branch'"):
        keep_condition(source)
