"""Review of a run: where it stands, its entries of the log, and the forms with which people note and sign."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from flows.runs.trust import notes
from flows.runs.trust.notes import Note
from flows.runs.trust.review import remarks, review_of
from flows.runs.trust.signoff import ROLES, SignOff, sign_off
from flows.serving.index.runs import Known
from flows.serving.pages.cells import table, time_cell
from flows.serving.rendering import made, run_path
from flows.serving.site import Site
from schemas.errors import EvenhandError, IntegrityError
from tasks.lake import log
from tasks.reporting.section import Cell, Notice, Section

_BLANK = {"note": "", "owner": "", "due": "", "role": "", "sign": ""}
_HEADER = ("Entry", "Time", "What", "By", "Text", "Key")
_EVENTS = {"run published": "published", "signed off": "signed"}


def routes(site: Site) -> APIRouter:
    """Their routes; those that write are there only where signing is turned on."""
    router = APIRouter()

    @router.get("/runs/{run}/review")
    def review(request: Request, run: str) -> Response:
        return _page(site, run, request.state.cookie)

    if site.settings.sign and site.settings.by:
        _write(router, site)
    return router


def _write(router: APIRouter, site: Site) -> None:
    @router.post("/runs/{run}/notes")
    async def note(request: Request, run: str) -> Response:
        asked = await _asked(site, request, ("text", "owner", "due"))
        given = {**_BLANK, "note": asked["text"], "owner": asked["owner"], "due": asked["due"]}
        return await run_in_threadpool(_done, site, _Posted(run, request.state.cookie, "note", given), _noted)

    @router.post("/runs/{run}/signatures")
    async def sign(request: Request, run: str) -> Response:
        asked = await _asked(site, request, ("text", "role"))
        given = {**_BLANK, "sign": asked["text"], "role": asked["role"]}
        return await run_in_threadpool(_done, site, _Posted(run, request.state.cookie, "sign", given), _signed)


@dataclass(frozen=True)
class _Posted:
    """A form that was sent."""

    run: str
    cookie: str
    form: str
    """Which of the two: note or sign."""
    given: Mapping[str, str]


async def _asked(site: Site, request: Request, names: tuple[str, ...]) -> dict[str, str]:
    """The fields of a form that brought the token of its session.

    Raises:
        HTTPException: it did not.
    """
    async with request.form(max_files=0, max_fields=10) as form:
        found = {name: str(form.get(name) or "") for name in (*names, "form")}
    if not site.admission.accepts(request.state.cookie, found.pop("form")):
        raise HTTPException(403, "This form is not one of this session: load the page again, and write it anew.")
    return {name: text.replace("\r\n", "\n") for name, text in found.items()}


def _noted(site: Site, posted: _Posted) -> log.Entry:
    said = Note(site.settings.by, posted.given["note"])
    if posted.given["owner"] or posted.given["due"]:
        return notes.open_remediation(site.known().lake, posted.run, said, posted.given["owner"], posted.given["due"])
    return notes.note(site.known().lake, posted.run, said)


def _signed(site: Site, posted: _Posted) -> log.Entry:
    said = SignOff(site.settings.by, posted.given["role"], posted.given["sign"])
    return sign_off(site.known().lake, posted.run, said)


def _done(site: Site, posted: _Posted, enter: Callable[[Site, _Posted], log.Entry]) -> Response:
    """Enter what was said, and lead to the page with it; or the form again, with the reason beside it."""
    site.summary(posted.run)
    try:
        enter(site, posted)
    except EvenhandError as error:
        return _page(site, posted.run, posted.cookie, (posted.form, str(error), posted.given))
    site.known(anew=True)
    return RedirectResponse(run_path(posted.run, "review"), status_code=303)


def _page(site: Site, run: str, cookie: str, wrong: tuple[str, str, Mapping[str, str]] | None = None) -> Response:
    """The page; ``wrong`` are the form that was refused, why, and what was written in it."""
    known = site.known()
    page = site.page(run, "Review", ("review",))
    content = {
        "forms": _forms(site, run, cookie),
        "wrong": {"note": "", "sign": "", **({wrong[0]: wrong[1]} if wrong else {})},
        "given": wrong[2] if wrong else _BLANK,
    }
    shown = replace(page, section=_section(known, run), template="review.html.j2", content=content)
    return made(shown, 400 if wrong else 200)


def _forms(site: Site, run: str, cookie: str) -> dict[str, Any]:
    """What the forms need; nothing where there are none."""
    if not (site.settings.sign and site.settings.by):
        return {}
    paths = {name: run_path(run, name) for name in ("notes", "signatures")}
    token = site.admission.form_token(cookie)
    return {**paths, "token": token, "by": site.settings.by, "roles": ROLES, "most": log.MOST_TEXT}


def _section(known: Known, run: str) -> Section:
    entries = known.log.of(run)
    rows = [_row(entry) for entry in entries]
    shown = (table("Entries of the log", _HEADER, rows),) if rows else ()
    head = f"Head of the log, to be kept elsewhere: {known.log.head.n}:{known.log.head.sha256}."
    if known.log.broken:
        notice = Notice("The log cannot be relied on", f"{known.log.broken}. No state of review is told.")
        return Section("Review", "review", (head,), notices=(notice,), tables=shown)
    try:
        found = review_of(known.lake, run, known.log.entries)
        said = remarks(known.lake, found, known.log.entries)
    except IntegrityError as error:
        notice = Notice("Not what was written", str(error))
        return Section("Review", "review", (head,), notices=(notice,), tables=shown)
    words = (f"State: {found.state}.", *said, f"What is signed is the manifest: {found.manifest_sha256}.", head)
    return Section("Review", "review", words, points=tuple(map(_left, found.open)), tables=shown)


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
