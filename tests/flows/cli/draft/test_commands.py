"""What `init` writes of tables that nobody prepared, with options and without, and what an audit reads of it."""

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


def init(*words: str, cwd: Path):
    return evenhand("init", *words, cwd=cwd)


def spec_of(file: Path, *words: str):
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
    produced = {table.name: [read.table(table.name)] for table in second.stage.reads}
    return second.stage.run(lake, produced, second.settings, second.modules).tables[0].rows


def test_a_lenders_table_is_drafted_without_help_and_read_by_its_draft(tmp_path: Path) -> None:
    spec = spec_of(tables.lender(tmp_path))
    assert (spec.decision.favourable, spec.decision.unfavourable) == (("approved",), ("denied",))
    assert set(spec.features()) == {"amount", "purpose"}
    assert {column.constraint for column in spec.features().values()} == {Constraint.IMMUTABLE}
    assert {p.name: p.reference for p in spec.protected if p.name == "gender"} == {"gender": "m"}
    assert applications(spec, tmp_path) == tables.ROWS


@pytest.mark.parametrize("delimiter", [";", "\t", "|", " "])
def test_whatever_parts_its_cells(tmp_path: Path, delimiter: str) -> None:
    spec = spec_of(tables.lender(tmp_path, delimiter))
    assert spec.source.delimiter == delimiter
    assert set(spec.features()) == {"amount", "purpose"}


