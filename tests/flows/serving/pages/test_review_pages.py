"""Notes and signatures by the page's own form: who may sign what, what is refused and why, and writers at once."""

import re
import threading
from pathlib import Path

import pytest
from lake_of_runs import NEW, lake_of_runs
from served_lake import Served, served

from flows.runs.signatures import certify
from tasks.lake import log
from tasks.lake.store import Lake

PAGE = f"/runs/{NEW}/review"
HOSTILE = "</textarea><script>alert(1)</script>"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return lake_of_runs(tmp_path / "lake")


def person(lake: Lake, name: str) -> Served:
    return served(lake.location, by=name, sign=True)


def sign(who: Served, role: str, text: str = "") -> tuple[int, str]:
    answer = who.post(PAGE, f"/runs/{NEW}/signatures", role=role, text=text)
    return answer.status_code, answer.text


def test_one_prepares_and_another_approves(lake: Lake) -> None:
    ann, bob = person(lake, "Ann Lee"), person(lake, "Bob Ray")
    assert "State: unsigned." in ann.get(PAGE).text
    assert sign(ann, "prepared")[0] == 303
    status, said = sign(ann, "approved")
    assert status == 400
    assert "prepared by Ann Lee alone" in said
    assert 'id="sign-role" name="role" aria-invalid="true" aria-describedby="sign-role-wrong"' in said
    assert "somebody of another name signs it as prepared" in said
    assert "evenhand signoff" not in said
    assert sign(bob, "approved") == (303, "")
    page = bob.get(PAGE).text
    assert "State: approved." in page
    assert "name as given, not verified" in page
    assert f"{log.head(lake).n}:{log.head(lake).sha256}" in page
    assert bob.get("/runs?signed=approved").text.count(f"/runs/{NEW}") >= 1


def test_with_trusted_keys_a_page_takes_and_shows_no_approval_without_another_key(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "trusted").mkdir()
    for name in ("ann", "bob"):
        log.new_key(tmp_path / name)
        (tmp_path / f"{name}.pub").rename(tmp_path / "trusted" / f"{name}.pub")
    ann, bob = person(lake, "Ann Lee"), person(lake, "Bob Ray")
    monkeypatch.setenv(log.TRUSTED, str(tmp_path / "trusted"))
    status, said = sign(ann, "prepared")
    assert (status, "EVENHAND_TRUSTED_KEYS is set and no key signs" in said) == (400, True)
    monkeypatch.setenv(log.KEY, str(tmp_path / "ann"))
    certify(lake, NEW)
    assert sign(ann, "prepared")[0] == 303
    status, said = sign(bob, "approved")
    assert (status, "was prepared with the same key" in said) == (400, True)
    digest = log.entries(lake, NEW)[-1].manifest_sha256
    for signer in (None, log.signer()):  # past the rules
        log.append(lake, "signed off", signer, run=NEW, manifest_sha256=digest, by="Bob Ray", role="approved")
    bob.clock.now += 6
    page = bob.get(PAGE).text
    assert "State: prepared." in page
    assert "Does not count: entry" in page
    assert f"/runs/{NEW}" not in bob.get("/runs?signed=approved").text
    monkeypatch.setenv(log.KEY, str(tmp_path / "bob"))
    assert sign(bob, "approved")[0] == 303
    assert "State: approved." in bob.get(PAGE).text
    assert f"/runs/{NEW}" in bob.get("/runs?signed=approved").text


def test_a_rejection_needs_a_text_and_keeps_what_was_written(lake: Lake) -> None:
    ann = person(lake, "Ann Lee")
    status, said = sign(ann, "rejected")
    assert (status, "needs a reason" in said) == (400, True)
    assert "--note" not in said
    assert 'aria-describedby="sign-text-wrong"' in said
    assert "<option selected>rejected" in said
    assert sign(ann, "rejected", "the columns are not those of the lender")[0] == 303


def test_a_note_and_a_remediation_stand_on_the_page(lake: Lake) -> None:
    ann = person(lake, "Ann Lee")
    assert ann.post(PAGE, f"/runs/{NEW}/notes", text=f"seen {HOSTILE}").status_code == 303
    answer = ann.post(PAGE, f"/runs/{NEW}/notes", text="ask underwriting", owner="Bob Ray", due="2999-01-31")
    assert answer.status_code == 303
    page = ann.get(PAGE).text
    assert "<script" not in page
    assert "To be remedied (open, by 2999-01-31, Bob Ray): ask underwriting" in page
    assert "ask underwriting" in ann.get("/").text
    assert "ask underwriting" in ann.get("/search?q=underwriting").text


