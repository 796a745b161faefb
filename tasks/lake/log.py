"""The log of a lake: signatures, and chained entries."""

import gc
import hashlib
import json
import math
import os
import shlex
import stat
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path, PurePath
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic_core import from_json, to_json

from schemas.errors import InfrastructureError, IntegrityError, SpecError
from tasks.lake.storage import cores, mapping_of
from tasks.lake.store import Lake

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


# --------------------------------------------------------------------------------------------------------------------
# Signatures of manifests and of entries of the log: Ed25519, by a key file or by a command that holds the key.
#
# What is signed is short: a line that names its kind, and the sha256 of canonical JSON in hexadecimal, so that any
# secret manager takes it. EVENHAND_SIGNING_KEY names a private key (PEM). EVENHAND_SIGNING_COMMAND names a command
# instead, which gets the signed bytes on its input and writes the 64 bytes of the signature; EVENHAND_SIGNING_PUBLIC is
# then the file of its public key. Trusted keys: EVENHAND_TRUSTED_KEYS, files of public keys or directories of them. The
# library that signs is loaded by commands that sign or check: most commands do neither.


KEY, COMMAND, PUBLIC, TRUSTED = (
    "EVENHAND_SIGNING_KEY",
    "EVENHAND_SIGNING_COMMAND",
    "EVENHAND_SIGNING_PUBLIC",
    "EVENHAND_TRUSTED_KEYS",
)
Kind = Literal["manifest", "log", "release"]
_SECONDS: Final = 60
"""Patience with a command that signs."""
MANY: Final = 10_000
"""Signatures for each process that checks a share of them: it loads as long as a tenth of them take."""
_LONGEST_KEY: Final = 64_000
"""Bytes that are read of a file that is said to be a key."""


class Signature(BaseModel):
    """A signature, and the public key that it holds for; whether that key is trusted is another question."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: str = Field(pattern=r"^[0-9a-f]{16}$")
    """Fingerprint of the public key: the first 16 hexadecimal digits of its sha256."""
    public_key: str = Field(pattern=r"^[0-9a-f]{64}$")
    signature: str = Field(pattern=r"^[0-9a-f]{128}$")


@dataclass(frozen=True)
class Signer:
    """Who signs: a public key, and what makes the 64 bytes of a signature."""

    public: bytes
    """32 bytes."""
    raw: Callable[[bytes], bytes]

    def sign(self, kind: Kind, content: Mapping[str, Any]) -> Signature:
        """Sign the canonical JSON of a mapping.

        Raises:
            InfrastructureError: the command failed, or what it wrote is no signature of its public key.
        """
        message = signed_bytes(kind, content)
        signature = Signature(
            key=fingerprint(self.public),
            public_key=self.public.hex(),
            signature=self.raw(message).hex().ljust(128, "0"),
        )
        if not holds(signature, kind, content):
            raise InfrastructureError(
                f"signing gave no signature that its public key {signature.key} accepts; look at {COMMAND} and {PUBLIC}"
            )
        return signature


_ENCODER: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def canonical(content: Mapping[str, Any]) -> bytes:
    """JSON with sorted keys, no spaces, in UTF-8 and without NaN: the same bytes for the same content."""
    return _ENCODER.encode(content).encode()


def digest_of(content: Mapping[str, Any]) -> str:
    """Hexadecimal sha256 of canonical JSON."""
    return hashlib.sha256(canonical(content)).hexdigest()


def signed_bytes(kind: Kind, content: Mapping[str, Any]) -> bytes:
    """The bytes that a signature is of, at most 85."""
    return f"evenhand-{kind}-v1\n{digest_of(content)}".encode()


@lru_cache(maxsize=64)
def fingerprint(public: bytes) -> str:
    """The first 16 hexadecimal digits of the sha256 of a public key's 32 bytes."""
    return hashlib.sha256(public).hexdigest()[:16]


class _Check(NamedTuple):
    """A signature with its key and its message, in bytes."""

    public: bytes
    """Of its key; empty if the key bears another name than the signature says."""
    signature: bytes
    message: bytes

    @property
    def holds(self) -> bool:
        """Whether it is of that."""
        return bool(self.public) and _verified(*self)


def _check(signature: Signature, message: bytes) -> _Check:
    public = bytes.fromhex(signature.public_key)
    is_named = fingerprint(public) == signature.key
    return _Check(public if is_named else b"", bytes.fromhex(signature.signature), message)


