"""Missing values: what preprocess counts of them, what the report says, and that no small cell can be had from it."""

import dataclasses

import pandas as pd
import pytest
import report_tables
from conftest import REPOSITORY, SHARED, spec_of
from report_chapters import SPACE
from report_tables import REFERENCE

from schemas.tables.missingness import ANY
from tasks.pipeline.specs import read_spec
from tasks.plan import plan
from tasks.proof.plain import call_plainly
from tasks.reporting.chapters import missingness
from tasks.reporting.chapters.limits import limits
from tasks.reporting.chapters.waterfall import waterfall
from tasks.reporting.material import Material
from tasks.reporting.stage import report

TEXAS = SHARED / "data/hmda_2022_tx_50k/hmda_tx_2022_sample.csv.gz"


def lacking(spec):
    """The table of missing values of an audit, by feature and reason."""
    (found,) = call_plainly(plan(spec).steps[:2])["missingness"]
    return found.to_pandas().set_index(["feature", "reason"])


def with_holes(place):
    """The loans with holes: of every third row the income, of every fifth an exempt amount."""
    loans = pd.read_csv(place / "loans.csv", dtype=str, keep_default_na=False)
    loans.loc[loans.index % 3 == 0, "income"] = "NA"
    loans.loc[loans.index % 5 == 0, "amount"] = "Exempt"
    loans.to_csv(place / "loans.csv", index=False)
    return loans


@pytest.mark.parametrize("missing", ["exclude", "impute"])
def test_preprocess_counts_who_lacks_what_and_how_they_were_decided_on(place, missing):
    loans = with_holes(place)
    told = {"missing": missing, "source__missing": "['', NA]", "source__exempt": "[Exempt]"}
    found = lacking(spec_of(place, **told))
    at, yes = loans.index, loans["approved"] == "yes"
    cells = {
        ("income", "missing_covariate"): ((at % 3 == 0) & (at % 5 != 0), at % 3 != 0, at < 0),
        ("income", "exempt_covariate"): (at % 15 == 0, at % 3 != 0, at % 15 == 0),
        ("amount", "exempt_covariate"): (at % 5 == 0, at % 5 != 0, at < 0),
        (ANY, ANY): ((at % 3 == 0) | (at % 5 == 0), (at % 3 != 0) & (at % 5 != 0), (at % 3 == 0) | (at % 5 == 0)),
    }
    assert set(found.index) == set(cells)
    for key, (gone, there, elsewhere) in cells.items():
        row = found.loc[key]
        assert (row["missing"], row["favourable_missing"]) == (gone.sum(), (yes & gone).sum())
        assert (row["present"], row["favourable_present"]) == (there.sum(), (yes & there).sum())
        assert (row["elsewhere"], row["favourable_elsewhere"]) == (elsewhere.sum(), (yes & elsewhere).sum())
    assert 0.4 < found.loc[(ANY, ANY), "auc"] < 0.6
    assert found["auc"].notna().sum() == 1


def test_nothing_missing_leaves_one_row_without_an_auc(place):
    found = lacking(spec_of(place))
    assert list(found.index) == [(ANY, ANY)]
    assert found["missing"].tolist() == [0]
    assert found["auc"].isna().all()


@pytest.mark.skipif(not TEXAS.is_file(), reason="the Texas file of 2022 is not here")
def test_texas_missingness_tells_the_decision():
    """Approval: DTI missing 0.347, LTV missing 0.356, exempt 0.859; missingness alone has an AUC of 0.60."""
    text = (REPOSITORY / "data/audits/hmda-tx-2022.yaml").read_text(encoding="utf-8")
    found = lacking(read_spec(text, "hmda-tx-2022.yaml", {"source.path": str(TEXAS)}).spec)
    rate = found["favourable_missing"] / found["missing"]
    assert rate["debt_to_income_ratio", "missing_covariate"] == pytest.approx(0.347, abs=5e-4)
    assert rate["loan_to_value_ratio", "missing_covariate"] == pytest.approx(0.356, abs=5e-4)
    assert rate["debt_to_income_ratio", "exempt_covariate"] == pytest.approx(0.859, abs=5e-4)
    whole = found.loc[(ANY, ANY)]
    assert whole["favourable_present"] / whole["present"] == pytest.approx(0.782, abs=5e-4)
    assert whole["auc"] == pytest.approx(0.598, abs=2e-3)


SIZES = {"debt_to_income": (220, 77, 0, 0), "loan_to_value": (130, 46, 40, 14), ANY: (310, 109, 310, 109)}


def material(profile="public", **changes):
    """A run of the report's synthetic tables, with other counts of missing values."""
    audit = report_tables.spec()
    audit = audit.model_copy(update={"disclosure": audit.disclosure.model_copy(update={"profile": profile})})
    measures, *others = report_tables.with_tables(missingness=report_tables.missingness(**changes))
    return Material.of(report_tables.settings(audit), measures, *others[5:])


def falls():
    """The waterfall of the same run."""
    _, _, refusals, _, memberships, *_ = report_tables.tables()
    return (waterfall(refusals, memberships, "race"),)


def rows(found, fall=None):
    """The table of the chapter as text, by feature."""
    (table,) = missingness.chapter(found, falls() if fall is None else fall).tables
    return {row[0].text: [cell.text for cell in row[1:]] for row in table.rows}


