"""Drawn applicants as a source: the generator's rows, its coefficients from the spec, and what is no coefficient."""

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from conftest import REPOSITORY

from schemas.audit.spec import AuditSpec
from schemas.errors import SpecError
from tasks.ingest import registry
from tasks.ingest.stage import ingest, ingest_settings
from tasks.ingest.synthetic import source as synthetic
from tasks.ingest.synthetic.algorithm import lending
from tasks.ingest.synthetic.algorithm.lending import SyntheticLending
from tasks.pipeline.registry import read_spec

SPEC = REPOSITORY / "data" / "audits" / "synthetic-lending.yaml"
MEDIATED = REPOSITORY / "data" / "audits" / "synthetic-mediated.yaml"
DRAW = "source.synthetic.parameters"


def spec_of(**overrides: str) -> AuditSpec:
    dotted = {key.replace("__", "."): value for key, value in overrides.items()}
    return read_spec(SPEC.read_text(encoding="utf-8"), SPEC.name, {f"{DRAW}.rows": "200", **dotted}).spec


def test_the_applications_are_the_generators_rows_to_the_last_bit() -> None:
    made = ingest.function(settings=ingest_settings(spec_of()))
    drawn = lending.generate(SyntheticLending(rows=200), np.random.default_rng(0))
    table = made.tables["applications"]
    got = np.column_stack([table[name].to_numpy() for name in lending.names(SyntheticLending())])
    assert np.array_equal(got, drawn.features)
    assert np.array_equal(table["favourable"].to_numpy(zero_copy_only=False), drawn.favourable)
    assert made.refusals.num_rows == 0


@pytest.mark.parametrize("file", [SPEC, MEDIATED], ids=lambda file: file.stem)
def test_the_specs_coefficients_are_the_generators_defaults(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    plain, given = (read_spec(text, file.name, said).spec.source for said in ({DRAW: "{}"}, {}))
    assert registry.digest(plain) == registry.digest(given)
    assert given.synthetic is not None
    kind = synthetic.GENERATORS[given.synthetic.generator].parameters
    assert list(given.synthetic.parameters) == [field.name for field in fields(kind)]


def test_mediated_rows_are_the_generators_and_their_group_moves_the_mediator() -> None:
    said = {f"{DRAW}.rows": "4000", f"{DRAW}.beta_3": "2.0", f"{DRAW}.noise": "0.5"}
    given = read_spec(MEDIATED.read_text(encoding="utf-8"), MEDIATED.name, said).spec
    registry.check_columns(given)
    made = ingest.function(settings=ingest_settings(given)).tables
    settings = lending.Synthetic(rows=4000, beta_3=2.0, noise=0.5)
    drawn = lending.synthetic(settings, np.random.default_rng(0))
    table = made["applications"]
    assert np.array_equal(table["x"].to_numpy(), drawn.covariates[:, 0])
    assert np.array_equal(table["m"].to_numpy(), drawn.mediators[:, 0])
    assert np.array_equal(table["favourable"].to_numpy(zero_copy_only=False), drawn.favourable)
    groups = made["memberships"].to_pandas().set_index("row_id").loc[table["row_id"].to_pylist(), "group"]
    assert np.array_equal(groups.to_numpy() == "A1", drawn.category == 1)
    noise = table["m"].to_numpy() - table["x"].to_numpy() - 2.0 * (drawn.category == 1)
    assert noise.std() == pytest.approx(0.5, rel=0.05)


@pytest.mark.parametrize(
    ("key", "value"), [("seed", "1"), ("parameters.shift", "1.0"), ("parameters.weights", "[1, 2]")]
)
def test_each_of_seed_and_coefficients_is_another_source(key: str, value: str) -> None:
    changed = read_spec(SPEC.read_text(encoding="utf-8"), SPEC.name, {f"source.synthetic.{key}": value}).spec
    given = read_spec(SPEC.read_text(encoding="utf-8"), SPEC.name, {}).spec
    assert registry.digest(changed.source) != registry.digest(given.source)


def test_a_shift_is_seen_in_the_proxies_alone() -> None:
    table = ingest.function(
        settings=ingest_settings(spec_of(**{f"{DRAW}.rows": "4000", f"{DRAW}.shift": "1.0"}))
    ).tables
    groups = table["memberships"].to_pandas().set_index("row_id")["group"]
    rows = table["applications"].to_pandas().set_index("row_id")
    means = rows.select_dtypes("number").groupby(groups).mean()
    apart = means.loc["protected"] - means.loc["other"]
    assert apart[["proxy_1", "proxy_5"]].to_numpy() == pytest.approx(1.0, abs=0.15)
    assert apart[["financial_1", "noise_1"]].to_numpy() == pytest.approx(0.0, abs=0.15)


@pytest.mark.parametrize(
    ("overrides", "match"),
    [
        ({"source.synthetic.generator": "lendng"}, "no generator 'lendng'.*'lending'"),
        ({f"{DRAW}.shfit": "1"}, "no parameter 'shfit'.*'shift'"),
        ({f"{DRAW}.rows": "1000000000"}, "1,000,000,000 rows: expected 1 to 10,000,000"),
        ({f"{DRAW}.rows": "0"}, "0 rows: expected 1 to"),
        ({f"{DRAW}.rows": "many"}, "'many' is no value for 'rows'"),
        ({f"{DRAW}.weights": "[1.0]"}, "1 weights for 10 financial features"),
        ({"source.synthetic": "null"}, "needs `synthetic: {generator"),
        ({"source.kind": "csv", "source.path": "x.csv"}, "no other kind has it"),
    ],
)
def test_what_cannot_be_drawn_is_named(overrides: dict[str, str], match: str) -> None:
    with pytest.raises(SpecError, match=match):
        drawn(overrides)


def drawn(overrides: dict[str, str]) -> None:
    """All that happens to a source before and while it is read."""
    given = read_spec(SPEC.read_text(encoding="utf-8"), SPEC.name, overrides).spec
    registry.check_columns(given)
    ingest.function(settings=ingest_settings(given))
