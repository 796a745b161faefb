"""Pages of a run that its report has, too: Decide, the questions, the evidence of methods."""

from dataclasses import replace

from fastapi import APIRouter
from starlette.responses import Response

from flows.serving.rendering import Page, made, run_path
from flows.serving.reports import first_page
from flows.serving.site import Site, missing
from schemas.errors import SpecError
from tasks.reporting.section import Link, Section

QUESTIONS = ("gap", "similar", "otherwise", "routes", "reasons")
"""Pages of the questions by their names in the report."""


def routes(site: Site) -> APIRouter:
    """Their routes; that of questions comes last of all of a run, as any word fits it."""
    router = APIRouter()

    @router.get("/runs/{run}")
    def first(run: str) -> Response:
        known = site.known()
        page = site.page(run, "First page", ())
        try:
            report = site.report(run)
        except SpecError as error:
            return made(_of_another_version(page, run, str(error)))
        content = first_page(report, known, run)
        content["review"] = known.signed.get(run, "nobody signed it yet")
        key = (run, site.digest(run), "first", content["signed"], content["review"])
        return site.pages.page(key, lambda: replace(page, template="first.html.j2", content=content))

    @router.get("/runs/{run}/evidence/{method}")
    def evidence(run: str, method: str) -> Response:
        return _shown(site, run, f"evidence/{method}.html", ("evidence", method))

    return router


def question_routes(site: Site) -> APIRouter:
    """The route of the questions."""
    router = APIRouter()

    @router.get("/runs/{run}/{question}")
    def question(run: str, question: str) -> Response:
        if question not in QUESTIONS:
            missing("")
        return _shown(site, run, f"pages/{question}.html", (question,))

    return router


def _shown(site: Site, run: str, path: str, here: tuple[str, ...]) -> Response:
    """A page of the report, whose section is the one that the report has."""
    return site.pages.page((run, site.digest(run), path), lambda: _page(site, run, path, here))


def _page(site: Site, run: str, path: str, here: tuple[str, ...]) -> Page:
    section = site.report(run).sections.get(path)
    if section is None:
        missing("The report of this run has no such page.")
    return site.page(run, section.title, here, section=section)


def _of_another_version(page: Page, run: str, why: str) -> Page:
    link = Link("The report as that run made it", run_path(run, "files", "report.html"))
    return replace(page, section=Section("First page", "first", (f"{why}.",), links=(link,)))
