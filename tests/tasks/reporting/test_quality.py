"""The data page: what was left out, what was checked, what warns, and what identifies the run."""

import re

import pytest
from decide_runs import INSIDE, LITTLE, OUTSIDE, boston, row, white, whole
from question_sections import charts, everything, headings, prose, tables, words
from report_tables import RUN, built, material, spec

from schemas.tables.applications import DECISION_DIRECTION, ENCODINGS, MODEL_METRICS, SOURCE_READ, VALIDATIONS
from schemas.tables.verdicts import AGREEMENT, PUBLISHED_AGREEMENT_PAIRS
from schemas.terms import Theory
from tasks.reporting.charts.layout import element
from tasks.reporting.data_page import OWN_LIMITS_MOST_ROWS as MOST_LIMITS
from tasks.reporting.data_page import own_limits, quality
from tasks.reporting.first_page.facts import Group, Groups, Run
from tasks.reporting.material import Material
from tasks.reporting.question_pages.charts import agreement

CLAIMS = re.compile(
    r"\b(because|due to|bias\w*|unfair\w*|discriminat\w*|prov(e|es|en)|significan\w*|counterfactual\w*)\b",
    re.IGNORECASE,
)
"""What no heading says."""


MOST_WORDS = 700


def page(audit=None, **own):
    """The page of a run; ``published_*`` are rows by hand, as the stage reads them once they are published."""
    published = {name: own.pop(name) for name in list(own) if name.startswith("published_")}
    made = material(boston(), audit, **own)
    return quality(Material(made.settings, made.measures, {**made.tables, **published}))


def part(section, anchor):
    return next(each for each in section.parts if each.anchor == anchor)


def texts(view):
    return [[cell.text for cell in row] for row in view.rows]


def test_withheld_groups_that_are_counted_together_stand_below_the_rows():
    own = {"protected_attribute": "race", "groups": "Asian or other", "base": "source", "n": 15}
    together = ({**own, "decision_maker": "lender", "denied": 7}, {**own, "decision_maker": "", "denied": None})
    lines = (line(0, "source", "All", 500), line(1, "used", "All", 500))
    [view] = [
        each
        for each in part(page(published_waterfall=lines, published_merged=together), "rows").tables
        if each.title == "Withheld groups as one"
    ]
    assert texts(view) == [
        ["Asian or other", "rows in the source, decisions of the lender", "15", "7"],
        ["Asian or other", "rows in the source", "15", "–"],
    ]


def line(number, kind, group, n, approval=None, withheld=False, stage="", reason="", column=""):
    own = {"protected_attribute": "race", "line": number, "kind": kind, "stage": stage, "reason": reason}
    return {**own, "column": column, "group": group, "n": n, "approval": approval, "withheld": withheld}


MISSING = {"stage": "preprocess", "reason": "missing_covariate", "column": "income"}
WATERFALL = (
    *(line(0, "source", group, n) for group, n in (("All", 2000), ("white", 1700), ("Black", 300))),
    line(1, "refused", "All", 40, 0.5, **MISSING),
    line(1, "refused", "white", 33, None, withheld=True, **MISSING),
    line(1, "refused", "Black", None, withheld=True, **MISSING),
    *(line(2, "used", group, n) for group, n in (("All", 1960), ("white", 1667), ("Black", None))),
)


def lack(feature, missing, auc=None, withheld=False, approval=0.5, reason="missing_covariate"):
    own = {"feature": feature, "reason": reason, "missing": missing, "approval_missing": approval}
    return {**own, "approval_present": 0.9, "auc": auc, "withheld": withheld}


def check(name="expect_column_values_to_not_be_null", success=True, quarantined=False, **more):
    own = {"stage": "ingest", "table": "applications", "expectation": name, "column": "row_id", "expected": "{}"}
    return (
        own
        | {"success": success, "elements": 10, "unexpected": 0, "quarantined": quarantined, "severity": "critical"}
        | more
    )


