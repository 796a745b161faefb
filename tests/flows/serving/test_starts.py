"""A test a threat where readers begin audits: forged forms, size, names, a full disk, crowds, restarts, and races.

No table is read in the fast tests: the places of the processes that read are taken.
"""

import asyncio
import fcntl
import io
import json
import os
import re
import resource
import signal
import stat
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

import httpx
import pytest
from computed_lake import computed
from conftest import evenhand_process, loans
from few_loans import few_loans
from lake_of_runs import NEW, lake_of_runs
from served_lake import BASE, Served, served
from test_server import serving

from flows.cli.draft.form import form_of_join
from flows.cli.draft.questions import join_question
from flows.operations.retention import Keeping, collect
from flows.serving import starts as running
from flows.serving.guard import MOST_FIELDS
from flows.serving.server import application
from flows.serving.settings import Settings, check
from flows.serving.starts import READERS, SPEC, TABLE, WORK, Start, Starts, State, safe_name
from flows.serving.uploads import Incoming
from flows.supervision.file_modes import open_to_others
from flows.supervision.presence import alone
from schemas.audit.file import parse
from schemas.errors import InfrastructureError, SpecError
from tasks.lake.store import Lake
from tasks.pipeline.registry import read_spec

TABLE_TEXT = b"income,race,decision\n1,a,approved\n2,b,denied\n"
MB = 10**6


def quiet(starts: Starts) -> Starts:
    """The same, without a place for a process that reads a table."""
    for _ in range(READERS):
        starts._readers.acquire()
    return starts


def serves(lake: Lake, **options: object) -> Served:
    one = served(lake.location, start=True, **options)
    quiet(starts_of(one))
    return one


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")


@pytest.fixture
def one(lake: Lake) -> Served:
    return serves(lake, upload_mb=1)


def letters(one: Served, page: str = "/new", action: str = "/new/table") -> str:
    found = re.search(rf'action="{action}".*?name="form" value="(\w+)"', one.get(page).text, re.DOTALL)
    assert found is not None
    return found[1]


def send(one: Served, content: bytes = TABLE_TEXT, name: str = "loans.csv", **more: str) -> httpx.Response:
    form, origin = more.get("form") or letters(one), more.get("origin", BASE)
    files = {"table": (name, content)}
    headers = {"origin": origin} if origin else {}
    return one.client.post("/new/table", data={"form": form}, files=files, headers=headers, follow_redirects=False)


def left(lake: Lake) -> list[str]:
    """Files of uploads, whole or not."""
    places = (*lake.root.glob("uploads/**/*"), *lake.root.glob("tmp/**/*"))
    return [str(path.relative_to(lake.root)) for path in places if path.is_file()]


def starts_of(one: Served) -> Starts:
    assert one.site.starts is not None
    return one.site.starts


def put(starts: Starts, state: State, **more: object) -> Start:
    """An audit in a state."""
    with starts.incoming() as folder:
        (folder / TABLE / "loans.csv").write_bytes(TABLE_TEXT)
        start = starts.begin(folder, "loans.csv", len(TABLE_TEXT))
    start = replace(start, state=state, **more)
    (starts.root / start.id / "start.json").write_text(json.dumps(asdict(start)))
    return start


