"""Report of a run, its data quality, files, lineage and review."""

import hashlib
import io
import mimetypes
import zipfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from flows.runs import review
from flows.runs.index import report_named
from flows.runs.review import ROLES, Note, Review, SignOff, remarks, review_of, sign_off
from flows.runs.signatures import FieldError
from flows.serving.guard import Sent, UnknownFormError, policy, styles_in
from flows.serving.index import Known
from flows.serving.pages.lists import badge, steps, table, time_cell
from flows.serving.pages.run_results import note_reading
from flows.serving.site import Key, Page, Site, first_page, made, missing, path_of, run_path
from schemas.errors import EvenhandError, IntegrityError, SpecError
from schemas.questions import QUESTIONS
from schemas.tables.applications import REFUSAL_COUNTS, REFUSALS, VALIDATIONS
from schemas.tables.verdicts import PREFIX
from schemas.terms import EVERYBODY
from tasks.lake import log
from tasks.lake.store import COMPUTED, Lake, stage_runs
from tasks.reporting.text import Cell, Link, Notice, Section, TableView

# --------------------------------------------------------------------------------------------------------------------
# Pages of a run that its report has, too: Decide, the questions, the evidence of methods.


PAGES: Final = frozenset(question.file for question in QUESTIONS.values())
"""Pages of the questions by their names in the report."""


def routes(site: Site) -> APIRouter:
    """Their routes; the route of questions comes last, as any word fits it."""
    router = APIRouter()

    @router.get("/runs/{run}")
    def first(run: str) -> Response:
        index = site.known()
        page = site.page(run, "First page", ())
        try:
            report = site.report(run)
        except SpecError as error:
            link = Link("The report as that run made it", run_path(run, "files", "report.html"))
            return made(replace(page, section=Section("First page", "first", (f"{error}.",), links=(link,))))
        content = first_page(report, index, run)
        content["review"] = index.signed.get(run, "nobody signed it yet")
        key = (run, site.digest(run), "first", content["signed"], content["review"], *site.door(run).withheld)
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
        if question not in PAGES:
            missing("")
        return _shown(site, run, f"pages/{question}.html", (question,))

    return router


def _shown(site: Site, run: str, path: str, path_parts: tuple[str, ...]) -> Response:
    """A page of the server with a section of the report."""
    key = (run, site.digest(run), path, *site.door(run).withheld)
    return site.pages.page(key, lambda: _page(site, run, path, path_parts))


def _page(site: Site, run: str, path: str, path_parts: tuple[str, ...]) -> Page:
    section = site.report(run).sections.get(path)
    if section is None:
        missing("The report of this run has no such page.")
    return site.page(run, section.title, path_parts, section=section)


# --------------------------------------------------------------------------------------------------------------------
# Data quality of a run: the page of its report, and every expectation that a table was checked against.


PER_PAGE: Final = 100
_HEADER = ("Stage", "Table", "Column", "Rule", "Rows seen", "Rows failed", "State", "Reasons")
_EMPTY_ALLOWED: Final = (REFUSALS.name, REFUSAL_COUNTS.name)
"""Tables that are empty where a stage refused nothing."""
_WATERFALL: Final = "waterfall"
_SHOWN: Final = 3
"""Reasons of an expectation."""
Check = Mapping[str, Any]


def quality_routes(site: Site) -> APIRouter:
    """Their routes."""
    router = APIRouter()

    @router.get("/runs/{run}/quality")
    def quality(run: str, page: int = 1) -> Response:
        number = max(page, 1)
        key: Key = (run, site.digest(run), "quality", number, *site.door(run).withheld)
        return site.pages.page(key, lambda: _quality_page(site, run, number))

    return router