def test_the_waterfall_is_a_line_a_row_and_withholds_what_is_null():
    views = part(page(published_waterfall=WATERFALL), "rows").tables
    assert views[0].header == ("Rows", "All", "white", "Black")
    assert texts(views[0]) == [
        ["Rows in the source", "2,000", "1,700", "300"],
        ["Refused by preprocess: missing covariate (income)", "40", "33", "withheld"],
        ["Rows used", "1,960", "1,667", "withheld"],
    ]
    assert texts(views[1]) == [
        ["Refused by preprocess: missing covariate (income)", "50\N{NO-BREAK SPACE}%", "withheld", "withheld"]
    ]
    assert part(page(), "rows").words == ("The number of rows by stage was not published.",)


def test_shares_of_fewer_than_ten_people_are_their_counts():
    few = (line(1, "refused", "All", 9, 0.4, **MISSING), line(1, "refused", "white", 10, 0.4, **MISSING))
    views = part(page(published_waterfall=(*WATERFALL[:3], *few, *WATERFALL[-3:])), "rows").tables
    assert texts(views[1])[0][1:3] == ["4 of 9", "40\N{NO-BREAK SPACE}%"]
    rows = (lack("income", 7, approval=0.43), lack("any", 7, reason="any"))
    [table] = part(page(published_missingness=rows), "missing").tables
    assert texts(table)[0][2:] == ["7", "3 of 7", "90\N{NO-BREAK SPACE}%"]


def test_refused_rows_name_columns_as_all_pages_do():
    rows = tuple({**each, "column": each["column"] and "public_record"} for each in WATERFALL)
    named = part(page(published_waterfall=rows), "rows").tables[0].rows[1][0].text
    assert named == "Refused by preprocess: missing covariate (public record)"


def test_a_file_of_hmda_says_what_was_done_where_it_departs_from_its_layout():
    hmda = page(spec(source={"kind": "hmda", "path": "x.csv"}), published_waterfall=WATERFALL)
    assert "a code that no filing guide lists" in part(hmda, "rows").words[2]
    assert len(part(page(published_waterfall=WATERFALL), "rows").words) == 2


def test_many_groups_have_twelve_columns_and_the_workbook():
    rows = tuple(line(0, "source", group, 100) for group in ("All", *(f"G{n}" for n in range(40))))
    view = part(page(published_waterfall=rows), "rows").tables[0]
    assert len(view.header) == 1 + 1 + 12
    assert view.note == "The 12 largest of 40 groups; measures.xlsx has all."


@pytest.mark.parametrize(("row", "begins"), [
    (lack("any", None, withheld=True, reason="any"), "What missing values tell of the decision is withheld"),
    (lack("any", 0, reason="any"), "No application lacks a feature."),
    (lack("any", 29, auc=0.9, reason="any"), "Fewer than 30 applications lack a feature"),
    (lack("any", 400, reason="any"), "Fewer than 30 applications lack a feature"),
    (lack("any", 400, auc=0.51, reason="any"), "Which values are missing ranks the decision with an AUC of 0.51"),
])  # fmt: skip
def test_what_missing_values_tell(row, begins):
    said = part(page(published_missingness=(row,), published_waterfall=WATERFALL), "missing").words[0]
    assert said.startswith(begins)
    assert "leak the decision" not in said


def test_missing_values_that_leak_the_decision_are_told():
    rows = (lack("income", None, withheld=True, approval=None), lack("any", 400, auc=0.8, reason="any"))
    found = part(page(published_missingness=rows, published_waterfall=WATERFALL), "missing")
    assert "Missing values leak the decision" in found.words[0]
    assert texts(found.tables[0])[0][2:4] == ["withheld", "withheld"]
    assert found.tables[0].rows[0][0].text == "income", "its label without the unit"
    assert "holds for complete applications" in found.words[1]


