"""Which column holds the decision and which side its values are on; nothing is made up."""

import csv
import json
from pathlib import Path

import pytest
import yaml

from flows.cli.draft.decision import Values, candidates, leading, read
from flows.cli.draft.drafting import Draft, drafted
from flows.cli.draft.questions import answered, questions
from flows.cli.draft.reading import File, read_file, read_source, source_of
from flows.cli.draft.spec_text import text
from tasks.pipeline.registry import read_spec

WORDS = {"Approved": 60, "Denied": 30, "Withdrawn": 10}


def sides(name: str, *values: str) -> dict[str, str]:
    return {value: meaning.side for value, meaning in read(name, dict.fromkeys(values, 10)).meanings.items()}


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("approved", ("1", "0"), {"1": "favourable", "0": "unfavourable"}),
        ("bad_flag", ("1", "0"), {"1": "unfavourable", "0": "favourable"}),
        ("default payment next month", ("0", "1"), {"0": "favourable", "1": "unfavourable"}),
        ("two_year_recid", ("0", "1"), {"0": "favourable", "1": "unfavourable"}),
        ("Crédito autorizado", ("Sí", "No"), {"Sí": "favourable", "No": "unfavourable"}),
        ("result", ("1", "0"), {}),
        ("Approved (Y/N)", ("Y", "Y - conditional", "N", "Withdrawn"),
         {"Y": "favourable", "Y - conditional": "favourable", "N": "unfavourable", "Withdrawn": "neither"}),
        ("Remark", ("Y", "N", "Withdrawn"), {"Withdrawn": "neither"}),
        ("Decision", ("yes", "no"), {"yes": "favourable", "no": "unfavourable"}),
        ("income", (">50K", "<=50K"), {">50K": "favourable", "<=50K": "unfavourable"}),
        ("decn", ("A", "D", "W"), {"A": "favourable", "D": "unfavourable", "W": "neither"}),
        ("grade", ("A", "B"), {}),
        ("class", ("A", "B", "C", "D"), {}),
        ("gbi_flag", ("G", "B", "I"), {"G": "favourable", "B": "unfavourable", "I": "neither"}),
        ("decn", ("A", "B", "D"), {"A": "favourable", "D": "unfavourable"}),
        ("IsApproved", ("-1", "0"), {"-1": "favourable", "0": "unfavourable"}),
        ("Score", ("-1", "0"), {}),
        ("TURNED_DOWN", ("Yes", "No"), {"Yes": "unfavourable", "No": "favourable"}),
        ("Zamítnuto", ("ano", "ne"), {"ano": "unfavourable", "ne": "favourable"}),
        ("ETAT_DOSSIER", ("ACC", "REF", "ANN"), {"ACC": "favourable", "REF": "unfavourable", "ANN": "neither"}),
        ("Status", ("ABC", "XYZ"), {}),
        ("Ruling", ("Allowed", "Dismissed"), {"Allowed": "favourable", "Dismissed": "unfavourable"}),
        ("Disposition", ("Convicted", "Dismissed"), {"Convicted": "unfavourable", "Dismissed": "favourable"}),
        (
            "action_taken",
            ("1", "2", "3", "4", "7"),
            {"1": "favourable", "2": "favourable", "3": "unfavourable", "4": "neither", "7": "neither"},
        ),
        ("action_code", ("1", "2", "3"), {}),
        ("accepted?", ("Accepted", "Turned down", "Refused", "Don't know"),
         {"Accepted": "favourable", "Turned down": "unfavourable", "Refused": "neither", "Don't know": "neither"}),
        ("decision", ("Accepted", "Refused"), {"Accepted": "favourable", "Refused": "unfavourable"}),
    ],
)  # fmt: skip
def test_sides_of_values(name: str, values: tuple[str, ...], expected: dict[str, str]) -> None:
    assert sides(name, *values) == expected


def ranked(**columns: dict[str, int]) -> list:
    values = [Values(name, rows, 0.0) for name, rows in columns.items()]
    return candidates(values, (), values[-1].name)


def test_the_decision_is_before_the_repayment() -> None:
    repaid = {"Fully Paid": 50, "Charged Off": 10}
    order = ranked(loan_status=repaid, underwriting_decision=WORDS, grade={"A": 50, "B": 50})
    assert order[0].column == "underwriting_decision"
    assert leading(order) is order[0]


def test_nothing_is_drafted_where_two_columns_are_near() -> None:
    order = ranked(first_decision=WORDS, second_decision=dict(WORDS))
    assert leading(order) is None
    assert [candidate.column for candidate in order[:2]] == ["second_decision", "first_decision"]


