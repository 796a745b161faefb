"""Visits of a browser to a served lake, and the lake: an audit of two years, one with a group of a hostile name."""

import json
import re
from pathlib import Path
from typing import Any

from computed_lake import computed
from conftest import SPEC, loans

from tasks.lake.store import Lake
from tasks.pipeline.registry import read_spec

HOSTILE = '<script>document.title="taken"</script>'
FEWER = "  fgce: null\n  cst: {ks: [5], k: 5, null_permutations: 1, null_complainants: 20}\n"
SMALL = re.sub(r"  fgce:.*\n  cst:.*\n", FEWER, SPEC)


def audits(place: Path) -> Path:
    """A lake of an audit of two years, of which the first has a group with a hostile name."""
    lake = Lake(place / "lake")
    for year, seed, group in ((2018, 7, json.dumps(HOSTILE)), (2019, 9, "Black")):
        table = place / f"loans{year}.csv"
        loans(500, seed).to_csv(table, index=False)
        spec = SMALL.replace("path: loans.csv", f"path: {table}").replace("year: 2024", f"year: {year}")
        computed(lake, read_spec(spec.replace("Black: [b]", f"{group}: [b]"), "loans.yaml", {}).spec)
    return lake.root


class Visit:
    """A page of a person, that notes what it loads from elsewhere and what its console says."""

    def __init__(self, browser: Any, address: str, width: int = 1280, **more: Any) -> None:
        self.place = address.partition("?")[0].rstrip("/")
        self.context = browser.new_context(viewport={"width": width, "height": 900}, accept_downloads=False, **more)
        self.page = self.context.new_page()
        self.outside: list[str] = []
        self.said: list[str] = []
        self.page.on("request", lambda r: self.outside.append(r.url) if not self._own(r.url) else None)
        self.page.on("console", lambda m: self.said.append(m.text))
        self.page.goto(address)

    def _own(self, url: str) -> bool:
        return url.startswith((self.place, "data:"))

    def go(self, path: str) -> int:
        return int(self.page.goto(self.place + path).status)


def violations(page: Any) -> list[list[str]]:
    """What axe finds on a page: rule and first element. It is loaded once a page, and what passes stays there."""
    from axe_playwright_python.sync_playwright import Axe  # an importer skips where it is not installed

    if page.evaluate("typeof axe === 'undefined'"):
        page.evaluate(Axe().axe_script)
    found: list[list[str]] = page.evaluate(_AXE)
    return found


_AXE = """
axe.run({resultTypes: ["violations"]}).then(
  result => result.violations.map(each => [each.id, each.nodes[0].html.slice(0, 200)]))
"""


def run_of(lake: Path, year: int) -> str:
    return next(path.name for path in (lake / "runs").iterdir() if path.name.startswith(f"loans-{year}-"))