def test_the_page_begins_with_what_is_wrong_and_checks_that_passed_are_one_line():
    rows = [check() for _ in range(255)]
    rows += [check(success=False, unexpected=3), check(success=False, quarantined=True, unexpected=None)]
    found = page(validations=built(VALIDATIONS, rows))
    assert found.parts[0] == part(found, "checks")
    (failed,) = part(found, "checks").tables
    assert [row[1].text for row in failed.rows] == ["failed", "set aside"]
    assert [row[6].text for row in failed.rows] == ["3", "withheld"]
    query = f"SELECT * FROM published_validations WHERE run = '{RUN}'"
    assert part(found, "checks").words == (
        "2 of 257 checks failed.",
        "For 1 of these the rows were set aside; they stand among the rows out.",
        f'255 checks passed. All: `evenhand sql "{query}"`.',
    )
    assert [each.title for each in found.notices] == ["Checks of tables failed"], "rows set aside are no warning"
    assert found.words == ()
    sound = page(validations=built(VALIDATIONS, [check()]))
    assert (sound.words, part(sound, "checks").tables) == (("Nothing wrong was found.",), ())


def direction(**more):
    row = {"decided_by": "columns", "columns": "income +", "n": 2000, "auc": 0.4, "high": 0.45, "reversed": True}
    return built(DECISION_DIRECTION, [row | more])


def test_a_decision_read_the_wrong_way_round_and_a_model_that_knows_too_much_warn_first():
    metrics = [
        {"protected_attribute": "race", "group": "white", "metric": "auc", "value": 0.99, "n": 1681},
        {"protected_attribute": "race", "group": "Black", "metric": "auc", "value": None, "n": None},
    ]
    found = page(decision_direction=direction(), model_metrics=built(MODEL_METRICS, metrics))
    assert [each.title for each in found.notices] == [
        "Approved and denied may be exchanged",
        "The model knows too much",
    ]
    assert "white (race)" in found.notices[1].text
    assert texts(part(found, "model").tables[0])[1] == ["race", "Black", "withheld", "withheld or undefined"]
    honest = page(decision_direction=direction(auc=0.7, high=0.72, reversed=False))
    assert honest.notices == ()
    assert "AUC of 0.70" in part(honest, "decision").words[0]
    named = direction(columns="income +, public_record -", auc=0.7, high=0.72, reversed=False)
    assert "(income +, public record −)" in part(page(decision_direction=named), "decision").words[0]
    hidden = page(decision_direction=direction(auc=None, high=None, reversed=False))
    assert "withheld" in part(hidden, "decision").words[0]


def test_a_rule_is_no_model_that_could_know_too_much():
    metrics = [{"protected_attribute": "race", "group": "white", "metric": "auc", "value": 1.0, "n": 1681}]
    rule = spec(model={"kind": "rule", "rule": {"weights": {"income": 1.0}, "limit": 10.0}})
    assert page(rule, model_metrics=built(MODEL_METRICS, metrics)).notices == ()


