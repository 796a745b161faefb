"""Answers beside the pages: of the guard, of addresses that cannot be read, to HEAD, and under which names."""

import asyncio
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from lake_of_runs import NEW, lake_of_runs
from served_lake import BASE, TOKEN, served

from flows.serving.guard import AT_ONCE, MOST_BEGUN, Admission, Guard
from flows.serving.settings import Settings

RUN = f"/runs/{NEW}"
HOST = [(b"host", b"127.0.0.1:8321"), (b"origin", BASE.encode())]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> str:
    return lake_of_runs(tmp_path_factory.mktemp("answered") / "lake").location


class Tags(HTMLParser):
    """Counts elements, and sees that each that is opened is closed."""

    VOID = ("meta", "link", "input")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.found.append(tag)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def locked(lake: str) -> Any:
    one = served(lake, entered=False)
    for _ in range(20):
        one.get("/?token=wrong")
    return one.get("/?token=wrong")


@pytest.mark.parametrize(
    ("status", "ask"),
    [
        (401, lambda lake: served(lake, entered=False).get("/")),
        (401, lambda lake: served(lake, entered=False).get("/?token=<b>")),
        (403, lambda lake: served(lake).get("/", headers={"sec-fetch-site": "cross-site"})),
        (403, lambda lake: served(lake).client.post(f"{RUN}/notes", headers={"origin": "https://evil.example"})),
        (413, lambda lake: served(lake).client.post(f"{RUN}/notes", content=b"x" * 70_000, headers={"origin": BASE})),
        (421, lambda lake: served(lake).get("/", headers={"host": "evil.example"})),
        (429, locked),
        (400, lambda lake: served(lake).get("/", headers={"upgrade": "WebSocket", "connection": "upgrade"})),
    ],
)
def test_the_guard_answers_with_a_small_page(lake: str, status: int, ask: Any) -> None:
    answer = ask(lake)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    tags = Tags(answer.text)
    assert tags.open == []
    assert [tags.found.count(name) for name in ("title", "h1", "main")] == [1, 1, 1]
    assert '<html lang="en">' in answer.text
    assert "<b>" not in answer.text
    assert len(answer.content) < 2000
    assert "'sha256-" in answer.headers["content-security-policy"]
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert answer.headers["cache-control"] == "no-store"


class Asked:
    """One request to a guard without a server."""

    def __init__(self, **more: Any) -> None:
        self.admission = Admission(TOKEN)
        self.cookie = self.admission.opened(TOKEN) or ""
        self.guard = Guard(self.page, Settings("lake"), self.admission, **more)
        self.go_on = asyncio.Event()

    async def page(self, scope: Any, receive: Any, send: Any) -> None:
        await self.go_on.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": (await receive())["body"]})

    async def status(self, receive: Any, method: str = "POST", address: str = "") -> tuple[int, bytes]:
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        headers = [*HOST, (b"cookie", f"evenhand-8321={self.cookie}".encode())]
        scope = {"type": "http", "method": method, "path": "/", "query_string": b"", "headers": headers}
        await self.guard(scope | {"client": (address, 0)}, receive, send)
        return sent[0]["status"], sent[1]["body"]


async def whole() -> dict[str, Any]:
    return {"type": "http.request", "body": b"text=x", "more_body": False}


async def stalled() -> dict[str, Any]:
    await asyncio.sleep(60)
    return {}


def test_a_body_that_stalls_takes_no_place_and_is_answered_with_408() -> None:
    async def ask() -> None:
        one = Asked(body_seconds=0.3)
        one.go_on.set()
        slow = [asyncio.create_task(one.status(stalled)) for _ in range(2 * AT_ONCE)]
        await asyncio.sleep(0)
        assert await asyncio.wait_for(one.status(whole), 0.2) == (200, b"text=x")
        assert {status for status, _ in await asyncio.gather(*slow)} == {408}

    asyncio.run(ask())


def test_a_body_in_small_pieces_without_end_is_answered_with_408() -> None:
    async def piece() -> dict[str, Any]:
        await asyncio.sleep(0.01)
        return {"type": "http.request", "body": b"x", "more_body": True}

    async def ask() -> None:
        assert (await Asked(body_seconds=0.2).status(piece))[0] == 408

    asyncio.run(ask())


def test_more_requests_than_may_begin_are_answered_with_503_and_their_places_come_back() -> None:
    async def ask() -> None:
        one = Asked()
        addresses = [f"192.0.2.{number % 2}" for number in range(MOST_BEGUN)]  # half of the places is for one
        begun = [asyncio.create_task(one.status(whole, address=address)) for address in addresses]
        await asyncio.sleep(0.05)
        assert (await one.status(whole))[0] == 503
        one.go_on.set()
        assert {status for status, _ in await asyncio.gather(*begun)} == {200}
        assert (await one.status(whole))[0] == 200

    asyncio.run(ask())