@pytest.mark.parametrize(
    ("fields", "at", "said"),
    [
        ({"text": ""}, "text", "Note: the text is empty"),
        ({"text": "x" * 4001}, "text", "at most 4,000"),
        ({"text": "a\x1b[31mb"}, "text", "Note: the text has control characters (\\x1b)"),
        ({"text": "a\u202eb"}, "text", "control characters (\\u202e)"),
        ({"text": "a\x00b"}, "text", "control characters (\\x00)"),
        ({"text": "x", "owner": "Bob", "due": "31.12.2030"}, "due", "Last day: &#39;31.12.2030&#39; is no day"),
        ({"text": "x", "owner": "Bob", "due": "2020-01-31"}, "due", "Last day: 2020-01-31 is over"),
        ({"text": "x", "due": "2999-01-31"}, "owner", "Owner: give a name"),
        ({"text": "x", "owner": "B\u202eb", "due": "2999-01-31"}, "owner", "characters that no page shows"),
    ],
)
def test_a_note_that_is_refused_says_why_beside_the_field(
    lake: Lake, fields: dict[str, str], at: str, said: str
) -> None:
    answer = person(lake, "Ann Lee").post(PAGE, f"/runs/{NEW}/notes", **fields)
    assert answer.status_code == 400
    [(where, words)] = re.findall(r'<span class="wrong" id="note-(\w+)-wrong">(.*?)</span>', answer.text)
    assert where == at
    assert said in words
    assert "--" not in words
    assert f'id="note-{at}" name="{at}" aria-invalid="true" aria-describedby="note-{at}-wrong"' in answer.text
    assert answer.text.count("aria-invalid") == 1
    assert log.head(lake).n == 0


def test_a_text_of_lines_and_tabs_is_kept(lake: Lake) -> None:
    ann = person(lake, "Ann Lee")
    assert ann.post(PAGE, f"/runs/{NEW}/notes", text="one\r\n\ttwo").status_code == 303
    assert log.entries(lake, NEW)[-1].text == "one\n\ttwo"


def test_a_refused_text_is_shown_again_and_escaped(lake: Lake) -> None:
    answer = person(lake, "Ann Lee").post(PAGE, f"/runs/{NEW}/notes", text=HOSTILE, due="never", owner="B")
    assert answer.status_code == 400
    assert "<script" not in answer.text
    assert "&lt;script&gt;" in answer.text


def test_the_same_role_is_not_signed_twice_while_it_stands(lake: Lake) -> None:
    ann, bob = person(lake, "Ann Lee"), person(lake, "Bob Ray")
    assert sign(ann, "prepared")[0] == 303
    status, said = sign(ann, "prepared")
    assert status == 400
    assert "as prepared by Ann Lee already (entry " in said
    assert 'id="sign-role-wrong"' in said
    assert sign(bob, "rejected", "the wrong year")[0] == 303
    assert sign(ann, "prepared")[0] == 303


def test_control_characters_of_a_spec_or_an_old_entry_are_made_visible(tmp_path: Path) -> None:
    lake = lake_of_runs(tmp_path / "lake", spec={"title": "Loans\x1b[31m\u202e"})
    log.append(lake, "note", run=NEW, by="Ann Lee", text="old\x00 \u202etext")
    page = person(lake, "Ann Lee").get(PAGE).text
    assert not set(page) & set("\x00\x1b\u202e")
    assert "old\\x00 \\u202etext" in page
    assert "Loans\\x1b[31m\\u202e" in page


def test_a_log_that_was_altered_tells_no_state(lake: Lake) -> None:
    ann = person(lake, "Ann Lee")
    sign(ann, "prepared")
    sign(ann, "reviewed")
    path = lake.root / log.path_of(log.head(lake).n - 1)
    path.write_bytes(path.read_bytes().replace(b"Ann Lee", b"Eve Lee"))
    ann.clock.now += 6
    page = ann.get(PAGE).text
    assert "The log cannot be relied on" in page
    assert "State: reviewed" not in page
    assert "cannot be relied on" in ann.get("/").text


def test_twelve_writers_at_once_get_numbers_of_their_own(lake: Lake) -> None:
    people = [person(lake, f"Person {n}") for n in range(12)]
    before = log.head(lake).n
    threads = [threading.Thread(target=sign, args=(each, "prepared")) for each in people]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sum(entry.role == "prepared" for entry in log.entries(lake)[before:]) == 12
    assert list(log.problems(lake)) == []


def test_without_the_run_no_form_is_taken(lake: Lake) -> None:
    ann = person(lake, "Ann Lee")
    form = ann.site.admission.forms.made(ann.client.cookies["evenhand-8321"])
    answer = ann.client.post(
        "/runs/loans-2023-none/notes", data={"form": form, "text": "x"}, headers={"origin": "http://127.0.0.1:8321"}
    )
    assert answer.status_code == 404
    assert log.head(lake).n == 0
