"""Forms of a review: what each brings, what is entered of it, and what is said beside a field that is refused."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from starlette.requests import Request

from flows.runs.trust import notes
from flows.runs.trust.notes import Note
from flows.runs.trust.persons import FieldError
from flows.runs.trust.signoff import SignOff, sign_off
from flows.serving.guard.forms import Sent, UnknownFormError
from flows.serving.site import Site
from schemas.errors import EvenhandError, IntegrityError, SpecError
from tasks.lake import log
from tasks.lake.store import Lake

_UNKNOWN: Final = (
    "This form is not one of this session, or was opened too long ago. See whether the entry is there already; if not, "
    "send the form again."
)
_MOST_DIGITS: Final = 9
"""Of the number of an entry."""
Given = Mapping[str, str]
"""Name of a field -> what was written in it."""


@dataclass(frozen=True)
class Form:
    """One kind of form."""

    name: str
    path: str
    """Below the run, where it is sent to."""
    labels: Mapping[str, str]
    """Name of each field -> the word that its label begins with."""
    enter: Callable[[Lake, str, str, Given], log.Entry]
    """Enters what was written, of a run, by somebody."""


@dataclass(frozen=True)
class Posted:
    """A form that was sent."""

    form: Form
    run: str
    cookie: str
    once: str
    """The letters that make it one of this session, to be used once."""
    given: Given


@dataclass(frozen=True)
class Refused:
    """A form of which nothing was entered."""

    form: str
    given: Given
    status: int
    wrong: Given = field(default_factory=dict)
    """Name of a field -> what is wrong with it; of "form" where it is no single field."""


async def posted(request: Request, run: str, form: Form) -> Posted:
    """The fields of a form as they were sent."""
    async with request.form(max_files=0, max_fields=10) as sent:
        found = {name: str(sent.get(name) or "").replace("\r\n", "\n") for name in (*form.labels, "form")}
    return Posted(form, run, request.state.cookie, found.pop("form"), found)


def entered(site: Site, sent: Posted) -> Sent | Refused:
    """Enter what a form says, once; or say why not."""
    lake, by = site.known().lake, site.settings.by
    try:
        return site.admission.forms.entered(
            sent.cookie, sent.once, lambda: sent.form.enter(lake, sent.run, by, sent.given).n
        )
    except UnknownFormError:
        return Refused(sent.form.name, sent.given, 403, {"form": _UNKNOWN})
    except EvenhandError as error:
        return Refused(sent.form.name, sent.given, _status(error), _wrong(sent.form, error))


def _status(error: EvenhandError) -> int:
    return 400 if isinstance(error, SpecError) else 409 if isinstance(error, IntegrityError) else 503


def _wrong(form: Form, error: EvenhandError) -> Given:
    if isinstance(error, FieldError) and error.field in form.labels:
        return {error.field: f"{form.labels[error.field]}: {error.reason}."}
    return {"form": str(error)}


def _note(lake: Lake, run: str, by: str, given: Given) -> log.Entry:
    said = Note(by, given["text"])
    if given["owner"] or given["due"]:
        return notes.open_remediation(lake, run, said, given["owner"], given["due"])
    return notes.note(lake, run, said)


def _close(lake: Lake, run: str, by: str, given: Given) -> log.Entry:
    n = given["closes"]
    if not (n.isascii() and n.isdecimal() and len(n) <= _MOST_DIGITS):
        raise FieldError("closes", "--done is no number of an entry", "choose one that is open")
    return notes.close_remediation(lake, run, Note(by, given["text"]), int(n))


def _sign(lake: Lake, run: str, by: str, given: Given) -> log.Entry:
    return sign_off(lake, run, SignOff(by, given["role"], given["text"]))


NOTE: Final = Form("note", "notes", {"text": "Note", "owner": "Owner", "due": "Last day"}, _note)
CLOSE: Final = Form("close", "remediations", {"closes": "Remediation", "text": "Text"}, _close)
SIGN: Final = Form("sign", "signatures", {"role": "Role", "text": "Text"}, _sign)
FORMS: Final = (NOTE, CLOSE, SIGN)
