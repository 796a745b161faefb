"""Sentences of the first page of real audits, computed a second time from the rows of their tables with pandas."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from conftest import loans, spec_of

from schemas.tables.verdicts import PUBLISHED_WATERFALL, VERDICTS
from tasks.in_memory import call_plainly
from tasks.plan import plan
from tasks.reporting.first_page.page import decide, run_of
from tasks.reporting.stage import READ, material_of

SPEC = """\
name: loans
year: 2024
source: {kind: csv, path: loans.csv}
row_id: id
decision: {column: approved, favourable: ['yes'], unfavourable: ['no']}
protected: [{name: race, columns: [race], groups: {white: [w], Black: [b]}, reference: white}]
columns:
  income: {type: continuous, constraint: up}
  amount: {type: continuous, constraint: down}
  NAME: {type: ordinal, order: [bad, fair, good], constraint: up}
model: {kind: none}
methods: {adjusted: {}}
verdicts: {columns_complete: COMPLETE}
disclosure: {profile: internal}
bootstrap: {draws: 200}
"""


def hidden_gap(frame):
    """Black applicants without an income are approved: the gap of complete rows is not that of all rows."""
    rng = np.random.default_rng(3)
    black = frame.race == "b"
    gone = black & (rng.random(len(frame)) < 0.55)
    frame.loc[gone, ["income", "approved"]] = [np.nan, "yes"]
    frame.loc[black & ~gone & (rng.random(len(frame)) < 0.3), "approved"] = "no"


def lost_group(frame):
    """No Black applicant has an income."""
    frame.loc[frame.race == "b", "income"] = np.nan


def some_missing(frame):
    """One in ten lacks an amount, whoever it is."""
    frame.loc[frame.index % 10 == 0, "amount"] = np.nan


def complete(frame):
    """Everybody has every feature."""


CASES = {
    "hidden gap": (hidden_gap, "history", "false"),
    "lost group": (lost_group, "standing", "false"),
    "some missing": (some_missing, "score", "true"),
    "complete": (complete, "standing", "true"),
}


@pytest.fixture(scope="module", params=CASES)
def audited(request, tmp_path_factory):
    """The rows of groups that are compared, and the page of their audit."""
    change, name, said = CASES[request.param]
    place = tmp_path_factory.mktemp("rows")
    frame = loans(900).rename(columns={"history": name})
    change(frame)
    frame.to_csv(place / "loans.csv", index=False)
    steps = plan(spec_of(place, SPEC.replace("NAME", name).replace("COMPLETE", said))).steps
    made = call_plainly(steps[:-1])
    tables = [pa.concat_tables(made.get(table.name) or [table.empty()]) for table in READ]
    named = frame[frame.race != ""].assign(group=frame.race.map({"w": "white", "b": "Black"}))
    material = material_of(tables, steps[-1].settings)
    page = SimpleNamespace(
        decision=decide(run_of(material)),
        rows={(r["theory"], r["group"]): r for r in material.rows(VERDICTS) if r["role"] == "primary"},
        waterfall=pd.DataFrame(material.rows(PUBLISHED_WATERFALL)),
    )
    return named.assign(yes=named.approved == "yes"), page, name, said


def test_rates_are_of_all_applications_whether_complete_or_not(audited):
    rows, page, *_ = audited
    rates = (100 * rows.groupby("group").yes.mean()).sort_values()
    listed = ", ".join(f"{group} {rate:.0f}" for group, rate in rates.items())
    assert f"Approved per 100: {listed}." in page.decision.questions[0].sentence
    [figure] = [each for each in page.decision.figures.comparisons if each.name == "all"]
    assert figure.value == pytest.approx(rates["Black"] - rates["white"], abs=1e-3)
    assert figure.n == (rows.group == "Black").sum()


def test_the_result_on_similar_applicants_is_the_judged_effect(audited):
    _, page, *_ = audited
    row = page.rows["similar_applicants", "Black"]
    effects = page.decision.questions[1].effects
    if row["value"] is None:
        assert effects == ()
    else:
        assert effects[0].value == pytest.approx(-100 * row["value"], abs=0.5)
        assert (effects[0].low, effects[0].high) == pytest.approx(
            (-100 * row["plain_high"], -100 * row["plain_low"]), abs=0.5
        )


def test_people_of_the_adjusted_figure_are_those_with_every_feature(audited):
    rows, page, *_ = audited
    used = rows[rows.group == "Black"].dropna().shape[0]
    [figure] = [each for each in page.decision.figures.comparisons if each.name == "adjusted"]
    if figure.value is not None:
        assert figure.n == used
        assert f"{used} people" in figure.detail


def test_applications_left_out_and_groups_lost_are_counted_from_the_rows(audited):
    rows, page, *_ = audited
    whole = loans(900)
    blank = whole.race == ""
    gone = rows.drop(columns="group").isna().any(axis=1)
    lines = {line.rule: line.words for line in (*page.decision.change, *page.decision.cannot)}
    every = page.waterfall[page.waterfall.group == "All"]
    lacking = int(every[every.kind == "refused"].n.sum())
    if lacking > 0.05 * (lacking + int(every[every.kind == "used"].n.iloc[0])):
        assert lines["left_out"].startswith(f"{lacking} applicants with gaps in their columns are in no comparison")
        assert gone.sum() <= lacking <= gone.sum() + blank.sum()
    else:
        assert "left_out" not in lines
    black = rows.group == "Black"
    n, used = int(black.sum()), int((black & ~gone).sum())
    expected = f"What applicants with gaps would show: of {n} Black applicants {used} have every feature"
    assert lines.get("lost") == (f"{expected} (income)." if 2 * used <= n else None)


def test_a_missing_credit_score_is_told_where_no_column_is_one_and_the_columns_are_not_all(audited):
    _, page, name, said = audited
    rules = {line.rule for line in page.decision.change}
    measured = page.rows["similar_applicants", "Black"]["value"] is not None
    assert ("no_credit_score" in rules) is (measured and name not in ("history", "score") and said == "false")