def holds(signature: Signature, kind: Kind, content: Mapping[str, Any]) -> bool:
    """Whether a signature is of this content, by the key that it names; and that key bears the name."""
    return _check(signature, signed_bytes(kind, content)).holds


def new_key(path: Path) -> str:
    """Write a private key, readable only by its owner, and the public key ``PATH.pub``. Returns the fingerprint.

    Raises:
        SpecError: one of the two files is there already; a key is never overwritten.
        InfrastructureError: they cannot be written.
    """
    public = path.with_name(f"{path.name}.pub")
    for file in (path, public):
        if file.exists():
            raise SpecError(f"{file} exists already, and a key is never overwritten; give another name")
    private_pem, public_pem, raw = _new_pair()
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as opened:
            opened.write(private_pem)
        public.write_bytes(public_pem)
        public.chmod(0o644)
    except OSError as error:
        raise InfrastructureError(f"{path} cannot be written: {error.strerror or error}") from error
    return fingerprint(raw)


def signer(key: Path | None = None) -> Signer | None:
    """Who signs: the key file that is given, else what the environment names; None where nothing is set up.

    Raises:
        SpecError: the file holds no private key, or a command is named without the file of its public key.
    """
    if key is not None:
        return required_signer(key)
    if environment_key := os.environ.get(KEY, ""):
        with _naming(KEY):
            return required_signer(Path(environment_key))
    command = os.environ.get(COMMAND, "")
    if not command:
        return None
    public = os.environ.get(PUBLIC, "")
    if not public:
        raise SpecError(f"{COMMAND} is set without {PUBLIC}, the file of its public key")
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise SpecError(f"{COMMAND} is no command: {error}; close its quotes, as in a shell") from error
    with _naming(PUBLIC):
        return Signer(public_key(Path(public)), lambda message: _by_command(words, message))


def public_key(path: Path) -> bytes:
    """The 32 bytes of a public key's file.

    Raises:
        SpecError: it holds none.
    """
    try:
        return _public_of(_read(path))
    except ValueError as error:
        raise SpecError(
            f"{path} holds no public Ed25519 key in PEM; `evenhand keys new` writes one as PATH.pub"
        ) from error


def trusted(key_file: Path | None = None) -> frozenset[str]:
    """Fingerprints of the trusted keys: the key of a file, or the keys that EVENHAND_TRUSTED_KEYS names.

    The result is empty only where no file is given and the variable is not set or empty. A variable that names nothing
    readable is an error: an audit would otherwise go on as if nobody had asked for trust.

    Raises:
        SpecError: a file holds no public key, a directory has none, or the variable names neither.
    """
    if key_file is not None:
        return frozenset({fingerprint(public_key(key_file))})
    named = os.environ.get(TRUSTED, "")
    if not named:
        return frozenset()
    with _naming(TRUSTED):
        keys = {fingerprint(public_key(file)) for part in named.split(os.pathsep) if part for file in _key_files(part)}
        if not keys:
            raise SpecError(f"{named!r} names no file; give files of public keys, or unset it to trust no key")
    return frozenset(keys)


@contextmanager
def _naming(variable: str) -> Iterator[None]:
    """Begin the message of an error with the environment variable that named the file."""
    try:
        yield
    except SpecError as error:
        raise SpecError(f"{variable}: {error}") from error


def _key_files(named: str) -> list[Path]:
    """The file of a public key, or all such files of a directory."""
    if not os.path.isdir(named):  # noqa: PTH112 long names
        return [Path(named)]
    files = sorted(Path(named).glob("*.pub"))
    if not files:
        raise SpecError(f"the directory {named} holds no public key (*.pub); put one there, or name its file")
    return files


def required_signer(path: Path) -> Signer:
    """Who signs with a key file.

    Raises:
        SpecError: it holds no private key.
    """
    try:
        return Signer(*_private_of(_read(path)))
    except ValueError as error:
        raise SpecError(
            f"{path} holds no private Ed25519 key in PEM without a password; `evenhand keys new` makes one"
        ) from error