def _quality_page(site: Site, run: str, number: int) -> Page:
    section = site.quality(run)
    validations, waterfall = site.table(run, VALIDATIONS.name), site.table(run, _WATERFALL)
    rows = validations.to_pylist() if validations is not None else []
    reasons: dict[tuple[str, str], list[str]] = {}
    for row in waterfall.to_pylist() if waterfall is not None else []:
        if row["kind"] == "refused" and row["group"] == EVERYBODY:
            n = "withheld" if row["n"] is None else f"{row['n']:,}"
            reason = f"{str(row['reason']).replace('_', ' ')}: {n}"
            column_reasons = reasons.setdefault((row["stage"], row["column"]), [])
            column_reasons += [reason] if reason not in column_reasons else []
    shown_reasons = {key: "; ".join(column_reasons[:_SHOWN]) for key, column_reasons in reasons.items()}
    parts = tuple(part for part in section.parts if part.anchor != "checks")
    quality_section = replace(section, parts=(*parts, _checks(rows, shown_reasons, number)))
    page_links = steps(run_path(run, "quality"), {}, number, len(rows), PER_PAGE)
    return site.page(run, section.title, ("quality",), section=quality_section, more=page_links)


def _checks(rows: Sequence[Check], reasons: Mapping[tuple[str, str], str], page: int) -> Section:
    """One page of the expectations: failures, then those that saw no row, empty refusals last.

    Args:
        rows: of every expectation.
        reasons: stage and column -> why rows of it were refused, and how many as published.
        page: its number, from 1.
    """
    unseen = sum(_is_unseen(row) for row in rows)
    empty = sum(_is_nothing_refused(row) for row in rows)
    failed = sum(not row["success"] for row in rows)
    words = [f"{len(rows):,} expectations, of which {failed:,} failed and {unseen:,} saw no row; those come first."]
    words += [f"{empty:,} more are of empty tables of refusals: nothing was refused. They come last."] if empty else []
    notice = Notice("Expectations that saw no row", "They are no pass: nothing was held against them.")
    ordered = sorted(rows, key=lambda row: (row["success"], not _is_unseen(row), _is_nothing_refused(row)))
    first = (page - 1) * PER_PAGE
    expectation_table = table(
        "Expectations", _HEADER, (_row(row, reasons) for row in ordered[first : first + PER_PAGE])
    )
    tables = (expectation_table,) if expectation_table.rows else ()
    return Section("Checks of every table", "checks", tuple(words), notices=(notice,) if unseen else (), tables=tables)


def _is_nothing_refused(row: Check) -> bool:
    return bool(row["elements"] == 0 and row["success"] and row["table"] in _EMPTY_ALLOWED)


def _is_unseen(row: Check) -> bool:
    return bool(row["elements"] == 0) and not _is_nothing_refused(row)


def _row(row: Check, reasons: Mapping[tuple[str, str], str]) -> tuple[Cell, ...]:
    from tasks.reporting.data_page import expected

    rule, arguments = str(row["expectation"]).removeprefix("expect_").replace("_", " "), expected(row["expected"])
    if not row["success"]:
        severity = row.get("severity") or "critical"  # an earlier version did not keep it
        words = "failed" if severity == "critical" else f"failed ({severity})"
        state = badge("set aside", "quarantined") if row["quarantined"] else badge(words, "failed")
    elif _is_nothing_refused(row):
        state = badge("nothing refused", "not_run")
    else:
        state = badge("no row seen", "failed") if row["elements"] == 0 else badge("held", "held")
    broken = not row["success"] or row["unexpected"] != 0
    return (
        Cell(row["stage"]),
        Cell(row["table"], address=path_of("tables", row["table"])),
        Cell(row["column"] or "–"),
        Cell(f"{rule} ({arguments})" if arguments else rule),
        _count(row["elements"]),
        _count(row["unexpected"]),
        state,
        Cell((reasons.get((row["stage"], row["column"] or ""), "") if broken else "") or "–"),
    )


def _count(n: int | None) -> Cell:
    return Cell("withheld", "none") if n is None else Cell(f"{n:,}", "number")


# --------------------------------------------------------------------------------------------------------------------
# Files of a run's report as the run made them: a list with digests, each file, and a zip of all.


_FILES_SHOWN = {"html": "text/html; charset=utf-8", "json": "application/json"}
"""Kinds of files that a browser shows; others it saves."""


