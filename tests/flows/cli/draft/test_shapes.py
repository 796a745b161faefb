"""What `init` makes of the six shapes of tables that nobody prepared, as made-up tables of those shapes."""

import re
from pathlib import Path

import pytest
import unprepared_tables as tables
from conftest import evenhand

from flows.cli.options import load_spec
from schemas.audit.file import parse
from schemas.terms import Constraint
from tasks.ingest.registry import check_columns
from tasks.lake.store import Lake
from tasks.plan import plan

MOST_MARKS = 12


def init(*words: str, cwd: Path):
    return evenhand("init", *words, cwd=cwd)


def drafted(file: Path, *words: str):
    """The spec of a draft that lies beside its table, read as an audit reads it."""
    done = init(file.name, *words, "-o", "spec.yaml", cwd=file.parent)
    assert done.returncode == 0, done.stderr
    spec = load_spec(file.parent / "spec.yaml", {}).spec
    check_columns(spec)
    return spec


def applications(spec, place: Path) -> int:
    """Rows that an audit of the spec would look at, by its own first two stages."""
    lake = Lake(place / "lake")
    first, second = plan(spec).steps[:2]
    read = first.stage.run(lake, {}, first.settings, first.modules)
    given = {table.name: [read.table(table.name)] for table in second.stage.reads}
    return second.stage.run(lake, given, second.settings, second.modules).tables[0].rows


def test_german_credit_without_a_header_is_parted_by_blanks_and_sent_to_its_bundled_spec(tmp_path: Path) -> None:
    done = init(tables.german(tmp_path).name, cwd=tmp_path)
    assert done.returncode == 2
    assert not done.stdout
    assert "german.data: cells between blanks, 21 columns" in done.stderr
    assert "german.data has no header: its columns are named as in German Credit" in done.stderr
    assert re.search(r"evenhand audit \S*german-credit.yaml --set source.path=german.data", done.stderr)
    assert "Likeliest: Status (" in done.stderr


def test_the_same_with_a_header_is_sent_there_too(tmp_path: Path) -> None:
    done = init(tables.german(tmp_path, header=True).name, cwd=tmp_path)
    assert "no header" not in done.stderr
    assert re.search(r"evenhand audit \S*german-credit.yaml --set source.path=german.data", done.stderr)


def test_south_german_credit_asks_for_the_decision_and_lets_nobody_change(tmp_path: Path) -> None:
    file = tables.south_german(tmp_path)
    asked = init(file.name, cwd=tmp_path)
    assert asked.returncode == 2
    assert "Likeliest: kredit (" in asked.stderr
    assert "evenhand init south.csv --decision kredit --favourable VALUE" in asked.stderr
    unsure = init(file.name, "--decision", "kredit", cwd=tmp_path)
    assert unsure.returncode == 2
    assert "which value favours the applicant?" in unsure.stderr
    spec = drafted(file, "--decision", "kredit", "--favourable", "1")
    assert {column.constraint for column in spec.columns.values()} == {Constraint.IMMUTABLE}
    assert [p.columns for p in spec.protected] == [("famges",), ("gastarb",)]
    assert set(spec.features()) == {"laufkont", "laufzeit", "moral", "hoehe", "telef"}
    assert "decision.favourable" not in spec.unconfirmed


def test_compas_takes_no_protected_name_and_leaves_later_outcomes_and_dates_out(tmp_path: Path) -> None:
    file = tables.compas(tmp_path)
    asked = init(file.name, cwd=tmp_path)
    assert asked.returncode == 2
    assert "Likeliest: two_year_recid (" in asked.stderr
    assert "sex (" not in asked.stderr
    assert init(file.name, "--decision", "sex", cwd=tmp_path).returncode == 2
    spec = drafted(file, "--decision", "two_year_recid")
    assert (spec.decision.favourable, spec.row_id) == (("0",), "id")
    assert set(spec.features()) == {"priors_count", "c_charge_degree"}
    assert spec.protected[0].reference in ("African-American", "Caucasian")


def test_hmda_that_is_drafted_all_the_same_has_applications_left(tmp_path: Path) -> None:
    spec = drafted(tables.hmda(tmp_path), "--decision", "action_taken")
    assert spec.decision.favourable == ("1", "2")
    assert [p.reference for p in spec.protected if p.name == "derived_race"] == ["White"]
    after = {"denial_reason_1", "interest_rate", "rate_spread", "purchaser_type", "payment_months"}
    assert not {*after, "county_code", "census_tract"} & set(spec.features())
    reason = next(line for line in (tmp_path / "spec.yaml").read_text().splitlines() if "'payment_months':" in line)
    assert "known after the decision: missing in 0% of the favourable, 100% of the others" in reason
    assert applications(spec, tmp_path) > tables.ROWS / 2


