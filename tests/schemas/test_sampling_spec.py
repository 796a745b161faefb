"""`sampling` in the spec, and the parameter that says how many were asked."""

import pytest
from conftest import SPEC

from flows.launch.audit import cost_of_everybody
from schemas.audit.partition import Sampling, as_sampled, asked_and_of, unsampled
from schemas.errors import SpecError
from tasks.pipeline.registry import read_spec


def spec(**overrides):
    return read_spec(SPEC, "loans.yaml", {key.replace("__", "."): value for key, value in overrides.items()}).spec


def test_the_parameter_is_read_back_and_measures_are_looked_up_without_it():
    assert asked_and_of(as_sampled(2000, 17593)) == (2000, 17593)
    assert unsampled('{"k": 30, "sampled": "2000 of 17593"}') == '{"k": 30}'
    assert unsampled('{"sampled": "withheld"}') == "{}"
    assert unsampled("{}") == "{}"


def test_a_spec_asks_a_sample_by_default_and_a_paper_asks_everybody():
    assert spec().sampling == Sampling(queries=20_000, graph_rows=50_000)
    assert spec(profile="paper").sampling is None
    assert spec(profile="paper", sampling="{queries: 3000}").sampling == Sampling(queries=3000)
    with pytest.raises(SpecError, match=r"sampling\.queries"):
        spec(sampling__queries="100")


def test_who_asks_everybody_is_told_beforehand_what_it_costs():
    everybody = spec(sampling="null")
    assert cost_of_everybody(spec(), 400_000) == ""
    assert cost_of_everybody(everybody, 10_000) == ""
    assert "ablate 8.0 times" in cost_of_everybody(everybody, 200_000)
    assert "detect cst 10.0 times" in cost_of_everybody(everybody, 200_000)
    assert "beyond 20,000 complainants" in cost_of_everybody(everybody, None)
    assert cost_of_everybody(spec(sampling="null", methods__fgce="null", methods__cst="null"), 10**6) == ""
