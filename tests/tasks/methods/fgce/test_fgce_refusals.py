"""FGCE on input that leaves nothing to find: a refusal in the tables or a clear message, never a silent zero."""

import os
import stat
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from conftest import SPEC, loans
from conftest import spec_of as spec_of_all
from points_of_curves import every_measure

from schemas.audit.spec import AuditSpec
from schemas.errors import InfrastructureError, SpecError
from tasks.in_memory import call_plainly
from tasks.ingest.registry import check_columns
from tasks.methods.fgce.algorithm import solver
from tasks.plan import plan


def spec_of(place: Path, text: str = SPEC, **overrides: str) -> AuditSpec:
    """The loans, looked at by FGCE alone."""
    return spec_of_all(place, text, methods__cst="null", **overrides)


def tables(spec: AuditSpec, last: str = "measure") -> dict[str, pd.DataFrame]:
    steps = plan(spec).steps
    until = next(i for i, step in enumerate(steps) if step.name == last)
    found = call_plainly(steps[: until + 1])
    return {name: pd.concat([t.to_pandas() for t in parts]) for name, parts in found.items()}


def test_an_epsilon_below_every_distance_leaves_singletons_and_says_so(place: Path) -> None:
    unbinned = {"columns__income__bins": "false", "columns__amount__bins": "false"}
    found = tables(spec_of(place, methods__fgce__epsilon="0.000001", methods__fgce__ablations="false", **unbinned))
    facts = found["feasibility_facts"].set_index("fact")["words"]
    assert "epsilon is too small or the constraints are too tight" in facts["isolated"]
    assert set(found["findings"]["refusal"].dropna()) == {"no_feasible_path"}
    k0 = found["measures"].query("measure == 'k0' and subgroup == 0")
    assert k0["value"].isna().all()
    assert set(k0["note"]) <= {"no row has a feasible counterfactual", ""}  # empty where withheld


def test_without_factuals_there_is_nothing_to_explain(place: Path) -> None:
    table = loans()
    table.loc[table["race"] == "b", "approved"] = "yes"
    table.to_csv(place / "loans.csv", index=False)
    found = tables(spec_of(place, model__kind="none"))
    assert "Black" not in set(found["findings"]["group"])
    told = found["aggregates"].query("decision_maker == 'lender' and measure == 'k0' and group == 'Black'")
    assert told["reason"].tolist() == ["no factual: nobody has anything to be explained"]
    assert len(found["findings"]) == (table["approved"] == "no").sum()


def test_without_candidates_every_search_is_refused(place: Path) -> None:
    table = loans()
    table.loc[table["race"] == "b", "approved"] = "no"
    table.to_csv(place / "loans.csv", index=False)
    found = tables(spec_of(place, model__kind="none"))
    refused = found["findings"].query("group == 'Black'")
    assert set(refused["refusal"]) == {"no_candidate"}
    assert refused["statistic"].isna().all()
    k0 = found["aggregates"].query("group == 'Black' and measure == 'k0' and subgroup == 0").iloc[0]
    assert pd.isna(k0["value"])
    assert k0["reason"] == "no row has a feasible counterfactual"


def test_more_counterfactuals_asked_for_than_there_are_candidates(place: Path) -> None:
    loans(60).to_csv(place / "loans.csv", index=False)
    found = tables(spec_of(place, methods__fgce__k="60", model__kind="none"))
    assigned = found["evidence"].query("role == 'assigned'")
    assert 0 < assigned["rank"].max() < 60


def test_a_constraint_on_a_missing_column_names_the_nearest(place: Path) -> None:
    spec = spec_of(place, columns__incom__type="continuous", columns__incom__constraint="up")
    with pytest.raises(SpecError, match="no column 'incom'; did you mean 'income'"):
        check_columns(spec)


def test_a_column_named_like_an_ablation_is_refused(place: Path) -> None:
    loans().rename(columns={"income": "epsilon"}).to_csv(place / "loans.csv", index=False)
    text = (
        (place / "loans.yaml")
        .read_text()
        .replace("  income: {", "  epsilon: {")
        .replace("[race, income]", "[race, epsilon]")
    )
    text = text.replace("[income, amount]", "[epsilon, amount]")
    with pytest.raises(SpecError, match="'epsilon' is the name of a search of its own"):
        plan(spec_of(place, text))


def test_no_density_of_constant_features(place: Path) -> None:
    table = loans()
    table[["income", "amount", "purpose", "history"]] = [10.0, 20.0, "buy", "fair"]
    table.to_csv(place / "loans.csv", index=False)
    spec = spec_of(place, methods__fgce__cost="path", model__kind="none", methods__fgce__ablations="false")
    measures = tables(spec)["measures"].query("method == 'fgce' and decision_maker == 'lender'")
    unmeasured = measures[measures["value"].isna()]
    assert set(measures["value"].dropna()) <= {0.0}, "shares of nobody"
    assert unmeasured["reason"].str.contains("bandwidth scott of the kernel density is 0").any()


def exact(place: Path) -> AuditSpec:
    return spec_of(
        place, methods__fgce__exact="true", methods__fgce__size_matched_draws="0", methods__fgce__resolves="0"
    )


def test_a_missing_solver_is_named(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solver.shutil, "which", lambda name: None)
    with pytest.raises(InfrastructureError, match=r"CBC was not found .* reinstall PuLP"):
        tables(exact(place), "detect fgce")


@pytest.mark.slow
def test_a_killed_solver_leaves_bounds_with_their_reason(
    place: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    killed = tmp_path / "cbc"
    killed.write_text("#!/bin/sh\nkill -9 $$\n")
    killed.chmod(killed.stat().st_mode | stat.S_IEXEC)
    assert os.access(killed, os.X_OK)
    monkeypatch.setattr(solver, "cbc_path", lambda: str(killed))
    loans(1200, seed=3).to_csv(place / "loans.csv", index=False)
    made = call_plainly(plan(exact(place)).steps[:-2])
    every = every_measure({name: pa.concat_tables(parts) for name, parts in made.items() if parts})
    measured = every.query("measure == 'least_cost' and value == value")
    stopped = measured[measured["note"].str.contains("ended by SIGKILL", na=False)]
    assert len(stopped)
    assert set(stopped["state"]) == {"information"}
