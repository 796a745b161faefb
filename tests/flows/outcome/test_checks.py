"""The sentence on a run's checks, by rows as they are published."""

from pathlib import Path

import pytest
from lake_of_runs import NEW, OLD, OTHER, lake_of_runs

from flows.outcome.conclusion import ending_of_run, report_address
from flows.outcome.ending import Checks, Name, checks_of, shown
from flows.runs.index import run_of
from schemas.tables.verdicts import VERDICTS, row_words
from schemas.terms import State
from tasks.lake.store import Lake

BLANK = dict.fromkeys(column.name for column in VERDICTS.columns)
CHECK = {
    **BLANK,
    **{"theory": "approval_rates", "protected_attribute": "race", "group": "Black", "decision_maker": "lender"},
    **{"measure": "approval_rate_ratio", "role": "primary", "scale": "log", "side": "at_least", "limit": 0.8},
    **{"value": 0.743, "low": 0.668, "high": 0.812, "withheld": False, "state": "outside", "reason": "beyond"},
}
GATE = frozenset({"similar_applicants", "causal_model", "approval_rates", "own_limits"})
WHOLE = {**CHECK, "role": "theory", "reason": "the reason of the theory"}


def checks(*rows: dict[str, object]) -> Checks:
    return Checks([{**CHECK, **row} for row in rows], [WHOLE], GATE)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return lake_of_runs(tmp_path_factory.mktemp("runs"))


def test_a_check_reads_as_in_the_report() -> None:
    assert row_words(CHECK) == "Approval rates, race: Black 0.74 [0.67, 0.81], at least 0.80"


def test_a_check_of_a_price_says_so() -> None:
    own = {"theory": "similar_applicants", "role": "adds", "measure": "rate_spread_effect", "scale": "linear"}
    numbers = {"value": 0.3, "low": 0.2, "high": 0.4, "limit": 0.1, "side": "at_most"}
    row = {**CHECK, **own, **numbers, "plain_low": None, "plain_high": None}
    effect = "+0.300 percentage points [+0.200, +0.400], at most 0.1 percentage points"
    assert row_words(row) == f"Similar applicants, price, race: Black {effect}"
    assert (
        checks(own | numbers).message(State.OUTSIDE).startswith("1 of 1 outside the limit; Similar applicants, price")
    )


def test_a_withheld_check_tells_no_number() -> None:
    row = {**CHECK, "withheld": True}
    assert row_words(row) == "Approval rates, race: Black withheld, at least 0.80"
    assert "0.74" not in str(shown(row))
    assert shown(row)["state"] == "Inconclusive (withheld)"


def test_messages_count_what_decides_and_name_the_worst() -> None:
    two = checks({}, {"state": "within"}, {"role": "watch"}, {"theory": "model_reasons"})
    assert two.message(State.OUTSIDE).startswith("1 of 2 outside the limit; Approval rates, race: Black ")
    assert [row["role"] for row in two.open] == ["primary", "primary"], "levels of practitioners are no limits"
    assert (
        checks({"state": "within"}).message(State.WITHIN).startswith("1 of 1 within the limit, none outside; closest: ")
    )
    few = checks({"state": "inconclusive"}).message(State.INCONCLUSIVE)
    assert few == "1 of 1 inconclusive; Approval rates: the reason of the theory"
    assert (
        checks().message(State.NO_LIMIT)
        == "no result could be held against a limit; Approval rates: the reason of the theory"
    )
    hidden = checks({"withheld": True}).message(State.OUTSIDE)
    assert hidden == "a result is outside its limit; Approval rates: the reason of the theory", (
        "a withheld row is not named"
    )


def test_the_worst_check_comes_first(lake: Lake) -> None:
    found = checks_of(lake, run_of(lake, NEW))
    assert {row["role"] for row in found.rows} & {"primary", "adds"}
    assert all(row["limit"] is not None for row in found.rows)
    states = [row["state"] for row in found.rows]
    assert states == sorted(states, key=lambda state: (state != "outside", state != "inconclusive"))


@pytest.mark.parametrize(("run", "name"), [(OLD, Name.WITHIN), (NEW, Name.OUTSIDE), (OTHER, Name.INCONCLUSIVE)])
def test_a_run_ends_by_its_manifest(lake: Lake, run: str, name: Name) -> None:
    found = ending_of_run(lake, run)
    assert (found.name, found.run) == (name, run)
    assert found.subject == " ".join(run.split("-")[:2])
    assert found.report.endswith(f"/reports/{run}/report.html")


def test_the_reports_site_makes_the_address(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENHAND_REPORTS_URL", "https://audits.example/")
    assert report_address(lake, NEW) == f"https://audits.example/{NEW}/report.html"
    for odd in ("javascript:alert(1)", "https://", "https://a b.example/", 'https://x"><script>/', "/srv/reports"):
        monkeypatch.setenv("EVENHAND_REPORTS_URL", odd)
        assert Path(report_address(lake, NEW)).is_relative_to(lake.location), odd
    monkeypatch.setenv("EVENHAND_REPORTS_URL", 'https://audits.example:8443/a b)(\n"><script>/?q=1')
    address = report_address(lake, NEW)
    assert address == f"https://audits.example:8443/a%20b%29%28%22%3E%3Cscript%3E/{NEW}/report.html"
    monkeypatch.delenv("EVENHAND_REPORTS_URL")
    assert Path(report_address(lake, NEW)).is_relative_to(lake.location)