def act(one: Served, start: Start, verb: str, **fields: str) -> httpx.Response:
    page = f"/new/{start.id}"
    form = letters(one, page, f"{page}/{verb}")
    sent = {"form": form, **fields}
    return one.client.post(f"{page}/{verb}", data=sent, headers={"origin": BASE}, follow_redirects=False)


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """No file of this process becomes larger: what a write beyond it says is what a full disk says."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


# Who may begin an audit.


def test_without_start_there_is_no_page_and_no_link(lake: Lake) -> None:
    reader = served(lake.location)
    assert reader.get("/new").status_code == 404
    assert "New audit" not in reader.get("/").text
    answer = reader.client.post("/new/table", files={"table": ("a.csv", b"1")}, headers={"origin": BASE})
    assert answer.status_code in (404, 405)
    assert left(lake) == []


def test_without_the_token_nothing_is_taken(lake: Lake) -> None:
    stranger = served(lake.location, entered=False, start=True)
    answer = stranger.client.post("/new/table", files={"table": ("a.csv", b"1")}, headers={"origin": BASE})
    assert answer.status_code == 401
    assert stranger.get("/new").status_code == 401
    assert left(lake) == []


@pytest.mark.parametrize("origin", ["https://evil.example", "null", ""])
def test_a_table_of_another_site_is_refused(lake: Lake, one: Served, origin: str) -> None:
    assert send(one, origin=origin).status_code == 403
    assert left(lake) == []


@pytest.mark.parametrize("form", ["", "0" * 64, "of another session"])
def test_a_table_needs_the_field_of_its_own_session(lake: Lake, one: Served, form: str) -> None:
    if form == "of another session":
        form = served(lake.location, start=True).site.admission.forms.made("other")
    files = {"table": ("loans.csv", TABLE_TEXT)}
    answer = one.client.post("/new/table", data={"form": form}, files=files, headers={"origin": BASE})
    assert answer.status_code == 403
    assert left(lake) == []


def test_the_field_of_the_form_has_to_come_before_the_table(lake: Lake, one: Served) -> None:
    parts = [("table", ("loans.csv", TABLE_TEXT)), ("form", (None, letters(one)))]
    answer = one.client.post("/new/table", files=parts, headers={"origin": BASE})
    assert answer.status_code == 403
    assert left(lake) == []


@pytest.mark.parametrize("verb", ["answers", "run", "cancel", "remove"])
def test_every_form_of_an_audit_needs_its_field(one: Served, verb: str) -> None:
    start = put(starts_of(one), State.QUEUED if verb == "cancel" else State.READY)
    answer = one.client.post(f"/new/{start.id}/{verb}", data={"form": "0" * 64}, headers={"origin": BASE})
    assert answer.status_code == 403
    assert starts_of(one).of(start.id) is not None
    assert one.get(f"/new/{start.id}/{verb}").status_code in (404, 405)


# What is taken.


def test_a_table_lies_in_a_folder_of_its_own_for_its_owner_alone(lake: Lake, one: Served) -> None:
    before = os.umask(0)
    try:
        answer = send(one)
    finally:
        os.umask(before)
    assert answer.status_code == 303
    start = starts_of(one).of(answer.headers["location"].rpartition("/")[2])
    assert start is not None
    assert (start.file, start.size, start.state) == ("loans.csv", len(TABLE_TEXT), State.READING)
    folder = starts_of(one).root / start.id
    assert (folder / TABLE / "loans.csv").read_bytes() == TABLE_TEXT
    for path in (folder, *folder.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
    assert not [path for path in open_to_others(lake.root) if "uploads" in path.parts]
    assert "being read" in one.get("/new").text


def test_a_table_is_sent_once_by_a_double_click(lake: Lake, one: Served) -> None:
    form = letters(one)
    first, second = send(one, form=form), send(one, form=form)
    assert first.headers["location"] == second.headers["location"]
    assert len(starts_of(one).listed()) == 1
    assert [path for path in left(lake) if path.startswith("tmp")] == []


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("loans 2023 (final).csv", "loans 2023 (final).csv"),
        ("../../etc/passwd", "passwd"),
        ("..\\..\\boot.ini", "boot.ini"),
        ("/etc/cron.d/x", "x"),
        (".spec.yaml", "spec.yaml"),
        ("..", "table"),
        ("", "table"),
        ("a\x00b\n.csv", "ab.csv"),
        ("=cmd|'/c calc'!A1.csv", "c calc--A1.csv"),
        ("Kredit\N{RIGHT-TO-LEFT OVERRIDE}vsc.csv", "Kreditvsc.csv"),
        ("Großkredite.csv", "Großkredite.csv"),
    ],
)
def test_a_name_never_becomes_a_path(name: str, stored: str) -> None:
    assert safe_name(name) == stored


@pytest.mark.parametrize("name", ["x" * 5000 + ".csv", "ü" * 900, "." + "y" * 900, "a." + "z" * 900])
def test_a_long_name_is_cut(name: str) -> None:
    assert 0 < len(safe_name(name).encode()) <= 120
    assert name != "x" * 5000 + ".csv" or safe_name(name).endswith(".csv")


def test_a_table_with_the_name_of_a_path_stays_in_its_folder(lake: Lake, one: Served) -> None:
    answer = send(one, name="../../../runs/x/manifest.json")
    folder = starts_of(one).root / answer.headers["location"].rpartition("/")[2]
    assert [path.name for path in (folder / TABLE).iterdir()] == ["manifest.json"]
    assert not list(lake.root.glob("runs/x"))


def test_two_tables_of_one_name_are_two(one: Served) -> None:
    places = [send(one, content=content).headers["location"].rpartition("/")[2] for content in (b"a,b\n1,2\n", b"c\n")]
    assert len(set(places)) == 2
    stored = [(starts_of(one).root / place / TABLE / "loans.csv").read_bytes() for place in places]
    assert stored == [b"a,b\n1,2\n", b"c\n"]


# Too much.


def test_a_table_above_the_limit_is_refused_by_its_length_and_by_its_bytes(lake: Lake, one: Served) -> None:
    assert send(one, b"x" * (MB + MOST_FIELDS)).status_code == 413
    form, boundary = letters(one), "bound"
    head = f'--{boundary}\r\ncontent-disposition: form-data; name="form"\r\n\r\n{form}\r\n'
    head += f'--{boundary}\r\ncontent-disposition: form-data; name="table"; filename="a.csv"\r\n\r\n'

    def body() -> Iterator[bytes]:  # of no length, as a client that lies sends it
        yield head.encode()
        for _ in range(20):
            yield b"x" * (MB // 10)

    headers = {"origin": BASE, "content-type": f"multipart/form-data; boundary={boundary}"}
    answer = one.client.post("/new/table", content=body(), headers=headers)
    assert answer.status_code == 413
    assert "1 MB" in answer.text
    assert left(lake) == []


def test_a_form_that_goes_on_after_its_end_is_not_read_for_ever(tmp_path: Path) -> None:
    (tmp_path / TABLE).mkdir()
    incoming = Incoming("multipart/form-data; boundary=bound", tmp_path, 1000, lambda fields: None)
    incoming.write(
        b'--bound\r\ncontent-disposition: form-data; name="table"; filename="a.csv"\r\n\r\nx\r\n--bound--\r\n'
    )
    incoming.write(b"\r\n")
    with pytest.raises(SpecError, match="goes on after its end"):
        incoming.write(b"y" * 2000)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"--bound\r\n",
        b'--bound\r\ncontent-disposition: form-data; name="table"\r\n\r\nno file\r\n--bound--\r\n',
        b'--bound\r\ncontent-disposition: form-data; name="form"\r\n\r\n' + b"x" * 5000 + b"\r\n--bound--\r\n",
        b"--bound\r\n" + b"a: b\r\n" * 100 + b"\r\n\r\n--bound--\r\n",
        b'--bound\r\ncontent-disposition: form-data; name="form"\r\n\r\n\r\n' * 50 + b"--bound--\r\n",
        b"no form at all",
    ],
)
def test_what_is_no_form_of_the_page_is_refused(lake: Lake, one: Served, body: bytes) -> None:
    headers = {"origin": BASE, "content-type": "multipart/form-data; boundary=bound"}
    assert one.client.post("/new/table", content=body, headers=headers).status_code == 400
    assert one.client.post("/new/table", data={"form": letters(one)}, headers={"origin": BASE}).status_code == 400
    assert left(lake) == []


def test_a_table_that_does_not_come_whole_or_is_empty_is_refused(lake: Lake, one: Served) -> None:
    form = letters(one)
    body = f'--bound\r\ncontent-disposition: form-data; name="form"\r\n\r\n{form}\r\n'
    body += '--bound\r\ncontent-disposition: form-data; name="table"; filename="a.csv"\r\n\r\na,b\n1,2\n'
    headers = {"origin": BASE, "content-type": "multipart/form-data; boundary=bound"}
    answer = one.client.post("/new/table", content=body.encode(), headers=headers)
    assert (answer.status_code, "did not arrive whole" in answer.text) == (400, True)
    assert send(one, content=b"").status_code == 400
    none = body.replace('filename="a.csv"', 'filename=""').removesuffix("a,b\n1,2\n") + "\r\n--bound--\r\n"
    answer = one.client.post("/new/table", content=none.encode(), headers=headers)
    assert (answer.status_code, "No table was chosen" in answer.text) == (400, True)
    assert left(lake) == []


def send_two(one: Served, second: tuple[str, bytes], **more: str) -> httpx.Response:
    """A table with a second file."""
    files = {"table": ("loans.csv", TABLE_TEXT), "second": second}
    sent = {"form": letters(one), **more}
    return one.client.post("/new/table", data=sent, files=files, headers={"origin": BASE}, follow_redirects=False)


def test_a_second_file_lies_next_to_the_table_and_counts_for_the_limit(lake: Lake, one: Served) -> None:
    assert "are called loans.csv" in send_two(one, ("loans.csv", b"income,sex\n1,f\n")).text
    assert "people.csv is empty" in send_two(one, ("people.csv", b"")).text
    assert send_two(one, ("people.csv", b"x" * (MB - len(TABLE_TEXT) + 1))).status_code == 413
    assert left(lake) == []
    answer = send_two(one, ("../people.csv", b"income,sex\n1,f\n"))
    start = starts_of(one).of(answer.headers["location"].rpartition("/")[2])
    assert (start.path, start.second) == ("loans.csv", "people.csv")
    assert {path.name for path in (starts_of(one).root / start.id / TABLE).iterdir()} == {"loans.csv", "people.csv"}
    assert "loans.csv and people.csv" in one.get(f"/new/{start.id}").text
    parts = [
        f'name="form"\r\n\r\n{letters(one)}',
        'name="table"; filename="a.csv"\r\n\r\na,b',
        'name="second"; filename=""\r\n\r\n',
    ]
    body = "".join(f"--bound\r\ncontent-disposition: form-data; {part}\r\n" for part in parts) + "--bound--\r\n"
    headers = {"origin": BASE, "content-type": "multipart/form-data; boundary=bound"}
    answer = one.client.post("/new/table", content=body.encode(), headers=headers, follow_redirects=False)
    assert starts_of(one).of(answer.headers["location"].rpartition("/")[2]).second == ""  # as a browser sends none


def test_a_full_disk_is_named_leaves_nothing_and_is_tried_again(lake: Lake, one: Served) -> None:
    form, words = letters(one), f"The disk of {lake.location} takes nothing more (File too large); free some space"
    with largest_file(MB // 2):
        answer = send(one, b"x" * (MB - MOST_FIELDS), form=form)
    assert (answer.status_code, words in answer.text) == (507, True)
    assert left(lake) == []
    assert send(one).status_code == 303
    starts = starts_of(one)
    assert starts._ticking.acquire()  # nothing leaves the queue
    start, asking = put(starts, State.READY), put(starts, State.ASKING)
    form = form_of_join(join_question("people.csv", ["id"]))
    (starts.root / asking.id / "form.json").write_text(json.dumps(form))
    with largest_file(0):
        answers = act(one, start, "run"), act(one, asking, "answers", **{"answer.join": "id"})
    assert [(answer.status_code, words in answer.text) for answer in answers] == [(507, True)] * 2
    assert 'value="id" checked' in answers[1].text  # what was answered stays
    starts._ticking.release()
    assert starts.of(start.id).state is State.READY
    queued = put(starts, State.QUEUED)
    with largest_file(0):
        starts.look()  # nor can a run begin
        page = one.get(f"/new/{queued.id}")
    assert (page.status_code, words in page.text, page.headers["refresh"]) == (200, True, "3")
    assert starts._turn(queued.id, (State.QUEUED,), state=State.READY) is not None
    assert words not in one.get(f"/new/{queued.id}").text


def test_twenty_tables_at_once_are_all_taken_and_whole(lake: Lake, one: Served) -> None:
    contents = [bytes([65 + number]) * 200_000 for number in range(20)]
    forms = [letters(one) for _ in contents]

    async def send_all() -> list[httpx.Response]:
        transport = httpx.ASGITransport(application(one.site))
        cookies, headers = dict(one.client.cookies), {"origin": BASE}
        async with httpx.AsyncClient(transport=transport, base_url=BASE, cookies=cookies, headers=headers) as client:
            sent = [
                client.post("/new/table", data={"form": form}, files={"table": ("loans.csv", content)})
                for form, content in zip(forms, contents, strict=True)
            ]
            return await asyncio.gather(*sent)

    answers = asyncio.run(send_all())
    assert [answer.status_code for answer in answers] == [303] * 20
    folders = [starts_of(one).root / answer.headers["location"].rpartition("/")[2] for answer in answers]
    assert [(folder / TABLE / "loans.csv").read_bytes() for folder in folders] == contents
    assert sum(start.state is State.READING for start in starts_of(one).listed()) == 20


def test_more_uploads_than_a_lake_keeps_are_refused(one: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flows.serving.starts.MOST_KEPT", 2)
    assert [send(one).status_code for _ in range(3)] == [303, 303, 400]


# The operator's folder.


def test_only_listed_files_of_the_operator_s_folder_can_be_chosen(lake: Lake, tmp_path: Path) -> None:
    folder = tmp_path / "tables"
    folder.mkdir()
    (folder / "loans.csv").write_bytes(TABLE_TEXT)
    (folder / "people.csv").write_bytes(TABLE_TEXT)
    (folder / ".hidden.csv").write_bytes(TABLE_TEXT)
    (tmp_path / "secret.csv").write_bytes(TABLE_TEXT)
    (folder / "link.csv").symlink_to(tmp_path / "secret.csv")
    (folder / "below").mkdir()
    one = serves(lake, files=str(folder))
    page = one.get("/new").text
    assert re.findall(r'<option value="([^"]+)"', page) == ["loans.csv", "people.csv"] * 2
    for fields in ({"second": "link.csv"}, {"second": "../secret.csv"}, {"second": "loans.csv"}):
        sent = {"form": letters(one, action="/new/file"), "file": "loans.csv", **fields}
        assert one.client.post("/new/file", data=sent, headers={"origin": BASE}).status_code == 400, fields
    for name in ("../secret.csv", "link.csv", ".hidden.csv", "below", "/etc/passwd", ""):
        form = letters(one, action="/new/file")
        answer = one.client.post("/new/file", data={"form": form, "file": name}, headers={"origin": BASE})
        assert answer.status_code == 400, name
    form = letters(one, action="/new/file")
    fields = {"form": form, "file": "loans.csv", "second": "people.csv"}
    answer = one.client.post("/new/file", data=fields, headers={"origin": BASE}, follow_redirects=False)
    start = starts_of(one).of(answer.headers["location"].rpartition("/")[2])
    assert start is not None
    assert (start.path, start.second) == tuple(str(folder.resolve() / name) for name in ("loans.csv", "people.csv"))


def test_options_that_do_not_go_together_are_refused(lake: Lake, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="--start"):
        check(Settings(lake.location, files=str(tmp_path)))
    with pytest.raises(SpecError, match="no such folder"):
        check(Settings(lake.location, start=True, files=str(tmp_path / "none")))
    with pytest.raises(SpecError, match="needs one"):
        Starts(Lake("memory://bucket/lake", write=False))


# What is looked up.


@pytest.mark.parametrize("name", ["%2e%2e", "..%2f..", "0" * 12, "loans", "a" * 11, "%00", "A" * 12])
def test_an_audit_is_looked_up_and_never_joined_into_a_path(one: Served, name: str) -> None:
    assert one.get(f"/new/{name}", follow_redirects=False).status_code in (404, 307)
    assert one.get(f"/new/{name}/spec.yaml").status_code == 404


def test_a_link_or_a_file_of_another_kind_in_its_place_is_no_audit(lake: Lake, one: Served) -> None:
    start = put(starts_of(one), State.READY)
    root = starts_of(one).root
    (root / ("b" * 12)).symlink_to(root / start.id)
    (root / ("c" * 12)).mkdir()
    (root / ("d" * 12)).mkdir()
    (root / ("d" * 12) / "start.json").write_text('{"id": "dddddddddddd", "state": "flying"}')
    assert [known.id for known in starts_of(one).listed()] == [start.id]


# Queue, cancellation, removal, restart, and the collection of a lake.


def test_a_run_that_waits_is_cancelled_and_run_again_and_removed(one: Served) -> None:
    starts = starts_of(one)
    assert starts._ticking.acquire()  # nothing leaves the queue
    start, other = put(starts, State.READY), put(starts, State.QUEUED, changed=1.0)
    assert act(one, start, "run").headers["location"] == f"/new/{start.id}"
    assert starts.of(start.id).state is State.QUEUED
    assert "Runs before this one: 1." in one.get(f"/new/{start.id}").text
    assert one.get(f"/new/{start.id}").headers["refresh"] == "3"
    assert "refresh" not in one.get(f"/new/{start.id}?still=1").headers
    assert act(one, start, "cancel").status_code == 303
    assert starts.of(start.id).state is State.STOPPED
    assert starts.of(other.id).state is State.QUEUED
    assert "refresh" not in one.get(f"/new/{start.id}").headers
    assert act(one, start, "remove").headers["location"] == "/new"
    assert starts.of(start.id) is None
    assert not (starts.root / start.id).exists()


@pytest.mark.parametrize(
    ("left", "passed", "forecast", "by_table", "words"),
    [
        (None, 4, None, False, ["How long it takes is known once the table is read."]),
        (41.0, 4, 45.0, True, ["About 40 s left, by tables of this size elsewhere."]),
        (41.0, 4, 45.0, False, ["About 40 s left, by an earlier run of this audit."]),
        (2.0, 44, 45.0, False, ["A few seconds left."]),
        (0.0, 70, 45.0, True, ["It takes longer than forecast: 1 min so far, and 45 s were expected."]),
        (130.0, 70, 45.0, True, ["It takes longer than forecast", "About 2 min left."]),
        (None, 70, 45.0, True, []),  # it is being published
    ],
)
def test_a_run_shows_its_stage_and_the_time_left(
    one: Served, left: float | None, passed: float, forecast: float | None, by_table: bool, words: list[str]
) -> None:
    start = put(starts_of(one), State.RUNNING)
    document = {"stage": 2, "stages": 9, "lines": ["2 of 9 adjust, for 4 s"], "left": left, "passed": passed}
    document |= {"forecast": forecast, "by_table": by_table}
    (starts_of(one).root / start.id / "progress.json").write_text(json.dumps(document))
    with (starts_of(one).root / start.id / "work.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        text = one.get(f"/new/{start.id}").text
    assert "Stage 2 of 9 adjust, for 4 s." in text
    assert all(sentence in text for sentence in words)
    assert text.count(" left") + text.count("longer than") + text.count("How long") == len(words)


def test_a_finished_audit_leads_to_its_run_and_its_table_is_removed_from_the_list(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    lake = lake_of_runs(tmp_path_factory.mktemp("finished") / "lake")
    one = serves(lake)
    start = put(starts_of(one), State.DONE, run=NEW)
    answer = one.get(f"/new/{start.id}", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, f"/runs/{NEW}")
    listed = re.search(rf'href="(/new/{start.id}[^"]*)"', one.get("/new").text)
    assert listed is not None
    page = one.get(listed[1], follow_redirects=False)
    assert (page.status_code, "Remove it" in page.text) == (200, True)
    form = letters(one, listed[1], f"/new/{start.id}/remove")
    one.client.post(f"/new/{start.id}/remove", data={"form": form}, headers={"origin": BASE})
    assert starts_of(one).of(start.id) is None
    assert NEW in one.site.known(refresh=True).runs


def test_no_get_changes_anything(lake: Lake, one: Served) -> None:
    queued, running = put(starts_of(one), State.QUEUED), put(starts_of(one), State.RUNNING)
    before = {path: path.read_bytes() for path in starts_of(one).root.rglob("*") if path.is_file()}
    for path in ("/new", f"/new/{queued.id}", f"/new/{running.id}", f"/new/{running.id}/spec.yaml"):
        one.get(path)
    assert {path: path.read_bytes() for path in starts_of(one).root.rglob("*") if path.is_file()} == before


def test_one_at_work_is_not_removed_and_not_answered(one: Served) -> None:
    starts = starts_of(one)
    assert starts._ticking.acquire()
    for state in (State.QUEUED, State.RUNNING):
        start = put(starts, state)
        starts.remove(start.id)
        assert not starts.answer(start.id, {}, {}, run=True)
        assert starts.of(start.id).state is state
    late = letters(one, f"/new/{start.id}", f"/new/{start.id}/cancel")
    answer = one.client.post(f"/new/{start.id}/answers", data={"form": late}, headers={"origin": BASE})
    assert (answer.status_code, "nothing of this form was taken" in answer.text) == (409, True)


def test_a_server_that_starts_again_follows_a_run_that_goes_on_and_says_how_one_ended(lake: Lake) -> None:
    before = quiet(Starts(lake))
    start = put(before, State.RUNNING)
    folder = before.root / start.id
    lock = os.open(folder / "work.lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    words = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, pass_fds=(lock,), start_new_session=True) as process:
        os.close(lock)
        again = Starts(lake)
        again.look()
        assert again.of(start.id).state is State.RUNNING
        process.kill()
    again.look()
    ended = again.of(start.id)
    assert ended.state is State.FAILED
    assert "ended without a word" in ended.words


def test_two_servers_on_one_lake_run_no_more_than_one_may(lake: Lake) -> None:
    """The second one counted before the first one began: it has to count again as it takes the turn."""
    first, second = quiet(Starts(lake)), quiet(Starts(lake))
    two = [put(first, State.QUEUED) for _ in range(2)]
    first._run(two[0].id)
    second._run(two[1].id)
    try:
        assert [first.of(start.id).state for start in two] == [State.RUNNING, State.QUEUED]
        assert (list(first._runs), list(second._runs)) == ([two[0].id], [])
    finally:
        for process in (*first._runs.values(), *second._runs.values()):
            process.kill()
            process.wait()


def test_a_run_that_is_cancelled_before_its_number_is_known_ends(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    starts = quiet(Starts(lake))
    start = put(starts, State.QUEUED)
    opened = running._private

    def cancelling(path: Path) -> io.BufferedWriter:
        if path.name == "log.txt":  # the last file before the process
            assert starts.of(start.id).pid == 0
            starts.cancel(start.id)
        return opened(path)

    monkeypatch.setattr(running, "_private", cancelling)
    starts._run(start.id)
    assert starts._runs[start.id].wait(60) in (-signal.SIGTERM, 128 + signal.SIGTERM)
    starts.look()
    assert starts.of(start.id).state is State.STOPPED


@pytest.mark.parametrize(
    ("out", "log", "state", "words"),
    [
        ("run     loans-2024-0123456789\nstate   Within\n", "", State.DONE, ""),
        ("", "warning\nevenhand: column x: 3 of 5\n  'cell'\n", State.FAILED, "column x: 3 of 5"),
        ("", "Killed", State.FAILED, "ended without a word"),
    ],
)
def test_how_a_run_ended_is_read_from_what_the_command_printed(
    lake: Lake, out: str, log: str, state: State, words: str
) -> None:
    starts = quiet(Starts(lake))
    start = put(starts, State.RUNNING)
    (starts.root / start.id / "out.txt").write_text(out)
    (starts.root / start.id / "log.txt").write_text(log)
    starts.look()
    ended = starts.of(start.id)
    assert ended.state is state
    assert words in ended.words
    assert "'cell'" not in ended.words


def test_retention_removes_what_was_left_for_days_and_nothing_fresh(lake: Lake) -> None:
    starts = quiet(Starts(lake))
    old, fresh = put(starts, State.STOPPED), put(starts, State.READY)
    long_ago = time.time() - 20 * 24 * 3600
    for path in (starts.root / old.id, *(starts.root / old.id).rglob("*")):
        os.utime(path, (long_ago, long_ago))
    removed = collect(lake, Keeping(1))
    assert [item.name for item in removed if item.kind == "upload"] == [old.id]
    assert [start.id for start in starts.listed()] == [fresh.id]


# Real tables, real processes.


def until(look: Callable[[], Start | None], *states: State, seconds: float = 600) -> Start:
    """What is known of an audit once it is in one of these states."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        start = look()
        if start is not None and start.state in states:
            return start
        time.sleep(0.3)
    raise AssertionError(look())