def test_a_column_of_many_missing_cells_loses() -> None:
    order = candidates([Values("status", WORDS, 0.9), Values("outcome", dict(WORDS), 0.0)], (), "x")
    assert order[0].column == "outcome"


@pytest.mark.parametrize("name", ["race", "county", "customer id", "application date"])
def test_what_names_people_places_ids_and_days_is_no_candidate(name: str) -> None:
    assert ranked(**{name: WORDS}) == []


# --------------------------------------------------------------------------------------------------------------------
# A decision in several columns.


def marked(place: Path, *names: str, cells: dict[str, tuple[str, ...]]) -> Draft:
    """A draft of 40 rows, each with one of the outcomes; outcome -> its cells in the columns."""
    path = place / "t.csv"
    rows = [(("White", "Black")[i % 2], *list(cells.values())[i % len(cells)]) for i in range(40)]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("race", *names), *rows])
    return drafted(read_file(File(path)))


MARKED = {
    "dates": (
        ("approved_date", "declined_date"),
        {"yes": ("2023-04-05", ""), "no": ("", "2023-04-05"), "none": ("", "")},
        {"approved": {"approved_date": "present"}, "declined": {"declined_date": "present"}},
    ),
    "flags of yes and blank": (
        ("Approved", "Denied"),
        {"yes": ("Y", ""), "no": ("", "Y"), "none": ("", "")},
        {"approved": {"Approved": "present"}, "denied": {"Denied": "present"}},
    ),
    "flags of yes and no": (
        ("genehmigt", "abgelehnt", "storniert"),
        {"yes": ("ja", "nein", "nein"), "no": ("nein", "ja", "nein"), "none": ("nein", "nein", "ja")},
        {"genehmigt": {"genehmigt": ["ja"]}, "abgelehnt": {"abgelehnt": ["ja"]}, "storniert": {"storniert": ["ja"]}},
    ),
    "a flag of approvals and one of no decision": (
        ("Approved", "Withdrawn"),
        {"yes": ("Y", "N"), "no": ("N", "N"), "none": ("N", "Y")},
        {
            "approved": {"Approved": ["Y"]},
            "withdrawn": {"Withdrawn": ["Y"]},
            "denied": {"Approved": ["N"], "Withdrawn": ["N"]},
        },
    ),
}


@pytest.mark.parametrize("name", MARKED)
def test_a_decision_in_several_columns_is_drafted_of_the_rows_that_each_marks(name: str, tmp_path: Path) -> None:
    columns, cells, rows = MARKED[name]
    draft = marked(tmp_path, *columns, cells=cells)
    assert {side: sum(draft.of_side(side).values()) for side in ("favourable", "unfavourable")} == {
        "favourable": 14,
        "unfavourable": 13,
    }
    assert draft.table.source.derive["decision"].model_dump(mode="json") == {"rows": rows}
    assert not set(columns) & set(draft.features)
    first = questions(draft)[0]
    assert first.keys == ("decision.column", "source.derive.decision")
    assert all(column in first.text for column in columns)
    assert "14 rows" in first.text
    written = text(draft, tmp_path / "t.yaml")
    read_spec(written, "t.yaml")
    raw = yaml.safe_load(written)
    assert raw["decision"]["column"] == "decision"
    again = read_source(source_of(raw["source"], tmp_path), tmp_path / "t.csv")
    assert again.columns["decision"].counts == draft.table.columns["decision"].counts
    turned = answered(draft, {"decision": columns[0]}) if len(columns) == 3 else draft
    assert ("decision" in turned.table.names) == (len(columns) == 2)


def test_a_flag_that_another_repeats_the_other_way_round_is_the_decision(tmp_path: Path) -> None:
    draft = marked(tmp_path, "Approved", "Denied", cells={"yes": ("Y", "N"), "no": ("N", "Y")})
    assert draft.decision_column in ("Approved", "Denied")
    assert not draft.table.source.derive


def test_a_flag_of_rows_that_are_approved_too_is_no_part_of_the_decision(tmp_path: Path) -> None:
    cells = {"yes": ("Y", "Y"), "no": ("N", "N"), "new and denied": ("N", "Y")}
    draft = marked(tmp_path, "Approved", "Pending before", cells=cells)
    assert (draft.decision_column, draft.table.source.derive) == ("Approved", {})


