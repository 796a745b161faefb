"""Where runs stand in their review: which signatures count, what is open and overdue, and what is refused."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from conftest import loans
from sealed_run import RUN, sealed_run

from flows.runs import review
from flows.runs.index import digest, read_manifest
from flows.runs.review import Note, SignOff, approved_before, outstanding, review_of, reviews, sign_off
from schemas.errors import IntegrityError, SpecError
from tasks.lake import log
from tasks.lake.store import Lake

LATER = "loans-2024-9999999999"
CONTROLS = "\x00\x07\x1b\r\x7f\x9b\u061c\u200e\u200f\u202a\u202e\u2066\u2069\ud800"


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a lake with one run."""
    place = tmp_path_factory.mktemp("sealed")
    loans().to_csv(place / "loans.csv", index=False)
    root = sealed_run(place).root
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.fixture
def lake(sealed: dict[str, bytes], tmp_path: Path) -> Lake:
    for name, content in sealed.items():
        (tmp_path / "lake" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "lake" / name).write_bytes(content)
    return Lake(tmp_path / "lake")


def says(lake: Lake, by: str, role: str, text: str = "", run: str = RUN) -> log.Entry:
    return sign_off(lake, run, SignOff(by, role, text))


def written(lake: Lake, run: str, **changes: object) -> None:
    """Write the manifest of a run, with other content, and enter it."""
    content = {**read_manifest(lake, RUN), "run": run, **changes}
    lake.write_file(f"runs/{run}/manifest.json", json.dumps({**content, "sha256": digest(content)}, indent=1).encode())
    log.append(lake, "run published", run=run, manifest_sha256=log.digest_of(content))


def tomorrow() -> str:
    return (datetime.now(UTC).date() + timedelta(days=1)).isoformat()


@pytest.mark.parametrize(
    ("said", "state", "counting"),
    [
        ([], "unsigned", 0),
        ([("Ann", "prepared")], "prepared", 1),
        ([("Ann", "prepared"), ("Bob", "reviewed")], "reviewed", 2),
        ([("Ann", "prepared"), ("Bob", "approved"), ("Cy", "reviewed")], "approved", 3),
        ([("Ann", "prepared"), ("Bob", "rejected")], "rejected", 1),
        ([("Ann", "prepared"), ("Bob", "rejected"), ("Cy", "reviewed")], "rejected", 1),
        ([("Ann", "prepared"), ("Bob", "approved"), ("Bob", "withdrawn"), ("Ann", "prepared")], "prepared", 1),
    ],
)
def test_the_state_is_of_the_signatures_since_the_last_rejection(
    lake: Lake, said: list[tuple[str, str]], state: str, counting: int
) -> None:
    for by, role in said:
        says(lake, by, role, "a reason")
    review = review_of(lake, RUN)
    assert (review.state, len(review.signatures)) == (state, counting)
    assert [each.state for each in reviews(lake)] == [state]
    assert outstanding(lake).unsigned == ((RUN,) if state == "unsigned" else ())


@pytest.mark.parametrize("name", ["ann  lee", " Ann Lee ", "ANN LEE", "\uff21nn Lee"])
def test_nobody_approves_what_they_prepared_however_they_write_their_name(lake: Lake, name: str) -> None:
    says(lake, "Ann Lee", "prepared")
    with pytest.raises(SpecError, match="alone: an approval needs"):
        says(lake, name, "approved")
    assert says(lake, "Bob", "approved").role == "approved"


def test_an_approval_after_a_rejection_names_what_happened_last(lake: Lake) -> None:
    says(lake, "Ann", "prepared")
    says(lake, "Bob", "rejected", "wrong year")
    says(lake, "Cy", "reviewed")
    with pytest.raises(SpecError, match="was rejected after it was prepared"):
        says(lake, "Bob", "approved")


def test_signatures_are_of_the_manifest_as_it_was(lake: Lake) -> None:
    says(lake, "Ann", "prepared")
    written(lake, RUN, finished="2026-02-02T00:00:00Z")
    assert review_of(lake, RUN).state == reviews(lake)[0].state == "unsigned"
    with pytest.raises(SpecError, match="was prepared by nobody"):
        says(lake, "Bob", "approved")


