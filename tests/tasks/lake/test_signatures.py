"""Signatures by key files and by commands, and what is refused."""

import os
import stat
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors import InfrastructureError, SpecError
from tasks.lake import signatures

CONTENT = {"run": "a", "n": 1, "text": "Grüße"}


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """A new key."""
    signatures.new_key(tmp_path / "key")
    return tmp_path / "key"


def signer(key: Path) -> signatures.Signer:
    """Who signs with a key."""
    found = signatures.signer(key)
    assert found is not None
    return found


def test_a_key_is_for_its_owner_and_never_overwritten(key: Path) -> None:
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    before = key.read_bytes()
    with pytest.raises(SpecError, match="is there already, and a key is never overwritten"):
        signatures.new_key(key)
    assert key.read_bytes() == before
    assert signatures.trusted(key.with_name("key.pub")) == {signatures.fingerprint(signer(key).public)}
    assert signatures.trusted(key.parent / "key.pub") == signatures.trusted(key.parent / "key.pub")


def test_a_signature_holds_for_its_content_kind_and_key_alone(key: Path, tmp_path: Path) -> None:
    made = signer(key).sign("manifest", CONTENT)
    assert signatures.holds(made, "manifest", dict(reversed(CONTENT.items())))
    assert not signatures.holds(made, "log", CONTENT)
    assert not signatures.holds(made, "manifest", {**CONTENT, "n": 2})
    signatures.new_key(tmp_path / "other")
    other = signer(tmp_path / "other").sign("manifest", CONTENT)
    assert not signatures.holds(made.model_copy(update={"public_key": other.public_key}), "manifest", CONTENT)
    assert not signatures.holds(made.model_copy(update={"key": other.key}), "manifest", CONTENT)


@given(st.dictionaries(st.text(), st.one_of(st.text(), st.integers(), st.none()), max_size=4))
def test_what_is_signed_is_short_and_depends_on_no_order(content: dict[str, object]) -> None:
    said = signatures.signed_bytes("manifest", content)
    assert len(said) <= 85
    assert said == signatures.signed_bytes("manifest", dict(reversed(content.items())))


def test_nan_is_not_signed(key: Path) -> None:
    with pytest.raises(ValueError, match="JSON"):
        signer(key).sign("manifest", {"value": float("nan")})


def test_a_command_signs_without_the_key_leaving_it(key: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a secret manager would: the bytes on its input, 64 bytes on its output."""
    vault = tmp_path / "vault.py"
    vault.write_text(
        "import sys\nfrom pathlib import Path\nfrom cryptography.hazmat.primitives import serialization as s\n"
        f"key = s.load_pem_private_key(Path({str(key)!r}).read_bytes(), None)\n"
        "sys.stdout.buffer.write(key.sign(sys.stdin.buffer.read()))\n"
    )
    monkeypatch.setenv(signatures.COMMAND, f"{sys.executable} {vault}")
    with pytest.raises(SpecError, match="without EVENHAND_SIGNING_PUBLIC"):
        signatures.signer()
    monkeypatch.setenv(signatures.PUBLIC, str(key.with_name("key.pub")))
    found = signatures.signer()
    assert found is not None
    assert signatures.holds(found.sign("log", CONTENT), "log", CONTENT)
    monkeypatch.setenv(signatures.COMMAND, f"{sys.executable} -c 'print(1)'")
    broken = signatures.signer()
    assert broken is not None
    with pytest.raises(InfrastructureError, match="wrote 2 bytes; 64 bytes"):
        broken.sign("log", CONTENT)


def test_a_command_that_signs_with_another_key_is_found(
    key: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    signatures.new_key(tmp_path / "other")
    wrong = signatures.Signer(signer(tmp_path / "other").public, signer(key).raw)
    with pytest.raises(InfrastructureError, match="gave no signature that its public key"):
        wrong.sign("log", CONTENT)


def test_files_that_are_no_keys_are_named(key: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for content in (b"", b"no key", b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"):
        (tmp_path / "bad").write_bytes(content)
        with pytest.raises(SpecError, match="holds no private Ed25519 key"):
            signatures.signer(tmp_path / "bad")
        with pytest.raises(SpecError, match="holds no public Ed25519 key"):
            signatures.public_key(tmp_path / "bad")
    os.mkfifo(tmp_path / "pipe")
    for odd in (tmp_path / "pipe", Path("/dev/zero"), Path("x" * 5000)):
        for read in (signatures.required_signer, signatures.trusted):
            with pytest.raises(SpecError, match="cannot be read"):
                read(odd)
    with pytest.raises(SpecError, match="cannot be read"):
        signatures.signer(tmp_path / "nothing")
    monkeypatch.delenv(signatures.KEY, raising=False)
    assert signatures.signer() is None
    monkeypatch.setenv(signatures.TRUSTED, str(key.parent))
    assert signatures.trusted() == {signatures.fingerprint(signer(key).public)}


def test_a_command_with_an_open_quote_is_named(key: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(signatures.KEY, raising=False)
    monkeypatch.setenv(signatures.COMMAND, "sign 'x")
    monkeypatch.setenv(signatures.PUBLIC, f"{key}.pub")
    with pytest.raises(SpecError, match="is no command: No closing quotation; close its quotes"):
        signatures.signer()