@pytest.mark.parametrize(
    ("other", "cells", "words"),
    [
        ("Denied", {"yes": ("Y", ""), "no": ("", "Y"), "both": ("Y", "Y")}, "13 rows have two of them"),
        ("Area", {"yes": ("Y", "x y"), "no": ("", "z")}, "is empty in 20 rows: if that is the other side"),
    ],
)
def test_a_doubtful_decision_in_columns_is_named_with_what_to_write(
    other: str, cells, words: str, tmp_path: Path
) -> None:
    draft = marked(tmp_path, "Approved", other, cells=cells)
    assert draft.decision is None
    (question,) = [q for q in questions(draft) if q.key == "decision"]
    assert words in question.text
    assert "`derive: {decision: {" in question.text
    made = answered(draft, {"decision": "made of marks"})
    assert json.dumps(made.table.source.derive["decision"].model_dump(mode="json")) in question.text
    assert made.decision_column == "decision"
    assert made.sides.has_both


# --------------------------------------------------------------------------------------------------------------------
# A sheet of a workbook, or lines around the table, that tell what codes mean.


def workbook(path: Path, legend: list[list[object]]) -> Path:
    import xlsxwriter

    rows = [[1 + i % 3, (5, 3)[i % 2], 1 + i % 4, 20 + i] for i in range(60)]
    sheets = {"Loans": [["Status", "Race", "Purpose", "Income"], *rows], "Codes": legend}
    with xlsxwriter.Workbook(path) as book:
        for name, records in sheets.items():
            sheet = book.add_worksheet(name)
            for at, record in enumerate(records):
                sheet.write_row(at, 0, record)
    return path


LEGEND = [
    ["Field", "Code", "Meaning"],
    *(["Status", 1, "Approved"], ["", 2, "Denied"], ["", 3, "Withdrawn"]),
    *(["Race", 5, "White"], ["Race", 3, "Black"], ["Race", 4, "Other"]),
    *(["Purpose", 1, "Purchase"], ["Purpose", 2, "Refinancing"]),
]


def test_a_sheet_that_tells_codes_is_read_where_it_has_every_value(tmp_path: Path) -> None:
    draft = drafted(read_file(File(workbook(tmp_path / "t.xlsx", LEGEND))))
    assert draft.decision_column == "Status in words"
    assert [list(draft.of_side(side)) for side in ("favourable", "unfavourable", "neither")] == [
        ["Approved"],
        ["Denied"],
        ["Withdrawn"],
    ]
    assert [(a.column, a.reference) for a in draft.attributes] == [("Race in words", "White")]
    assert draft.features == ["Purpose", "Income"]
    (question,) = [q for q in questions(draft) if q.key == "legend"]
    assert "the sheet 'Codes' (Status: 1 Approved, 2 Denied, 3 Withdrawn; Race: " in question.text
    written = text(draft, tmp_path / "t.yaml")
    read_spec(written, "t.yaml")
    assert yaml.safe_load(written)["source"]["derive"] == {
        "Status in words": {
            "column": "Status",
            "values": {"Approved": ["1"], "Denied": ["2"], "Withdrawn": ["3"]},
        },
        "Race in words": {"column": "Race", "values": {"White": ["5"], "Black": ["3"]}},
    }


def test_a_legend_that_fits_several_columns_is_named_and_not_read(tmp_path: Path) -> None:
    legend = [["Code", "Meaning"], *([i, f"word {i}"] for i in range(1, 6))]
    draft = drafted(read_file(File(workbook(tmp_path / "t.xlsx", legend))))
    assert not draft.table.source.derive
    (question,) = [q for q in questions(draft) if q.key == "legend"]
    assert "The sheet 'Codes' may tell codes of Status, Race, Purpose, and names no column" in question.text
    assert "sheet: 'Loans' # CHECK" in text(draft)


@pytest.mark.parametrize(
    ("head", "foot"),
    [
        (["Result: 1 = Approved; 2 = Denied; 9 = Withdrawn by applicant", ""], []),
        ([], ["", "Codes of Result:", "1 = Approved", "2 = Denied", "9 = Withdrawn by applicant"]),
    ],
)
def test_lines_around_a_table_tell_codes(head: list[str], foot: list[str], tmp_path: Path) -> None:
    rows = [f"{('White', 'Black')[i % 2]},{('1', '2', '9')[i % 3]},{1 + i % 3}" for i in range(60)]
    (tmp_path / "t.csv").write_text("\n".join([*head, "Race,Result,Purpose", *rows, *foot]) + "\n")
    draft = drafted(read_file(File(tmp_path / "t.csv")))
    assert draft.decision_column == "Result in words"
    assert draft.of_side("neither") == {"Withdrawn by applicant": 20}
    (question,) = [q for q in questions(draft) if q.key == "legend"]
    assert "the lines around the table (Result: 1 Approved, 2 Denied, 9 Withdrawn by applicant)" in question.text
