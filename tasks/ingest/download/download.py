"""Downloads one file over HTTP, whole and as expected, and resumes an interrupted download.

Scope: retries, and the checks of the whole file. One request: ``transfer``; what is on disk meanwhile: ``partial``.
"""

import errno
import logging
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from schemas.errors import InfrastructureError, IntegrityError, SpecError
from tasks.ingest.download.answers import Interrupted
from tasks.ingest.download.partial import Partial
from tasks.ingest.download.transfer import Tell, transfer
from tasks.lake.local_directory import sha256_of

log = logging.getLogger("evenhand")

_CONNECT_SECONDS, _SILENT_SECONDS = 10.0, 60.0


@dataclass(frozen=True)
class Patience:
    """How long to go on with a server that fails. A try that brought news sets the count of failures back."""

    failures: int = 6
    tries: int = 200
    """At most, even if each one brings some bytes."""
    first_pause: float = 1.0
    longest_pause: float = 60.0
    sleep: Callable[[float], None] = time.sleep
    jitter: random.Random = field(default_factory=random.Random)

    def pause(self, failures: int, at_least: float) -> float:
        """Seconds before the next try: doubled each time, and spread, so that many clients do not return at once.

        What the server asks for counts, up to the longest pause.
        """
        doubled = min(self.longest_pause, self.first_pause * 2.0 ** (failures - 1))
        return max(min(at_least, self.longest_pause), doubled * self.jitter.uniform(0.5, 1.0))


@dataclass(frozen=True)
class Downloaded:
    """A file that came whole."""

    path: Path
    sha256: str
    bytes: int
    modified: str | None
    """Last-Modified, as the server wrote it."""


def download(
    url: str,
    target: Path,
    sha256: str | None = None,
    patience: Patience | None = None,
    tell: Tell = lambda _done, _whole: None,
) -> Downloaded:
    """Fetch ``url`` to ``target``, over what is there.

    What came before a failure stays beside the target as ``NAME.part`` if the server lets a later call resume it. One
    process at a time may fetch to a target.

    Raises:
        SpecError: the address is none, or the server does not take the query.
        InfrastructureError: no network, no such file, a page instead of it, a full disk, or a transfer that keeps
            breaking off.
        IntegrityError: the file has not the digest ``sha256``.
    """
    if not url.startswith(("https://", "http://")):
        raise SpecError(f"{url!r} is no address of a file; it begins with https:// or http://")
    patience = patience or Patience()
    with _disk_errors(target.parent), _client() as client, Partial(target, url) as part:
        if not part.complete:
            _retry(client, url, part, tell, patience)
        if part.size == 0:
            raise InfrastructureError(
                f"{target.name}: the server sent no bytes; open the address in a browser to see why"
            )
        found = sha256_of(part.flush())
        if sha256 not in (None, found):
            part.clear()  # to resume would not mend it
            raise IntegrityError(
                f"{target.name}: sha256 is {found} and not the {sha256} expected; the publisher has another edition "
                "there, or the file was altered on its way"
            )
        part.finish()
        return Downloaded(target, found, part.size, part.remote.modified if part.remote else None)


def _client() -> httpx.Client:
    # a piece of a body that is compressed for the way cannot be asked for
    headers = {"Accept-Encoding": "identity", "User-Agent": "evenhand"}
    timeout = httpx.Timeout(_SILENT_SECONDS, connect=_CONNECT_SECONDS)
    return httpx.Client(follow_redirects=True, timeout=timeout, headers=headers)


def _retry(client: httpx.Client, url: str, part: Partial, tell: Tell, patience: Patience) -> None:
    """Ask until all came, or until the patience is at its end.

    Raises:
        InfrastructureError: it kept breaking off.
    """
    failures, most, why = 0, part.size, ""
    for attempt in range(patience.tries):
        try:
            return transfer(client, url, part, tell, met=attempt > 0)
        except Interrupted as stop:
            failures = 1 if part.size > most else failures + 1
            most, why = max(most, part.size), str(stop)
            if failures >= patience.failures:
                break
            seconds = patience.pause(failures, stop.wait)
            log.warning("%s: %s; trying again in %.0f s", url, why, seconds)
            patience.sleep(seconds)
    of = "" if part.length is None else f" of {part.length:,}"
    then = "run again to go on from there" if part.resumable else "run again to start anew"
    raise InfrastructureError(f"{url}: {why}; {most:,}{of} bytes came. Later, {then}")


@contextmanager
def _disk_errors(folder: Path) -> Iterator[None]:
    """Raise InfrastructureError for what a full or failing disk does."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise InfrastructureError(
                f"the disk of {folder} is full; free some space and run again: what came is kept"
            ) from error
        raise InfrastructureError(f"{folder} could not be written: {error.strerror or error}") from error
