"""What holds of the documents: every link and anchor resolves, every path named exists, the README is one page."""

import re
from functools import cache
from pathlib import Path
from typing import get_args
from urllib.parse import unquote

import pytest
from conftest import REPOSITORY

from tasks.baselines.rankings import RANKINGS
from tasks.baselines.sources import SOURCES
from tasks.baselines.variational import PREDICTORS
from tasks.methods.raguel.settings import RaguelSettings
from tasks.pipeline.registry import NAMES

DOCUMENTS = sorted(
    [*REPOSITORY.glob("*.md"), *(p for d in ("data", "deployments", "docs") for p in (REPOSITORY / d).rglob("*.md"))]
)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.*)$", re.MULTILINE)
PATH = re.compile(r"`((?:flows|research|tasks|schemas|docs|tests)/[\w./-]*)`")


def _values(setting: str) -> tuple[str, ...]:
    """The names that a setting of RAGUEL takes."""
    return get_args(RaguelSettings.model_fields[setting].annotation)


def without_code(text: str) -> str:
    return re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)


@cache
def anchors(document: Path) -> frozenset[str]:
    """The anchors of a document's headings, as GitHub makes them."""
    made: dict[str, int] = {}
    found = set()
    for heading in HEADING.findall(without_code(document.read_text())):
        words = LINK.sub(lambda link: link[0][1 : link[0].index("]")], heading).replace("`", "").strip().lower()
        slug = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        found.add(slug if slug not in made else f"{slug}-{made[slug]}")
        made[slug] = made.get(slug, 0) + 1
    return frozenset(found)


def faults(document: Path) -> list[str]:
    """Links of a document that lead nowhere."""
    found = []
    for link in LINK.findall(without_code(document.read_text())):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = unquote(link).partition("#")
        target = (document.parent / path).resolve() if path else document
        if not target.exists() or (anchor and anchor not in anchors(target)):
            found.append(link)
    return found


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda p: p.relative_to(REPOSITORY).as_posix())
def test_every_link_resolves(document: Path) -> None:
    assert faults(document) == []


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "there.md").write_text("# A heading: `x`, and y\n## Twice\n## Twice\n```\n# no heading\n```\n")
    page = tmp_path / "page.md"
    page.write_text(
        "[a](there.md#a-heading-x-and-y) [b](there.md#twice-1) [c](gone.md)\n[d](there.md#no-heading) [e](#no)\n"
    )
    assert faults(page) == ["gone.md", "there.md#no-heading", "#no"]


def test_the_readme_is_one_page_and_names_both_test_commands() -> None:
    readme = (REPOSITORY / "README.md").read_text()
    assert len(readme.splitlines()) <= 150
    assert len(readme.split()) <= 700
    assert "import evenhand as eh" in readme.splitlines()[:12]
    assert {"make audit", "make test", "make test-slow"} <= set(re.findall(r"make [a-z-]+", readme))


def test_every_method_has_a_page_that_the_index_links() -> None:
    index = (REPOSITORY / "docs" / "methods" / "index.md").read_text()
    for name in NAMES:
        assert (REPOSITORY / "docs" / "methods" / f"{name}.md").is_file()
        assert f"]({name}.md)" in index


def test_what_is_not_built_yet_names_no_system_that_is() -> None:
    index = (REPOSITORY / "docs" / "methods" / "index.md").read_text()
    section = index.partition("## Not built yet\n")[2].lower()
    assert "cfgan" in section
    assert [name for name in (*PREDICTORS, *SOURCES, *RANKINGS) if re.search(rf"\b{name}\b", section)] == []


@pytest.mark.parametrize(
    ("page", "built"), [("gcfn", {*PREDICTORS}), ("raguel", {*_values("source"), *_values("order")})]
)
def test_the_table_of_baselines_has_the_systems_that_are_built(page: str, built: set[str]) -> None:
    text = (REPOSITORY / "docs" / "methods" / f"{page}.md").read_text()
    section = text.partition("\n## Baselines\n")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)) == built


@pytest.mark.parametrize("document", ["contributing.md", "commands.md", "benchmarks.md"])
def test_every_path_that_a_page_names_exists(document: str) -> None:
    named = PATH.findall((REPOSITORY / "docs" / document).read_text())
    missing = [path for path in named if "NAME" not in path and not (REPOSITORY / path).exists()]
    assert missing == []
