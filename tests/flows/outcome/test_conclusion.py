"""Endings of errors and of years: the name of each exit code, one line, and no value of a row."""

import pickle
import traceback
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from uuid import uuid4

import pytest

from flows.outcome.conclusion import ending_of_error, ending_of_state, ending_of_years
from flows.outcome.ending import Name, one_line, subject_of, without_cells, words_known
from flows.outcome.run_log import PlainError, in_own_words, in_plain_words, may_pass
from schemas.errors import (
    DataQualityError,
    InfrastructureError,
    IntegrityError,
    SpecError,
    SuiteError,
    TooLittleEvidenceError,
)
from schemas.terms import ExitCode
from tasks.lake.store import Lake

SPEC = {
    "name": "loans",
    "year": 2024,
    "columns": {"income": {"type": "continuous"}},
    "source": {"path": "l_{year}.csv"},
}
KNOWN = words_known({"spec": SPEC})


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (SpecError("x"), Name.SPEC),
        (TooLittleEvidenceError("x"), Name.INCONCLUSIVE),
        (SuiteError("x"), Name.DATA_QUALITY),
        (InfrastructureError("x"), Name.INFRASTRUCTURE),
        (OSError(28, "No space left on device"), Name.INFRASTRUCTURE),
        (ZeroDivisionError("x"), Name.INFRASTRUCTURE),
        (IntegrityError("x"), Name.INTEGRITY),
    ],
)
def test_an_error_ends_in_the_state_of_its_exit_code(error: Exception, name: Name) -> None:
    assert ending_of_error(error, "loans 2024").name is name


def test_a_message_about_data_names_no_row_and_quotes_no_cell() -> None:
    error = SuiteError("stage ingest: table t does not keep 'income':\n  column income: between 0 and 1; rows L0007")
    told = ending_of_error(error, "loans 2024", KNOWN).message
    assert told.startswith("stage ingest: table t does not keep 'income'; ")
    assert "evenhand audit SPEC" in told, "where the rows are told"
    assert "L0007" not in told
    assert without_cells("column 'income' has 'Jane' and \"Doe\"", KNOWN) == "column 'income' has \u2026 and \u2026"
    assert without_cells("no file 'l_2019.csv'", KNOWN) == "no file 'l_2019.csv'", "a year's file is in the spec"


def test_a_fault_of_ours_tells_type_and_place_and_not_its_words() -> None:
    try:
        int("Jane Doe")
    except ValueError as error:
        told = ending_of_error(error, "loans 2024").message
    assert told.startswith("a fault of ours: ValueError in test_conclusion.py, line ")
    assert "Jane" not in told


def test_the_stage_comes_first() -> None:
    error = InfrastructureError("a process was killed")
    error.add_note("stage detect cst")
    assert ending_of_error(error, "loans 2024").message == "stage detect cst: a process was killed"


def test_a_message_is_one_line_of_bounded_length() -> None:
    assert one_line("first\n  second\n") == "first second"
    assert len(one_line("long " * 400)) <= 600


def year(number: int, state: str, code: int, message: str = "", **more: object) -> dict[str, object]:
    known = {"year": number, "value": "", "stage": "", "state": state, "exit_code": code, "run": f"r{number}"}
    return {**known, "message": message, **more}


def test_a_back_fill_is_counted_and_its_most_serious_year_named() -> None:
    years = [
        year(2018, "within", 0),
        year(2019, "outside", 1),
        year(2020, "failed", 4, "has 'Jane' in it", stage="ingest"),
    ]
    found = ending_of_years({"exit_code": int(ExitCode.DATA_QUALITY), "years": years}, "history 2018-2020", KNOWN)
    assert found.name is Name.DATA_QUALITY
    assert found.message == "3 years: 1 within, 1 outside, 1 failed; 2020 ingest: has \u2026 in it"
    calm = ending_of_years({"exit_code": 0, "years": years[:1]}, "history 2018")
    assert (calm.name, calm.message) == (Name.WITHIN, "1 year: 1 within")
    assert ending_of_years({"exit_code": 1, "years": years[:2]}, "h").message.endswith("; 2019: run r2019")


def test_a_flow_run_is_named_by_audit_and_years(tmp_path: pytest.TempPathFactory) -> None:
    assert subject_of({"spec": SPEC}).words == "loans 2024"
    assert subject_of({"spec": SPEC}).tags == ("dataset:loans", "year:2024")
    assert subject_of({"spec": SPEC, "years": [2018, 2019, 2020]}).words == "loans 2018-2020"
    assert subject_of({"spec": SPEC, "years": [2018, 2020]}).words == "loans 2018,2020"
    assert subject_of({"spec": SPEC, "years": "2018-2024"}).words == "loans 2018-2024"
    part = {**SPEC, "source": {"part": {"column": "lender", "value": "A {b}"}}}
    assert subject_of({"spec": part}).words == "loans 2024 A {b}"
    assert subject_of({"spec": "/nowhere/quarterly.yaml"}).words == "quarterly", "the run fails later, and has a name"


def test_a_task_tells_prefect_plain_words_and_the_flow_the_error_itself() -> None:
    error = DataQualityError("a cell is 'Jane'")

    def task() -> None:
        with in_plain_words():
            raise error

    with pytest.raises(DataQualityError) as raised:
        in_own_words(task)
    assert raised.value is error
    assert error.__context__ is None
    with pytest.raises(PlainError, match="a cell is \u2026") as told, in_plain_words(keep_error=False):
        raise error
    assert "Jane" not in "".join(traceback.format_exception(told.value)), "which Prefect logs"
    with pytest.raises(OSError, match="full"), in_plain_words():
        raise OSError("full")


def test_who_is_told_of_a_cancelled_run_reads_that_it_was_cancelled(tmp_path: Path) -> None:
    from prefect.client.schemas.objects import FlowRun
    from prefect.states import Cancelled, Cancelling, Completed

    run = FlowRun(name="loans 2024", flow_id=uuid4(), tags=["dataset:loans"])
    for state in (Cancelling(message="Flow run was cancelled."), Cancelled(message="Flow run was cancelled.")):
        found = ending_of_state(run, state, Lake(tmp_path / "lake"))
        assert found is not None
        assert (found.name, found.subject, found.message) == (Name.CANCELLED, "loans 2024", "Flow run was cancelled.")
    assert ending_of_state(run, Completed(), Lake(tmp_path / "lake")) is None


def _without_memory() -> InfrastructureError:
    error = InfrastructureError("stage detect cst ran out of memory")
    error.__cause__ = MemoryError()
    return error


def _killed() -> InfrastructureError:
    error = InfrastructureError("a process was killed while stage detect cst ran")
    error.__cause__ = BrokenProcessPool()
    return error


@pytest.mark.parametrize(
    ("error", "again"),
    [
        (_without_memory(), True),
        (_killed(), True),
        (DataQualityError("a cell"), False),
        (InfrastructureError("x"), False),
    ],
    ids=["memory", "killed", "data", "other"],
)
@pytest.mark.parametrize("kept", [True, False])
def test_a_stage_that_died_or_had_no_memory_is_tried_again_through_the_words_that_prefect_is_told(
    error: Exception, again: bool, kept: bool
) -> None:
    with pytest.raises(PlainError) as told, in_plain_words(keep_error=kept):
        raise error
    assert may_pass(told.value) is again
    if not kept:
        assert may_pass(pickle.loads(pickle.dumps(told.value))) is again, "it comes from a process of a year"
    assert may_pass(OSError("full"))
