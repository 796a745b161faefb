"""Random forgeries of a log by somebody who can write to the lake and has a retired key and one of no trust."""

import hashlib
import os
import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from sealed_run import RUN, run_among_keys

from flows.runs.review import Note, SignOff, note, sign_off
from flows.runs.signatures import certify, check_log, protect, retire_key
from schemas.errors import IntegrityError
from tasks.lake import log
from tasks.lake.log import KEY, TRUSTED, Entry
from tasks.lake.store import Lake

QUICK, MANY = 40, 1_000
Draw = random.Random
Forgery = Callable[[list[Entry], Draw, Path], list[Entry]]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Keys, and a log of nine entries: the last but two retires a key that signed some before."""
    place = tmp_path_factory.mktemp("forged")
    lake = run_among_keys(place, ("machine", "ann", "bob", "old"), "eve")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(KEY, str(place / "machine"))
        patch.setenv(TRUSTED, str(place / "trusted"))
        certify(lake, RUN)
        sign_off(lake, RUN, SignOff("Cy Ode", "reviewed", key=place / "old"))
        sign_off(lake, RUN, SignOff("Ann Lee", "prepared", key=place / "ann"))
        note(lake, RUN, Note("Ann Lee", "seen", place / "ann"))
        sign_off(lake, RUN, SignOff("Bob Ray", "approved", key=place / "bob"))
        protect(lake, RUN, True)
        retire_key(lake, place / "old", place / "ann.pub")
        log.append(lake, "released", log.signer(), run=RUN)
        note(lake, RUN, Note("Bob Ray", "sent", place / "bob"))
    return place


def _chained(entries: Sequence[Entry], signer: log.Signer | None = None, of: Sequence[int] = ()) -> list[Entry]:
    """Entries with a sound chain; those at some places are signed again."""
    previous, out = log.FIRST, []
    for n, entry in enumerate(entries, 1):
        chained = entry.model_copy(update={"n": n, "previous": previous})
        if signer is not None and n - 1 in of:
            chained = chained.model_copy(update={"signature": signer.sign("log", chained.content())})
        out.append(chained)
        previous = hashlib.sha256(_bytes(chained)).hexdigest()
    return out


def _bytes(entry: Entry) -> bytes:
    return entry.model_dump_json(indent=1, exclude_defaults=True).encode()


def strip(entries: list[Entry], draw: Draw, _: Path) -> list[Entry]:
    at = draw.randrange(len(entries))
    return _chained([e.model_copy(update={"signature": None}) if i >= at else e for i, e in enumerate(entries)])


def reorder(entries: list[Entry], draw: Draw, _: Path) -> list[Entry]:
    first, second = draw.sample(range(len(entries)), 2)
    entries[first], entries[second] = entries[second], entries[first]
    return _chained(entries)


def fork(entries: list[Entry], draw: Draw, place: Path) -> list[Entry]:
    """Another end from some entry on, by a stranger."""
    at = draw.randrange(1, len(entries))
    other = draw.choice(entries).model_copy(update={"text": f"other {draw.random()}"})
    ended = [*entries[:at], *[other] * draw.randint(1, 3)]
    return _chained(ended, log.signer(place / "eve"), range(at, len(ended)))


def cut(entries: list[Entry], draw: Draw, _: Path) -> list[Entry]:
    at = draw.randrange(len(entries))
    return _chained(entries[:at] if draw.random() < 0.5 else [*entries[:at], *entries[at + 1 :]])


def date_again(entries: list[Entry], draw: Draw, _: Path) -> list[Entry]:
    at = draw.randrange(len(entries))
    time = f"20{draw.randint(20, 40)}-01-0{draw.randint(1, 9)}T00:00:00Z"
    entries[at] = entries[at].model_copy(update={"time": time})
    return _chained(entries)


def by_a_retired_key(entries: list[Entry], draw: Draw, place: Path) -> list[Entry]:
    """An entry more after the retirement, or one before it that is signed again."""
    at = draw.randrange(len(entries))
    added = [*entries, entries[at].model_copy(update={"by": "Cy Ode"})]
    of = [len(entries)] if draw.random() < 0.5 else [*range(at, len(added))]
    return _chained(added, log.signer(place / "old"), of)


def edit(entries: list[Entry], draw: Draw, place: Path) -> list[Entry]:
    at = draw.randrange(len(entries))
    field = draw.choice(["by", "role", "text", "run", "manifest_sha256"])
    entries[at] = entries[at].model_copy(update={field: f"{draw.random()}"})
    return _chained(entries, log.signer(place / "eve"), [at])


FORGERIES: tuple[Forgery, ...] = (strip, reorder, fork, cut, date_again, by_a_retired_key, edit)


def told(place: Path, number: int, lake: Lake, head: str) -> str:
    """What the check says of a forgery with a head that was kept; empty of one that it does not see."""
    draw, forge = random.Random(number), FORGERIES[number % len(FORGERIES)]
    before = [Entry.model_validate_json(path.read_bytes()) for path in sorted((place / "lake/log").iterdir())]
    entries = forge(list(before), draw, place)
    if [*map(_bytes, entries)] == [*map(_bytes, before)]:
        return "the same log"
    shutil.rmtree(lake.root / "log")
    (lake.root / "log").mkdir()
    for entry in entries:
        (lake.root / log.path_of(entry.n)).write_bytes(_bytes(entry))
    try:
        check_log(lake, head)
    except IntegrityError as error:
        return str(error)
    return ""


def _check(place: Path, tmp_path: Path, numbers: range) -> None:
    lake = Lake(shutil.copytree(place / "lake", tmp_path / "lake"))
    head = log.head(lake)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(TRUSTED, str(place / "trusted"))
        check_log(lake, f"{head.n}:{head.sha256}")
        unseen = [number for number in numbers if not told(place, number, lake, f"{head.n}:{head.sha256}")]
    assert [(number, FORGERIES[number % len(FORGERIES)].__name__) for number in unseen] == []


def test_forty_random_forgeries_are_named(sound: Path, tmp_path: Path) -> None:
    _check(sound, tmp_path, range(QUICK))


@pytest.mark.slow
@pytest.mark.long
def test_a_thousand_random_forgeries_are_named(sound: Path, tmp_path: Path) -> None:
    _check(sound, tmp_path, range(MANY))


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_a_link_or_a_pipe_in_the_log_is_named(sound: Path, tmp_path: Path, kind: str) -> None:
    lake = Lake(shutil.copytree(sound / "lake", tmp_path / "lake"))
    path = lake.root / log.path_of(4)
    if kind == "link":
        path.rename(tmp_path / "elsewhere")
        path.symlink_to(tmp_path / "elsewhere")
    else:
        os.mkfifo(lake.root / "log/000099.json")
    with pytest.raises(IntegrityError, match="is a link, a pipe or a device"):
        check_log(lake)