def _by_command(words: list[str], message: bytes) -> bytes:
    try:
        done = subprocess.run(words, input=message, capture_output=True, timeout=_SECONDS, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InfrastructureError(f"{COMMAND} could not sign: {error}") from error
    if done.returncode or len(done.stdout) != 64:
        raise InfrastructureError(
            f"{COMMAND} ended with {done.returncode} and wrote {len(done.stdout)} bytes; 64 bytes of a signature are "
            "expected"
        )
    return done.stdout


def _read(path: Path) -> bytes:
    """The bytes of a key's file: a pipe would block, and a device has no end."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise SpecError(f"{path} cannot be read: it is not a file; give the path of a regular file")
        with path.open("rb") as file:
            return file.read(_LONGEST_KEY)
    except OSError as error:
        raise SpecError(f"{path} cannot be read: {error.strerror or error}") from error


def _new_pair() -> tuple[bytes, bytes, bytes]:
    """A new key: private and public in PEM, and the 32 bytes of the public one."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    public = key.public_key()
    return private, public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo), _raw(public)


def _private_of(pem: bytes) -> tuple[bytes, Callable[[bytes], bytes]]:
    """The 32 public bytes of a private key in PEM, and what signs with it.

    Raises:
        ValueError: it is no Ed25519 key, or one with a password.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(pem, None)
    except (TypeError, UnsupportedAlgorithm) as error:
        raise ValueError(str(error)) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise ValueError("a key of another kind")
    return _raw(key.public_key()), key.sign


def _public_of(pem: bytes) -> bytes:
    """The 32 bytes of a public key in PEM.

    Raises:
        ValueError: it is no Ed25519 key.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(pem)
    except UnsupportedAlgorithm as error:
        raise ValueError(str(error)) from error
    if not isinstance(key, Ed25519PublicKey):
        raise ValueError("a key of another kind")
    return _raw(key)


@lru_cache(maxsize=2**18)
def _verified(public: bytes, signature: bytes, message: bytes) -> bool:
    """Whether 64 bytes are a valid signature of the message."""
    key, invalid = _verifier(public)
    try:
        key.verify(signature, message)
    except invalid:
        return False
    return True


@lru_cache(maxsize=64)
def _verifier(public: bytes) -> "tuple[Ed25519PublicKey, type[Exception]]":
    """What checks signatures of a key, and its error for a wrong one; kept, as a log has many."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    return Ed25519PublicKey.from_public_bytes(public), InvalidSignature


def _raw(key: "Ed25519PublicKey") -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return key.public_bytes(Encoding.Raw, PublicFormat.Raw)


# --------------------------------------------------------------------------------------------------------------------
# The log of a lake: one small file an entry, ``log/000001.json`` and on, each with the digest of the one before.
#
# An entry is written whole under another name and then linked to the next number, which fails where somebody else took
# it; who comes second reads the new head, and makes and signs the entry anew. Nothing is ever changed or removed here.
# A chain shows what was altered or taken out of its middle; that its end was cut off is shown only by a head that
# somebody kept elsewhere (``evenhand log head``).


Event = Literal[
    "run published",
    "report made",
    "note",
    "signed off",
    "read",
    "remediation",
    "protected",
    "unprotected",
    "released",
    "removed",
    "key added",
    "key retired",
]
FIRST: Final = "0" * 64
"""What stands before the first entry."""
MOST_TEXT: Final = 4000
BEFORE_THE_LOG: Final = "in the lake before its log began"


class Entry(BaseModel):
    """One entry."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    n: int = Field(ge=1)
    time: str = Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
    """By the clock of the machine that wrote it, in UTC; times of this form are in the order of their text."""
    behind: int = Field(0, ge=0)
    """Seconds that this clock was behind the time of the entry before it, as its writer saw."""
    event: Event
    run: str = ""
    manifest_sha256: str = ""
    """Of the canonical JSON of the run's manifest."""
    by: str = ""
    """As somebody said it; a signature tells whose key it was."""
    role: str = ""
    text: str = Field("", max_length=MOST_TEXT)
    key: str = ""
    """Of an event of keys: its fingerprint; of one that was retired, with ``successor`` beside it."""
    successor: str = ""
    files: dict[str, str] = Field(default_factory=dict)
    """Of a report that was made later: name -> sha256."""
    owner: str = ""
    """Of a remediation: who has to see to it."""
    due: str = ""
    """Of a remediation: the last day, such as 2027-01-31."""
    closes: int = Field(0, ge=0)
    """Of a remediation that is done: the number of the entry that opened it."""
    previous: str = Field(pattern=r"^[0-9a-f]{64}$")
    """sha256 of the bytes of the entry before."""
    signature: Signature | None = None

    def content(self) -> dict[str, Any]:
        """What is signed: all but the signature."""
        return self.model_dump(mode="json", exclude={"signature"}, exclude_defaults=True)

    @field_validator("time")
    @classmethod
    def _is_a_time(cls, time: str) -> str:
        datetime.fromisoformat(time)
        return time

    def behind_of(self, before: "Entry") -> int:
        """Seconds that its time is behind that of the entry before it; 0 where it is not."""
        if self.time >= before.time:
            return 0
        difference = datetime.fromisoformat(before.time) - datetime.fromisoformat(self.time)
        return int(difference.total_seconds())

    def words(self) -> str:
        """The entry by its number and time, for messages."""
        return f"entry {self.n} of {self.time}"


