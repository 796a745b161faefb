"""Pages that begin an audit: a table is sent or chosen, its questions are answered, and a run is followed."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import PurePath
from typing import Any, Final

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response

from flows.serving.guard import UPLOAD, UnknownFormError
from flows.serving.pages.lists import badge, table, time_cell
from flows.serving.settings import Settings
from flows.serving.site import Page, Site, made, missing, path_of, run_path
from flows.serving.starts import AT_WORK, MAY_RUN, WORDS, Start, Starts, State
from flows.serving.uploads import Incoming, TooLargeError
from schemas.errors import InfrastructureError, SpecError
from schemas.sentences import filled, sentences
from tasks.pipeline.progress import coarse, duration
from tasks.reporting.text import Cell, Section, TableView

HOME: Final = "/new"
TITLE: Final = "New audit"
_CRUMBS = (("/", "Audits"),)
_REFRESH_SECONDS: Final = 3
_LATE_SECONDS, _LEAST_LEFT = 10, 5
"""From so many seconds on a run is late, and time left is named."""
_WORST: Final = (1, 2)
"""Weights of the questions that have no answer chosen already: a run does not begin while one is open."""
_MOST_FIELDS, _MOST_WORDS = 300, 4000
_EVIDENCE: Final = 8
"""Facts of a question that are shown."""
_COLOURS: Final[Mapping[State, str]] = {
    State.READING: "quarantined",
    State.QUEUED: "quarantined",
    State.RUNNING: "quarantined",
    State.DONE: "within",
    State.FAILED: "failed",
    State.REFUSED: "failed",
}
_UNKNOWN: Final = "This form was shown too long ago, or to another session. Nothing was taken; send it again from here."
_LATE: Final = "the questions were answered already, perhaps in another window: nothing of this form was taken"
_NOT_READ: Final = "This question has no answer yet."
_CHANGED: Final = "Your answers changed this question, or it was changed in another window. Read it again."
_READ: Final = "Say that you have read the answers that were chosen already."
_TOPICS: Final = {
    "join": "Two files",
    "decision": "Decision",
    "sides": "Sides of the decision",
    "people": "Protected attributes",
    "reference": "Comparison",
    "groups": "Groups",
    "rows": "Rows",
    "cells": "Cells",
    "columns": "Columns",
    "year": "Year",
    "weights": "Weights",
    "limits": "Limits",
}


def routes(site: Site) -> APIRouter:
    """Their routes; none where no audit may be begun."""
    router = APIRouter()
    starts = site.starts
    if starts is None:
        return router

    @router.get(HOME)
    def new(request: Request) -> Response:
        return made(_new_page(site, starts, request.state.cookie))

    @router.post(UPLOAD)
    async def upload(request: Request) -> Response:
        return await _received(site, starts, request)

    @router.post(f"{HOME}/file")
    async def choose(request: Request) -> Response:
        sent = await _fields(request)

        def enter() -> int:
            part, second = sent.get("part", "").strip(), sent.get("second", "")
            return int(starts.begin_offered(sent.get("file", ""), part, second).id, 16)

        def begin() -> Response:
            try:
                return _once(site, request, sent, enter)
            except SpecError as error:
                return made(_new_page(site, starts, request.state.cookie, str(error)), 400)
            except (InfrastructureError, OSError) as error:
                return made(_new_page(site, starts, request.state.cookie, starts.of_disk(error)), 507)

        return await run_in_threadpool(begin)

    @router.get(f"{HOME}/{{name}}")
    def show(request: Request, name: str, still: int = 0) -> Response:
        start = _known(starts, name)
        if not still and start.state is State.DONE and start.run in site.known(refresh=True).runs:
            return RedirectResponse(run_path(start.run), status_code=303)
        return made(_page(site, starts, start, request.state.cookie, still=bool(still)))

    @router.get(f"{HOME}/{{name}}/spec.yaml")
    def spec(name: str) -> Response:
        start = _known(starts, name)
        content = starts.spec(start)
        if content is None:
            missing("The spec is written once every question is answered.")
        stem = "".join(ch if ch.isascii() and ch.isalnum() else "-" for ch in start.file.partition(".")[0]) or "audit"
        headers = {"content-disposition": f'attachment; filename="{stem}.yaml"'}
        return Response(content, media_type="application/yaml", headers=headers)

    @router.post(f"{HOME}/{{name}}/answers")
    async def answers(request: Request, name: str) -> Response:
        sent = await _fields(request)
        return await run_in_threadpool(_answered, site, starts, request, _known(starts, name), sent)

    _act(router, site, "run", starts.queue)
    _act(router, site, "cancel", starts.cancel)
    _act(router, site, "remove", starts.remove)
    return router


def _act(router: APIRouter, site: Site, verb: str, act: Callable[[str], None]) -> None:
    """A route that does one thing with an audit, once a form."""

    @router.post(f"{HOME}/{{name}}/{verb}")
    async def done(request: Request, name: str) -> Response:
        sent = await _fields(request)

        def apply() -> Response:
            assert site.starts is not None  # noqa: S101 as in ``routes``
            starts, start = site.starts, _known(site.starts, name)

            def enter() -> int:
                act(start.id)
                return int(start.id, 16)

            place = HOME if verb == "remove" else path_of("new", start.id)
            try:
                return _once(site, request, sent, enter, place)
            except (InfrastructureError, OSError) as error:
                return made(_page(site, starts, start, request.state.cookie, trouble=starts.of_disk(error)), 507)

        return await run_in_threadpool(apply)


def _known(starts: Starts, name: str) -> Start:
    start = starts.of(name)
    if start is None:
        missing("There is no such audit; its table may have been removed.")
    return start


async def _fields(request: Request) -> dict[str, str]:
    async with request.form(max_files=0, max_fields=_MOST_FIELDS) as sent:
        return {name: str(value)[:_MOST_WORDS] for name, value in sent.items()}


def _once(site: Site, request: Request, sent: Mapping[str, str], enter: Callable[[], int], place: str = "") -> Response:
    """Do what a form is for, once, and lead to the audit, or to another place; the page of a form that is not known."""
    try:
        done = site.admission.forms.entered(request.state.cookie, sent.get("form", ""), enter)
    except UnknownFormError:
        return _refused(403, _UNKNOWN)
    return RedirectResponse(place or path_of("new", f"{done.n:012x}"), status_code=303)


def _refused(status: int, words: str) -> Response:
    section = Section("Not taken", "words", (words,))
    return made(Page("Not taken", section, crumbs=(*_CRUMBS, (HOME, TITLE))), status)


# --------------------------------------------------------------------------------------------------------------------
# A table arrives.


async def _received(site: Site, starts: Starts, request: Request) -> Response:
    """Write a table into the lake as it comes, and lead to its page."""
    cookie, forms = request.state.cookie, site.admission.forms

    def admit(fields: Mapping[str, str]) -> None:
        if not forms.knows(cookie, fields.get("form", "")):
            raise UnknownFormError

    try:
        await run_in_threadpool(starts.require_room, int(request.headers.get("content-length", "0")))
        with starts.incoming() as folder:
            most = site.settings.most_upload
            incoming = Incoming(request.headers.get("content-type", ""), folder, most, admit)
            try:
                async for piece in request.stream():
                    await run_in_threadpool(incoming.write, piece)
                incoming.ended()
            finally:
                incoming.close()

            def enter() -> int:
                part = incoming.fields.get("part", "").strip()
                return int(starts.begin(folder, incoming.name, incoming.size, part, incoming.second).id, 16)

            return await run_in_threadpool(_once, site, request, incoming.fields, enter)
    except ClientDisconnect:
        return _refused(408, "The table did not arrive in time. Send it again.")
    except UnknownFormError:
        return _closing(_refused(403, _UNKNOWN))
    except TooLargeError:
        return _closing(_refused(413, f"A table of more than {site.settings.upload_mb:,} MB is not taken here."))
    except SpecError as error:
        return _closing(made(_new_page(site, starts, cookie, str(error)), 400))
    except (InfrastructureError, OSError) as error:
        return _closing(made(_new_page(site, starts, cookie, starts.of_disk(error)), 507))


def _closing(answer: Response) -> Response:
    """An answer before the whole body was read: the connection ends with it."""
    answer.headers["connection"] = "close"
    return answer


def _new_page(site: Site, starts: Starts, cookie: str, wrong: str = "") -> Page:
    settings: Settings = site.settings
    rows = [
        (
            Cell(start.file, address=path_of("new", start.id, still=int(start.state is State.DONE) or None)),
            badge(WORDS[start.state], _COLOURS.get(start.state, "not_run")),
            Cell(start.run, address=run_path(start.run)) if start.run else Cell("–", "none"),
            time_cell(start.begun),
        )
        for start in starts.listed()
    ]
    tables = (table("Audits that were begun here", ("Table", "State", "Run", "Begun"), rows),) if rows else ()
    offered = starts.offered()
    content = {
        "forms": {"table": site.admission.forms.made(cookie), "file": site.admission.forms.made(cookie)},
        "offered": [(name, f"{name} ({_size(size)})") for name, size in offered.items()],
        "has_folder": bool(settings.files),
        "most": f"{settings.upload_mb:,}",
        "wrong": wrong,
    }
    section = Section(TITLE, "new", tables=tables)
    return Page(TITLE, section, template="new.html.j2", content=content, crumbs=_CRUMBS, here=HOME)


def _size(size: int) -> str:
    return f"{size / 1e6:,.1f} MB" if size >= 10**5 else f"{size:,} bytes"


# --------------------------------------------------------------------------------------------------------------------
# The page of an audit: questions, progress, or how it ended.


def _page(
    site: Site,
    starts: Starts,
    start: Start,
    cookie: str,
    *,
    still: bool = False,
    faults: Mapping[str, str] | None = None,
    sent: Mapping[str, str] | None = None,
    trouble: str = "",
) -> Page:
    """The page.

    Args:
        site: that is served.
        starts: the audits.
        start: the audit.
        cookie: of the session that its forms are for.
        still: whether the page does not load itself again.
        faults: key of a question -> what is wrong with its answer.
        sent: the fields of a form of which nothing was taken.
        trouble: why the disk did not take a form.
    """
    forms = site.admission.forms
    verbs = ["cancel" if start.state in (State.QUEUED, State.RUNNING) else "remove"]
    verbs += ["answers"] * (start.state is State.ASKING) + ["run"] * (start.state in MAY_RUN)
    refresh = 0 if still or start.state not in AT_WORK else _REFRESH_SECONDS
    content: dict[str, Any] = {
        "start": start,
        "here": path_of("new", start.id),
        "forms": {verb: forms.made(cookie) for verb in verbs},
        "still": still and start.state in AT_WORK,
        "has_spec": starts.spec(start) is not None and start.state not in (State.READING, State.ASKING),
        "course": None,
        "trouble": trouble or starts.trouble(start),
        **_questions({}, {}, {}),
    }
    title = f"{start.file}: {WORDS[start.state]}"
    section = Section(title, "state", tuple(_words(starts, start)))
    if start.state is State.RUNNING:
        progress = starts.progress(start)
        if progress.get("stages"):
            content["course"] = {"stage": progress["stage"], "stages": progress["stages"]}
    if start.state is State.ASKING:
        form = starts.form(start)
        all_faults = dict(form.get("faults", {})) if faults is None else dict(faults)
        if faults is None and start.sent.get("answers"):
            open_keys = [q["key"] for step in form.get("steps", ()) for q in step]
            answered = [key for key in open_keys if key in start.sent["answers"] and key not in all_faults]
            all_faults |= dict.fromkeys(answered, _CHANGED)
        content |= _questions(form, all_faults, sent or {})
        if form["columns"]:
            sampled = f", of which {form['sampled']:,} were looked at" if form["sampled"] else ""
            rows = f"{form['rows']:,} row{'s' * (form['rows'] != 1)}"
            words = f"{form['title']}: {rows} and {form['columns']:,} columns were read{sampled}."
            refused = (f"{n:,} rows refused: {reason.replace('_', ' ')}" for reason, n in form["refused"].items())
            points, parts = (*form["notes"], *refused), tuple(_table_sections(form))
            section = replace(section, words=(words,), points=points, parts=parts)
    crumbs = (*_CRUMBS, (HOME, TITLE))
    return Page(title, section, template="start.html.j2", content=content, crumbs=crumbs, refresh=refresh)


def _words(starts: Starts, start: Start) -> Iterator[str]:
    """Where an audit is, in sentences."""
    match start.state:
        case State.READING:
            names = f"{start.file} and {PurePath(start.second).name}" if start.second else start.file
            are = "are" if start.second else "is"
            yield f"{names} ({_size(start.size)}) {are} read in a process of its own, without a network."
        case State.READY:
            yield "Every question is answered. The spec holds the answers."
        case State.QUEUED:
            ahead = starts.ahead(start)
            yield "It begins in a moment." if not ahead else f"Runs before this one: {ahead}."
        case State.RUNNING if start.cancelled:
            yield "It is being cancelled. What is finished is kept."
        case State.RUNNING:
            progress = starts.progress(start)
            lines = progress.get("lines") or ["The run prepares its first stage"]
            yield from (f"Stage {line}." if line[:1].isdigit() else f"{line[:1].upper()}{line[1:]}." for line in lines)
            yield from _time_words(progress)
        case State.REFUSED | State.FAILED | State.STOPPED:
            yield from (line for line in start.words.splitlines() if line)
        case State.DONE:
            yield f"The run {start.run} finished."


def _time_words(progress: Mapping[str, Any]) -> Iterator[str]:
    """How long a run goes on, by earlier runs or the shipped costs, and whether that forecast is exceeded."""
    seconds, forecast = progress.get("left"), progress.get("forecast")
    if forecast is None:
        yield "How long it takes is known once the table is read."
    if seconds is None or forecast is None:
        return
    passed = float(progress["passed"])
    is_late = passed > forecast + _LATE_SECONDS
    if is_late:
        yield f"It takes longer than forecast: {duration(passed)} so far, and {duration(forecast)} were expected."
    if seconds >= _LEAST_LEFT:
        by = "tables of this size elsewhere" if progress.get("by_table") else "an earlier run of this audit"
        yield f"About {duration(coarse(seconds))} left" + ("." if is_late else f", by {by}.")
    elif not is_late:
        yield "A few seconds left."


def _questions(form: Mapping[str, Any], faults: Mapping[str, str], sent: Mapping[str, str]) -> dict[str, Any]:
    """What the template shows of the questions."""
    steps = [
        {
            "topic": _TOPICS.get(step[0]["topic"], step[0]["topic"].capitalize()),
            "questions": [
                {
                    **question,
                    "options": question["options"] or [{"answer": question["default"]}] * bool(question["default"]),
                    "chosen": sent.get(f"answer.{question['key']}", _chosen(question)),
                    "words": sent.get(f"words.{question['key']}", ""),
                    "wrong": faults.get(question["key"], ""),
                    "more": max(0, len(question["evidence"]) - _EVIDENCE),
                    "evidence": question["evidence"][:_EVIDENCE],
                }
                for question in step
            ],
        }
        for step in form.get("steps", ())
    ]
    chosen = any(question["chosen"] for step in steps for question in step["questions"] if question["default"])
    return {
        "steps": steps,
        "chosen": chosen,
        "wrong_read": faults.get("", ""),
        "wrong": bool(faults),
        "is_join": bool(form) and not form["columns"],
    }


def _chosen(question: Mapping[str, Any]) -> str:
    """The answer that is chosen before anybody reads: a default, but of the worst questions none."""
    return "" if question["weight"] in _WORST else question["default"] or ""


def _answered(site: Site, starts: Starts, request: Request, start: Start, sent: Mapping[str, str]) -> Response:
    """Take the answers of a form where every question has one; else show it again."""
    questions = {q["key"]: q for step in starts.form(start).get("steps", ()) for q in step}
    answers = {}
    for key in questions:
        words = sent.get(f"words.{key}", "").strip()
        if answer := words or sent.get(f"answer.{key}", ""):
            answers[key] = answer
    if start.state is State.ASKING:
        faults = {key: _NOT_READ for key in questions if key not in answers}
        if sent.get("read") != "yes" and any(_chosen(question) for question in questions.values()):
            faults[""] = _READ
        if faults:
            return made(_page(site, starts, start, request.state.cookie, faults=faults, sent=sent), 422)
    fingerprints = {key: sent.get(f"shown.{key}", "") for key in questions}

    def enter() -> int:
        if not starts.answer(start.id, fingerprints, answers, run=sent.get("then") != "keep"):
            raise SpecError(_LATE)
        return int(start.id, 16)

    try:
        return _once(site, request, sent, enter)
    except SpecError as error:
        now = _known(starts, start.id)
        return made(_page(site, starts, now, request.state.cookie, trouble=str(error)), 409)
    except (InfrastructureError, OSError) as error:
        words = starts.of_disk(error)
        return made(_page(site, starts, start, request.state.cookie, faults={}, sent=sent, trouble=words), 507)


def _table_sections(form: Mapping[str, Any]) -> Iterator[Section]:
    """The first rows as they are read, protected columns as counts, and what was converted."""
    preview, rules = form["preview"], sentences("data_page")["intake"]["rules"]
    rows = [tuple(Cell(cell or "–", "text" if cell else "none") for cell in row) for row in preview["rows"]]
    left_out = f" {preview['left_out']:,} more columns are not shown." if preview["left_out"] else ""
    first = TableView(
        f"The first {len(rows)} rows", tuple(preview["header"]), tuple(rows),
        f"As they are read; – is missing. Columns that describe people are below, as counts alone.{left_out}",
    )  # fmt: skip
    people = [
        (
            Cell(entry["column"]),
            Cell(", ".join(f"{value}: {n:,}" for value, n in entry["values"]) or f"{entry['distinct']:,} values"),
            Cell(f"{entry['missing']:,}", "number"),
        )
        for entry in form["people"]
    ]
    changed = [
        (
            Cell(row["column"]),
            Cell(filled("data_page", f"intake.rules.{row['rule']}") if row["rule"] in rules else "not read"),
            Cell(f"{row['cells']:,}", "number"),
        )
        for row in form["converted"][:200]
    ]
    views = (
        *((first,) if rows and preview["header"] else ()),
        *((table("Columns that describe people", ("Column", "Rows", "Missing"), people),) if people else ()),
        *((table("What was converted", ("Column", "What", "Cells"), changed),) if changed else ()),
    )
    words = () if changed else ("No cell was converted.",)
    yield Section("The table as it is read", "table", words, tables=views)
