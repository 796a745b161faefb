"""Review of a run: where it stands, its entries of the log, and the forms with which people note and sign."""

from dataclasses import dataclass, field, replace
from typing import Any

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from flows.runs.trust import notes
from flows.runs.trust.review import Review, remarks, review_of
from flows.runs.trust.signoff import ROLES
from flows.serving.index.known import Known
from flows.serving.pages.cells import table, time_cell
from flows.serving.pages.run.forms import CLOSE, FORMS, Form, Given, Posted, Refused, entered, posted
from flows.serving.rendering import made, run_path
from flows.serving.site import Site
from schemas.errors import IntegrityError
from tasks.lake import log
from tasks.reporting.section import Cell, Notice, Section

_HEADER = ("Entry", "Time", "What", "By", "Text", "Key")
_EVENTS = {"run published": "published", "signed off": "signed"}


def routes(site: Site) -> APIRouter:
    """Their routes; those that write are there only where signing is turned on."""
    router = APIRouter()

    @router.get("/runs/{run}/review")
    def review(request: Request, run: str, again: int = 0) -> Response:
        return _page(site, run, request.state.cookie, again=again)

    if site.settings.sign and site.settings.by:
        for form in FORMS:
            _write(router, site, form)
    return router


def _write(router: APIRouter, site: Site, form: Form) -> None:
    @router.post(f"/runs/{{run}}/{form.path}")
    async def write(request: Request, run: str) -> Response:
        return await run_in_threadpool(_done, site, await posted(request, run, form))


def _done(site: Site, sent: Posted) -> Response:
    """Enter what was said, and lead to the page with it; or the form again, with the reason beside its field."""
    site.summary(sent.run)
    outcome = entered(site, sent)
    if isinstance(outcome, Refused):
        return _page(site, sent.run, sent.cookie, outcome)
    site.known(anew=True)
    told = outcome.n if outcome.again else None
    return RedirectResponse(run_path(sent.run, "review", again=told), status_code=303)


@dataclass(frozen=True)
class _View:
    """A form as the page shows it."""

    name: str
    action: str
    once: str
    given: Given
    wrong: Given = field(default_factory=dict)


def _page(site: Site, run: str, cookie: str, refused: Refused | None = None, again: int = 0) -> Response:
    """The page.

    Args:
        site: that is served.
        run: its id.
        cookie: of the session that the forms are for.
        refused: a form of which nothing was entered.
        again: number of the entry of a form that was sent twice.
    """
    page, known = site.page(run, "Review", ("review",)), site.known()
    review, notice = _standing(known, run)
    content: dict[str, Any] = {
        "forms": {},
        "may_sign": bool(site.settings.sign and site.settings.by),
        "again": again if again in {entry.n for entry in known.log.of(run)} else 0,
        "broken": known.log.broken,
    }
    if content["may_sign"] and not known.log.broken:
        open_ = review.open if review else ()
        content["forms"] = _views(site, run, cookie, refused, closing=bool(open_))
        content |= {"by": site.settings.by, "roles": ROLES, "most": log.MOST_TEXT}
        content["open"] = [(each.n, _left(each)) for each in open_]
    section = _section(known, run, review, notice)
    shown = replace(page, section=section, template="review.html.j2", content=content)
    return made(shown, refused.status if refused else 200)


def _views(site: Site, run: str, cookie: str, refused: Refused | None, *, closing: bool) -> dict[str, _View]:
    """The forms, each with letters of its own; that of remediations only where one is open."""
    found = {}
    for form in FORMS:
        if form is CLOSE and not closing:
            continue
        view = _View(
            form.name, run_path(run, form.path), site.admission.forms.made(cookie), dict.fromkeys(form.labels, "")
        )
        if refused is not None and refused.form == form.name:
            view = replace(view, given=refused.given, wrong=refused.wrong)
        found[form.name] = view
    return found


def _standing(known: Known, run: str) -> tuple[Review | None, Notice | None]:
    """Where the run stands; or why that is not told."""
    if known.log.broken:
        return None, Notice("The log cannot be relied on", f"{known.log.broken}. No state of review is told.")
    try:
        return review_of(known.lake, run, known.log.entries), None
    except IntegrityError as error:
        return None, Notice("Not what was written", str(error))


def _section(known: Known, run: str, review: Review | None, notice: Notice | None) -> Section:
    rows = [_row(entry) for entry in known.log.of(run)]
    shown = (table("Entries of the log", _HEADER, rows),) if rows else ()
    head = f"Head of the log, to be kept elsewhere: {known.log.head.n}:{known.log.head.sha256}."
    if review is None:
        return Section("Review", "review", (head,), notices=(notice,) if notice else (), tables=shown)
    try:
        said = remarks(known.lake, review, known.log.entries)
    except IntegrityError as error:
        return Section("Review", "review", (head,), notices=(Notice("Not what was written", str(error)),), tables=shown)
    words = (f"State: {review.state}.", *said, f"What is signed is the manifest: {review.manifest_sha256}.", head)
    return Section("Review", "review", words, points=tuple(map(_left, review.open)), tables=shown)


def _left(each: notes.Remediation) -> str:
    state = "overdue" if each.overdue() else "open"
    return f"To be remedied ({state}, by {each.due}, {each.owner}): {each.text} (entry {each.n})"


def _row(entry: log.Entry) -> tuple[Cell, ...]:
    what = entry.role or ("remediation done" if entry.closes else _EVENTS.get(entry.event, entry.event))
    due = f" ({entry.owner}, by {entry.due})" if entry.due else ""
    key = Cell(entry.signature.key) if entry.signature else Cell("name as given, not verified" if entry.by else "–")
    return (
        Cell(str(entry.n), "number"),
        time_cell(entry.time),
        Cell(what),
        Cell(entry.by or "–"),
        Cell(f"{entry.text}{due}" or "–"),
        key,
    )
