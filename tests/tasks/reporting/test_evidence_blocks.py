"""Blocks of evidence pages, worked by hand: what stands in which cell, and what is printed of what is not there."""

import pytest
from evidence_runs import Words, declaration, material, row

from tasks.reporting import pages
from tasks.reporting.charts.layout import element

RATES = {
    "title": "Approval",
    "says": "Share approved.",
    "columns": [
        {"measure": "approval_rate"},
        {"measure": "approval_rate", "form": "difference", "p": True},
        {"measure": "approval_rate", "form": "ratio", "words": "ratio"},
    ],
    "chart": "forest",
}


@pytest.fixture
def shown(monkeypatch):
    """The section of a page with these blocks, of these rows and side tables."""

    def made(rows, *blocks, tables=(), **more):
        monkeypatch.setattr(pages, "declared", lambda name: declaration(*blocks, **more))
        return pages.evidence(material(rows, **dict(tables)), "outcomes")

    return made


def test_a_row_a_group_and_a_column_a_measure(shown):
    made = shown(
        [
            row("Black", "approval_rate", 0.675, low=0.607, high=0.737, n=197),
            row("white", "approval_rate", 0.908, low=0.894, high=0.921, n=1681),
            row("Black", "approval_rate_difference", -0.2334, low=-0.303, high=-0.17, p=0.0004, q=0.012),
            row("Black", "approval_rate_ratio", 0.743, low=0.667, high=0.812),
        ],
        RATES,
    )
    (part,) = made.parts
    (table,) = part.tables
    found = Words.of(table)
    assert (part.title, part.words) == ("Approval", ("Share approved.",))
    assert table.title == "Approval, by race: the lender's own decisions"
    assert found.header == ("Group", "n", "Share", "Share: difference from the reference", "p", "q", "Ratio")
    assert found.rows == [
        ["white (reference)", "1,681", "90.8 % [89.4, 92.1]", "–", "–", "–", "–"],
        ["Black", "197", "67.5 % [60.7, 73.7]", "-23.3 pp [-30.3, -17]", "≤ 0.001", "0.012", "0.743 [0.667, 0.812]"],
    ]
    assert part.figures[0].chart.description()[1].startswith("white (reference): 90.8")


def test_only_intervals_that_cover_are_printed_and_ranges_in_round_brackets(shown):
    block = {"title": "Cost", "columns": [{"measure": "burden"}, {"measure": "burden", "form": "size_matched"}]}
    made = shown(
        [
            row("Black", "burden", 1.2345, low=1, high=2),
            row("Black", "burden_size_matched", 1.1, low=0.9, high=1.3, note="range"),
        ],
        block,
        measures={"burden": {"words": "cost", "unit": "number", "meaning": "Cost."}},
    )
    assert Words.of(made.parts[0].tables[0]).rows == [["Black", "100", "1.23", "1.1 (0.9 to 1.3)"]]


def test_a_chart_without_any_interval_has_bars_from_zero(shown):
    block = {"title": "Cost", "columns": [{"measure": "burden"}], "chart": "forest"}
    (part,) = shown([row("Black", "burden", 0.2, low=0.1, high=0.3)], block).parts
    assert part.figures[0].chart.bars
    assert "covers" not in part.figures[0].caption
    assert "cover as often as it says" in part.figures[0].caption


def test_a_chart_with_states_says_whose_interval_it_draws_and_why_a_number_is_missing(shown):
    block = {"title": "Approval", "columns": [{"measure": "approval_rate"}], "chart": "forest"}
    rows = [
        row("Black", "approval_rate", 0.5, low=0.4, high=0.6, state="outside"),
        row("Asian", "approval_rate", None, reason="too_few: nobody is denied"),
    ]
    (figure,) = shown(rows, block).parts[0].figures
    assert figure.caption.startswith("Two-sided 95 % intervals; a state is that of the verdict interval")
    assert {mark.label: mark.note for mark in figure.chart.rows}["Asian"] == "Undefined: too few: nobody is denied."
    (figure,) = shown([row("Black", "approval_rate", 0.5, low=0.4, high=0.6)], block).parts[0].figures
    assert figure.caption == ""


def test_what_is_not_there_says_why_and_notes_stand_once_below(shown):
    bound = "a bound by the greedy selection"
    block = {"title": "Cost", "columns": [{"measure": "burden"}, {"measure": "d0"}]}
    made = shown(
        [
            row("white", "burden", 0.25, note=bound),
            row("Black", "burden", None, n=None, reason="withheld: a small cell"),
            row("Hispanic", "burden", None, reason="too_few: nobody is denied"),
            row("Asian", "burden", 0.5, note=f"{bound}; no spread"),
            row("Asian", "d0", 0.5),
        ],
        block,
    )
    found = Words.of(made.parts[0].tables[0])
    assert {cells[0]: cells[1:] for cells in found.rows} == {
        "white (reference)": ["100", "25 %†1", "–"],
        "Asian": ["100", "50 %†1", "50 %"],
        "Hispanic": ["100", "undefined†2", "not computed"],
        "Black": ["withheld", "withheld", "not computed"],
    }
    assert found.note == "†1 A bound by the greedy selection. †2 Too few: nobody is denied."


