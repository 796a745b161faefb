"""Waits for Prefect's server before a run reports its end: what is computed is in the lake, and needs no server.

EVENHAND_SERVER_PATIENCE is how long, in seconds. A run whose server does not come back in time ends all the same; a
worker mends its state from the lake later (``flows.supervision.zombies``).
"""

import logging
import time

from flows.supervision.processes.leaving import seconds_given
from flows.supervision.processes.server_check import fault_at

PATIENCE = "EVENHAND_SERVER_PATIENCE"
PATIENCE_SECONDS = 900.0
_LOOK_SECONDS = 2.0
log = logging.getLogger("evenhand")


def patience_seconds() -> float:
    """Seconds that a run waits for its server.

    Raises:
        InfrastructureError: EVENHAND_SERVER_PATIENCE is no number of seconds.
    """
    return seconds_given(PATIENCE, PATIENCE_SECONDS)


def await_server() -> bool:
    """Wait until the server answers, as long as patience lasts; whether it does. Without a server at once."""
    from prefect.settings import PREFECT_API_URL

    api = PREFECT_API_URL.value()
    if not api:
        return True
    until, told = time.monotonic() + patience_seconds(), False
    while _may_come(api):
        if time.monotonic() > until:
            log.warning(
                "the server at %s did not answer for %.0f s; a worker mends the run's state", api, patience_seconds()
            )
            return False
        if not told:
            log.warning("the server at %s does not answer; the run is over, and reports when it does", api)
            told = True
        time.sleep(_LOOK_SECONDS)
    return True


def _may_come(api: str) -> bool:
    """Whether a server is away that may come back; one that refuses the password is there, and says so itself."""
    fault = fault_at(api)
    return fault is not None and fault.passing