def read(lake: Lake, content: bytes, name: str) -> tuple[Starts, Start]:
    """A table that was read, or refused."""
    starts = Starts(lake)
    with starts.incoming() as folder:
        (folder / TABLE / name).write_bytes(content)
        start = starts.begin(folder, name, len(content))
    return starts, until(lambda: starts.of(start.id), State.ASKING, State.REFUSED)


@pytest.mark.slow
def test_a_zip_that_unpacks_without_end_ends_in_its_process_and_leaves_nothing(lake: Lake) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../../loans.csv", b"a,b\n" + b"1,2\n" * 60_000_000)
    starts, start = read(lake, file.getvalue(), "bomb.zip")
    assert start.state is State.REFUSED
    assert "unpacks to more than 200 times its size" in start.words
    names = {path.name for path in (starts.root / start.id).rglob("*")}
    assert names == {"start.json", "work.lock", TABLE, "bomb.zip"}


@pytest.mark.slow
def test_formulas_and_markup_in_a_table_are_text_on_every_page(lake: Lake) -> None:
    frame = loans(120).rename(columns={"income": '=HYPERLINK("http://evil.example")', "history": "<script>x</script>"})
    frame["purpose"] = ["=cmd|'/c calc'!A1", "<img src=x onerror=alert(1)>"] * 60
    starts, start = read(lake, frame.to_csv(index=False).encode(), "loans.csv")
    assert start.state is State.ASKING
    one = served(lake.location, start=True)
    page = one.get(f"/new/{start.id}").text
    assert "&lt;script&gt;x&lt;/script&gt;" in page
    assert "=cmd|" in page
    assert "<script" not in page
    assert "<img" not in page
    assert "style=" not in page
    form = starts.form(start)
    assert "race" not in form["preview"]["header"]
    questions = [question for step in form["steps"] for question in step]
    fields = {f"shown.{q['key']}": q["shown"] for q in questions} | {
        f"answer.{q['key']}": q["default"] for q in questions
    }
    letters_of_form = letters(one, f"/new/{start.id}", f"/new/{start.id}/answers")
    sent = {**fields, "form": letters_of_form, "read": "yes", "then": "keep"}
    refused = one.client.post(f"/new/{start.id}/answers", data={**sent, "read": ""}, headers={"origin": BASE})
    assert (refused.status_code, "Say that you have read" in refused.text) == (422, True)
    sent["form"] = letters(one, f"/new/{start.id}", f"/new/{start.id}/answers")
    one.client.post(f"/new/{start.id}/answers", data=sent, headers={"origin": BASE})
    until(lambda: starts_of(one).of(start.id), State.READY)
    spec = one.get(f"/new/{start.id}/spec.yaml")
    assert spec.headers["content-disposition"] == 'attachment; filename="loans.yaml"'
    assert parse(spec.text).marks == ()


