"""Stage proxies in whole audits: no name reaches the lake, every application has an outcome, and nothing is judged."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from computed_lake import computed

from schemas.audit.spec import AuditSpec
from schemas.errors import SpecError
from tasks.ingest.registry import check_columns
from tasks.lake.store import Lake
from tasks.pipeline.registry import read_spec

SPEC = """\
name: cars
year: 2024
source:
  kind: csv
  path: cars.csv
  proxy: {surname: family, place: zip, first_name: given}
row_id: id
decision: {column: decision, favourable: [approved], unfavourable: [denied]}
protected:
  - {name: age, columns: [age], bands: [62], reference: under 62}
columns:
  income: {type: continuous, constraint: up}
methods: {adjusted: {estimators: [logit]}, fgce: null, cst: null, cec: null, gcfn: null, raguel: null}
bootstrap: {draws: 100}
"""
FAMILY = ("Garcia", "Smith", "Nguyen", "Washington", "Jefferson", "Olson", "Xqzt", "")
GIVEN = ("Maria", "Latoya", "Xqztina")


def cars(place: Path, n: int = 600) -> AuditSpec:
    rng = np.random.default_rng(4)
    names = rng.choice(FAMILY, n)
    frame = pd.DataFrame(
        {
            "id": [f"A{i}" for i in range(n)],
            "family": names,
            "given": rng.choice(GIVEN, n),
            "zip": rng.choice(["78704", "60619-1234", "99999"], n, p=[0.5, 0.45, 0.05]),
            "age": rng.integers(20, 90, n),
            "income": rng.normal(50, 10, n).round(1),
            "decision": np.where(rng.random(n) < 0.3, "denied", "approved"),
        }
    )
    frame.to_csv(place / "cars.csv", index=False)
    return read_spec(SPEC, "cars.yaml", {"source.path": str(place / "cars.csv")}).spec


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    place = tmp_path_factory.mktemp("proxies")
    lake = Lake(place / "lake")
    computed(lake, cars(place))
    return lake


def table_of(lake: Lake, name: str) -> pd.DataFrame:
    (file,) = lake.root.rglob(f"{name}.parquet")
    return pq.read_table(file).to_pandas()


@pytest.mark.slow
def test_no_name_is_in_any_byte_of_the_lake(lake: Lake) -> None:
    words = [word for word in (*FAMILY, *GIVEN, "60619") if word]
    files = [file for file in lake.root.rglob("*") if file.is_file()]
    assert sum(file.suffix == ".parquet" for file in files) > 20
    for file in files:
        content = file.read_bytes()
        if file.suffix == ".parquet":  # cells are compressed
            content += pq.read_table(file).to_pandas().to_csv().encode()
        assert [word for word in words if word.lower().encode() in content.lower()] == [], file


@pytest.mark.slow
def test_every_application_has_an_outcome_and_probabilities_add_up(lake: Lake) -> None:
    rows, outcomes = table_of(lake, "proxies"), table_of(lake, "proxy_outcomes")
    assert len(rows) == len(table_of(lake, "applications")) == outcomes["rows"].sum()
    assert set(rows["outcome"]) == {"probable", "unknown_surname", "missing_surname", "unknown_place"}
    races = rows[["white", "black", "api", "native", "multiple", "hispanic"]]
    np.testing.assert_allclose(races[rows["outcome"] == "probable"].sum(axis=1), 1)
    assert races[rows["outcome"] != "probable"].isna().all(axis=None)
    assert set(rows["proxy"]) == {"bifsg", "bisg", "none"}


@pytest.mark.slow
def test_measures_carry_their_proxy_and_no_verdict(lake: Lake) -> None:
    measures, published = table_of(lake, "proxy_measures"), table_of(lake, "published_proxy_measures")
    assert set(measures["proxy"]) == set(published["proxy"]) == {"bifsg"}
    assert {"black", "hispanic"} <= set(published["race"])
    assert not {"state", "limit"} & set(published.columns)
    regression = published[published["estimator"] == "regression"].dropna(subset="value")
    assert (regression["low"] < regression["high"]).all()
    assert set(table_of(lake, "published_verdicts")["protected_attribute"]) <= {"age", ""}


@pytest.mark.slow
def test_published_counts_of_few_are_withheld(lake: Lake) -> None:
    exact, published = table_of(lake, "proxy_outcomes"), table_of(lake, "published_proxy_outcomes")
    measures = table_of(lake, "published_proxy_measures")
    assert not exact["rows"].between(1, 7).any(), "a small count withholds the table"
    assert (published["rows"] % 5 == 0).all()
    assert (measures["n"] % 5 == 0).all()
    assert (measures["expected"].dropna() % 5 == 0).all()
    assert measures["expected"].isna().equals(measures["value"].isna())


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"columns": "{family: {type: nominal}}"}, "'family' holds names.*`columns`"),
        ({"row_id": "family"}, "`row_id`"),
        ({"protected": "[{name: x, columns: [given], reference: Maria}]"}, "`protected`"),
        ({"source": "{kind: boston1990, proxy: {surname: a, place: b}}"}, "belongs to a table of your own"),
    ],
)
def test_a_column_of_names_is_nothing_else(tmp_path: Path, overrides: dict[str, str], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        read_spec(SPEC, "cars.yaml", overrides)


def test_a_column_of_names_that_the_file_lacks_is_named(tmp_path: Path) -> None:
    spec = cars(tmp_path, 50)
    proxy = spec.source.proxy.model_copy(update={"surname": "famly"})
    spec = spec.model_copy(update={"source": spec.source.model_copy(update={"proxy": proxy})})
    with pytest.raises(SpecError, match="did you mean 'family'"):
        check_columns(spec)
