"""With trusted keys no entry counts without the signature of one: forged logs by the commands, and what is refused."""

import hashlib
import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from conftest import SPEC, evenhand
from sealed_run import RUN, run_among_keys

from flows.runs.review import SignOff, sign_off
from flows.runs.signatures import certify, is_certified
from tasks.lake import log
from tasks.lake.log import KEY, TRUSTED, fingerprint, public_key
from tasks.lake.store import Lake

Forgery = Callable[[Lake, Path], None]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Keys, and a lake whose run was published, prepared by Ann and approved by Bob, each with a key of their own."""
    place = tmp_path_factory.mktemp("trusted")
    lake = run_among_keys(place, ("machine", "ann", "bob"), "eve")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(KEY, str(place / "machine"))
        patch.setenv(TRUSTED, str(place / "trusted"))
        certify(lake, RUN)
        sign_off(lake, RUN, SignOff("Ann Lee", "prepared", key=place / "ann"))
        sign_off(lake, RUN, SignOff("Bob Ray", "approved", key=place / "bob"))
    return place


@pytest.fixture
def place(sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy that a forger may write to; the keys are trusted, and no key signs."""
    copied = shutil.copytree(sound, tmp_path / "place")
    monkeypatch.setenv(TRUSTED, str(copied / "trusted"))
    monkeypatch.delenv(KEY, raising=False)
    return copied


@pytest.fixture
def lake(place: Path) -> Lake:
    return Lake(place / "lake")


def command(lake: Lake, *words: str) -> tuple[int, str]:
    """Exit code and words of a command, its lines joined."""
    done = evenhand(*words, "--lake", lake.location)
    return done.returncode, " ".join((done.stdout + done.stderr).split())


def state(lake: Lake) -> str:
    done = evenhand("review", RUN, "--json", "--lake", lake.location)
    assert done.returncode == 0, done.stderr
    return str(json.loads(done.stdout)["state"])


def rewrite(lake: Lake, entries: Sequence[log.Entry], signer: log.Signer | None = None) -> None:
    """Write the log again with a sound chain; signed by a key where one is given, else with the signatures as given."""
    for path in (lake.root / "log").iterdir():
        path.unlink()
    previous = log.FIRST
    for n, given in enumerate(entries, 1):
        entry = given.model_copy(update={"n": n, "previous": previous})
        if signer is not None:
            entry = entry.model_copy(update={"signature": signer.sign("log", entry.content())})
        content = entry.model_dump_json(indent=1, exclude_defaults=True).encode()
        (lake.root / log.path_of(n)).write_bytes(content)
        previous = hashlib.sha256(content).hexdigest()


def changed(lake: Lake, n: int, **fields: object) -> list[log.Entry]:
    return [entry.model_copy(update=fields) if entry.n == n else entry for entry in log.entries(lake)]


def add(lake: Lake, event: log.Event, signing_key: Path | None, **fields: object) -> log.Entry:
    """Add an entry past the rules."""
    return log.append(lake, event, log.signer(signing_key) if signing_key else None, **fields)


def digest_of_run(lake: Lake) -> str:
    return log.entries(lake)[0].manifest_sha256


def without_signatures(lake: Lake, _: Path) -> None:
    rewrite(lake, [entry.model_copy(update={"signature": None}) for entry in log.entries(lake)])


def by_a_stranger(lake: Lake, place: Path) -> None:
    rewrite(lake, log.entries(lake), log.signer(place / "eve"))


def unsigned_publication_among_signed(lake: Lake, _: Path) -> None:
    rewrite(lake, changed(lake, 3, signature=None))


def replayed_for_another_run(lake: Lake, _: Path) -> None:
    rewrite(lake, [*log.entries(lake), log.entries(lake)[2].model_copy(update={"run": "loans-2023-0123456789"})])


def replayed_at_the_end(lake: Lake, _: Path) -> None:
    rewrite(lake, [*log.entries(lake), log.entries(lake)[2]])


def reordered(lake: Lake, _: Path) -> None:
    first, second, third = log.entries(lake)
    rewrite(lake, [first, third, second])


def altered_name(lake: Lake, _: Path) -> None:
    rewrite(lake, changed(lake, 3, by="Cy Ode"))