def test_an_approval_that_nobody_prepared_is_none(lake: Lake) -> None:
    """Written past the rules, by somebody who can write to the lake."""
    digest_ = log.digest_of(read_manifest(lake, RUN))
    log.append(lake, "signed off", run=RUN, manifest_sha256=digest_, by="Bob", role="approved")
    assert review_of(lake, RUN).state == "unsigned"


@pytest.mark.parametrize("role", ["prepared", "reviewed", "approved", "rejected"])
def test_the_same_role_is_signed_once_by_a_name_while_it_stands(lake: Lake, role: str) -> None:
    says(lake, "Bob", "prepared")
    if role == "prepared":
        says(lake, "Ann Lee", role)
    else:
        says(lake, "Ann Lee", role, "a reason")
    before = log.head(lake)
    with pytest.raises(SpecError, match=f"is signed as {role} by Ann Lee already"):
        says(lake, " ann  LEE", role, "again")
    assert log.head(lake) == before
    says(lake, "Cy", role, "a reason")


def test_what_was_taken_back_is_signed_again(lake: Lake) -> None:
    for by, role in (("Ann", "prepared"), ("Bob", "withdrawn"), ("Ann", "prepared"), ("Bob", "approved")):
        says(lake, by, role, "a reason")
    written(lake, RUN, finished="2026-02-02T00:00:00Z")
    assert says(lake, "Ann", "prepared").role == "prepared"


def test_a_signature_by_a_key_is_added_to_a_name_as_given_once(lake: Lake, tmp_path: Path) -> None:
    log.new_key(tmp_path / "key")
    says(lake, "Ann", "prepared")
    assert sign_off(lake, RUN, SignOff("Ann", "prepared", key=tmp_path / "key")).signature is not None
    for key in (tmp_path / "key", None):
        with pytest.raises(SpecError, match="already"):
            sign_off(lake, RUN, SignOff("Ann", "prepared", key=key))


def test_an_approval_that_counts_for_nothing_does_not_stop_one_that_does(lake: Lake) -> None:
    """Written past the rules, before anybody prepared the run."""
    digest_ = log.digest_of(read_manifest(lake, RUN))
    log.append(lake, "signed off", run=RUN, manifest_sha256=digest_, by="Bob", role="approved")
    says(lake, "Ann", "prepared")
    says(lake, "Bob", "approved")
    assert review_of(lake, RUN).state == "approved"


def test_a_name_that_signs_twice_at_once_is_entered_once(lake: Lake) -> None:
    def once(_: int) -> bool:
        try:
            says(lake, "Ann", "prepared")
        except SpecError:
            return False
        return True

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(once, range(6))) == 1


def test_a_broken_chain_takes_nothing_that_people_say_but_their_reading_of_rows(lake: Lake) -> None:
    open_ = review.open_remediation(lake, RUN, Note("Ann", "retrain"), "Bob", tomorrow())
    review.note(lake, RUN, Note("Ann", "one"))
    path = lake.root / log.path_of(2)
    path.write_text(path.read_text().replace("Ann", "Eve"))
    before = log.head(lake).n
    for say in (
        lambda: review.note(lake, RUN, Note("Ann", "x")),
        lambda: review.note_read(lake, RUN, Note("Ann")),
        lambda: review.open_remediation(lake, RUN, Note("Ann", "x"), "Bob", tomorrow()),
        lambda: review.close_remediation(lake, RUN, Note("Ann"), open_.n),
        lambda: says(lake, "Ann", "prepared"),
        lambda: says(lake, "Ann", "reviewed"),
    ):
        with pytest.raises(IntegrityError, match=r"cannot be gone on with: .*000003\.json does not follow"):
            say()
    assert log.head(lake).n == before
    review.note_view(lake, RUN, Note("Ann", "findings of cst, page 1"))
    assert log.head(lake).n == before + 1


def test_lines_and_tabs_of_a_text_are_kept(lake: Lake) -> None:
    assert review.note(lake, RUN, Note("Ann", " one\r\n\ttwo \u200d")).text == "one\n\ttwo \u200d"