def test_least_and_largest_settings_are_those_of_the_run(shown):
    at = [{"measure": "coverage", "at": {"k": "max", "d": 1.5}}, {"measure": "coverage", "at": {"k": "min", "d": 1.5}}]
    rows = [
        row("Black", "coverage", k / 10 + d, at={"k": k, "d": d}) for k in (1, 2, 5) for d in (0.0, 1.5) if k < 5 or d
    ]
    found = Words.of(shown(rows, {"title": "Coverage", "columns": at}).parts[0].tables[0])
    assert found.rows == [["Black", "100", "200 %", "160 %"]]


def test_parts_of_a_group_stand_below_it_where_they_are_asked_for(shown):
    rows = [row("white", "burden", 0.5), *(row("white", "burden", 0.1 * i, subgroup=i) for i in (1, 2))]
    block = {"title": "Cost", "columns": [{"measure": "burden"}]}
    assert len(shown(rows, block).parts[0].tables[0].rows) == 1
    table = shown(rows, {**block, "parts": True}).parts[0].tables[0]
    assert [cells[0].text for cells in table.rows] == ["white (reference)", "white, part 1", "white, part 2"]


def test_a_row_a_setting_and_a_column_a_group_and_form(shown):
    block = {
        **{"title": "Ladder", "along": ["rung", "k"], "measure": "effect", "forms": ["", "null"]},
        **{"at": {"over": "own"}, "chart": "matrix"},
    }
    made = shown(
        [
            row("Black", "effect", 0.3, at={"over": "own", "rung": "none", "k": 10}),
            row("Black", "effect", 0.2, at={"over": "own", "rung": "none", "k": 2}),
            row("Black", "effect", 0.1, at={"over": "own", "rung": "terms", "k": 2}),
            row(
                "Black",
                "effect_null",
                0.0,
                at={"over": "own", "rung": "terms", "k": 2},
                low=-0.1,
                high=0.1,
                note="range",
            ),
            row("Black", "effect", 0.9, at={"over": "all", "rung": "none", "k": 2}),
            row("Black", "effect", 0.8, at={"over": "own"}),
            row("Black", "effect", 0.7, at={"over": "own", "rung": "none", "k": 2, "more": 1}),
            row("white", "effect", 0.4, at={"over": "own", "rung": "none", "k": 10}),
        ],
        block,
        parameters={"rung": "step"},
        values={"none": "nothing"},
    )
    (table,) = made.parts[0].tables
    found = Words.of(table)
    assert found.header == ("Step", "k", "white (reference)", "Black", "Black: labels permuted")
    assert found.rows == [
        ["nothing", "2", "not computed", "20 %", "not computed"],
        ["nothing", "10", "40 %", "30 %", "not computed"],
        ["terms", "2", "not computed", "10 %", "0 % (-10 to 10)"],
    ]
    chart = made.parts[0].figures[0].chart
    assert chart.columns == ("nothing, 2", "nothing, 10", "terms, 2")
    assert [cell and cell.value for cell in chart.rows[0].cells] == [None, 40.0, None]


def test_a_row_for_each_setting_of_each_group(shown):
    block = {
        "title": "Costs",
        "along": ["order"],
        "columns": [{"measure": "cost"}, {"measure": "rank", "at": {"q": 1}}],
    }
    rows = [
        row("Black", "cost", 0.4, at={"order": "list"}),
        row("Black", "cost", 0.5),
        row("white", "rank", 0.2, at={"order": "list", "q": 1}),
        row("white", "rank", 0.3, at={"order": "list", "q": 2}),
    ]
    found = Words.of(shown(rows, block, values={"order": "as found"}).parts[0].tables[0])
    assert found.header == ("Group", "Order", "n", "Share", "Share")
    assert found.rows == [
        ["white (reference)", "list", "100", "–", "20 %"],
        ["Black", "as found", "100", "50 %", "–"],
        ["Black", "list", "100", "40 %", "–"],
    ]


FACTS = {
    **{"title": "Facts", "table": "facts", "where": {"network": 0}},
    "fields": {
        "column": {"words": "column"},
        "value": {"words": "value", "unit": "points"},
        "n": {"words": "people", "unit": "count"},
        "doubtful": {"words": "doubtful"},
        "reason": {"words": "remarks", "note": True},
    },
}


def fact(column, value, **more):
    """A row of a side table."""
    usual = {"protected_attribute": "race", "network": 0, "n": 1234, "doubtful": False, "reason": ""}
    return {"column": column, "value": value} | usual | more


def test_rows_of_a_side_table_as_they_are(shown):
    facts = (fact("income", 0.1234), fact("x", -0.5, network=1), fact("amount", None, n=None, doubtful=True))
    (part,) = shown([], FACTS, tables={"facts": facts}).parts
    (table,) = part.tables
    assert table.title == "Facts, by race"
    assert Words.of(table).header == ("Column", "Value", "People", "Doubtful")
    assert Words.of(table).rows == [["income", "+12.3 pp", "1,234", "no"], ["amount", "withheld", "withheld", "yes"]]