def altered_time(lake: Lake, _: Path) -> None:
    rewrite(lake, changed(lake, 3, time="2031-01-01T00:00:00Z"))


def altered_note(lake: Lake, _: Path) -> None:
    rewrite(lake, changed(lake, 2, text="seen by the board"))


def key_by_a_stranger(lake: Lake, place: Path) -> None:
    add(lake, "key added", place / "eve", key=fingerprint(public_key(place / "eve.pub")))


def key_without_a_signature(lake: Lake, place: Path) -> None:
    add(lake, "key added", None, key=fingerprint(public_key(place / "eve.pub")))


def retired_by_another_key(lake: Lake, place: Path) -> None:
    add(lake, "key retired", place / "eve", key=fingerprint(public_key(place / "bob.pub")))


def protected_without_a_signature(lake: Lake, _: Path) -> None:
    add(lake, "protected", None, run=RUN, manifest_sha256=digest_of_run(lake))


@pytest.mark.parametrize(
    ("forge", "reason", "left"),
    [
        (without_signatures, "has no signature, and it needs the signature of a trusted key", "unsigned"),
        (by_a_stranger, "which is none of the trusted keys", "unsigned"),
        (unsigned_publication_among_signed, "(approved loans-2024-0123456789 by Bob Ray) has no signature", "prepared"),
        (replayed_for_another_run, "000004.json has a signature that is not of this entry", ""),
        (replayed_at_the_end, "000004.json has a signature that is not of this entry", ""),
        (reordered, "000002.json has a signature that is not of this entry", ""),
        (altered_name, "000003.json has a signature that is not of this entry", ""),
        (altered_time, "000003.json has a signature that is not of this entry", ""),
        (altered_note, "000002.json has a signature that is not of this entry", ""),
        (key_by_a_stranger, "(key added) is signed by", "approved"),
        (key_without_a_signature, "(key added) has no signature", "approved"),
        (retired_by_another_key, "only the key that is retired", "approved"),
        (protected_without_a_signature, "(protected loans-2024-0123456789) has no signature", "approved"),
    ],
)
def test_a_forged_log_fails_and_gives_no_approval(
    lake: Lake, place: Path, forge: Forgery, reason: str, left: str
) -> None:
    """``left`` is the state that the sound entries give; empty where the log cannot be relied on."""
    code, told = command(lake, "log", "verify")
    assert (code, "note:" in told) == (0, False), told
    assert state(lake) == "approved"
    forge(lake, place)
    code, told = command(lake, "log", "verify")
    assert (code, reason in told) == (6, True), told
    if left:
        assert state(lake) == left
    else:
        code, told = command(lake, "review", RUN)
        assert (code, "cannot be relied on, and no state of review is shown" in told) == (6, True)


def test_a_forged_approval_is_named_in_the_review_and_in_the_list(lake: Lake, place: Path) -> None:
    without_signatures(lake, place)
    told = command(lake, "review", RUN)[1]
    assert f"{RUN}: unsigned" in told
    assert (
        f"Does not count: entry 3 of {log.entries(lake)[2].time} (approved {RUN} by Bob Ray) has no signature" in told
    )
    [row] = json.loads(evenhand("review", "--json", "--lake", lake.location).stdout)["runs"]
    assert row["state"] == "unsigned"
    code, told = command(lake, "verify", RUN)
    assert (code, "its entry 1 of the log has no signature" in told) == (6, True)


def test_a_rejection_whose_signature_was_stripped_brings_no_approval_back(lake: Lake, place: Path) -> None:
    code, _ = command(lake, *signing("Ann Lee", "rejected"), "--note", "wrong year", "--key", str(place / "ann"))
    assert (code, state(lake)) == (0, "rejected")
    rewrite(lake, changed(lake, 4, signature=None))
    assert state(lake) == "rejected"
    code, told = command(lake, "log", "verify")
    assert (code, "(rejected loans-2024-0123456789 by Ann Lee) has no signature" in told) == (6, True)


