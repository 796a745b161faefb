"""The file of alerts: who may read it, what it may hold, and where its faults are."""

import os
from pathlib import Path

import pytest

from flows.outcome.alert_settings import Alerts, configured, read_alerts
from flows.outcome.ending import Name
from schemas.errors import SpecError

GOOD = """\
to:
  desk: mailto://smtp.example.org:587/?from=audit@example.org&to=fair-lending@example.org
  pager: json://user:${PAGER_PASSWORD}@pager.example.org/evenhand
rules:
  - {when: outside, tell: desk, digest: daily}
  - {when: [outside, data_quality], tell: [pager]}
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("EVENHAND_GROUP_READ", raising=False)
    place = tmp_path / "alerts.yaml"
    place.touch(mode=0o600)
    return place


def _read(file: Path, text: str) -> Alerts:
    file.write_text(text)
    return read_alerts(file)


def test_a_variable_in_an_address_is_quoted_and_one_that_is_the_address_is_not(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAGER_PASSWORD", "p@ss/word")
    monkeypatch.setenv("DESK", "json://desk.example.org/a?b=c")
    found = _read(file, GOOD)
    assert found.to["pager"] == "json://user:p%40ss%2Fword@pager.example.org/evenhand"
    assert _read(file, "to: {desk: '${DESK}'}\nrules: [{when: outside, tell: desk}]").to == {
        "desk": "json://desk.example.org/a?b=c"
    }


def test_rules_say_who_is_told_and_at_once_comes_before_a_digest(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGER_PASSWORD", "word")
    found = _read(file, GOOD)
    assert {to: rule.digest for to, rule in found.of(Name.OUTSIDE).items()} == {"pager": None, "desk": "daily"}
    assert list(found.of(Name.DATA_QUALITY)) == ["pager"]
    assert found.of(Name.WITHIN) == {}
    both = _read(file, GOOD + "  - {when: outside, tell: desk}\n")
    assert both.of(Name.OUTSIDE)["desk"].digest is None


def test_every_fault_is_told_with_its_line(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOBODY", raising=False)
    text = (
        "to:\n  desk: json://${NOBODY}/\nrules:\n  - {when: outsid, tell: desk}\n  - {when: outside, tel: desk}\n"
        "  - {when: [], tell: desk}\nmail: me\n"
    )
    with pytest.raises(SpecError) as told:
        _read(file, text)
    assert str(told.value).splitlines() == [
        f"{file}, line 2: to.desk: the environment variable 'NOBODY' is not set; set it",
        f"{file}, line 4: rules.0.when: 'outsid' is no ending of a run; did you mean 'outside'?",
        f"{file}, line 5: rules.1.tell: this key is required",
        f"{file}, line 5: rules.1.tel: unknown key; did you mean 'tell'?",
        f"{file}, line 6: rules.2.when: expected a name, or a list of names",
        f"{file}, line 7: mail: unknown key; known: 'to', 'rules'",
    ]


def test_an_address_that_no_rule_can_find_is_told_with_the_nearest(file: Path) -> None:
    with pytest.raises(SpecError, match=r"line 4: rules.0.tell: no address is called 'dask'; did you mean 'desk'\?"):
        _read(file, "to:\n  desk: json://desk.example.org\nrules:\n  - {when: outside, tell: dask}\n")


@pytest.mark.parametrize(
    "text", ["", "- 1", "to: desk", "to: {}\nrules: []", "to: {a: 1}\nrules: x", "to: [", "a: &a [*a]"]
)
def test_what_is_no_file_of_alerts_is_refused_and_named(file: Path, text: str) -> None:
    with pytest.raises(SpecError, match=r"alerts\.yaml"):
        _read(file, text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("- 1", "expected the keys `to` and `rules`"),
        ("to: desk\nrules: []", "to: expected a name and an address, such as `desk: mailto://...`"),
        ("to: {desk: 5}\nrules: [{when: outside, tell: desk}]", "to.desk: expected an address in one line of text"),
        ("to: {desk: 'json://d'}\nrules: x", "rules: expected a list of rules, each below a `-`"),
        ("to: {desk: 'json://d'}\nrules: [outside]", "rules.0: expected a rule, such as `{when: outside, tell: desk}`"),
        ("to: {desk: 'json://d'}\nrules: [{when: 1, tell: desk}]", "rules.0.when: expected a name, or a list of names"),
        (
            "to: {desk: 'json://d'}\nrules: [{when: outside, tell: desk, digest: no}]",
            "rules.0.digest: expected `daily`",
        ),
    ],
)
def test_what_belongs_at_a_place_is_told_in_plain_words(file: Path, text: str, words: str) -> None:
    with pytest.raises(SpecError) as told:
        _read(file, text)
    assert words in str(told.value)
    for word in ("dictionary", "instance", "tuple", "Input", "literal"):
        assert word not in str(told.value)


def test_an_address_that_no_service_knows_is_refused_by_its_name_alone(
    file: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DESK", "carrier-pigeon://s3cret@desk")
    text = "to:\n  pager: json://pager.example.org\n  desk: ${DESK}\nrules: [{when: outside, tell: [desk, pager]}]"
    with pytest.raises(SpecError, match=r"line 3: to\.desk: an address begins with one of") as told:
        _read(file, text)
    assert "s3cret" not in str(told.value) + caplog.text + "".join(capfd.readouterr())


def test_what_is_no_regular_file_is_refused_and_not_read(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.unlink()
    os.mkfifo(file, 0o600)
    for place in (str(file), "/dev/zero", str(file.parent)):
        monkeypatch.setenv("EVENHAND_ALERTS", place)
        with pytest.raises(SpecError, match="no regular file"):
            configured()


def test_a_file_that_others_can_read_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text("to: {desk: 'json://desk.example.org'}\nrules: [{when: outside, tell: desk}]")
    monkeypatch.setenv("EVENHAND_ALERTS", str(file))
    assert configured() is not None
    for mode, words in ((0o604, "mode 0604"), (0o640, "mode 0640"), (0o602, "mode 0602")):
        file.chmod(mode)
        with pytest.raises(SpecError, match=rf"others \({words}\) and may hold passwords; run: chmod 600"):
            configured()
    file.chmod(0o440)
    monkeypatch.setenv("EVENHAND_GROUP_READ", "1")
    assert configured() is not None


def test_without_the_variable_nobody_is_told_and_a_file_that_is_gone_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EVENHAND_ALERTS", raising=False)
    assert configured() is None
    monkeypatch.setenv("EVENHAND_ALERTS", str(tmp_path / "gone.yaml"))
    with pytest.raises(SpecError, match=r"EVENHAND_ALERTS: .*gone\.yaml cannot be read"):
        configured()


@pytest.mark.parametrize(
    "address",
    [
        "file:///etc/passwd",
        "exec://rm",
        "syslog://",
        "dbus://",
        "gnome://",
        "macosx://",
        "windows://",
        "apprise://example.org/token",
        "vapid://a@example.org/b",
        "sns://key/secret/us-east-1/12223334444",
        "mailto",
        "MACOSX://",
    ],
)
def test_an_address_of_another_scheme_is_refused_by_its_name(file: Path, address: str) -> None:
    with pytest.raises(SpecError, match=r"line 2: to\.desk: an address begins with one of discord, .* and ://"):
        _read(file, f"to:\n  desk: '{address}'\nrules: [{{when: outside, tell: desk}}]")


@pytest.mark.parametrize(
    ("address", "parameter"),
    [
        ("discord://1234567890/abcdefghij?template=/etc/passwd", "template"),
        ("workflows://host:443/workflow/signature/?TEMPLATE=file:///etc/passwd", "template"),
        ("mailto://example.org/?from=a@example.org&pgp=yes&pgpkey=/etc/passwd", "pgp"),
        ("json://127.0.0.1/?attach=/etc/passwd", "attach"),
        ("json://127.0.0.1/?redirect=yes", "redirect"),
        ("json://127.0.0.1/?%74emplate=/etc/passwd", "template"),
    ],
)
def test_a_parameter_that_names_a_file_or_follows_elsewhere_is_refused(
    file: Path, address: str, parameter: str
) -> None:
    with pytest.raises(
        SpecError, match=rf"to\.desk: the parameter '{parameter}' names a file or another address"
    ) as no:
        _read(file, f"to:\n  desk: '{address}'\nrules: [{{when: outside, tell: desk}}]")
    assert "passwd" not in str(no.value)


def test_a_template_of_the_environment_is_no_way_round(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DESK", "syslog://")
    with pytest.raises(SpecError, match="an address begins with one of"):
        _read(file, "to: {desk: '${DESK}'}\nrules: [{when: outside, tell: desk}]")
    monkeypatch.setenv("PART", "x?template=/etc/passwd")
    found = _read(file, "to: {desk: 'json://127.0.0.1/${PART}'}\nrules: [{when: outside, tell: desk}]")
    assert found.to["desk"] == "json://127.0.0.1/x%3Ftemplate%3D%2Fetc%2Fpasswd"  # quoted, no parameter
    text = (
        "to: {desk: 'json://127.0.0.1/{{ 7 * 7 }}/%(app_id)s/${PATH.__class__}'}\nrules: [{when: outside, tell: desk}]"
    )
    with pytest.raises(SpecError, match=r"the environment variable 'PATH.__class__' is not set"):
        _read(file, text)