def test_the_matrix_has_a_state_for_each_method_and_says_where_they_point_apart():
    said = {
        "theory": "similar_applicants",
        "decision_maker": "lender",
        "protected_attribute": "race",
        "sign": "against",
    }
    rows = [
        {**said, "group": "Black", "method": "adjusted", "measure": "adjusted_effect", "state": "outside"},
        {**said, "group": "Black", "method": "cst", "measure": "st_effect", "state": "within"},
        {**said, "group": "Hispanic", "method": "adjusted", "measure": "adjusted_effect", "state": "no_limit"},
    ]
    found = page(agreement=built(AGREEMENT, rows))
    matrix = charts(found)[0]
    assert matrix.columns == ("adjusted comparison", "nearest applicants")
    assert [[cell and cell.state for cell in row.cells] for row in matrix.rows] == [
        ["outside", "within"],
        ["no_limit", None],
    ]
    assert part(found, "agreement").words[0].startswith("Methods point apart for 1 group")
    signs, twins = part(found, "agreement").tables
    assert [row[:2] for row in texts(signs)] == [
        ["race: Black", "adjusted- ST- RAGUEL/ CEC/ GCFN/"],
        ["race: Hispanic", "adjusted- RAGUEL/ CEC/ GCFN/"],
    ]
    assert [row[0] for row in texts(twins)] == ["adjusted comparison", "nearest applicants"]
    assert texts(twins)[0][1:] == ["0 of 10 (0.00 to 0.31)", "5 of 5 (0.48 to 1.00)", "0 of 5 (0.00 to 0.52)"]
    assert charts(page()) == []
    blank = dict.fromkeys(column.name for column in PUBLISHED_AGREEMENT_PAIRS.columns)
    whose = {"protected_attribute": "race", "group": "Black", "decision_maker": "lender", "first": "cec"}
    shown = {"n": 64, "both": 10, "first_alone": 0, "second_alone": 20, "neither": 34, "withheld": False}
    shown |= {"agreement": 0.6875, "null_low": 0.5625, "null_high": 0.75}
    shown |= {"kappa": -0.1, "kappa_low": -0.2, "kappa_high": 0.1, "ac1": None, "may_differ": "unit; size"}
    pairs = [{**blank, **whose, "second": "cst", **shown}]
    pairs += [{**blank, **whose, "second": "gcfn", "may_differ": "", "withheld": True}]
    *_, flags = part(page(agreement=built(AGREEMENT, rows), published_agreement_pairs=pairs), "agreement").tables
    first, second = texts(flags)
    assert first[2:7] == ["CEC, CST", "10, 0, 20, 34", "0.69 [0.56, 0.75]", "−0.10 [−0.20, 0.10]", "–"]
    assert first[7].startswith("one judges the denied alone")
    assert second[3:] == ["withheld"] * 4 + [""]


def test_the_run_is_identified_and_can_be_made_again():
    source = built(SOURCE_READ, [{"source": "applications.csv", "sha256": "ab" * 32, "rows": 2000, "year": 1990}])
    found = page(source_read=source)
    strip = dict(texts(part(found, "run").tables[0]))
    assert (strip["Run"], strip["Source, sha256"], strip["Code, digest"]) == (RUN, "ab" * 32, "cd" * 16)
    assert (strip["Rows of the source"], strip["Disclosure profile"]) == ("2,000", "strict")
    assert strip["Legal frame named"].startswith(
        "us-2026 (Similar applicants: Equal Credit Opportunity Act; Approval rates: "
    )
    listing = part(found, "run").listings[0]
    assert (listing.text, listing.folded) == ("name: example\nyear: 1990\n", True)
    commands = part(found, "again").listings[0].text
    assert commands.splitlines() == ["evenhand audit spec.yaml", f"evenhand verify {RUN}"]
    assert "secret place" not in everything(found)


def test_the_page_keeps_its_words_and_bans_those_of_the_first_page_from_headings():
    encoded = {"encoded": "income", "feature": "income", "feature_index": 0, "kind": "continuous", "bins": 8}
    encoded |= {"low": 1.0, "high": None, "clipped": None, "implausible": 0, "roles": "financial", "constraint": "up"}
    found = page(
        encodings=built(ENCODINGS, [encoded]),
        decision_direction=direction(),
        validations=built(VALIDATIONS, [check(success=False)]),
        published_waterfall=WATERFALL,
        published_missingness=(lack("any", 400, auc=0.8, reason="any"),),
    )
    assert words(*prose(found)) <= MOST_WORDS
    assert [each for each in headings(found) if CLAIMS.search(each)] == []
    assert texts(part(found, "columns").tables[0])[0][2:7] == ["1", "withheld", "8", "withheld", "0"]
    assert len({view.title for view in tables(found)}) == len(tables(found))


