"""Signatures by key files and by commands, and what is refused."""

import os
import stat
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors import InfrastructureError, SpecError
from tasks.lake import log

CONTENT = {"run": "a", "n": 1, "text": "Grüße"}


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """A new key."""
    log.new_key(tmp_path / "key")
    return tmp_path / "key"


def signer(key: Path) -> log.Signer:
    """Who signs with a key."""
    found = log.signer(key)
    assert found is not None
    return found


def test_a_key_is_for_its_owner_and_never_overwritten(key: Path) -> None:
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    before = key.read_bytes()
    with pytest.raises(SpecError, match="exists already, and a key is never overwritten"):
        log.new_key(key)
    assert key.read_bytes() == before
    assert log.trusted(key.with_name("key.pub")) == {log.fingerprint(signer(key).public)}
    assert log.trusted(key.parent / "key.pub") == log.trusted(key.parent / "key.pub")


def test_a_signature_holds_for_its_content_kind_and_key_alone(key: Path, tmp_path: Path) -> None:
    made = signer(key).sign("manifest", CONTENT)
    assert log.holds(made, "manifest", dict(reversed(CONTENT.items())))
    assert not log.holds(made, "log", CONTENT)
    assert not log.holds(made, "manifest", {**CONTENT, "n": 2})
    log.new_key(tmp_path / "other")
    other = signer(tmp_path / "other").sign("manifest", CONTENT)
    assert not log.holds(made.model_copy(update={"public_key": other.public_key}), "manifest", CONTENT)
    assert not log.holds(made.model_copy(update={"key": other.key}), "manifest", CONTENT)


@given(st.dictionaries(st.text(), st.one_of(st.text(), st.integers(), st.none()), max_size=4))
def test_what_is_signed_is_short_and_depends_on_no_order(content: dict[str, object]) -> None:
    said = log.signed_bytes("manifest", content)
    assert len(said) <= 85
    assert said == log.signed_bytes("manifest", dict(reversed(content.items())))


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
    monkeypatch.setenv(log.COMMAND, f"{sys.executable} {vault}")
    with pytest.raises(SpecError, match="without EVENHAND_SIGNING_PUBLIC"):
        log.signer()
    monkeypatch.setenv(log.PUBLIC, str(key.with_name("key.pub")))
    found = log.signer()
    assert found is not None
    assert log.holds(found.sign("log", CONTENT), "log", CONTENT)
    monkeypatch.setenv(log.COMMAND, f"{sys.executable} -c 'print(1)'")
    broken = log.signer()
    assert broken is not None
    with pytest.raises(InfrastructureError, match="wrote 2 bytes; 64 bytes"):
        broken.sign("log", CONTENT)


def test_a_command_that_signs_with_another_key_is_found(
    key: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.new_key(tmp_path / "other")
    wrong = log.Signer(signer(tmp_path / "other").public, signer(key).raw)
    with pytest.raises(InfrastructureError, match="gave no signature that its public key"):
        wrong.sign("log", CONTENT)


def test_files_that_are_no_keys_are_named(key: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for content in (b"", b"no key", b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"):
        (tmp_path / "bad").write_bytes(content)
        with pytest.raises(SpecError, match="holds no private Ed25519 key"):
            log.signer(tmp_path / "bad")
        with pytest.raises(SpecError, match="holds no public Ed25519 key"):
            log.public_key(tmp_path / "bad")
    os.mkfifo(tmp_path / "pipe")
    for odd in (tmp_path / "pipe", Path("/dev/zero"), Path("x" * 5000)):
        for read in (log.required_signer, log.trusted):
            with pytest.raises(SpecError, match="cannot be read"):
                read(odd)
    with pytest.raises(SpecError, match="cannot be read"):
        log.signer(tmp_path / "nothing")
    monkeypatch.delenv(log.KEY, raising=False)
    assert log.signer() is None
    monkeypatch.setenv(log.TRUSTED, str(key.parent))
    assert log.trusted() == {log.fingerprint(signer(key).public)}


def test_a_command_with_an_open_quote_is_named(key: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(log.KEY, raising=False)
    monkeypatch.setenv(log.COMMAND, "sign 'x")
    monkeypatch.setenv(log.PUBLIC, f"{key}.pub")
    with pytest.raises(SpecError, match="is no command: No closing quotation; close its quotes"):
        log.signer()