def files_routes(site: Site) -> APIRouter:
    """Their routes."""
    router = APIRouter()

    @router.get("/runs/{run}/files")
    def files(run: str) -> Response:
        rows = [
            (Cell(name, address=run_path(run, "files", *name.split("/"))), Cell(sha))
            for name, sha in _exported(site, run).items()
        ]
        words = "The files of the report as the run made them, each checked against its digest before it is sent."
        if withheld := site.door(run).words:
            words = f"The files of the report without {withheld}."
        file_table = table("Files of the report", ("File", "sha256"), rows)
        section = Section(
            "Files",
            "files",
            (words,),
            links=(Link("All of them as a zip", f"{run_path(run)}/files.zip"),),
            tables=(file_table,),
        )
        return made(site.page(run, "Files", ("files",), section=section))

    @router.get("/runs/{run}/files.zip")
    def bundle(run: str) -> Response:
        names = _exported(site, run)
        sink = io.BytesIO()
        with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as made_of:
            for name in names:
                made_of.writestr(f"{run}/{name}", _content(site, run, name, names[name]))
        return Response(sink.getvalue(), media_type="application/zip", headers=_saved(f"{run}.zip"))

    @router.get("/runs/{run}/files/{name:path}")
    def file(run: str, name: str) -> Response:
        names = _exported(site, run)
        if name not in names:  # looked up, and never joined into a path
            missing("The manifest of this run names no such file.")
        content = _content(site, run, name, names[name])
        kind = _FILES_SHOWN.get(name.rpartition(".")[2])
        if kind is None:
            guessed = mimetypes.guess_type(name)[0] or "application/octet-stream"
            return Response(content, media_type=guessed, headers=_saved(name.rpartition("/")[2]))
        headers = {"content-security-policy": policy(styles_in(content))}
        return Response(content, media_type=kind, headers=headers)

    return router


def _exported(site: Site, run: str) -> Mapping[str, str]:
    """Name -> sha256 of the files that the manifest names, or of those that a release would have."""
    anew = site.files(run)
    if anew is not None:
        return {name: hashlib.sha256(content).hexdigest() for name, content in anew.items()}
    names: Mapping[str, str] = site.manifest(run)["exported"]
    return names


def _content(site: Site, run: str, name: str, digest: str) -> bytes:
    """A file, once its digest agrees.

    Raises:
        IntegrityError: it is missing or altered.
    """
    anew = site.files(run)
    if anew is not None:
        return anew[name]
    lake = site.known().lake
    storage, folder = report_named(lake, run, site.manifest(run))
    content = storage.read(f"{folder}/{name}")
    if content is None or hashlib.sha256(content).hexdigest() != digest:
        raise IntegrityError(f"{name} of {run} is not the file that was written; `evenhand verify {run}` gives details")
    return content


def _saved(name: str) -> dict[str, str]:
    plain = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "-_.") else "_" for letter in name)
    return {"content-disposition": f'attachment; filename="{plain}"'}


# --------------------------------------------------------------------------------------------------------------------
# Lineage of a run: its stages as a drawing and as a list, with what each cost and which tables it wrote.
#
# Exact rows of stages are no published counts: only a server of restricted pages shows them.


WIDE: Final = 150
HIGH: Final = 34
ACROSS: Final = 20
DOWN: Final = 36
"""Of the drawing: width and height of a box, and the room between two."""
_COSTS = (("seconds", "Seconds"), ("cpu_seconds", "CPU seconds"), ("peak_memory_mb", "Peak memory, MB"))
_ROWS = (("rows_in", "Rows in"), ("rows_out", "Rows out"), ("refused", "Refused"))
EXACT_ROWS: Final = "Restricted: exact rows of stages. This page is entered in the log, and is not to be passed on."
_OF_EVERY_STAGE = ("refusals", "validations")


@dataclass(frozen=True)
class Box:
    """A stage in the drawing; the corner of its box."""

    name: str
    x: int
    y: int


