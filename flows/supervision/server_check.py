"""Asks Prefect's server whether it is ready, in words that say what to do, before a run ends in Prefect's own words.

`/api/ready` asks the database; `/api/health` answers always. A password in the address is in no message.
"""

import os
import time
from typing import Final
from urllib.parse import urlsplit

import httpx

from schemas.errors import InfrastructureError

_ANSWER_SECONDS: Final = 10
_TRIES: Final = 4
_PAUSE_SECONDS: Final = 1.0
"""Between two tries: a server that is started again answers within seconds."""
_AUTH: Final = "PREFECT_API_AUTH_STRING"
_WANTS_PASSWORD: Final = (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN)


def require_server(api: str) -> None:
    """Return if the server at ``api`` is ready, or is Prefect Cloud, which does not say so.

    Raises:
        InfrastructureError: nothing answers there, or something that is no Prefect server, or one without its database.
    """
    if os.environ.get("PREFECT_API_KEY"):
        return
    why = why_not_ready(api)
    for _ in range(_TRIES - 1):
        if not why:
            return
        time.sleep(_PAUSE_SECONDS)
        why = why_not_ready(api)
    if why:
        raise InfrastructureError(f"{why}; without PREFECT_API_URL a command starts a server of its own")


def why_not_ready(api: str) -> str:
    """Why runs cannot go to the server at ``api``, with the next step; empty if they can."""
    shown = shown_address(api)
    try:
        answer = httpx.get(f"{api.rstrip('/')}/ready", timeout=_ANSWER_SECONDS, auth=_password())
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return f"no server answers at PREFECT_API_URL={shown} ({type(error).__name__}): start it, or mend the address"
    if answer.status_code in _WANTS_PASSWORD:
        return f"the server at {shown} refuses the password: set {_AUTH} to evenhand:PASSWORD"
    if answer.status_code == httpx.codes.NOT_FOUND or not _is_prefect(answer):
        return f"what answers at PREFECT_API_URL={shown} is no Prefect server: its address ends with /api"
    if not answer.is_success:
        return f"the server at {shown} is not ready ({answer.status_code}): look whether its database is full, or away"
    return ""


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