def test_the_matrix_of_many_groups_with_long_names_leaves_room_on_the_page():
    names = [f"{n} " + "Abcdefghij" * 8 for n in range(40)]
    measures = ("approval_rate_ratio", "adjusted_effect", "overlap_effect", "st_effect", "cst_effect", "cec_above")
    own = {"decision_maker": "lender", "protected_attribute": "race", "method": "x", "sign": "too_few", "state": LITTLE}
    rows = [{**own, "theory": "similar_applicants", "group": g, "measure": name} for g in names for name in measures]
    run = Run(tuple(row(Theory.SIMILAR_APPLICANTS, name, LITTLE) for name in names), ())
    found = agreement(rows, Groups(run), str)
    assert len(element(found.figures[0].chart, "m").encode()) < 100_000, "250,000 for the page, 110,000 of checks"
    assert found.figures[0].caption.endswith("of 40 groups.")


def test_each_limit_of_the_spec_is_a_row_those_outside_first_and_a_withheld_one_without_its_number():
    ratio = {"measure": "approval_rate_ratio", "limit": 0.9, "side": "at_least"}
    rows = (
        whole(Theory.OWN_LIMITS, OUTSIDE),
        row(Theory.OWN_LIMITS, "Asian", INSIDE, value=0.97, low=0.93, high=1.02, **ratio),
        row(Theory.OWN_LIMITS, "Black", OUTSIDE, value=0.767, low=0.701, high=0.882, **ratio),
        row(Theory.OWN_LIMITS, "Grey", OUTSIDE, value=0.512, low=0.4, high=0.6, withheld=True, **ratio),
        row(
            Theory.OWN_LIMITS,
            "Asian",
            LITTLE,
            value=0.3,
            low=0.1,
            high=0.5,
            measure="burden",
            limit=1.0,
            side="at_most",
        ),
    )
    run = Run(rows, (white(), *(Group("race", name, 100, 0.8) for name in ("Black", "Asian", "Grey"))))
    (table,) = own_limits(material(boston()), run).tables
    lender, ratio_words = "the lender's own decisions", "Approval rate, ratio to the reference"
    told = "Black", ratio_words, lender, "0.767", "[0.701, 0.882]", "at least 0.9", "Outside the limit"
    assert texts(table)[0] == list(told)
    assert [each[0] for each in texts(table)] == ["Black", "Asian", "Asian", "Grey"]
    assert texts(table)[1][3:6] == ["0.3", "–", "at most 1"], "no interval of a measure that is not known to cover"
    assert texts(table)[3][3:] == ["withheld", "–", "at least 0.9", "Inconclusive (withheld)"]
    many = Run(tuple(row(Theory.OWN_LIMITS, str(n), INSIDE) for n in range(40)), ())
    (table,) = own_limits(material(boston()), many).tables
    assert (len(table.rows), table.whole, table.rest[:22]) == (MOST_LIMITS, 40, "The first 25 of 40 lim")
    assert own_limits(material(boston()), boston()) is None


def test_what_the_year_lacks_stands_before_all_parts():
    assert page().notices == ()
    asked = spec()
    source = asked.source.model_copy(update={"lacking": ("history", "race: Asian")})
    columns, groups = page(asked.model_copy(update={"source": source})).notices
    assert columns.text.startswith(f"The data of {asked.year} do not have history, which the audit asks for.")
    assert groups.text == f"In the data of {asked.year} nobody belongs to race: Asian."


def test_columns_that_tell_the_decision_are_a_notice_with_what_to_make_sure_of():
    rows = (
        {"feature": "rate", "tells": "filled_in", "n": 500, "auc": 0.795, "allowed": False},
        {"feature": "amount", "tells": "value", "n": 500, "auc": None, "allowed": True},
    )
    [notice] = [each for each in page(published_leakage=rows).notices if each.title == "Columns that tell the decision"]
    assert notice.text == (
        "Whether rate is filled in tells the decision with an AUC of 0.80. Amount alone tells the decision; how "
        "well is withheld; the spec allows it. Make sure that applicants, and not the decision, gave these values."
    )
    assert "Columns that tell the decision" not in [each.title for each in page().notices]
