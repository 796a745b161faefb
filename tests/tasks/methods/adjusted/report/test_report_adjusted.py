"""The chapter of adjusted disparities: the answer first, pictures, the sentence, and nothing of small groups."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import report_tables
from report_chapters import drawn, table, under

from schemas.audit.spec import Disclosure
from schemas.tables.measures import MEASURES
from tasks.methods.adjusted.report import comparability, section
from tasks.methods.adjusted.report.words import plain, sentence
from tasks.reporting.material import Material, Measure, ReportSettings

RUNGS = {0: "", 1: "terms", 2: "terms + finances"}
SUPPORT = {
    **{"rung": 2, "blocks": RUNGS[2], "decision_maker": "lender", "protected_attribute": "race", "group": "Black"},
    **{"n": 197, "inside": 0.6, "difference_raw": 0.5, "column_raw": "income", "difference_weighted": 0.0},
    **{"column_weighted": "income", "unmatched": 0.1, "reason": ""},
}
KINDS = (("logit", "own"), ("logit", "all"), ("lpm", "all"), ("overlap", "overlap"), ("aipw", "own"))
NAN = None


def effect(group: str, rung: int, kind: tuple[str, str], value: float | None, **more: Any) -> dict[str, Any]:
    ends = (NAN, NAN) if value is None else (value - 0.05, value + 0.05)
    return {
        **{"rung": rung, "blocks": RUNGS[rung], "decision_maker": "lender", "protected_attribute": "race"},
        **{"group": group, "estimator": kind[0], "average_over": kind[1], "form": "squared"},
        **{"primary": rung == 2 and kind == ("logit", "own"), "value": value, "low": ends[0], "high": ends[1]},
        **{"se": 0.025, "odds_ratio": 2.5 if kind[0] == "logit" else None, "n": 197, "events": 64, "support": 0.93},
        **{
            "rv": 0.117 if kind[0] == "lpm" and value is not None else None,
            "rv_alpha": 0.077,
            "e_value": 2.77,
            "e_value_near": 1.88,
        },
        **{"strongest": "income" if kind[0] == "lpm" else None, "adjusted_by_strongest": 0.11, "method": "newton"},
        **{"reason": "", **more},
    }


def effects() -> Iterator[dict[str, Any]]:
    for rung, value in ((0, 0.234), (1, 0.203), (2, 0.127)):
        for kind in KINDS:
            yield effect("Black", rung, kind, value)
            yield effect("Asian", rung, kind, None, n=40, events=6, reason="too_few_events: Asian has 6 denials")
            yield effect("tiny", rung, kind, 0.4, n=3, events=1)


def settings(profile: str) -> ReportSettings:
    return report_tables.settings().model_copy(update={"disclosure": Disclosure(profile=profile)})


def measure(group: str) -> Measure:
    said = {name.name: None for name in MEASURES.columns}
    said |= {"dataset": "x", "year": 1990, "method": "adjusted", "decision_maker": "lender", "subgroup": 0}
    said |= {"protected_attribute": "race", "group": group, "measure": "adjusted_effect", "parameters": "{}"}
    return Measure(**said | {"value": 0.1, "n": 50, "state": "not_run", "reason": "", "note": ""})


@pytest.fixture
def material() -> Material:
    rows = (
        {"group": "Black", "used": True, "reason": "", "rows": 197, "denied": 64},
        {"group": "Black", "used": False, "reason": "missing income", "rows": 9, "denied": 3},
        {"group": "Asian", "used": False, "reason": "missing income", "rows": 1, "denied": 1},
        {"group": None, "used": False, "reason": "rate is no control", "rows": 0, "denied": 0},
    )
    whose = {"decision_maker": "lender", "protected_attribute": "race"}
    benchmark = {"rung": 2, "blocks": RUNGS[2], "group": "Black", "times": 1, "of_group": 0.008}
    benchmark |= {"value": 0.11, "low": 0.05, "high": 0.17}
    benchmarks = tuple(
        whose | benchmark | {"column": name, "column_of_denial": own, "column_of_group": 0.007, "of_denial": bound}
        for name, own, bound in (("purpose", 0.0098, 0.01), ("income", 0.0341, None))
    )
    tables = {
        "adjusted": tuple(effects()),
        "adjusted_rows": tuple(whose | row for row in rows),
        "adjusted_benchmarks": benchmarks,
    }
    measures = tuple(measure(group) for group in ("Black", "Asian", "tiny"))
    return Material(settings("public"), measures, (), (), (), (), of_methods=tables)


def part(material: Material) -> Any:
    return under(section.chapter(material), "adjusted-lender-race")


def having(material: Material, **tables: Any) -> Material:
    return replace(material, of_methods={**material.of_methods, **tables})


def test_a_category_is_told_by_its_level_and_a_number_by_its_percentile() -> None:
    assert comparability._where(50, "12") == "50 %: 12"
    assert comparability._where(None, "refinance") == "refinance"
    assert comparability._where(None, None) == "–"


def test_the_answer_comes_first_with_its_interval_and_the_raw_difference(material: Material) -> None:
    (black,) = [text for text in part(material).points if text.startswith("Black")]
    assert "denied 12.7\N{NO-BREAK SPACE}pp more often than white applicants of like terms and finances" in black
    assert "[+7.7, +17.7]" in black
    assert "Without controls the difference is +23.4" in black
    assert "The interval does not hold zero." in black


def test_a_refused_group_has_its_reason_and_a_small_one_no_number(material: Material) -> None:
    points = {text.partition(":")[0]: text for text in part(material).points}
    assert "no adjusted difference. Too few events: Asian has 6 denials." in points["Asian"]
    assert points["tiny"] == "tiny: withheld, because the group is small."
    shown = [
        cell.whole for row in table(part(material), "The denial ladder").rows if row[0].text == "tiny" for cell in row
    ]
    assert not any("40.0" in text for text in shown)
    assert {row["shown"] for row in drawn(part(material).figures[0])} == {
        "+23.4\N{NO-BREAK SPACE}pp [+18.4, +28.4]",
        "+20.3\N{NO-BREAK SPACE}pp [+15.3, +25.3]",
        "+12.7\N{NO-BREAK SPACE}pp [+7.7, +17.7]",
    }


def test_the_picture_has_a_line_for_every_rung_and_marks_the_judged_one(material: Material) -> None:
    rungs = list(dict.fromkeys(row["row"] for row in drawn(part(material).figures[0])))
    assert rungs == ["none", "+ terms", "+ finances (judged)"]


def test_what_is_left_out_stands_above_and_small_counts_are_not_told(material: Material) -> None:
    rows, columns = part(material).notices
    assert rows.text.startswith("10 of 207 applications are on no rung; 40.0")
    assert rows.points == ()  # the 9 would give the 1 away
    assert columns.points == ("rate is no control",)


def test_the_chapter_names_the_blocks_of_the_audit(material: Material) -> None:
    assert "on each rung: first none, then terms, then finances. What" in section.chapter(material).words[0]
    other = tuple(row | {"blocks": row["blocks"].replace("finances", "branch")} for row in effects())
    assert "first none, then terms, then branch." in section.chapter(having(material, adjusted=other)).words[0]


def test_an_audit_without_the_logit_has_controls_all_the_same(material: Material) -> None:
    none = "No column of this audit is a control"
    linear = tuple(row for row in effects() if row["estimator"] == "lpm")
    raw = tuple(row | {"primary": row["estimator"] == "logit"} for row in effects() if row["rung"] == 0)
    assert not any(text.startswith(none) for text in section.limits(having(material, adjusted=linear)))
    assert any(text.startswith(none) for text in section.limits(having(material, adjusted=raw)))


def test_a_penalised_fit_is_explained_as_one_without_a_finite_estimate(material: Material) -> None:
    firth = tuple(row | {"method": "firth"} for row in effects())
    (text,) = [each for each in section.limits(having(material, adjusted=firth)) if "Firth" in each]
    assert text.startswith("In some fits a coefficient has no finite estimate, or the fit did not converge.")


def test_the_gap_of_the_rows_left_out_stands_above_the_ladder(material: Material) -> None:
    counts = (("Black", 40, 20), ("white", 100, 20), ("Asian", 3, 1), ("tiny", 40, 20))
    out = tuple(
        material.of_methods["adjusted_rows"][1] | {"group": group, "rows": rows, "denied": denied}
        for group, rows, denied in counts
    )
    used = material.of_methods["adjusted_rows"][:1]
    (notice,) = part(having(material, adjusted_rows=used + out)).notices
    assert (
        "Difference of the denied share from white applicants among them: "
        "Asian too few to tell, Black +30.0\N{NO-BREAK SPACE}pp, tiny too few to tell."
    ) in notice.text
    few = tuple(row | {"rows": 4, "denied": 2} if row["group"] == "white" else row for row in out)
    (notice,) = part(having(material, adjusted_rows=used + few)).notices
    assert "Black too few to tell" in notice.text


def test_the_sentence_names_the_strongest_control_and_what_it_explains_itself(material: Material) -> None:
    (text,) = part(material).parts[0].points
    assert text == (
        "Black: It would take a column that explains 11.7\N{NO-BREAK SPACE}% of what is left of denial and of group "
        "membership to bring this to zero; the strongest one in the data, Income, thousands, explains "
        "3.4\N{NO-BREAK SPACE}% and 0.7\N{NO-BREAK SPACE}%."
    )


def test_controls_are_drawn_strongest_first_beside_the_robustness_value(material: Material) -> None:
    rows = drawn(part(material).parts[0].figures[0])
    assert list(dict.fromkeys(row["row"] for row in rows)) == ["Income, thousands", "purpose"]
    assert {row["need"] for row in rows} == {0.117}
    assert [row["value"] for row in rows] == [0.0341, 0.007, 0.0098, 0.007]


def test_the_e_value_of_the_interval_stands_beside_the_e_value(material: Material) -> None:
    view = table(part(material).parts[0], "How strong an unseen column")
    at = view.header.index("E-value")
    assert view.header[at + 1] == "E-value of its interval"
    assert {(row[at].text, row[at + 1].text) for row in view.rows} == {("2.77", "1.88")}


def test_poor_support_is_told_with_the_answer(material: Material) -> None:
    rows = tuple(row | {"support": 0.6} for row in material.of_methods["adjusted"])
    (black,) = [text for text in part(having(material, adjusted=rows)).points if text.startswith("Black")]
    assert "Only 60.0\N{NO-BREAK SPACE}% of the group" in black


def test_poor_support_puts_the_overlap_weighted_difference_first(material: Material) -> None:
    rows = tuple(
        row | {"support": 0.6} | ({"value": 0.09, "low": -0.01} if row["estimator"] == "overlap" else {})
        for row in material.of_methods["adjusted"]
        if row["value"] is not None
    )
    poor = part(having(material, adjusted=rows, adjusted_support=(SUPPORT,)))
    (black,) = [text for text in poor.points if text.startswith("Black")]
    assert black.startswith("Black: denied 9.0\N{NO-BREAK SPACE}pp more often than white applicants of like terms and ")
    assert "weighted to where applicants of both groups are found (+9.0\N{NO-BREAK SPACE}pp [−1.0, +17.7])" in black
    assert "The interval holds zero." in black
    assert "a verdict on the logit, +12.7\N{NO-BREAK SPACE}pp [+7.7, +17.7] over the group's own members." in black
    assert table(poor, "The denial ladder").header[4] == "overlap weights"
    assert (
        "only a limit on the overlap-weighted difference is judged" in table(poor.parts[1], "Are there comparable").note
    )
    assert table(part(material), "The denial ladder").header[4] == "logit, own members"


def test_a_difference_without_an_interval_says_why(material: Material) -> None:
    why = {"low": None, "high": None, "reason": "one_cluster: no error can be had"}
    rows = tuple(row | why for row in material.of_methods["adjusted"])
    alone = replace(material, of_methods={**material.of_methods, "adjusted": rows})
    (black,) = [text for text in part(alone).points if text.startswith("Black")]
    assert black.endswith("It has no interval. One cluster: no error can be had.")


def test_a_linear_coefficient_far_from_any_probability_does_not_stretch_the_picture(material: Material) -> None:
    rows = tuple(
        row | {"value": 183.7} if row["estimator"] == "lpm" else row for row in material.of_methods["adjusted"]
    )
    far = replace(material, of_methods={**material.of_methods, "adjusted": rows})
    chart = str(part(far).figures[0].panels[0].spec)
    assert "'domain': [-0.01, 1.01]" in chart


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("too_few_events: a_b has 6 denials", "too few events: a_b has 6 denials"),
        ("left out: my_debt (constant); few_clusters: 3", "left out: my_debt (constant); few clusters: 3"),
        ("missing my_debt", "missing my_debt"),
    ],
)
def test_reasons_are_read_without_the_underscores_of_their_names(reason: str, words: str) -> None:
    assert plain(reason) == words


def test_a_strict_profile_prints_no_difference_to_more_than_two_decimals(material: Material) -> None:
    (black,) = [t for t in part(replace(material, settings=settings("strict"))).points if t.startswith("Black")]
    assert "denied 13.0\N{NO-BREAK SPACE}pp more often" in black


def test_without_a_control_the_sentence_ends_early() -> None:
    assert sentence(0.2, "", None, None).endswith("to bring this to zero.")


EXCHANGED = {
    **{"decision_maker": "lender", "protected_attribute": "race", "group": "Black", "column": "race", "value": "w"},
    **{"n": 197, "events": 64, "raised": 33, "lowered": 12, "effect": 21 / 197, "low": 0.04, "high": 0.172},
    "reason": "",
}


def test_the_model_s_own_answer_stands_below_the_ladder(material: Material) -> None:
    refused = EXCHANGED | dict.fromkeys(("column", "value", "raised", "lowered", "effect", "low", "high"))
    refused |= {"group": "Hispanic", "n": 40, "events": 12, "reason": "the reference group has 2 values of race"}
    few = EXCHANGED | {"group": "other", "raised": 3, "lowered": 0, "effect": 3 / 197}
    found = replace(having(material, adjusted_exchanged=(EXCHANGED, refused, few)), settings=settings("strict"))
    (shown,) = [each for each in part(found).tables if "exchanged" in each.title]
    texts = [[cell.text for cell in row] for row in shown.rows]
    assert texts[0] == ["Black", "race to w", "195", "65", "35", "10", "+11.0\N{NO-BREAK SPACE}pp", ""]
    assert texts[1] == ["Hispanic", "–", "40", "10", "–", "–", "–", "the reference group has 2 values of race"]
    assert len(texts) == 2, "of three people whose decision changes nothing is told"
    assert any("35 are denied whom the same model approves" in said for said in part(found).points)
    assert not [each for each in part(material).tables if "exchanged" in each.title]