def lineage_routes(site: Site) -> APIRouter:
    """Its route."""
    router = APIRouter()

    @router.get("/runs/{run}/lineage")
    def lineage(run: str) -> Response:
        page = site.page(run, "Lineage", ("lineage",))
        if site.settings.restricted:
            note_reading(site, run, "lineage: exact rows of stages")
        manifest = site.manifest(run)
        columns = (*_COSTS, *(_ROWS if site.settings.restricted else ()))
        rows = []
        for row in stage_runs(manifest):
            numbers = [
                Cell("–", "none") if row[name] is None else Cell(f"{row[name]:,}", "number") for name, _ in columns
            ]
            computed = "–" if row["source"] is None else "in this run" if row["source"] == COMPUTED else "before it"
            rows.append((Cell(row["stage"]), Cell(row["partition"][:12]), *numbers, Cell(computed)))
        header = ("Stage", "Key", *(words for _, words in columns), "Computed")
        note = "A stage that the lake held before has the cost of the run that made it."
        words = "Rows of stages are exact numbers, which are not published: `evenhand stages` tells them."
        section = Section(
            "Stages",
            "stages",
            () if site.settings.restricted else (words,),
            tables=(
                table("Stages", header, rows, note),
                _tables(manifest, site.door(run).withheld, restricted=site.settings.restricted),
            ),
        )
        restricted = EXACT_ROWS if site.settings.restricted else page.restricted
        drawing = drawn(manifest)
        return made(replace(page, section=section, restricted=restricted, template="lineage.html.j2", content=drawing))

    return router