def test_shares_of_fewer_than_ten_people_are_printed_as_counts(shown):
    share = {"words": "share", "unit": "rate", "of": "n"}
    block = {"title": "Shares", "table": "facts", "fields": {"column": {"words": "column"}, "value": share}}
    facts = (fact("a", 3 / 7, n=7), fact("b", 0.4, n=10), fact("c", 0.4, n=None), fact("d", None, n=None))
    (table,) = shown([], block, tables={"facts": facts}).parts[0].tables
    assert [cells[1] for cells in Words.of(table).rows] == ["3 of 7", "40 %", "40 %", "withheld"]


def test_a_published_table_takes_the_place_of_the_raw_one(shown):
    tables = {"facts": (fact("income", 0.1),), "published_facts": (fact("income", 0.2),)}
    (part,) = shown([], FACTS, tables=tables).parts
    assert part.tables[0].rows[0][1].text.startswith("+20")


def test_rows_without_a_number_and_a_reason_are_counted(shown):
    facts = (
        fact("income", None, n=None, withheld=False),
        fact("b", 0.1),
        fact("c", None, n=None, withheld=False, reason="why"),
    )
    (table,) = shown([], FACTS, tables={"facts": facts}).parts[0].tables
    assert [cells[0] for cells in Words.of(table).rows] == ["b", "c"]
    assert table.note == "1 row without a value. † Why."


def test_a_remark_on_every_row_is_said_once(shown):
    facts = [fact(f"c{i}", 0.1 * i or None, reason="separated: the fit diverged") for i in range(4)]
    (table,) = shown([], FACTS, tables={"facts": facts}).parts[0].tables
    assert "Remarks" not in Words.of(table).header
    assert [row[1] for row in Words.of(table).rows] == ["not computed†", "+10 pp†", "+20 pp†", "+30 pp†"]
    assert table.note == "† Separated: the fit diverged."


def test_makers_and_attributes_have_a_table_each_and_empty_blocks_none(shown):
    rows = [row("Black", "approval_rate", 0.5, maker=maker) for maker in ("lender", "model")]
    made = shown(rows, RATES, FACTS, tables={"facts": ()})
    assert [part.title for part in made.parts] == ["Approval"]
    assert [table.title for table in made.parts[0].tables] == [
        "Approval, by race: the lender's own decisions",
        "Approval, by race: the model of the lender's decisions",
    ]


def test_a_page_of_which_the_run_has_nothing_says_so(shown):
    made = shown([], RATES)
    assert made.parts == ()
    assert "Nothing of this could be computed in this run." in made.words


def test_the_page_says_how_many_rows_there_are_in_all(shown):
    rows = [row("Black", "approval_rate", 0.5), row("Black", "approval_rate", 0.5, at={"k": 1})]
    assert shown(rows, RATES).words[-1].startswith("All 2 rows of its measures: sheet Measures of measures.xlsx, ")


def test_the_first_part_links_to_the_question_and_to_the_definitions(shown):
    made = shown([], RATES)
    assert made.words[0] == "Is it so?"
    assert [link.address for link in made.links] == ["pages/approval-rates.html", "method.html#outcomes"]


def test_names_of_groups_are_text_and_nothing_else(shown):
    hostile = "<script>alert(1)</script>"
    made = shown([row(hostile, "approval_rate", 0.5, low=0.4, high=0.6)], RATES)
    assert made.parts[0].tables[0].rows[0][0].text == hostile, "the template escapes it"
    assert "<script" not in element(made.parts[0].figures[0].chart, "a")


def test_a_run_cannot_break_out_of_the_query_that_is_printed():
    from tasks.reporting.evidence_tables import measures_found

    found = measures_found('a\' OR "1"', ["x"])
    assert "run = 'a'' OR 1'" in found
    assert found.count('"') == 2


def test_a_table_is_no_list_of_keys_and_a_reason_has_no_code(shown):
    fields = {"group": {"words": "group"}, "value": {"words": "value", "unit": "number"}}
    block = {"title": "Fit", "table": "facts", "fields": fields}
    few = {"group": "a_b", "value": None, "reason": "too_few_events: a_b has few", "n": 9}
    assert shown([], block, tables={"facts": (few,)}).parts == (), "no row has a number, and none is withheld"
    (part,) = shown([], block, tables={"facts": ({**few, "n": None},)}).parts
    assert Words.of(part.tables[0]).rows == [["a_b", "withheld"]]
    remarks = {**block, "fields": {**fields, "reason": {"words": "remarks", "note": True}}}
    (part,) = shown([], remarks, tables={"facts": ({**few, "value": 1.0},)}).parts
    assert Words.of(part.tables[0]).rows == [["a_b", "1†"]]
    assert part.tables[0].note == "† Too few events: a_b has few."
