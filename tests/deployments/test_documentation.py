"""The documentation: every page is in the navigation, reads plainly, and its code runs as it stands."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import REPOSITORY

import evenhand

sys.path.insert(0, str(REPOSITORY / "deployments"))
import documentation

DOCS = REPOSITORY / "docs"
PAGES = documentation.navigation()
QUICK = ("audit-a-model", "first-audit", "read-a-report", "engineers", "journalists")
"""Pages with code that takes half a minute at most."""


def test_every_page_is_in_the_navigation_but_decisions() -> None:
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md") if "decisions" not in path.parts}
    assert pages == {page.name for page in PAGES}
    assert len(PAGES) == len({page.name for page in PAGES})


def test_people_are_asked_to_read_no_more_words_than_the_target() -> None:
    assert sum(page.words for page in PAGES if not page.is_generated) <= documentation.MOST_WORDS


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.part in documentation.EASE], ids=lambda page: page.name
)
def test_a_page_reads_plainly(page: documentation.Page) -> None:
    assert page.ease >= documentation.EASE[page.part]
    assert page.part != "Tutorials" or page.words <= documentation.MOST_OF_A_TUTORIAL


def test_hard_prose_is_measured_as_hard() -> None:
    hard = "The operationalisation of counterfactual unidentifiability necessitates methodological considerations."
    assert documentation.reading_ease(documentation.prose(f"# Title\n\n{hard}\n\n```sh\nls\n```\n")) < 0


def test_the_reference_has_every_name_of_the_package() -> None:
    page = (DOCS / "reference" / "python.md").read_text()
    assert page == documentation.reference(), "run `make docs`"
    assert [name for name in evenhand.__all__ if f"## `{name}`\n" not in page] == []


def test_the_marked_picture_is_of_the_first_page() -> None:
    picture = documentation.marked((DOCS / "first-page.svg").read_text())
    assert (DOCS / "assets" / "marked-page.svg").read_text() == picture, "run `make docs`"
    assert picture.count("<circle") - (DOCS / "first-page.svg").read_text().count("<circle") == 5


@pytest.mark.parametrize("name", documentation.NOTEBOOKS)
def test_a_notebook_is_its_tutorial_without_output(name: str) -> None:
    text = (DOCS / "tutorials" / f"{name}.py").read_text()
    page = DOCS / "tutorials" / f"{name}.md"
    assert text == documentation.notebook(page.read_text()), "run `make docs`"
    ast.parse(text)
    assert "\n# %%" in text
    assert "<output>" not in text


def test_links_that_leave_docs_lead_to_copies() -> None:
    text = "[a](../deployments/README.md#b) [c](../data/audits) [d](alerts.md) `[e](../x.md)`\n```\n[f](../y)\n```\n"
    page, beyond = documentation.staged(text, DOCS / "backfill.md")
    assert page.startswith("[a](project/deployments/README.md#b) c [d](alerts.md)")
    assert "[f](../y)" in page
    assert beyond[0] == REPOSITORY / "deployments" / "README.md"


def test_dead_links_and_requests_elsewhere_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<p id="x"></p><a href="b.html#y"></a><a href="c.html"></a><a href="#x"></a>')
    (tmp_path / "b.html").write_text('<script src="https://example.org/s.js"></script><a href="https://e.org"></a>')
    assert sorted(documentation.faults_of_site(tmp_path)) == [
        "a.html links b.html#y, which is not there",
        "a.html links c.html, which is not there",
        "b.html loads https://example.org/s.js",
    ]


@pytest.mark.slow
def test_the_site_is_built_without_a_dead_link(tmp_path: Path) -> None:
    """With the libraries of its own lock, in a folder of their own."""
    libraries, pages = tmp_path / "libraries", tmp_path / "pages"
    locked = ("--require-hashes", "--no-deps", "--requirement", str(REPOSITORY / "requirements-docs.lock"))
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(libraries), *locked]
    subprocess.run(install, check=True, timeout=300)
    documentation.stage(pages)
    build = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
    subprocess.run(build, check=True, timeout=300, cwd=pages, env=os.environ | {"PYTHONPATH": str(libraries)})
    site = pages / "site"
    assert len(list(site.rglob("*.html"))) >= len(PAGES)
    assert documentation.faults_of_site(site) == []


def test_a_command_that_fails_and_code_that_raises_are_found(tmp_path: Path) -> None:
    assert (
        documentation.run_page(
            "```sh\necho a > b\n```\n\n```python\nfrom pathlib import Path\nx = Path('b').read_text()\n```\n", tmp_path
        )
        == 2
    )
    with pytest.raises(RuntimeError, match="`false` ended with 1"):
        documentation.run_page("```sh\nfalse\n```\n", tmp_path)
    with pytest.raises(RuntimeError, match="NameError"):
        documentation.run_page("```python\nnothing_of_that_name\n```\n", tmp_path)


def test_only_setting_up_and_looking_are_left_out_of_the_runs() -> None:
    pages = [page for page in PAGES if page.part == "Tutorials" or page.name.startswith("how-to/")]
    languages = {block.language for page in pages for block in documentation.blocks(page.text)}
    assert languages == {"sh", "python", "text", "console"}
    assert [page.name for page in pages if any(b.language == "console" for b in documentation.blocks(page.text))] == [
        "tutorials/first-audit.md"
    ]


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=pytest.mark.slow if page.path.stem in QUICK else pytest.mark.long)
        for page in documentation.with_code()
    ],
    ids=lambda page: page.name,
)
@pytest.mark.filterwarnings("default")
def test_the_code_of_a_page_runs(page: documentation.Page, tmp_path: Path) -> None:
    assert documentation.run_page(page.text, tmp_path) > 0
