"""Asks Prefect's server whether it is ready, in words that say what to do, before a run ends in Prefect's own words.

`/api/ready` asks the database; `/api/health` answers always. A password in the address is in no message.
"""

import os
import time
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import httpx

from schemas.errors import InfrastructureError

_ANSWER_SECONDS: Final = 10
_TRIES: Final = 4
_PAUSE_SECONDS: Final = 1.0
"""Between two tries: a server that is started again answers within seconds."""
_AUTH: Final = "PREFECT_API_AUTH_STRING"
WANTS_PASSWORD: Final = (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN)
START: Final = f"start it, or mend PREFECT_API_URL and {_AUTH}"
NO_PREFECT: Final = "PREFECT_API_URL ends with /api, such as http://127.0.0.1:4200/api"
GIVE_PASSWORD: Final = f"set {_AUTH} to evenhand:PASSWORD"
LOOK_AT_DATABASE: Final = "look whether its database is full, or away; its log says which"


def require_server(api: str) -> None:
    """Return if the server at ``api`` is ready, or is Prefect Cloud, which does not say so.

    Raises:
        InfrastructureError: nothing answers there, or something that is no Prefect server, or one without its database.
    """
    if os.environ.get("PREFECT_API_KEY"):
        return
    found = fault_at(api)
    for _ in range(_TRIES - 1):
        if found is None or not found.passing:
            break
        time.sleep(_PAUSE_SECONDS)
        found = fault_at(api)
    if found is not None:
        raise InfrastructureError(f"{found.what}: {found.step}; without PREFECT_API_URL a command starts a server")


class Fault(NamedTuple):
    """Why runs cannot go to a server, and the next step."""

    what: str
    step: str
    passing: bool = False
    """Whether it may pass by itself: the server is away, or its database."""


def fault_at(api: str) -> Fault | None:
    """Why runs cannot go to the server at ``api``; None if they can."""
    shown = shown_address(api)
    try:
        answer = httpx.get(f"{api.rstrip('/')}/ready", timeout=_ANSWER_SECONDS, auth=_password())
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return Fault(f"no server answers at {shown} ({type(error).__name__})", START, passing=True)
    if answer.is_server_error:  # also a proxy's page, while the server behind it is started again
        what = f"the server at {shown} is not ready ({answer.status_code})"
        return Fault(what, LOOK_AT_DATABASE, passing=True)
    if answer.status_code in WANTS_PASSWORD:
        return Fault(f"the server at {shown} refuses the password ({answer.status_code})", GIVE_PASSWORD)
    if not (answer.is_success and _is_prefect(answer)):
        return Fault(f"what answers at {shown} is no Prefect server ({answer.status_code})", NO_PREFECT)
    return None


def shown_address(api: str) -> str:
    """An address without name and password."""
    parts = urlsplit(api)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def _is_prefect(answer: httpx.Response) -> bool:
    """Whether an answer is in JSON, as all of Prefect's are; a page is from somebody else."""
    return "json" in answer.headers.get("content-type", "")


def _password() -> tuple[str, str] | None:
    user, colon, password = os.environ.get(_AUTH, "").partition(":")
    return (user, password) if colon else None