@pytest.mark.slow
def test_a_second_file_is_joined_by_the_column_that_is_answered_as_on_a_terminal(lake: Lake, tmp_path: Path) -> None:
    frame = loans(120)
    frame.insert(0, "app id", [f"A{i:04d}" for i in range(len(frame))])
    starts = Starts(lake)
    with starts.incoming() as folder:
        frame.drop(columns="race").to_csv(folder / TABLE / "loans.csv", index=False)
        frame[["app id", "race"]].rename(columns={"app id": "number"}).to_csv(
            folder / TABLE / "people.csv", index=False
        )
        start = starts.begin(folder, "loans.csv", 1, second="people.csv")

    def questions() -> dict[str, dict[str, object]]:
        assert until(lambda: starts.of(start.id), State.ASKING, State.READY, State.REFUSED).state is State.ASKING
        return {question["key"]: question for step in starts.form(start)["steps"] for question in step}

    def answer(**answers: object) -> None:
        shown = {key: str(question["shown"]) for key, question in questions().items()}
        starts.answer(start.id, shown, {key: str(answer) for key, answer in answers.items()}, run=False)

    assert list(questions()) == ["join"]
    page = served(lake.location, start=True).get(f"/new/{start.id}").text
    assert "Which column identifies an application in both files, so that people.csv can be joined?" in page
    answer(join="app id")
    assert list(questions()) == ["join"]
    assert "people.csv has no such column" in starts.form(start)["faults"]["join"]
    answer(join="app id=number")
    assert "120 applications have a row in people.csv" in str(questions()["source.with"]["text"])
    answer(**{key: question["default"] for key, question in questions().items()})
    assert until(lambda: starts.of(start.id), State.READY).state is State.READY
    folder = starts.root / start.id / TABLE
    words = ("init", "loans.csv", "--with", "people.csv", "-o", "by_terminal.yaml", "--ask")
    done = evenhand_process(*words, cwd=folder, answers="app id=number\n" + "\n" * 40)
    assert done.returncode == 0, done.stderr
    assert (folder / "by_terminal.yaml").read_bytes() == starts.spec(start)


