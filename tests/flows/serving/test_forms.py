"""Forms are sent once: twice, at the same moment, from two tabs, of an ended session; and where nothing is taken."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from lake_of_runs import NEW, lake_of_runs
from served_lake import BASE, Served, served

from flows.serving.guard import MOST_FORMS, Forms, UnknownFormError
from tasks.lake import log
from tasks.lake.store import Lake

PAGE = f"/runs/{NEW}/review"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return lake_of_runs(tmp_path / "lake")


def person(lake: Lake, name: str) -> Served:
    return served(lake.location, by=name, sign=True)


def once(page: str, form: str) -> str:
    """The letters of a form of a page."""
    found = re.search(rf'action="/runs/{NEW}/{form}".*?name="form" value="(\w+)"', page, re.DOTALL)
    assert found is not None
    return found[1]


def send(who: Served, form: str, letters: str, **fields: str) -> httpx.Response:
    return who.client.post(
        f"/runs/{NEW}/{form}", data={"form": letters, **fields}, headers={"origin": BASE}, follow_redirects=False
    )


def test_a_form_that_is_sent_twice_is_entered_once_and_says_so(lake: Lake) -> None:
    ann = person(lake, "Ann Lee")
    letters = once(ann.get(PAGE).text, "notes")
    assert send(ann, "notes", letters, text="seen").headers["location"] == PAGE
    n = log.head(lake).n
    again = send(ann, "notes", letters, text="seen")
    assert (again.status_code, again.headers["location"]) == (303, f"{PAGE}?again={n}")
    assert log.head(lake).n == n
    assert f"It was entered once, as entry {n}." in ann.get(again.headers["location"]).text
    assert "It was entered once" not in ann.get(f"{PAGE}?again=999").text


def test_a_form_that_is_sent_twice_at_the_same_moment_is_entered_once(lake: Lake) -> None:
    ann = person(lake, "Ann Lee")
    letters, before = once(ann.get(PAGE).text, "notes"), log.head(lake).n
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda _: send(ann, "notes", letters, text="seen").status_code, range(6)))
    assert found == [303] * 6
    assert sum(entry.event == "note" for entry in log.entries(lake)[before:]) == 1


def test_two_tabs_have_forms_of_their_own_and_a_refused_one_may_be_sent_again(lake: Lake) -> None:
    ann = person(lake, "Ann Lee")
    one, other = (once(ann.get(PAGE).text, "notes") for _ in range(2))
    assert one != other
    assert send(ann, "notes", one, text="").status_code == 400
    for letters in (one, other):
        assert send(ann, "notes", letters, text="seen").headers["location"] == PAGE
    assert sum(entry.text == "seen" for entry in log.entries(lake)) == 2


def test_what_was_written_in_a_form_of_an_ended_session_is_shown_again(lake: Lake) -> None:
    ann = person(lake, "Ann Lee")
    answer = send(ann, "notes", "0" * 64, text="long work")
    assert answer.status_code == 403
    assert "long work</textarea>" in answer.text
    assert "not one of this session" in answer.text


def test_forms_are_bound_to_their_session_and_few_are_kept() -> None:
    forms = Forms()
    first = forms.made("cookie")
    with pytest.raises(UnknownFormError):
        forms.entered("other", first, lambda: 1)
    for _ in range(MOST_FORMS):
        forms.made("cookie")
    with pytest.raises(UnknownFormError):
        forms.entered("cookie", first, lambda: 1)


def test_an_open_remediation_is_closed_from_the_page(lake: Lake) -> None:
    ann = person(lake, "Ann Lee")
    assert "Close a remediation" not in ann.get(PAGE).text
    ann.post(PAGE, f"/runs/{NEW}/notes", text="ask underwriting", owner="Bob Ray", due="2999-01-31")
    n, page = log.head(lake).n, ann.get(PAGE).text
    assert f'<option value="{n}">To be remedied (open, by 2999-01-31, Bob Ray)' in page
    answer = send(ann, "remediations", once(page, "remediations"), closes="99", text="x")
    assert answer.status_code == 400
    assert "Remediation: entry 99 is no open remediation of loans" in answer.text
    for wrong in ("", "x", "1" * 5000, "\u0661"):
        assert send(ann, "remediations", once(ann.get(PAGE).text, "remediations"), closes=wrong).status_code == 400
    letters = once(ann.get(PAGE).text, "remediations")
    assert send(ann, "remediations", letters, closes=str(n), text="model 7").status_code == 303
    assert log.entries(lake)[-1].closes == n
    page = ann.get(PAGE).text
    assert "Close a remediation" not in page
    assert "To be remedied" not in page
    reader = served(lake.location, by="Ann Lee")
    assert reader.post(PAGE, f"/runs/{NEW}/remediations", closes=str(n)).status_code in (404, 405)


def test_a_broken_chain_takes_no_note_and_offers_no_form(lake: Lake) -> None:
    ann = person(lake, "Ann Lee")
    ann.post(PAGE, f"/runs/{NEW}/signatures", role="prepared")
    letters = [once(ann.get(PAGE).text, form) for form in ("notes", "signatures")]
    ann.post(PAGE, f"/runs/{NEW}/signatures", role="reviewed")
    path = lake.root / log.path_of(log.head(lake).n - 1)
    path.write_bytes(path.read_bytes().replace(b"Ann Lee", b"Eve Lee"))
    before = log.head(lake).n
    for form, letter, fields in zip(
        ("notes", "signatures"), letters, ({"text": "x"}, {"role": "reviewed"}), strict=True
    ):
        assert send(ann, form, letter, **fields).status_code == 409
    assert log.head(lake).n == before
    ann.clock.now += 6
    page = ann.get(PAGE).text
    assert '<form class="write"' not in page
    assert "No note and no signature is taken while the chain of the log is broken" in page