def test_a_question_mark_of_adult_is_missing(tmp_path: Path) -> None:
    done = init(tables.adult(tmp_path).name, cwd=tmp_path)
    assert "adult.data has no header" in done.stderr
    spec = drafted(tables.adult(tmp_path), "--decision", "income", "--favourable", ">50K", "--protected", "sex")
    assert spec.source.missing == ("", "NA", "?")
    assert spec.source.delimiter == ","
    assert "workclass" in spec.features()


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|", " "])
def test_a_lenders_own_table_is_drafted_whatever_parts_its_cells(tmp_path: Path, delimiter: str) -> None:
    spec = drafted(tables.lender(tmp_path, delimiter), "--decision", "answer")
    assert spec.source.delimiter == delimiter
    assert spec.decision.favourable == ("approved",)
    assert set(spec.features()) == {"amount", "purpose"}
    [gender] = spec.protected
    assert gender.reference == "w"  # the largest group that is a group, and not `unknown`
    assert not gender.judges("unknown")


@pytest.mark.parametrize("table", ["german", "south_german", "compas", "adult", "lender"])
def test_the_question_has_at_most_240_letters_and_three_answers(tmp_path: Path, table: str) -> None:
    done = init(getattr(tables, table)(tmp_path).name, cwd=tmp_path)
    question = done.stderr.splitlines()[-1].removeprefix("evenhand: ")
    assert len(question) <= 240
    assert question.count("; ") <= 2


def test_the_decision_is_named_by_its_words_when_it_is_not_given(tmp_path: Path) -> None:
    done = init(tables.lender(tmp_path).name, cwd=tmp_path)
    assert done.returncode == 2
    assert "Likeliest: answer (" in done.stderr


@pytest.mark.parametrize("table", ["south_german", "compas", "hmda", "lender"])
def test_the_lines_to_confirm_are_few_and_stand_above_the_columns(tmp_path: Path, table: str) -> None:
    file = getattr(tables, table)(tmp_path)
    decision = {"south_german": "kredit", "compas": "two_year_recid", "hmda": "action_taken", "lender": "answer"}[table]
    favourable = ("--favourable", "1") if table == "south_german" else ()
    drafted(file, "--decision", decision, *favourable)
    parsed = parse((tmp_path / "spec.yaml").read_text())
    assert 0 < len(parsed.marks) <= MOST_MARKS
    assert max(mark.line for mark in parsed.marks) == parsed.lines[("columns",)]
    listed = evenhand("init", "--check", "spec.yaml", cwd=tmp_path).stdout.splitlines()
    assert [line.split()[2] for line in listed] == [mark.key for mark in parsed.marks]


def test_methods_that_do_not_run_are_named_with_the_reason(tmp_path: Path) -> None:
    drafted(tables.lender(tmp_path), "--decision", "answer")
    text = (tmp_path / "spec.yaml").read_text()
    for method, why in (("cst", "no causal graph"), ("gcfn", "no column has the role mediator"), ("fgce", "no column")):
        assert re.search(rf"^#   {method}: {why}", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--decision", "answr"), "--decision answr: the table has no such column; did you mean 'answer'?"),
        (("--decision", "amount"), "--decision amount: "),
        (("--decision", "answer", "--favourable", "yes"), "--favourable yes: no row of answer has it; known: "),
        (("--decision", "answer", "--protected", "amount"), "--protected amount: "),
        (("--decision", "answer", "--reference", "x"), "--reference x: no row of gender has it; known: "),
        (("--decision", "answer", "--protected", "gendr"), "did you mean 'gender'?"),
    ],
)
def test_options_that_do_not_fit_the_table_name_what_does(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    done = init(tables.lender(tmp_path).name, *words, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr


def test_the_groups_are_asked_for_where_no_column_names_them(tmp_path: Path) -> None:
    file = tables.lender(tmp_path)
    file.write_text(file.read_text().replace("gender", "segment", 1).replace(",age,", ",since,", 1))
    done = init(file.name, "--decision", "answer", cwd=tmp_path)
    assert done.returncode == 2
    assert "columns of a few values: segment, purpose. Give one: --protected COLUMN" in done.stderr
    spec = drafted(file, "--decision", "answer", "--protected", "segment", "--reference", "m")
    assert (spec.protected[0].reference, "protected.0" in spec.unconfirmed) == ("m", False)


def test_a_draft_in_another_folder_finds_its_table(tmp_path: Path) -> None:
    file = tables.lender(tmp_path)
    (tmp_path / "specs").mkdir()
    output = str(tmp_path / "specs" / "spec.yaml")
    assert init(file.name, "--decision", "answer", "-o", output, cwd=tmp_path).returncode == 0
    spec = load_spec(tmp_path / "specs" / "spec.yaml", {}).spec
    assert Path(spec.source.paths[0]).resolve() == file
    assert init(file.name, "--decision", "answer", "-o", "nowhere/spec.yaml", cwd=tmp_path).returncode == 5


def test_a_file_that_is_there_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text("mine")
    done = init(tables.lender(tmp_path).name, "--decision", "answer", "-o", "spec.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert (tmp_path / "spec.yaml").read_text() == "mine"