class Head(BaseModel):
    """The last entry: its number, and the sha256 of its bytes. Of an empty log 0 and zeros."""

    model_config = ConfigDict(frozen=True)

    n: int
    sha256: str


def path_of(n: int) -> str:
    """Where an entry lies in the lake."""
    return f"log/{n:06d}.json"


def head(lake: Lake) -> Head:
    """The head of the log.

    Raises:
        IntegrityError: its last file is no entry.
    """
    return _last(lake)[0]


def _last(lake: Lake) -> tuple[Head, Entry | None]:
    """The head of the log, and its entry; None of an empty log."""
    numbers = _numbers(lake)
    if not numbers:
        return Head(n=0, sha256=FIRST), None
    content = _content(lake, numbers[-1])
    entry = _read_log(lake, numbers[-1], content)
    return Head(n=numbers[-1], sha256=hashlib.sha256(content).hexdigest()), entry


def last_number(lake: Lake) -> int:
    """The number of the last entry, unread; 0 of an empty log."""
    numbers = _numbers(lake)
    return numbers[-1] if numbers else 0


def append(lake: Lake, event: Event, signer: Signer | None = None, **fields: Any) -> Entry:
    """Append an entry. Concurrent writers get different entry numbers.

    Before the first one go the runs that are in the lake already, of a version that kept no log.

    Args:
        lake: whose log.
        event: what happened.
        signer: who signs it, if anybody.
        fields: fields of ``Entry``, such as ``run``, ``by`` and ``text``.

    Raises:
        IntegrityError: the last file of the log is no entry.
        InfrastructureError: the lake cannot be written, or the signing failed.
    """
    if not _numbers(lake):
        but = fields.get("run", "") if event == "run published" else ""
        for path in lake.storage.glob("runs/*/manifest.json"):
            run = path.split("/")[1]
            try:
                manifest = mapping_of(lake.storage.read(path))
                digest = digest_of({name: value for name, value in manifest.items() if name != "sha256"})
            except ValueError:  # `evenhand verify` tells of it
                continue
            if run != but:
                adopt_fields = {"run": run, "manifest_sha256": digest, "text": BEFORE_THE_LOG}
                _append(lake, "run published", signer, adopt_fields)
    return _append(lake, event, signer, fields)


def _append(lake: Lake, event: Event, signer: Signer | None, fields: Mapping[str, Any]) -> Entry:
    while True:
        before, last = _last(lake)
        time = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        entry = Entry(n=before.n + 1, time=time, event=event, previous=before.sha256, **fields)
        if last is not None and entry.time < last.time:
            entry = entry.model_copy(update={"behind": entry.behind_of(last)})
        if signer is not None:
            entry = entry.model_copy(update={"signature": signer.sign("log", entry.content())})
        if lake.add_file(path_of(entry.n), entry.model_dump_json(indent=1, exclude_defaults=True).encode()):
            return entry


def entries(lake: Lake, run: str | None = None) -> list[Entry]:
    """All entries, or those about a run, in their order.

    Raises:
        IntegrityError: a file is no entry.
    """
    log_entries = [_read_log(lake, n, _content(lake, n)) for n in _numbers(lake)]
    return [entry for entry in log_entries if run in (None, entry.run)]


def published(lake: Lake) -> dict[str, int]:
    """Run -> number of the last log entry of its publication: the order of runs, independent of clocks.

    A run that was there before the log has none, as its entry says nothing of when it was published. Where keys are
    trusted, an entry without the signature of one has no say in the order. Entries never change, so that each is read
    once by a process. One that cannot be read is told by who verifies.
    """
    return {fact.published: n for n, fact in sorted(_facts(lake).items()) if fact.published}


def released(lake: Lake) -> dict[str, int]:
    """Run -> number of the first log entry of its release, signed or not: what left the house stays out."""
    return {fact.released: n for n, fact in sorted(_facts(lake).items(), reverse=True) if fact.released}