def test_an_end_that_was_cut_off_shows_with_a_head_alone(lake: Lake) -> None:
    head = f"{log.head(lake).n}:{log.head(lake).sha256}"
    (lake.root / log.path_of(3)).unlink()
    code, told = command(lake, "log", "verify")
    assert (code, "a chain cannot show that its end was cut off" in told, state(lake)) == (0, True, "prepared")
    code, told = command(lake, "log", "verify", "--head", head)
    assert (code, "000003.json is missing, and was the head once: the log was cut short" in told) == (6, True)
    for n in (1, 2):
        (lake.root / log.path_of(n)).unlink()
    code, told = command(lake, "log", "verify")
    assert (code, f"{RUN} has no entry in the log" in told) == (6, True)


def test_a_retired_key_signs_nothing_that_counts(lake: Lake, place: Path) -> None:
    log.new_key(place / "next")
    retire = ("keys", "retire", str(place / "bob"), "--by", str(place / "next.pub"))
    assert command(lake, *retire)[0] == 0
    assert (command(lake, "log", "verify")[0], state(lake)) == (0, "approved")
    code, told = command(lake, *signing("Bob Ray", "reviewed"), "--key", str(place / "bob"))
    assert (code, "was retired (entry 4 of the log)" in told) == (2, True)
    add(lake, "signed off", place / "bob", run=RUN, manifest_sha256=digest_of_run(lake), by="Bob", role="reviewed")
    code, told = command(lake, "log", "verify")
    assert (code, "a key that was retired before (entry 4 of" in told) == (6, True)
    assert "Does not count: entry 5" in command(lake, "review", RUN)[1]