@pytest.mark.parametrize("path", ["/", "/runs", "/healthz", RUN, f"{RUN}/review", f"{RUN}/measures.csv", "/nothing"])
def test_head_says_what_get_says_without_the_page(lake: str, path: str) -> None:
    one = served(lake)
    got, head = one.get(path), one.client.head(path)
    assert head.status_code == got.status_code
    assert head.content == b""
    assert head.headers["content-type"] == got.headers["content-type"]
    assert head.headers["content-security-policy"] == got.headers["content-security-policy"]


def test_head_writes_nothing_and_shows_strangers_nothing(lake: str) -> None:
    assert served(lake, by="Ann Lee", sign=True).client.head(f"{RUN}/notes").status_code in (404, 405)
    assert served(lake, entered=False).client.head(RUN).status_code == 401


@pytest.mark.parametrize(
    ("path", "name", "expected"),
    [
        ("/runs?page=abc", "page", "a whole number, such as 1"),
        ("/runs?page=%3Cscript%3E", "page", "a whole number, such as 1"),
        (f"/runs?page={'1' * 5000}", "page", "a whole number of fewer digits"),
        (f"{RUN}/findings/abc", "n", "a whole number, such as 1"),
        (f"{RUN}/findings/1?ids=banana", "ids", "1 for yes, or 0 for no"),
        (f"{RUN}/review?again=x", "again", "a whole number, such as 1"),
    ],
)
def test_an_address_that_cannot_be_read_is_told_in_a_page(lake: str, path: str, name: str, expected: str) -> None:
    answer = served(lake).get(path)
    assert answer.status_code == 422
    assert re.findall(r"<h1>(.*?)</h1>", answer.text) == ["Not understood"]
    assert f"&#39;{name}&#39; of this address cannot be read: expected is {expected}." in answer.text
    for word in ("abc", "script", "banana", "1111", "pydantic", "parsing", "Input"):
        assert word not in answer.text


@pytest.mark.parametrize(
    ("options", "host", "origin"),
    [
        ({"host": "127.0.0.2"}, "127.0.0.2:8321", "http://127.0.0.2:8321"),
        ({"host": "::1"}, "[::1]:8321", "http://[::1]:8321"),
        ({"host": "0:0:0:0:0:0:0:1"}, "[::1]:8321", "http://[::1]:8321"),
        ({"host": "localhost"}, "localhost:8321", "http://localhost:8321"),
        ({"port": 80}, "127.0.0.1", "http://127.0.0.1"),
        ({"port": 80}, "127.0.0.1:80", "http://127.0.0.1"),
        ({"host": "127.0.0.2", "port": 80}, "127.0.0.2", "http://127.0.0.2"),
        ({"behind_tls": "Audits.example.org"}, "audits.example.org", "https://audits.example.org"),
        ({"behind_tls": "audits.example.org:8443"}, "audits.example.org:8443", "https://audits.example.org:8443"),
    ],
)
def test_the_address_that_is_listened_on_is_answered(
    lake: str, options: dict[str, Any], host: str, origin: str
) -> None:
    one = served(lake, entered=False, by="Ann Lee", sign=True, **options)
    opened = one.client.get(f"/?token={TOKEN}", headers={"host": host}, follow_redirects=False)
    assert opened.status_code == 303
    assert origin in one.site.settings.origins
    assert one.get("/healthz", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8321", "localhost:8321", "127.0.0.3:8321", "127.0.0.2", "evil.example:8321"]
)
def test_another_name_than_that_is_not(lake: str, host: str) -> None:
    one = served(lake, entered=False, host="127.0.0.2")
    assert one.get(f"/?token={TOKEN}", headers={"host": host}).status_code == 421


def test_behind_tls_this_machine_may_ask_for_liveness_and_nothing_else(lake: str) -> None:
    one = served(lake, entered=False, host="0.0.0.0", behind_tls="audits.example.org")
    for host in ("127.0.0.1:8321", "localhost:8321", "[::1]:8321"):
        assert one.get("/healthz", headers={"host": host}).text == "ok\n"
        for path in ("/", f"/?token={TOKEN}", "/style.css"):
            assert one.get(path, headers={"host": host}).status_code == 421
    for host in ("127.0.0.1", "127.0.0.1:80", "evil.example", "10.0.0.5:8321"):
        assert one.get("/healthz", headers={"host": host}).status_code == 421