def retired(lake: Lake) -> dict[str, int]:
    """Fingerprint of each retired key -> number of the entry that retired it, signed by that key or a trusted one."""
    return {fact.retired: n for n, fact in sorted(_facts(lake).items(), reverse=True) if fact.retired}


class _Fact(NamedTuple):
    """What an entry changes; empty where it changes nothing."""

    published: str = ""
    """The run that it publishes."""
    released: str = ""
    """The run that it releases."""
    retired: str = ""
    """The key that it retires."""


def _facts(lake: Lake) -> dict[int, _Fact]:
    """Number of each entry -> what it changes."""
    keys = trusted()
    facts = _read_once.setdefault((lake.location, keys), {})
    gone = {fact.retired for fact in facts.values() if fact.retired}
    for n in _numbers(lake):
        if n not in facts:
            content = _fields(_content(lake, n))
            event, run = content.get("event"), str(content.get("run") or "")
            facts[n] = _Fact(released=run if event == "released" else "")
            if event in ("run published", "key retired") and content.get("text") != BEFORE_THE_LOG:
                facts[n] = _fact(content, keys, gone)
                gone |= {facts[n].retired} - {""}
    return facts


def _fact(content: Mapping[str, Any], keys: frozenset[str], gone: Collection[str]) -> _Fact:
    """What an entry about a run or a key changes, if it counts; ``gone`` are keys that were retired before it."""
    with suppress(ValidationError):
        entry = Entry.model_validate(content)
        signed = entry.signature is not None and holds(entry.signature, "log", entry.content())
        key = entry.signature.key if entry.signature is not None and signed else ""
        if entry.event == "key retired":
            return _Fact(retired=entry.key if key and key not in gone and (key == entry.key or key in keys) else "")
        return _Fact(published=entry.run if not keys or (key in keys and key not in gone) else "")
    return _Fact()


_read_once: dict[tuple[str, frozenset[str]], dict[int, _Fact]] = {}
"""Of each lake and set of trusted keys what ``_facts`` found in its entries."""


def entry_of(lake: Lake, n: int) -> Entry | None:
    """The entry of a number; None where there is none.

    Raises:
        IntegrityError: the file is no entry.
    """
    content = lake.storage.read(path_of(n))
    return None if content is None else _read_log(lake, n, content)


def digest_at(lake: Lake, n: int) -> str:
    """The sha256 of the bytes of an entry: with its number an anchor, as the head is."""
    return hashlib.sha256(_content(lake, n)).hexdigest()


def problems(lake: Lake) -> Iterator[str]:
    """What is wrong with the chain, the first that does not fit first; nothing of a sound one."""
    problem = read_whole(lake)[1]
    if problem:
        yield problem


def read_whole(lake: Lake) -> tuple[list[Entry], str]:
    """All entries, and what is wrong with the chain: each file is read, and each signature checked, once.

    Returns:
        The entries up to the first one that does not fit, and why it does not; empty of a sound chain.
    """
    was_enabled = gc.isenabled()
    gc.disable()  # many entries are kept, and the collector would look through all of them again and again
    try:
        return _read_whole(lake)
    finally:
        if was_enabled:
            gc.enable()


def _read_whole(lake: Lake) -> tuple[list[Entry], str]:
    out, checks, broken = _chained(lake)
    signed = [entry for entry in out if entry.signature is not None]
    for place in _invalid(checks):
        entry = signed[place]
        # As written, the file has the signed keys alone; else those of the entry count.
        if entry.signature is None or not holds(entry.signature, "log", entry.content()):
            where = lake.storage.where(path_of(entry.n))
            return out[: entry.n - 1], f"{where} has a signature that is not of this entry"
    return out, broken


def _chained(lake: Lake) -> tuple[list[Entry], list[_Check], str]:
    """Entries that follow each other, the check of each one that is signed, and why the next does not follow."""
    before, out, checks = FIRST, list[Entry](), list[_Check]()
    for name in lake.odd("log"):
        file = PurePath(name)
        if file.name != "log" and not (file.suffix == ".json" and file.stem.isdecimal()):
            continue  # no file that is read
        return out, checks, f"{name} is a link, a pipe or a device, and no file of the log"
    for place, n in enumerate(_numbers(lake), 1):
        if n != place:
            return out, checks, f"{lake.storage.where(path_of(place))} is missing: the log was cut in its middle"
        content = _content(lake, n)
        fields = _fields(content)
        try:
            entry = _entry(lake, n, fields)
        except IntegrityError as error:
            return out, checks, str(error)
        if entry.previous != before:
            where = lake.storage.where(path_of(n))
            return out, checks, f"{where} does not follow the entry before it: one of the two was altered"
        fields.pop("signature", None)
        if entry.signature is not None:
            checks.append(_check(entry.signature, _signed_as_read(fields)))
        out.append(entry)
        before = hashlib.sha256(content).hexdigest()
    return out, checks, ""


