"""Pages of a lake without a network: an application as `evenhand serve` makes it, and a browser-like client of it."""

import re
from dataclasses import dataclass, replace
from typing import Any

import httpx
from starlette.testclient import TestClient

from flows.partitions.attempts import Attempt, YearState, folder_of
from flows.serving.guard import Admission
from flows.serving.index import Index
from flows.serving.server import application
from flows.serving.settings import Settings
from flows.serving.site import Site
from tasks.lake.store import Lake

TOKEN = "t" * 43
BASE = "http://127.0.0.1:8321"


@dataclass
class Clock:
    """A clock that a test sets."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Served:
    """A client that has opened the address with its token."""

    client: TestClient
    site: Site
    clock: Clock

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self.client.get(path, **more)

    def post(self, page: str, path: str, **fields: str) -> httpx.Response:
        """Send a form as a browser does: with the hidden field of its page, and the Origin of these pages."""
        found = re.search(r'name="form" value="([0-9a-f]+)"', self.get(page).text)
        hidden = {"form": found[1]} if found else {}
        return self.client.post(path, data={**hidden, **fields}, headers={"origin": BASE}, follow_redirects=False)


def served(lake: str, *, entered: bool = True, **options: Any) -> Served:
    """The pages of a lake; ``options`` are those of ``Settings``."""
    clock = Clock()
    settings = replace(Settings(lake), **options)
    site = Site(settings, Admission(TOKEN, clock), Index(lake, clock))
    client = TestClient(application(site), base_url=BASE, follow_redirects=True)
    if entered:
        assert client.get(f"/?token={TOKEN}").status_code == 200
    return Served(client, site, clock)


def failed(lake: Lake, audit: str, year: int, value: str = "", **more: Any) -> None:
    """Leave the record of an attempt that failed."""
    said = {"audit": audit, "year": year, "value": value, "attempt": 1, "state": YearState.FAILED, **more}
    said = {"message": "column income: 3 of 500 values", "stage": "ingest", "stages": ("ingest", "report"), **said}
    attempt = Attempt(**said, began="2026-01-04T10:00:00+00:00", exit_code=4, pid=1, host="here")
    lake.write_file(f"{folder_of(audit, year, value)}/0001.json", attempt.model_dump_json().encode())