def test_a_lost_key_is_retired_by_another_trusted_one(lake: Lake, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log.new_key(place / "next")
    retire = ("keys", "retire", str(place / "bob.pub"), "--by", str(place / "next.pub"))
    code, told = command(lake, *retire)
    assert (code, "no key signs" in told) == (2, True)
    monkeypatch.setenv(KEY, str(place / "ann"))
    assert command(lake, *retire)[0] == 0
    assert (command(lake, "log", "verify")[0], state(lake)) == (0, "approved")
    code, told = command(lake, *signing("Bob Ray", "reviewed"), "--key", str(place / "bob"))
    assert (code, "was retired (entry 4 of the log)" in told) == (2, True)


def test_a_forged_publication_has_no_say_in_which_run_is_the_newest(lake: Lake, place: Path) -> None:
    other = "loans-2024-9876543210"
    assert log.published(lake) == {RUN: 1}
    for key in (None, place / "eve"):
        add(lake, "run published", key, run=other, manifest_sha256="0" * 64)
    add(lake, "key retired", place / "eve", key=fingerprint(public_key(place / "machine.pub")))
    assert log.published(lake) == {RUN: 1}
    assert log.retired(lake) == {}


def signing(name: str, role: str) -> tuple[str, ...]:
    return "signoff", RUN, "--as", name, "--role", role


def prepared_again(lake: Lake, place: Path) -> None:
    """Take the approval back, so that Ann's signature as prepared alone stands."""
    back = command(lake, *signing("Bob Ray", "withdrawn"), "--note", "again", "--key", str(place / "bob"))
    assert (back[0], command(lake, *signing("Ann Lee", "prepared"), "--key", str(place / "ann"))[0]) == (0, 0)


@pytest.mark.parametrize(
    ("name", "key", "reason"),
    [
        ("Bob Ray", None, "EVENHAND_TRUSTED_KEYS is set and no key signs"),
        ("Bob Ray", "eve", "add the public key of"),
        ("Bob Ray", "ann", "was prepared with the same key"),
        ("Ann Lee", "bob", "was prepared by Ann Lee alone"),
    ],
)
def test_an_approval_needs_another_name_and_another_trusted_key(
    lake: Lake, place: Path, name: str, key: str | None, reason: str
) -> None:
    prepared_again(lake, place)
    before = log.head(lake)
    words = (*signing(name, "approved"), *(("--key", str(place / key)) if key else ()))
    code, told = command(lake, *words)
    assert (code, reason in told, log.head(lake)) == (2, True, before), told
    add(
        lake,
        "signed off",
        place / key if key else None,
        run=RUN,
        manifest_sha256=digest_of_run(lake),
        by=name,
        role="approved",
    )
    assert state(lake) == "prepared", "written past the rules"
    assert command(lake, *signing("Bob Ray", "approved"), "--key", str(place / "bob"))[0] == 0
    assert state(lake) == "approved"


def test_one_key_under_two_names_is_told_by_the_log(lake: Lake, place: Path) -> None:
    assert command(lake, *signing("Cy Ode", "reviewed"), "--key", str(place / "ann"))[0] == 0
    key = fingerprint(public_key(place / "ann.pub"))
    code, told = command(lake, "log", "verify")
    assert (code, f"note: the key {key} signed as Ann Lee, Cy Ode: one key stands for one person" in told) == (0, True)


def test_without_trusted_keys_names_are_claims_and_the_commands_say_so(
    lake: Lake, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(TRUSTED)
    prepared_again(lake, place)
    assert command(lake, *signing("Bob Ray", "approved"), "--key", str(place / "ann"))[0] == 0
    told = command(lake, "review", RUN)[1]
    assert "Ann Lee, Bob Ray: signed with a key, and no key is trusted here (EVENHAND_TRUSTED_KEYS)" in told
    assert "Ann Lee and Bob Ray signed with one key" in told
    assert "nothing shows that they are two people" in told
    code, told = command(lake, "report", RUN, "--out", str(place / "out"))
    assert (code, "No key is trusted here: names are claims." in told) == (0, True)
    without_signatures(lake, place)
    code, told = command(lake, "log", "verify")
    assert (code, "a log that was written anew passes too, and names are claims" in told) == (0, True)
    unsigned = "keys", "retire", str(place / "ann"), "--by", str(place / "bob.pub")
    assert command(lake, *unsigned)[0] == 0
    rewrite(lake, changed(lake, log.head(lake).n, signature=None))
    code, told = command(lake, "log", "verify")
    assert (code, "only the key that is retired, or another trusted one" in told) == (6, True)


def test_notes_need_no_key_and_are_counted_as_claims(lake: Lake) -> None:
    assert command(lake, "note", RUN, "ask for the files", "--as", "Cy Ode")[0] == 0
    code, told = command(lake, "log", "verify")
    assert (code, "note: 1 entries (notes, readings" in told, state(lake)) == (0, True, "approved")


@pytest.mark.parametrize(
    "words",
    [
        ("keys", "add", "PLACE/eve.pub"),
        ("keys", "retire", "PLACE/eve", "--by", "PLACE/bob.pub"),
        ("protect", RUN),
        ("protect", RUN, "--off"),
    ],
)
def test_a_command_that_no_trusted_key_signs_is_refused(lake: Lake, place: Path, words: tuple[str, ...]) -> None:
    before = log.head(lake)
    code, told = command(lake, *(word.replace("PLACE", str(place)) for word in words))
    assert (code, TRUSTED in told, log.head(lake)) == (2, True, before), told


def test_an_audit_that_no_trusted_key_signs_ends_before_its_first_stage(
    lake: Lake, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "loans.yaml").write_text(SPEC.replace("path: loans.csv", f"path: {place / 'loans.csv'}"))
    code, told = command(lake, "audit", str(place / "loans.yaml"))
    assert (code, f"Set {KEY} to the file of a trusted private key, or unset {TRUSTED}" in told) == (2, True), told
    monkeypatch.setenv(KEY, str(place / "eve"))
    code, told = command(lake, "audit", str(place / "loans.yaml"))
    assert (code, "this entry of the log would not count" in told) == (2, True)
    assert not list((lake.root / "stages").glob("ingest/*/*.parquet"))


def test_a_run_from_before_the_keys_is_published_again_with_one(
    lake: Lake, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(TRUSTED)
    certify(lake, RUN)
    assert is_certified(lake, RUN)
    old = log.head(lake)
    monkeypatch.setenv(TRUSTED, str(place / "trusted"))
    assert not is_certified(lake, RUN), "so that its audit publishes it"
    assert command(lake, "verify", RUN)[0] == 6
    monkeypatch.setenv(KEY, str(place / "machine"))
    certify(lake, RUN)
    assert (is_certified(lake, RUN), command(lake, "verify", RUN)[0], state(lake)) == (True, 0, "approved")
    code, told = command(lake, "log", "verify")
    assert (code, "Next step:" in told, "--signed-after N:SHA256" in told) == (6, True, True)
    code, told = command(lake, "log", "verify", "--signed-after", f"{old.n}:{old.sha256}")
    assert (code, "1 entries from before your keys have no trusted signature" in told) == (0, True), told
    assert command(lake, "log", "verify", "--signed-after", f"{old.n}:{'0' * 64}")[0] == 6
    code, told = command(lake, "log", "verify", "--signed-after", "4")
    assert (code, "--signed-after '4' is no head" in told) == (2, True)


def test_a_time_that_goes_back_and_does_not_say_so_is_a_fault(lake: Lake, place: Path) -> None:
    first, *others = log.entries(lake)
    late = first.model_copy(update={"time": "2099-01-01T00:00:00Z", "signature": None})
    late = late.model_copy(update={"signature": log.required_signer(place / "machine").sign("log", late.content())})
    rewrite(lake, [late])
    after = add(lake, "note", None, run=RUN, by="Cy Ode", text="after it")
    code, told = command(lake, "log", "verify")
    assert (code, "as it says: the clock of its writer was behind" in told) == (0, True), told
    rewrite(lake, [late, after.model_copy(update={"behind": 0})])
    code, told = command(lake, "log", "verify")
    assert (code, "earlier than the entry before it (2099-01-01T00:00:00Z), and says 0 s: a time is false" in told) == (
        6,
        True,
    ), told
    head = log.head(lake)
    code, told = command(lake, "log", "verify", "--head", f"{head.n}:{head.sha256}")
    assert (code, "and the head that you kept is a later entry" in told) == (0, True), told
    rewrite(lake, [first, after.model_copy(update={"time": first.time, "behind": 5})])
    assert command(lake, "log", "verify")[0] == 6, "it says that it goes back, and does not"
    rewrite(lake, [first.model_copy(update={"time": "2026-13-01T00:00:00Z"}), *others])
    assert "000001.json is no entry of a log" in command(lake, "log", "verify")[1]
    rewrite(lake, [first.model_copy(update={"time": "yesterday"}), *others])
    code, told = command(lake, "log", "verify")
    assert (code, "000001.json is no entry of a log" in told) == (6, True)


@pytest.mark.parametrize(
    ("named", "reason"),
    [
        ("PLACE/nothing.pub", "PLACE/nothing.pub cannot be read: No such file"),
        ("PLACE/empty.pub", "PLACE/empty.pub holds no public Ed25519 key"),
        ("PLACE/folder", "the directory PLACE/folder holds no public key (*.pub)"),
        ("PLACE/trusted:PLACE/nothing.pub", "PLACE/nothing.pub cannot be read"),
        ("PLACE/ann", "PLACE/ann holds no public Ed25519 key"),
        (":", "':' names no file"),
        (" ", "cannot be read"),
    ],
)
@pytest.mark.parametrize("words", [("log", "verify"), ("verify", RUN), ("review", RUN), ("review",), ("protect", RUN)])
def test_trusted_keys_that_name_nothing_are_an_error(
    lake: Lake, place: Path, monkeypatch: pytest.MonkeyPatch, named: str, reason: str, words: tuple[str, ...]
) -> None:
    (place / "empty.pub").touch()
    (place / "folder").mkdir()
    monkeypatch.setenv(TRUSTED, named.replace("PLACE", str(place)))
    code, told = command(lake, *words)
    assert (code, f"{TRUSTED}: " in told, reason.replace("PLACE", str(place)) in told) == (2, True, True), told


def test_a_signing_key_that_is_none_is_named_with_its_variable(
    lake: Lake, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "empty").touch()
    for file, reason in (("nothing", "cannot be read: No such file"), ("empty", "holds no private Ed25519 key")):
        monkeypatch.setenv(KEY, str(place / file))
        code, told = command(lake, "protect", RUN)
        assert (code, f"{KEY}: {place / file} {reason}" in told) == (2, True), told


def test_status_lists_a_run_with_a_forged_approval_as_not_approved(lake: Lake, place: Path) -> None:
    assert "every valid run is approved" in command(lake, "status", "--review")[1]
    without_signatures(lake, place)
    done = evenhand("status", "--review", "--json", "--lake", lake.location)
    assert [(row["run"], row["state"]) for row in json.loads(done.stdout)["review"]["runs"]] == [(RUN, "unsigned")]
