"""Asks a Prefect server with little patience, and says what to mend where no Prefect server answers.

An address may be answered by somebody else: a proxy's page, or the server's own pages where ``/api`` is missing.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from json import JSONDecodeError
from typing import TYPE_CHECKING

from pydantic import ValidationError

from flows.supervision.processes.server_check import (
    GIVE_PASSWORD,
    LOOK_AT_DATABASE,
    NO_PREFECT,
    START,
    WANTS_PASSWORD,
    shown_address,
)
from schemas.errors import InfrastructureError

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient

_OTHER = f"no Prefect server answers there: {NO_PREFECT}"


@contextmanager
def hasty_client(seconds: float, retries: int) -> Iterator["SyncPrefectClient"]:
    """A client of the server of PREFECT_API_URL, which gives up soon.

    Args:
        seconds: that an answer may take.
        retries: after a failed request.

    Raises:
        InfrastructureError: it does not answer, or what answers is no Prefect server.
    """
    from httpx import HTTPError, InvalidURL
    from prefect.client.orchestration import get_client
    from prefect.settings import (
        PREFECT_API_REQUEST_TIMEOUT,
        PREFECT_API_URL,
        PREFECT_CLIENT_MAX_RETRIES,
        temporary_settings,
    )

    api = os.environ.get("PREFECT_API_URL", "")
    hasty = {PREFECT_API_URL: api, PREFECT_API_REQUEST_TIMEOUT: seconds, PREFECT_CLIENT_MAX_RETRIES: retries}
    try:
        with temporary_settings(hasty), get_client(sync_client=True) as client:
            yield client
    except (HTTPError, InvalidURL, JSONDecodeError, ValidationError) as error:
        said, step = finding_of(error)
        raise InfrastructureError(f"the Prefect server at {shown_address(api)} {said}: {step}") from error


def finding_of(error: Exception) -> tuple[str, str]:
    """What an error of Prefect's client says of the server, and the next step."""
    from httpx import HTTPStatusError, codes

    if isinstance(error, JSONDecodeError | ValidationError):
        return "gives no answer of Prefect", _OTHER
    if not isinstance(error, HTTPStatusError):
        return f"does not answer ({type(error).__name__})", START
    code = error.response.status_code
    if code == codes.NOT_FOUND or codes.is_redirect(code):
        return f"answers {code}", _OTHER
    if code in WANTS_PASSWORD:
        return f"refuses the password ({code})", GIVE_PASSWORD
    return f"answers {code}", LOOK_AT_DATABASE
