"""Downloads one file over HTTP, whole and as expected, and resumes an interrupted download.

Here belongs how often to ask and when to give up. One question and its answer is in ``transfer``, what an answer is in
``answers``, what is on disk meanwhile in ``partial``. Nothing has the name of the target before every byte came and
agreed with what was expected.
"""

import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from schemas.errors import InfrastructureError, IntegrityError, SpecError
from tasks.ingest.download.answers import Interrupted
from tasks.ingest.download.partial import Partial
from tasks.ingest.download.transfer import Tell, Transfer, disk_errors

log = logging.getLogger("evenhand")


@dataclass(frozen=True)
class Expected:
    """What is known of a file beforehand."""

    sha256: str | None = None
    bytes: int | None = None


@dataclass(frozen=True)
class Patience:
    """How long to go on with a server that fails. A try that brought news sets the count of failures back."""

    failures: int = 6
    tries: int = 200
    """At most, even if each one brings some bytes."""
    first_pause: float = 1.0
    longest_pause: float = 60.0
    connect_seconds: float = 10.0
    silent_seconds: float = 60.0
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


ANYTHING = Expected()


def download(
    url: str,
    target: Path,
    expected: Expected = ANYTHING,
    patience: Patience | None = None,
    tell: Tell = lambda _done, _whole: None,
) -> Downloaded:
    """Fetch ``url`` to ``target``, over what is there.

    What came before a failure stays beside the target as ``NAME.part``, where the server lets a later call go on with
    it. One process at a time may fetch to a target.

    Raises:
        SpecError: the address is none, or the server does not take the query.
        InfrastructureError: no network, no such file, a page instead of it, a full disk, or a transfer that keeps
            breaking off.
        IntegrityError: the file is not of the expected length or digest.
    """
    if not url.startswith(("https://", "http://")):
        raise SpecError(f"{url!r} is no address of a file; it begins with https:// or http://")
    patience = patience or Patience()
    with disk_errors(target.parent), _client(patience) as client, Partial(target, url) as part:
        if not part.complete:
            _persist(Transfer(client, url, part, expected.bytes, tell), patience)
        _agree(part, expected)
        part.finish()
        return Downloaded(target, part.sha256(), part.size, part.whole.modified if part.whole else None)


def _client(patience: Patience) -> httpx.Client:
    # a piece of a body that is compressed for the way cannot be asked for
    headers = {"Accept-Encoding": "identity", "User-Agent": "evenhand"}
    timeout = httpx.Timeout(patience.silent_seconds, connect=patience.connect_seconds)
    return httpx.Client(follow_redirects=True, timeout=timeout, headers=headers)


def _persist(transfer: Transfer, patience: Patience) -> None:
    """Ask until all came, or until asking is of no use any more.

    Raises:
        InfrastructureError: it kept breaking off.
    """
    failures, most, why = 0, transfer.part.size, ""
    for _ in range(patience.tries):
        try:
            return transfer.step()
        except Interrupted as stop:
            failures = 1 if transfer.part.size > most else failures + 1
            most, why = max(most, transfer.part.size), str(stop)
            if failures >= patience.failures:
                break
            seconds = patience.pause(failures, stop.wait)
            log.warning("%s: %s; trying again in %.0f s", transfer.url, why, seconds)
            patience.sleep(seconds)
    raise _gave_up(transfer, why, most)


def _gave_up(transfer: Transfer, why: str, most: int) -> InfrastructureError:
    of = "" if transfer.length is None else f" of {transfer.length:,}"
    then = "run again to go on from there" if transfer.part.kept else "run again to start anew"
    return InfrastructureError(f"{transfer.url}: {why}; {most:,}{of} bytes came. Later, {then}")


def _agree(part: Partial, expected: Expected) -> None:
    """Refuse a file that is not the one expected; nothing of it is kept, for going on would not mend it.

    Raises:
        InfrastructureError: it is empty.
        IntegrityError: it has another length or digest.
    """
    found = Expected(part.sha256(), part.size)
    for name in ("bytes", "sha256"):
        wanted, got = getattr(expected, name), getattr(found, name)
        if wanted is not None and wanted != got:
            part.clear()
            raise IntegrityError(
                f"{part.path.name}: {name} is {got} and not the {wanted} expected; the publisher has another edition "
                "there, or the file was altered on its way"
            )
    if part.size == 0:
        raise InfrastructureError(
            f"{part.path.name}: the server sent no bytes; open the address in a browser to see why"
        )