def test_every_feature_is_told_with_both_rates():
    assert rows(material()) == {
        "debt_to_income": ["missing", "220", f"35.0{SPACE}%", f"82.1{SPACE}%"],
        "loan_to_value": ["missing", "130", f"35.4{SPACE}%", f"81.2{SPACE}%"],
        "Any feature": ["either", "310", f"35.2{SPACE}%", f"82.9{SPACE}%"],
    }


@pytest.mark.parametrize(
    ("counts", "gone"),
    [
        ({"loan_to_value": (4, 2, 0, 0)}, "loan_to_value"),
        ({"loan_to_value": (130, 46, 3, 1)}, "loan_to_value"),  # the waterfall has the other 127
        ({"debt_to_income": (5390, 77, 0, 0)}, "debt_to_income"),  # two have it
    ],
)
def test_a_count_that_is_small_or_leaves_a_small_one_is_withheld(counts, gone):
    told = rows(material(**counts))
    assert told[gone][1:] == ["withheld"] * 3
    assert set(told["Any feature"]) & {"withheld"} == set()


def test_what_those_who_lack_another_feature_leave_is_not_small_either():
    """Of 223 refused for a missing value 220 lack the debt ratio: 3 lack another one, and could be had from both."""
    told = rows(material(loan_to_value=(3, 1, 0, 0), **{ANY: (223, 78, 223, 78)}))
    assert told["debt_to_income"][1:] == told["loan_to_value"][1:] == ["withheld"] * 3


def test_a_line_that_the_waterfall_withholds_is_withheld_here_and_so_is_the_sum():
    (fall,) = falls()
    line = fall.lines.index(("preprocess", "missing_covariate", "loan_to_value"))
    refused = fall.refused.copy()
    refused[line] = [0, 3, 0, 0, 0][: refused.shape[1]]
    small = dataclasses.replace(fall, refused=refused, source=fall.source - fall.refused[line] + refused[line])
    told = rows(material(), (small,))
    assert told["loan_to_value"][1:] == ["withheld"] * 3
    assert told["Any feature"][1:] == ["withheld"] * 3
    assert "0.612" not in missingness.chapter(material(), (small,)).words[0]


def test_a_policy_that_rounds_prints_rounded_counts_and_looks_at_decisions_too():
    assert rows(material("strict"))["loan_to_value"] == ["missing", "130", f"34.6{SPACE}%", f"81.3{SPACE}%"]
    assert rows(material("strict", loan_to_value=(130, 3, 40, 0)))["loan_to_value"][1:] == ["withheld"] * 3


@pytest.mark.parametrize(
    ("auc", "words"),
    [
        (0.6123, "AUC of 0.612 (0.5: not at all"),
        (0.6123, "Missing values leak the decision"),
        (0.515, "no more than chance gives, which does not rule out"),
        (None, "cannot be said"),
    ],
)
def test_what_missingness_tells_is_read_beside_chance(auc, words):
    said = missingness.chapter(material(auc=auc), falls()).words[0]
    assert words in said
    assert said in " ".join(point for limit in limits(material(auc=auc), falls(), {}) for point in limit.points)


def test_few_missing_values_are_too_few_to_say():
    few = material(**dict.fromkeys(SIZES, (9, 3, 0, 0)), auc=0.9)
    assert "Fewer than 30 applications lack a feature" in missingness.chapter(few, falls()).words[0]


def test_nothing_missing_is_said_once():
    none = dataclasses.replace(material(), missingness=())
    chapter = missingness.chapter(none, falls())
    assert chapter.words == (
        "No application lacks a feature, so that nothing of the decision can be told from what is missing.",
    )
    assert not chapter.tables[0].rows
    assert not list(missingness.limits(none, falls()))


@pytest.mark.parametrize(("value", "n", "warned"), [(0.98, 4200, True), (0.979, 4200, False), (0.999, 29, False)])
def test_a_model_that_knows_too_much_is_warned_of(value, n, warned):
    metric = {"protected_attribute": "race", "group": REFERENCE, "metric": "auc", "value": value, "n": n}
    found = dataclasses.replace(material(), metrics=(metric,))
    notices = missingness.chapter(found, falls()).notices
    assert bool(notices) == warned
    assert any("known only after the decision" in said for said in missingness.limits(found, falls())) == warned


def test_only_the_largest_group_makes_a_warning():
    """A high AUC on forty rows is nothing to wonder at."""
    metrics = [
        {"protected_attribute": "race", "group": group, "metric": "auc", "value": value, "n": n}
        for group, value, n in ((REFERENCE, 0.8, 4200), ("Asian", 0.995, 40))
    ]
    assert not missingness.chapter(dataclasses.replace(material(), metrics=tuple(metrics)), falls()).notices


def test_the_chapter_stands_in_the_report_behind_the_waterfall():
    page = report.function(*report_tables.tables(), settings=report_tables.settings()).files["report.html"].decode()
    assert (
        0 < page.index('<section id="waterfall">') < page.index('<section id="missing">') < page.index('id="outcomes"')
    )
    assert "Missing values leak the decision" in page[: page.index('<section id="glance">')]