def drawn(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Boxes of the stages in rows by what they read, and the lines between: what the template draws."""
    names = _names(manifest)
    writers: dict[str, int] = {}
    sources: list[list[int]] = []  # of each stage: the places of the stages that wrote its inputs
    for place, partition in enumerate(manifest["partitions"]):
        inputs = (manifest.get("lineage") or [{}] * (place + 1))[place].get("inputs", ())
        sources.append(sorted({writers[entry["path"]] for entry in inputs if entry["path"] in writers}))
        writers |= {entry["path"]: place for entry in partition["tables"]}
    depth: list[int] = []
    for stage_sources in sources:
        depth.append(1 + max((depth[place] for place in stage_sources), default=-1))
    boxes: list[Box] = []
    for place, name in enumerate(names):
        before = depth[:place].count(depth[place])
        boxes.append(Box(name, 10 + before * (WIDE + ACROSS), 10 + depth[place] * (HIGH + DOWN)))
    lines = [(boxes[source], boxes[place]) for place, stage in enumerate(sources) for source in stage]
    size = {"width": max(b.x for b in boxes) + WIDE + 10, "height": max(b.y for b in boxes) + HIGH + 10}
    sentences = [
        f"{names[place]} reads {', '.join(names[source] for source in stage) or 'the source'}"
        for place, stage in enumerate(sources)
    ]
    return {"boxes": boxes, "lines": lines, "said": sentences, "wide": WIDE, "high": HIGH, **size}


def _names(manifest: Mapping[str, Any]) -> list[str]:
    return [row["stage"] for row in stage_runs(manifest)]


def _tables(manifest: Mapping[str, Any], withheld: Collection[str], *, restricted: bool) -> TableView:
    """The tables of the stages with what their declarations say, but for those that every stage writes.

    Who knows all rows of a table but one could try that one against the digest: only published tables that are not
    ``withheld`` whole have theirs here.
    """
    from flows.operations.dictionary import TABLES  # loads every declaration

    descriptions = {declared.name: declared.description for declared in TABLES}
    names = _names(manifest)
    rows = [
        (
            Cell(names[place]),
            Cell(name, address=path_of("tables", name) if name in descriptions else ""),
            Cell(descriptions.get(name, "–")),
            Cell(artifact["sha256"][:12] if restricted or (name.startswith(PREFIX) and name not in withheld) else "–"),
        )
        for place, partition in enumerate(manifest["partitions"])
        for artifact in partition["tables"]
        if (name := artifact["table"]) not in _OF_EVERY_STAGE
    ]
    return replace(table("Tables of the stages", ("Stage", "Table", "What it holds", "sha256"), rows), folded=True)


# --------------------------------------------------------------------------------------------------------------------
# Forms of a review: their fields, their entries in the log, and the reason next to a field that is refused.


_UNKNOWN: Final = (
    "This form is not one of this session, or was opened too long ago. See whether the entry is there already; if not, "
    "send the form again."
)
_MOST_DIGITS: Final = 9
"""Of the number of an entry."""
Values = Mapping[str, str]
"""Name of a field -> what was written in it."""


@dataclass(frozen=True)
class Form:
    """One kind of form."""

    name: str
    path: str
    """Below the run, where it is sent to."""
    labels: Mapping[str, str]
    """Name of each field -> the word that its label begins with."""
    enter: Callable[[Lake, str, str, Values], log.Entry]
    """Enters the fields in the log: lake, run, author and fields -> the entry."""


@dataclass(frozen=True)
class Posted:
    """A form that was sent."""

    form: Form
    run: str
    cookie: str
    once: str
    """Random letters that bind the form to this session, for one use."""
    values: Values


@dataclass(frozen=True)
class Refused:
    """A refused form; nothing was entered in the log."""

    form: str
    values: Values
    status: int
    wrong: Values = field(default_factory=dict)
    """Name of a field -> what is wrong with it; "form" for the form as a whole."""


async def posted(request: Request, run: str, form: Form) -> Posted:
    """The fields of a form as they were sent."""
    async with request.form(max_files=0, max_fields=10) as sent:
        field_values = {name: str(sent.get(name) or "").replace("\r\n", "\n") for name in (*form.labels, "form")}
    return Posted(form, run, request.state.cookie, field_values.pop("form"), field_values)


def entered(site: Site, sent: Posted) -> Sent | Refused:
    """Enter the content of a form, once; or return why it is refused."""
    lake, by = site.known().lake, site.settings.by
    try:
        return site.admission.forms.entered(
            sent.cookie, sent.once, lambda: sent.form.enter(lake, sent.run, by, sent.values).n
        )
    except UnknownFormError:
        return Refused(sent.form.name, sent.values, 403, {"form": _UNKNOWN})
    except EvenhandError as error:
        status = 400 if isinstance(error, SpecError) else 409 if isinstance(error, IntegrityError) else 503
        faults = {"form": str(error)}
        if isinstance(error, FieldError) and error.field in sent.form.labels:
            faults = {error.field: f"{sent.form.labels[error.field]}: {error.reason}."}
        return Refused(sent.form.name, sent.values, status, faults)


def _note(lake: Lake, run: str, by: str, field_values: Values) -> log.Entry:
    remark = Note(by, field_values["text"])
    if field_values["owner"] or field_values["due"]:
        return review.open_remediation(lake, run, remark, field_values["owner"], field_values["due"])
    return review.note(lake, run, remark)


def _close(lake: Lake, run: str, by: str, field_values: Values) -> log.Entry:
    n = field_values["closes"]
    if not (n.isascii() and n.isdecimal() and len(n) <= _MOST_DIGITS):
        raise FieldError("closes", "--done is no number of an entry", "choose one that is open")
    return review.close_remediation(lake, run, Note(by, field_values["text"]), int(n))


NOTE: Final = Form("note", "notes", {"text": "Note", "owner": "Owner", "due": "Last day"}, _note)
CLOSE: Final = Form("close", "remediations", {"closes": "Remediation", "text": "Text"}, _close)
SIGN: Final = Form(
    "sign",
    "signatures",
    {"role": "Role", "text": "Text"},
    lambda lake, run, by, field_values: sign_off(lake, run, SignOff(by, field_values["role"], field_values["text"])),
)
FORMS: Final = (NOTE, CLOSE, SIGN)


# --------------------------------------------------------------------------------------------------------------------
# Review of a run: its state, its entries of the log, and the forms with which people note and sign.


_REVIEW_HEADER = ("Entry", "Time", "What", "By", "Text", "Key")
_EVENTS = {"run published": "published", "signed off": "signed"}


def review_routes(site: Site) -> APIRouter:
    """Their routes; the routes that write exist only if signing is turned on."""
    router = APIRouter()

    @router.get("/runs/{run}/review")
    def review(request: Request, run: str, again: int = 0) -> Response:
        return _review_page(site, run, request.state.cookie, again=again)

    if site.settings.sign and site.settings.by:
        for form in FORMS:
            _write(router, site, form)
    return router


def _write(router: APIRouter, site: Site, form: Form) -> None:
    @router.post(f"/runs/{{run}}/{form.path}")
    async def write(request: Request, run: str) -> Response:
        return await run_in_threadpool(_done, site, await posted(request, run, form))


def _done(site: Site, sent: Posted) -> Response:
    """Enter the form and redirect to the page with it; or show the form again, with the reason next to its field."""
    site.summary(sent.run)
    outcome = entered(site, sent)
    if isinstance(outcome, Refused):
        return _review_page(site, sent.run, sent.cookie, outcome)
    site.known(refresh=True)
    entry_number = outcome.n if outcome.again else None
    return RedirectResponse(run_path(sent.run, "review", again=entry_number), status_code=303)


@dataclass(frozen=True)
class _View:
    """A form as the page shows it."""

    name: str
    action: str
    once: str
    given: Values
    wrong: Values = field(default_factory=dict)


def _review_page(site: Site, run: str, cookie: str, refused: Refused | None = None, again: int = 0) -> Response:
    """The page.

    Args:
        site: that is served.
        run: its id.
        cookie: of the session that the forms are for.
        refused: a form of which nothing was entered.
        again: number of the entry of a form that was sent twice.
    """
    page, index = site.page(run, "Review", ("review",)), site.known()
    review, notice = None, None
    if index.log.broken:
        notice = Notice("The log cannot be relied on", f"{index.log.broken}. No state of review is shown.")
    else:
        try:
            review = review_of(index.lake, run, index.log.entries)
        except IntegrityError as error:
            notice = Notice("Not what was written", str(error))
    content: dict[str, Any] = {
        "forms": {},
        "may_sign": bool(site.settings.sign and site.settings.by),
        "again": again if again in {entry.n for entry in index.log.of(run)} else 0,
        "broken": index.log.broken,
    }
    if content["may_sign"] and not index.log.broken:
        remediations = review.open if review else ()
        for form in FORMS:
            if form is CLOSE and not remediations:
                continue
            once, action = site.admission.forms.made(cookie), run_path(run, form.path)
            view = _View(form.name, action, once, dict.fromkeys(form.labels, ""))
            if refused is not None and refused.form == form.name:
                view = replace(view, given=refused.values, wrong=refused.wrong)
            content["forms"][form.name] = view
        content |= {"by": site.settings.by, "roles": ROLES, "most": log.MOST_TEXT}
        content["open"] = [(remediation.n, _left(remediation)) for remediation in remediations]
    section = _review_section(index, run, review, notice)
    review_page = replace(page, section=section, template="review.html.j2", content=content)
    return made(review_page, refused.status if refused else 200)


def _review_section(index: Known, run: str, review: Review | None, notice: Notice | None) -> Section:
    rows = []
    for entry in index.log.of(run):
        event = entry.role or ("remediation done" if entry.closes else _EVENTS.get(entry.event, entry.event))
        due = f" ({entry.owner}, by {entry.due})" if entry.due else ""
        key = entry.signature.key if entry.signature else "name as given, not verified" if entry.by else "–"
        cells = map(Cell, (event, entry.by or "–", f"{entry.text}{due}" or "–", key))
        rows.append((Cell(str(entry.n), "number"), time_cell(entry.time), *cells))
    tables = (table("Entries of the log", _REVIEW_HEADER, rows),) if rows else ()
    head = f"Head of the log, to be kept elsewhere: {index.log.head.n}:{index.log.head.sha256}."
    if review is None:
        return Section("Review", "review", (head,), notices=(notice,) if notice else (), tables=tables)
    try:
        remark_texts = remarks(index.lake, review, index.log.entries)
    except IntegrityError as error:
        notice = Notice("Not what was written", str(error))
        return Section("Review", "review", (head,), notices=(notice,), tables=tables)
    words = (
        f"State: {review.state}.",
        *remark_texts,
        f"What is signed is the manifest: {review.manifest_sha256}.",
        head,
    )
    return Section("Review", "review", words, points=tuple(map(_left, review.open)), tables=tables)


def _left(remediation: review.Remediation) -> str:
    state = "overdue" if remediation.overdue() else "open"
    terms = f"{state}, by {remediation.due}, {remediation.owner}"
    return f"To be remedied ({terms}): {remediation.text} (entry {remediation.n})"