def _signed_as_read(fields: Mapping[str, Any]) -> bytes:
    """``signed_bytes`` of the keys of a file, by an encoder that takes a fifth of the time and sorts nothing."""
    ordered = {key: dict(sorted(v.items())) if isinstance(v, dict) else v for key, v in sorted(fields.items())}
    return f"evenhand-log-v1\n{hashlib.sha256(to_json(ordered)).hexdigest()}".encode()


def _invalid(checks: Sequence[_Check]) -> Iterator[int]:
    """Places of the signatures that are not valid, in their order; of many some processes check a share each."""
    share = math.ceil(len(checks) / min(cores(), 1 + len(checks) // MANY)) or 1
    parts = [checks[start : start + share] for start in range(0, len(checks), share)]
    with ExitStack() as stack:
        children = [stack.enter_context(_checking(part)) for part in parts[1:]]
        for number, part in enumerate(parts):
            answer = children[number - 1].communicate()[0].split() if number else []
            is_whole = answer[-1:] == [b"checked"]  # one that was ended has checked nothing
            wrong = map(int, answer[:-1]) if is_whole else (n for n, check in enumerate(part) if not check.holds)
            yield from (number * share + n for n in wrong)


@contextmanager
def _checking(checks: Sequence[_Check]) -> Iterator["subprocess.Popen[bytes]"]:
    """A process that checks signatures, see ``_answer``; it is ended with the block."""
    command = [sys.executable, "-P", "-m", __name__]  # without modules of the working directory
    with TemporaryFile() as question:
        question.writelines(b"%s %s %s\n" % tuple(part.hex().encode() for part in check) for check in checks)
        question.seek(0)
        with subprocess.Popen(command, stdin=question, stdout=subprocess.PIPE) as process:  # noqa: S603
            try:
                yield process
            finally:
                process.kill()


def _answer() -> None:
    """Write the numbers of the lines of the input with an invalid signature, and at last that all are checked."""
    for number, line in enumerate(sys.stdin):
        if not _Check(*map(bytes.fromhex, line.removesuffix("\n").split(" "))).holds:
            sys.stdout.write(f"{number}\n")
    sys.stdout.write("checked\n")


def kept_head(lake: Lake, n: int, sha256: str) -> str:
    """Error text if the digest of an entry differs from a digest kept elsewhere; empty if they are equal."""
    content = lake.storage.read(path_of(n))
    if content is None:
        return f"{lake.storage.where(path_of(n))} is missing, and was the head once: the log was cut short"
    if hashlib.sha256(content).hexdigest() != sha256:
        return f"{lake.storage.where(path_of(n))} is not the head that was kept: the log was written anew"
    return ""


def newest(log_entries: Sequence[Entry], events: Mapping[str, object] | Sequence[str]) -> Entry | None:
    """The last of some entries that is of one of these events."""
    return next((entry for entry in reversed(log_entries) if entry.event in events), None)


def _numbers(lake: Lake) -> list[int]:
    names = [path.rsplit("/", 1)[1].removesuffix(".json") for path in lake.storage.glob("log/*.json")]
    return sorted(int(name) for name in names if name.isdecimal())


def _content(lake: Lake, n: int) -> bytes:
    return lake.storage.read(path_of(n)) or b""


def _read_log(lake: Lake, n: int, content: bytes) -> Entry:
    return _entry(lake, n, _fields(content))


def _fields(content: bytes) -> dict[str, Any]:
    """The keys of a file of the log; none where it is no mapping in JSON."""
    with suppress(ValueError):
        fields = from_json(content)
        return fields if isinstance(fields, dict) else {}
    return {}


def _entry(lake: Lake, n: int, fields: Mapping[str, Any]) -> Entry:
    try:
        entry = Entry.model_validate(fields)
    except ValidationError as error:
        where = lake.storage.where(path_of(n))
        raise IntegrityError(f"{where} is no entry of a log; restore it from a copy") from error
    if entry.n != n:
        where = lake.storage.where(path_of(n))
        raise IntegrityError(f"{where} has the entry number {entry.n}; restore it from a copy")
    return entry


if __name__ == "__main__":
    _answer()
