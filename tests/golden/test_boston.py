"""Known figures of real data: Boston 1990 from its package, and Texas 2022 where the shared folder is there."""

import json
import re

import pandas as pd
import pyarrow as pa
import pytest
from conftest import REPOSITORY, SHARED
from jsonschema import Draft202012Validator

from flows.runs.first_page import summary
from schemas.report import schema
from tasks.in_memory import call_plainly
from tasks.pipeline.registry import METHODS, read_spec
from tasks.plan import Step, plan
from tasks.reporting.exports.single_file import SINGLE, budget_lines, picture, single
from tasks.reporting.first_page.page import decide, run_of
from tasks.reporting.stage import material_of

RUN_ID = r"boston1990-1990-[0-9a-f]{10}"

pytestmark = pytest.mark.slow


def spec_file(name: str, **overrides: str):  # type: ignore[no-untyped-def]
    text = (REPOSITORY / "data" / "audits" / name).read_text()
    return read_spec(text, name, {key.replace("__", "."): value for key, value in overrides.items()}).spec


@pytest.fixture(scope="module", params=["fgce", "all methods"])
def run(request: pytest.FixtureRequest) -> tuple[Step, dict[str, list[pa.Table]]]:
    """The last step of the audit, and all tables."""
    left_out = {f"methods__{name}": "null" for name in METHODS if request.param == "fgce" != name}
    steps = plan(spec_file("boston1990.yaml", bootstrap__draws="200", **left_out)).steps
    return steps[-1], call_plainly(steps)


@pytest.fixture(scope="module")
def boston(run: tuple[Step, dict[str, list[pa.Table]]]) -> dict[str, pd.DataFrame]:
    return {name: pd.concat([t.to_pandas() for t in parts]) for name, parts in run[1].items()}


def test_every_file_of_the_report_is_within_its_budget(run: tuple[Step, dict[str, list[pa.Table]]]) -> None:
    step, tables = run
    given = [pa.concat_tables(tables.get(table.name) or [table.empty()]) for table in step.stage.reads]
    files = step.stage.function(*given, settings=step.settings).files
    assert {line.path: line.over for line in budget_lines({**files, SINGLE: single(files)}) if line.over} == {}
    Draft202012Validator(schema()).validate(json.loads(files["report.json"]))


def test_the_first_page_of_boston_fits_a_terminal(run: tuple[Step, dict[str, list[pa.Table]]]) -> None:
    step, tables = run
    given = [pa.concat_tables(tables.get(table.name) or [table.empty()]) for table in step.stage.reads]
    report = json.loads(step.stage.function(*given, settings=step.settings).files["report.json"])
    off = ["Not run: cst, cec, gcfn, raguel (not in `methods` of the spec)."]
    lines = summary(report, "/a/lake/reports/run/report.html", left_out="5 of the rows read", notes=off)
    headline = lines[2 : lines.index("", 2)]
    assert " ".join(headline) == report["headline"]["words"].replace("\N{NO-BREAK SPACE}", " ")
    assert len(lines) <= 24
    assert max(len(line) for line in lines if "evenhand findings" not in line) <= 100
    assert all(line == line.rstrip() for line in lines)


@pytest.mark.parametrize("run", ["all methods"], indirect=True)
def test_the_readme_prints_and_draws_what_the_audit_finds(run: tuple[Step, dict[str, list[pa.Table]]]) -> None:
    step, tables = run
    given = [pa.concat_tables(tables.get(table.name) or [table.empty()]) for table in step.stage.reads]
    report = json.loads(step.stage.function(*given, settings=step.settings).files["report.json"])
    said = [line for line in summary(report, "report.html") if line]
    readme = (REPOSITORY / "README.md").read_text().split("```\n")
    (printed,) = (block for block in readme if block.startswith(said[0]))
    ours, shown = (lines[: [line[:4] for line in lines].index("run ")] for lines in (said, printed.splitlines()))
    # A run's id follows from the code, too.
    assert [re.sub(RUN_ID, "RUN", line) for line in shown if line] == [re.sub(RUN_ID, "RUN", line) for line in ours]
    drawn = picture(decide(run_of(material_of(given, step.settings))), step.settings.title)
    assert drawn == (REPOSITORY / "docs" / "first-page.svg").read_bytes()


def test_approval_rates_of_boston(boston: dict[str, pd.DataFrame]) -> None:
    measures = boston["measures"]
    lender = measures[(measures["measure"] == "approval_rate") & (measures["decision_maker"] == "lender")]
    found = lender.set_index("group")[["value", "n"]]
    assert found.loc["white"].tolist() == [pytest.approx(0.9084, abs=5e-5), 1681]
    assert found.loc["Black"].tolist() == [pytest.approx(0.6751, abs=5e-5), 197]
    assert found.loc["Hispanic", "n"] == 111


def test_every_boston_application_is_used_or_refused(boston: dict[str, pd.DataFrame]) -> None:
    refused = boston["refusals"]
    assert len(boston["features"]) + len(refused) == 1989
    assert sorted(refused["column"].tolist()) == ["dep", "multi", "multi", "multi", "multi"]


def test_every_group_has_intervals_and_the_others_a_size_matched_reference(boston: dict[str, pd.DataFrame]) -> None:
    whole = boston["measures"].query("subgroup == 0 and method == 'fgce' and parameters == '{}'")
    for maker in ("model", "lender"):
        of = whole[whole["decision_maker"] == maker]
        for measure in ("infeasible_share", "burden"):
            assert of[of["measure"] == measure][["value", "low", "high"]].notna().to_numpy().all()
            matched = of[of["measure"] == f"{measure}_size_matched"]
            assert set(matched["group"]) == {"Black", "Hispanic"}
            assert (matched["n"] >= 20).all()


def test_the_model_denies_as_often_as_the_lender(boston: dict[str, pd.DataFrame]) -> None:
    decided = boston["decisions"].groupby("decision_maker")["favourable"].mean()
    assert decided["model"] == pytest.approx(decided["lender"], abs=0.002)


def test_a_column_called_self_can_be_imputed_and_no_method_be_asked_for() -> None:
    none = {f"methods__{name}": "null" for name in METHODS}
    spec = spec_file("boston1990.yaml", missing="impute", thresholds="[]", bootstrap__draws="100", **none)
    tables = call_plainly(plan(spec).steps)
    assert tables["features"][0].num_rows == 1989
    assert {m["method"] for m in tables["measures"][0].to_pylist()} == {"outcomes"}


@pytest.mark.data("data/hmda_2022_tx_50k")
def test_texas_balances_to_the_row() -> None:
    path = SHARED / "data" / "hmda_2022_tx_50k" / "hmda_tx_2022_sample.csv.gz"
    steps = plan(spec_file("hmda-tx-2022.yaml", source__path=str(path))).steps[:2]
    tables = {n: pd.concat([t.to_pandas() for t in parts]) for n, parts in call_plainly(steps).items()}
    assert (len(tables["features"]), len(tables["refusals"])) == (43_880, 6_120)
    race = tables["memberships"].query("protected_attribute == 'race'")["group"].value_counts()
    assert race["White"] == 31_221
    assert race["not provided"] == 8_943
    assert race["missing"] == 16
    assert race.sum() == 50_000
