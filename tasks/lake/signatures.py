"""Signatures of manifests and of entries of the log: Ed25519, by a key file or by a command that holds the key.

What is signed is short: a line that names its kind, and the sha256 of canonical JSON in hexadecimal, so that any secret
manager takes it. EVENHAND_SIGNING_KEY names a private key (PEM). EVENHAND_SIGNING_COMMAND names a command instead,
which gets the signed bytes on its input and writes the 64 bytes of the signature; EVENHAND_SIGNING_PUBLIC is then the
file of its public key. Trusted keys: EVENHAND_TRUSTED_KEYS, files of public keys or directories of them. The library
that signs is loaded by commands that sign or check: most commands do neither.
"""

import hashlib
import json
import os
import shlex
import stat
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from schemas.errors import InfrastructureError, SpecError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

KEY, COMMAND, PUBLIC, TRUSTED = (
    "EVENHAND_SIGNING_KEY",
    "EVENHAND_SIGNING_COMMAND",
    "EVENHAND_SIGNING_PUBLIC",
    "EVENHAND_TRUSTED_KEYS",
)
Kind = Literal["manifest", "log"]
_SECONDS: Final = 60
"""Patience with a command that signs."""
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
        said = signed_bytes(kind, content)
        made = Signature(
            key=fingerprint(self.public), public_key=self.public.hex(), signature=self.raw(said).hex().ljust(128, "0")
        )
        if not holds(made, kind, content):
            raise InfrastructureError(
                f"what signs gave no signature that its public key {made.key} accepts; look at {COMMAND} and {PUBLIC}"
            )
        return made


def canonical(content: Mapping[str, Any]) -> bytes:
    """JSON with sorted keys, no spaces, in UTF-8 and without NaN: the same bytes for the same content."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def digest_of(content: Mapping[str, Any]) -> str:
    """Hexadecimal sha256 of canonical JSON."""
    return hashlib.sha256(canonical(content)).hexdigest()


def signed_bytes(kind: Kind, content: Mapping[str, Any]) -> bytes:
    """The bytes that a signature is of, at most 85."""
    return f"evenhand-{kind}-v1\n{digest_of(content)}".encode()


def fingerprint(public: bytes) -> str:
    """The first 16 hexadecimal digits of the sha256 of a public key's 32 bytes."""
    return hashlib.sha256(public).hexdigest()[:16]


def holds(signature: Signature, kind: Kind, content: Mapping[str, Any]) -> bool:
    """Whether a signature is of this content, by the key that it names; and that key bears the name."""
    public = bytes.fromhex(signature.public_key)
    return fingerprint(public) == signature.key and _verified(
        public, bytes.fromhex(signature.signature), signed_bytes(kind, content)
    )


def new_key(path: Path) -> str:
    """Write a private key, for its owner alone, and ``PATH.pub`` beside it; gives the fingerprint.

    Raises:
        SpecError: one of the two files is there already; a key is never overwritten.
        InfrastructureError: they cannot be written.
    """
    public = path.with_name(f"{path.name}.pub")
    for file in (path, public):
        if file.exists():
            raise SpecError(f"{file} is there already, and a key is never overwritten; give another name")
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
    if own := os.environ.get(KEY, ""):
        with _naming(KEY):
            return required_signer(Path(own))
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
        return Signer(public_key(Path(public)), lambda said: _by_command(words, said))


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


def trusted(given: Path | None = None) -> frozenset[str]:
    """Fingerprints of the trusted keys: the key of a file, or the keys that EVENHAND_TRUSTED_KEYS names.

    The result is empty only where no file is given and the variable is not set or empty. A variable that names nothing
    readable is an error: an audit would otherwise go on as if nobody had asked for trust.

    Raises:
        SpecError: a file holds no public key, a directory has none, or the variable names neither.
    """
    if given is not None:
        return frozenset({fingerprint(public_key(given))})
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


def _by_command(words: list[str], said: bytes) -> bytes:
    try:
        done = subprocess.run(words, input=said, capture_output=True, timeout=_SECONDS, check=False)  # noqa: S603
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


@lru_cache(maxsize=65_536)
def _verified(public: bytes, signature: bytes, said: bytes) -> bool:
    """Whether 64 bytes are a signature of what was said."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, said)
    except InvalidSignature:
        return False
    return True


def _raw(key: "Ed25519PublicKey") -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return key.public_bytes(Encoding.Raw, PublicFormat.Raw)