@pytest.mark.slow
def test_runs_go_to_the_server_that_is_set_in_turn_and_fail_in_the_words_of_the_terminal(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
    starts = quiet(Starts(lake))
    two = [put(starts, State.READY) for _ in range(2)]
    for start in two:
        few_loans(starts.root / start.id / TABLE).rename(starts.root / start.id / SPEC)
        starts.queue(start.id)
    assert [starts.of(start.id).state for start in two] == [State.RUNNING, State.QUEUED]
    seen = set()

    def look() -> Start | None:
        starts.look()
        states = [starts.of(start.id).state for start in two]
        seen.add(tuple(states))
        return starts.of(two[1].id)

    failed = until(look, State.FAILED)
    assert (State.RUNNING, State.RUNNING) not in seen
    assert (State.FAILED, State.RUNNING) in seen
    assert failed.words.startswith("no server answers at http://127.0.0.1:9/api")
    assert "no server answers" in served(lake.location, start=True).get(f"/new/{failed.id}").text


@pytest.mark.slow
def test_an_upload_with_the_name_of_a_module_is_a_table_and_its_run_that_of_the_terminal(
    lake: Lake, tmp_path: Path
) -> None:
    """Prefect's server starts in the folder of the run, and would take modules and settings from there."""
    starts = quiet(Starts(lake))
    start = put(starts, State.READY)
    folder, mine = starts.root / start.id / TABLE, tmp_path / "mine"
    (folder / "loans.csv").unlink()
    few_loans(folder).rename(starts.root / start.id / SPEC)
    (folder / "loans.csv").rename(folder / safe_name("prefect.py"))
    spec = (
        (starts.root / start.id / SPEC).read_text().replace("kind: csv, path: loans.csv", "kind: csv, path: prefect.py")
    )
    (starts.root / start.id / SPEC).write_text(spec)
    starts.queue(start.id)

    def look() -> Start | None:
        starts.look()
        return starts.of(start.id)

    done = until(look, State.DONE, State.FAILED)
    assert done.state is State.DONE, done.words
    assert list((starts.root / start.id / WORK).iterdir()) == []
    mine.mkdir()
    (mine / "prefect.py").write_bytes((folder / "prefect.py").read_bytes())
    (mine / "downloaded.yaml").write_bytes(starts.spec(start) or b"")
    places = {"source.path": str(mine / "prefect.py")}
    assert computed(Lake(tmp_path / "other"), read_spec(spec, "downloaded.yaml", places).spec) == done.run


@pytest.mark.parametrize("name", ["pandas.py", "json.py"])
@pytest.mark.slow
def test_an_upload_with_the_name_of_a_module_is_not_imported_as_it_is_read(lake: Lake, name: str) -> None:
    _, start = read(lake, loans(120).to_csv(index=False).encode(), name)
    assert start.state is State.ASKING, start.words


def press(address: str, start: Start, verb: str) -> None:
    """Send a form of an audit's page to a server, as a browser does."""
    place = address.partition("?")[0].rstrip("/")
    with httpx.Client(follow_redirects=True, timeout=120) as client:
        client.get(address)
        page = client.get(f"{place}/new/{start.id}").text
        form = re.search(rf'action="/new/{start.id}/{verb}".*?name="form" value="(\w+)"', page, re.DOTALL)
        assert form is not None
        answer = client.post(f"{place}/new/{start.id}/{verb}", data={"form": form[1]}, headers={"origin": place})
        assert answer.status_code == 200


@pytest.mark.long
def test_a_run_outlives_its_server_is_not_collected_and_is_cancelled(lake: Lake) -> None:
    starts, start = read(lake, loans(300).to_csv(index=False).encode(), "loans.csv")
    questions = [question for step in starts.form(start)["steps"] for question in step]
    answers = {question["key"]: question["default"] for question in questions}
    starts.answer(start.id, {question["key"]: question["shown"] for question in questions}, answers, run=False)
    until(lambda: starts.of(start.id), State.READY)
    with serving(lake.root, "--start") as (server, address):
        with alone(lake):  # the lake is being collected: the run waits
            press(address, start, "run")
            time.sleep(20)
            assert starts.of(start.id).state is State.RUNNING
            assert starts.progress(start) == {}
        until(lambda: replace(start, state=State.DONE) if starts.progress(start) else None, State.DONE)
        server.kill()
        server.wait()
    assert not starts._is_free(start.id)
    with pytest.raises(InfrastructureError):
        collect(lake, Keeping(1))
    with serving(lake.root, "--start") as (_, address):
        press(address, start, "cancel")
        assert until(lambda: starts.of(start.id), State.STOPPED, State.DONE).state is State.STOPPED
        press(address, start, "run")
        done = until(lambda: starts.of(start.id), State.DONE, State.FAILED)
    assert done.state is State.DONE
    assert (lake.root / "runs" / done.run / "manifest.json").is_file()