def test_a_broken_chain_stops_an_approval_and_an_altered_signature_is_named(lake: Lake, tmp_path: Path) -> None:
    log.new_key(tmp_path / "key")
    sign_off(lake, RUN, SignOff("Ann", "prepared", key=tmp_path / "key"))
    review.note(lake, RUN, Note("Cy", "after it"))
    path = lake.root / log.path_of(2)
    path.write_text(path.read_text().replace("Ann", "Eve"))
    with pytest.raises(IntegrityError, match=r"entry 2 .* was altered"):
        review_of(lake, RUN)
    with pytest.raises(IntegrityError, match=r"cannot be gone on with: .*000002\.json has a signature"):
        says(lake, "Bob", "approved")


def test_a_later_run_starts_unsigned_and_tells_who_approved_the_one_before(lake: Lake) -> None:
    says(lake, "Ann", "prepared")
    says(lake, "Bob", "approved")
    written(lake, LATER, source_sha256="ef" * 32)
    assert [(each.run, each.state) for each in reviews(lake)] == [(LATER, "unsigned")]
    told = approved_before(lake, LATER, log.entries(lake))
    assert told == f"The run before, {RUN}, was approved by Bob, on other data."
    assert approved_before(lake, RUN, log.entries(lake)) == ""
    written(lake, LATER)
    assert approved_before(lake, LATER, log.entries(lake)).endswith("by other code.")
    log.append(lake, "protected", run=RUN)
    assert [(each.run, each.state) for each in reviews(lake)] == [(RUN, "approved")]


def test_reading_is_entered_once_a_run_a_name_and_a_day(lake: Lake) -> None:
    assert review.note_read(lake, RUN, Note("Ann Lee")) is not None
    assert review.note_read(lake, RUN, Note("ann lee")) is None
    assert review.note_read(lake, RUN, Note("Bob")) is not None
    assert [entry.by for entry in log.entries(lake, RUN) if entry.event == "read"] == ["Ann Lee", "Bob"]


def test_a_remediation_is_open_until_a_run_of_the_audit_shows_it_done(lake: Lake) -> None:
    made = review.open_remediation(lake, RUN, Note("Ann", "retrain without postcodes"), "Bob", tomorrow())
    [found] = outstanding(lake).open
    assert (found.n, found.owner, found.due, found.overdue()) == (made.n, "Bob", tomorrow(), False)
    assert found.overdue(date.fromisoformat(tomorrow()) + timedelta(days=1))
    written(lake, LATER)
    assert review_of(lake, LATER).open == (found,)
    with pytest.raises(SpecError, match=rf"--done 99 .* open are {made.n} \(Bob, "):
        review.close_remediation(lake, LATER, Note("Bob"), 99)
    review.close_remediation(lake, LATER, Note("Bob", "model 7"), made.n)
    assert outstanding(lake).open == review_of(lake, RUN).open == ()
    with pytest.raises(SpecError, match="none is open"):
        review.close_remediation(lake, LATER, Note("Bob"), made.n)


def test_an_overdue_remediation_is_told(lake: Lake) -> None:
    log.append(lake, "remediation", run=RUN, by="Ann", text="late", owner="Bob", due="2026-01-31")
    assert [each.owner for each in outstanding(lake).overdue] == ["Bob"]
    assert [each.due for each in reviews(lake)[0].overdue] == ["2026-01-31"]


@pytest.mark.parametrize(
    ("said", "owner", "due", "message"),
    [
        (Note("Ann", "x"), "Bob", "soon", "--due 'soon' is no day"),
        (Note("Ann", "x"), "Bob", "2020-01-01", "--due 2020-01-01 is over"),
        (Note("Ann", "x"), " ", "2999-01-01", "--owner is empty"),
        (Note("Ann", " "), "Bob", "2999-01-01", "the text is empty"),
        (Note("", "x"), "Bob", "2999-01-01", "--as is empty"),
        (Note("An\u202en", "x"), "Bob", "2999-01-01", "no page shows"),
        (Note("A" * 101, "x"), "Bob", "2999-01-01", "101 letters"),
        (Note("Ann", "x" * 4001), "Bob", "2999-01-01", "4,001 letters"),
        *((Note("Ann", f"x{each}y"), "Bob", "2999-01-01", "the text has control characters") for each in CONTROLS),
    ],
)
def test_what_is_no_name_text_or_day_is_refused(lake: Lake, said: Note, owner: str, due: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        review.open_remediation(lake, RUN, said, owner, due)
    assert not log.head(lake).n
