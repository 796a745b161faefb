"""Known figures of real data: Boston 1990 from its package, and Texas 2022 where the shared folder is there."""

import io
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from conftest import REPOSITORY, SHARED
from jsonschema import Draft202012Validator
from openpyxl import load_workbook
from reader_of_counts import Asked, Cell, Reader

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


@pytest.fixture(scope="module")
def run() -> tuple[Step, dict[str, list[pa.Table]]]:
    """The last step of the audit by all methods, and all tables."""
    steps = plan(spec_file("boston1990.yaml", bootstrap__draws="200")).steps
    return steps[-1], call_plainly(steps[:-1])


@pytest.fixture(scope="module")
def given(run: tuple[Step, dict[str, list[pa.Table]]]) -> list[pa.Table]:
    """What the report is made of."""
    return [pa.concat_tables(run[1].get(table.name) or [table.empty()]) for table in run[0].stage.reads]


@pytest.fixture(scope="module")
def files(run: tuple[Step, dict[str, list[pa.Table]]], given: list[pa.Table]) -> Mapping[str, bytes]:
    """The files of the report."""
    made: Mapping[str, bytes] = run[0].stage.function(*given, settings=run[0].settings).files
    return made


@pytest.fixture(scope="module")
def boston(run: tuple[Step, dict[str, list[pa.Table]]]) -> dict[str, pd.DataFrame]:
    return {name: pd.concat([t.to_pandas() for t in parts]) for name, parts in run[1].items()}


def test_every_file_of_the_report_is_within_its_budget(files: Mapping[str, bytes]) -> None:
    assert {line.path: line.over for line in budget_lines({**files, SINGLE: single(files)}) if line.over} == {}
    Draft202012Validator(schema()).validate(json.loads(files["report.json"]))


def test_the_first_page_of_boston_fits_a_terminal(files: Mapping[str, bytes]) -> None:
    report = json.loads(files["report.json"])
    off = ["Not run: cst, cec, gcfn, raguel (not in `methods` of the spec)."]
    lines = summary(report, "/a/lake/reports/run/report.html", left_out="5 of the rows read", notes=off)
    headline = lines[2 : lines.index("", 2)]
    assert " ".join(headline) == report["headline"]["words"].replace("\N{NO-BREAK SPACE}", " ")
    assert len(lines) <= 24
    assert max(len(line) for line in lines if "evenhand findings" not in line) <= 100
    assert all(line == line.rstrip() for line in lines)


def test_the_readme_prints_and_draws_what_the_audit_finds(
    run: tuple[Step, dict[str, list[pa.Table]]], given: list[pa.Table], files: Mapping[str, bytes]
) -> None:
    settings = run[0].settings
    report = json.loads(files["report.json"])
    said = [line for line in summary(report, "report.html") if line]
    readme = (REPOSITORY / "README.md").read_text().split("```\n")
    (printed,) = (block for block in readme if block.startswith(said[0]))
    ours, shown = (lines[: [line[:4] for line in lines].index("run ")] for lines in (said, printed.splitlines()))
    # A run's id follows from the code, too.
    assert [re.sub(RUN_ID, "RUN", line) for line in shown if line] == [re.sub(RUN_ID, "RUN", line) for line in ours]
    drawn = picture(decide(run_of(material_of(given, settings))), settings.title)
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


def test_nothing_of_boston_follows_that_is_withheld_and_no_rate_is_withheld_for_nothing(
    run: tuple[Step, dict[str, list[pa.Table]]], files: Mapping[str, bytes]
) -> None:
    """A reader of workbook and report.json solves for all counts, with the rounding that the publication tells."""
    tables = run[1]
    sheets = load_workbook(io.BytesIO(files["measures.xlsx"]), read_only=True)
    waterfall, measures = (_records(sheets[name].iter_rows(values_only=True)) for name in ("Waterfall", "Measures"))
    publication = pa.concat_tables(tables["publication"]).to_pylist()
    lines = {line["line"]: _line(line) for line in waterfall if line["kind"] != "left"}
    printed = {Asked("race", row["group"], lines[row["line"]]): row["n"] for row in waterfall if row["line"] in lines}
    rates = [row for row in measures if row["measure"] == "approval_rate"]
    for row in rates:
        line = "source" if row["decision_maker"] == "lender" else "used"
        printed[Asked("race", row["group"], line)] = row["n"]
        denied = None if row["events"] is None else row["n"] - row["events"]
        printed[Asked("race", row["group"], line, row["decision_maker"])] = denied
    in_json = {group["group"]: group["n"]["value"] for group in json.loads(files["report.json"])["groups"]}
    assert in_json == {row["group"]: row["n"] for row in rates if row["decision_maker"] == "lender"}
    known, withheld = dict[Asked, tuple[float, float]](), list[Asked]()
    for row in publication:
        refused = row["reason"].removesuffix(": ") if row["base"] == "refused" else row["base"]
        count = Asked("race", row["group"], refused, row["decision_maker"] if row["event"] else "")
        if "lacks" in row["reason"] or (count.denied_by and count not in printed):
            continue
        if row["fate"].startswith("withheld"):
            withheld += [] if row["event"] else [count]
        else:
            assert printed[count] == row["number"], count
            known[count] = row["low"], row["high"]
    cells = [
        Cell((("race", group),), line, denied)
        for group in ("white", "Black", "Hispanic")
        for line in {*lines.values()} - {"source"}
        for denied in ((), ("lender",), ("model",), ("lender", "model"))
    ]
    reader = Reader(cells, known)
    assert withheld
    for count in withheld:
        low, high = reader.ends(count)
        assert high - low >= 4, (count, low, high)
    for row in rates:
        line = "source" if row["decision_maker"] == "lender" else "used"
        ends = [reader.ends(Asked("race", row["group"], line, who)) for who in ("", row["decision_maker"])]
        assert row["value"] is not None or any(low < high for low, high in ends), row


def _records(rows: Iterable[tuple[Any, ...]]) -> list[dict[str, Any]]:
    names, *content = rows
    return [dict(zip(names, row, strict=True)) for row in content]


def _line(line: Mapping[str, Any]) -> str:
    """A line of the waterfall as the publication names it."""
    return f"{line['stage']}: {line['reason']}: {line['column'] or ''}" if line["kind"] == "refused" else line["kind"]