def test_south_german_credit_is_written_with_check_where_the_sides_belong(tmp_path: Path) -> None:
    file = tables.south_german(tmp_path)
    done = init(file.name, "-o", "spec.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert "Give it: evenhand init south.csv --decision kredit --favourable VALUE" in done.stderr
    written = parse((tmp_path / "spec.yaml").read_text())
    assert written.value["decision"]["favourable"] == ["CHECK"]
    assert {mark.key for mark in written.marks} >= {"decision.favourable", "decision.unfavourable"}
    audit = evenhand("audit", "spec.yaml", "--lake", "lake", cwd=tmp_path)
    assert audit.returncode == 2
    assert "which values of kredit favour the applicant" in audit.stderr
    (tmp_path / "spec.yaml").unlink()
    spec = spec_of(file, "--decision", "kredit", "--favourable", "1")
    assert [p.columns for p in spec.protected] == [("famges",), ("alter",), ("gastarb",)]
    assert {"laufzeit", "moral", "hoehe"} <= set(spec.features())
    assert not {key for key in spec.unconfirmed if key.startswith("decision")}


def test_a_table_of_two_near_decisions_is_written_and_the_three_best_are_named(tmp_path: Path) -> None:
    second = [("approved", "denied")[i % 2] for i in range(tables.ROWS)]
    file = tables.lender(tmp_path, other_answer=second, final_answer=second[::-1])
    done = init(file.name, "-o", "spec.yaml", cwd=tmp_path)
    assert done.returncode == 2
    for name in ("answer (", "other_answer (", "final_answer ("):
        assert name in done.stderr
    assert "column: CHECK" in (tmp_path / "spec.yaml").read_text()


def test_compas_takes_no_protected_name_and_leaves_later_outcomes_and_dates_out(tmp_path: Path) -> None:
    file = tables.compas(tmp_path)
    assert init(file.name, "--decision", "sex", cwd=tmp_path).returncode == 2
    spec = spec_of(file, "--decision", "two_year_recid")
    assert (spec.decision.favourable, spec.row_id) == (("0",), "id")
    assert set(spec.features()) == {"priors_count", "c_charge_degree"}


def test_codes_of_hmda_under_a_lenders_own_columns(tmp_path: Path) -> None:
    spec = spec_of(tables.hmda(tmp_path), "--decision", "action_taken")
    assert (spec.decision.favourable, spec.decision.unfavourable, spec.decision.neither) == (("1",), ("3",), ("4",))
    assert {p.reference for p in spec.protected} >= {"White", "Male"}
    after = {"denial_reason_1", "interest_rate", "rate_spread", "purchaser_type", "payment_months"}
    assert not {*after, "county_code", "census_tract"} & set(spec.features())
    assert applications(spec, tmp_path) > tables.ROWS / 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--decision", "answr"), "--decision answr: the table has no such column; did you mean 'answer'?"),
        (("--decision", "amount"), "--decision amount: "),
        (("--decision", "answer", "--favourable", "yes"), "--favourable yes: no row of answer has it; known: "),
        (("--decision", "answer", "--favourable", "denied", "--favourable", "approved"), "that is every value"),
        (("--decision", "answer", "--unfavourable", "denied"), "which value favours the applicant?"),
        (("--decision", "answer", "--protected", "customer"), "--protected customer: "),
        (("--decision", "answer", "--reference", "x"), "--reference x: no row of gender, age has it; known: "),
        (("--decision", "answer", "--protected", "gendr"), "did you mean 'gender'?"),
        (("--with", "own.csv"), "--with own.csv: by which column? Give --key NAME"),
        (("--with", "own.csv", "--key", "nr"), "--key nr: own.csv has no such column"),
    ],
)
def test_options_that_do_not_fit_the_table_name_what_does(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    done = init(tables.lender(tmp_path).name, *words, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr


@pytest.mark.parametrize(
    ("values", "favourable", "sides"),
    [
        (("yes", "Yes", "NO", "no"), "yes", ({"yes"}, {"no"}, set())),
        (("1", "1.0", "0"), "1", ({"1"}, {"0"}, set())),
        (("yes", "no", "withdrawn", "purchased"), "yes", ({"yes"}, {"no"}, {"withdrawn", "purchased"})),
        (("A1", "B2"), "B2", ({"b2"}, {"a1"}, set())),
        (("Fully Paid", "Charged Off", "Current"), "fully paid", ({"fully paid"}, {"charged off"}, {"current"})),
    ],
)
def test_the_sides_by_a_favourable_value_that_is_given(values, favourable: str, sides, tmp_path: Path) -> None:
    cells = [values[i % len(values)] for i in range(tables.ROWS)]
    spec = spec_of(tables.lender(tmp_path, result=cells), "--decision", "result", "--favourable", favourable)
    read = (spec.decision.favourable, spec.decision.unfavourable, spec.decision.neither)
    assert tuple({value.casefold() for value in side} for side in read) == sides


def test_a_second_file_is_joined(tmp_path: Path) -> None:
    file = tables.lender(tmp_path)
    names = [f"C{i:04d}" for i in range(5, tables.ROWS + 5)]
    people = tmp_path / "people.csv"
    people.write_text(
        "\n".join(["CUSTOMER,race", *(f"{n},{('White', 'Black')[i % 2]}" for i, n in enumerate(names)), ""])
    )
    spec = spec_of(file, "--with", "people.csv", "--key", "customer")
    assert (spec.source.second_file.key.other, spec.source.second_file.columns) == ("CUSTOMER", ("race",))
    assert "race" in {p.name for p in spec.protected}
    assert "source.with" in spec.unconfirmed
    assert (
        "235 applications have a row in people.csv, 5 have none, and 5 of its rows"
        in (tmp_path / "spec.yaml").read_text()
    )


def test_cells_of_several_lines_and_quotes_read_back(tmp_path: Path) -> None:
    remarks = ["two\nlines", "three\r\nlines\r\nof text"] * (tables.ROWS // 2)
    spec = spec_of(tables.lender(tmp_path, remark=remarks))
    assert spec.source.multiline
    assert applications(spec, tmp_path) == tables.ROWS


def test_names_that_yaml_would_read_otherwise_read_back(tmp_path: Path) -> None:
    column = [("on", "off", "null")[i % 3] for i in range(tables.ROWS)]
    spec = spec_of(tables.lender(tmp_path, **{"it's: a #name": column, "yes": column[::-1], "ünïcode\u2028": column}))
    assert {"it's: a #name", "yes"} <= set(spec.columns)


def test_a_table_called_after_its_year_is_drafted(tmp_path: Path) -> None:
    file = tables.lender(tmp_path).rename(tmp_path / "2023.csv")
    spec = spec_of(file)
    assert (spec.name, spec.year) == ("2023", 2023)


def test_lines_that_are_no_rows_are_a_question(tmp_path: Path) -> None:
    file = tables.lender(tmp_path)
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join([*lines[:50], "half,a row\n", *lines[50:]]))
    assert "1 line is refused, as it cannot be cut" in init(file.name, "-o", "draft.yaml", cwd=tmp_path).stderr


def test_the_groups_are_asked_for_where_no_column_names_them(tmp_path: Path) -> None:
    file = tables.lender(tmp_path)
    words = file.read_text().replace("gender", "segment", 1).replace(",age,", ",since,", 1)
    file.write_text(words.replace(",w,", ",x1,").replace(",m,", ",x2,"))
    done = init(file.name, cwd=tmp_path)
    assert done.returncode == 2
    assert "Columns of a few values: segment, purpose" in done.stderr
    spec = spec_of(file, "--protected", "segment", "--reference", "x2")
    assert (spec.protected[0].reference, "protected.0" in spec.unconfirmed) == ("x2", False)


def test_a_draft_in_another_folder_finds_its_table(tmp_path: Path) -> None:
    file = tables.lender(tmp_path)
    (tmp_path / "specs").mkdir()
    output = str(tmp_path / "specs" / "spec.yaml")
    assert init(file.name, "-o", output, cwd=tmp_path).returncode == 0
    spec = load_spec(tmp_path / "specs" / "spec.yaml", {}).spec
    assert Path(spec.source.paths[0]).resolve() == file
    assert init("--check", output, cwd=tmp_path).returncode == 0
    assert init(file.name, "-o", "nowhere/spec.yaml", cwd=tmp_path).returncode == 5


def test_a_file_that_is_there_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text("mine")
    done = init(tables.lender(tmp_path).name, "-o", "spec.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert (tmp_path / "spec.yaml").read_text() == "mine"


def test_the_title_is_what_the_table_is_about_and_never_the_file(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    file = tables.lender(tmp_path).rename(tmp_path / "q3_final_v2.csv")
    spec = spec_of(file)
    assert spec.title == "Loan decisions"


def test_a_bundled_spec_that_fits_is_named(tmp_path: Path) -> None:
    done = init(tables.german(tmp_path, header=True).name, cwd=tmp_path)
    assert "a bundled spec fits this table (German Credit" in done.stderr
    without = init(tables.german(tmp_path).name, cwd=tmp_path)
    assert "its columns are named as in German Credit" in without.stderr
