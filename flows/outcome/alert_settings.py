"""Settings of alerts: the file that EVENHAND_ALERTS names, with addresses and rules.

The file may hold passwords, so it is refused where other users can read it. ``${NAME}`` in an address stands for an
environment variable. Every fault is reported with its line.
"""

import logging
import os
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal, Self
from urllib.parse import parse_qsl, quote

from pydantic import Field, ValidationError, field_validator, model_validator

from flows.outcome.ending import Name
from flows.supervision.file_modes import denied_bits
from schemas.audit.file import parse
from schemas.bounds import Strict
from schemas.errors import Location, SpecError, nearest, raise_together
from schemas.questions import STATES_BEFORE

VARIABLE: Final = "EVENHAND_ALERTS"
"""Environment variable with the path of the file."""
_REFERENCE: Final = re.compile(r"\$\{([^{}]*)\}")

SCHEMES: Final = frozenset(
    {
        *("mailto", "mailtos", "json", "jsons", "form", "forms", "xml", "xmls"),
        *("slack", "discord", "workflow", "workflows", "mmost", "mmosts", "rocket", "rockets", "matrix", "matrixs"),
        *("gchat", "wxteams", "zulip", "ntfy", "ntfys", "gotify", "gotifys", "tgram", "pover"),
        *("pagerduty", "opsgenie", "splunk", "victorops", "signal", "signals", "https"),
    }
)
"""Schemes of addresses: mail, web hooks, chat and calls. Others of apprise act on this machine, or nobody has asked."""
_REFUSED: Final = frozenset({"template", "keyfile", "attach", "redirect", "subfile", "wkd"})
"""Parameters of an address that name a file or another address, as those that begin with ``pgp`` do."""

ENDINGS: Final[Mapping[str, Name]] = {ending_name.name.lower(): ending_name for ending_name in Name}
"""Endings as rules write them: ``outside``, ``data_quality``."""


class Rule(Strict):
    """Which endings are sent to which addresses."""

    when: tuple[str, ...] = Field(min_length=1)
    tell: tuple[str, ...] = Field(min_length=1)
    digest: Literal["daily"] | None = Field(None, description="one message for all endings of a day (UTC)")

    @model_validator(mode="before")
    @classmethod
    def _as_lists(cls, raw: Any) -> Any:
        """A single name will do for a list of one."""
        if not isinstance(raw, Mapping):
            return raw
        return {
            key: [value] if key in ("when", "tell") and isinstance(value, str) else value for key, value in raw.items()
        }

    @field_validator("when")
    @classmethod
    def _check_endings(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if before := [ending for ending in value if ending in STATES_BEFORE]:
            raise ValueError(f"`{before[0]}` is now `{STATES_BEFORE[before[0]]}`")
        unknown = [ending for ending in value if ending not in ENDINGS]
        if unknown:
            raise ValueError(f"{unknown[0]!r} is no ending of a run; {nearest(unknown[0], list(ENDINGS))}")
        return value

    def words(self) -> str:
        """The rule in one line, for records."""
        return f"{', '.join(self.when)}{' daily' if self.digest else ''}"


class Alerts(Strict):
    """Addresses and rules."""

    to: dict[str, str] = Field(min_length=1)
    """Name -> address, as apprise writes them."""
    rules: tuple[Rule, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        raise_together(
            [
                SpecError(f"no address is called {name!r}; {nearest(name, list(self.to))}", ("rules", at, "tell"))
                for at, rule in enumerate(self.rules)
                for name in rule.tell
                if name not in self.to
            ]
        )
        return self

    def of(self, name: Name) -> dict[str, Rule]:
        """Address -> the rule for its alert of an ending; an immediate rule has priority over a digest."""
        rule_of_address: dict[str, Rule] = {}
        for rule in sorted(self.rules, key=lambda rule: rule.digest is not None):
            if name in map(ENDINGS.get, rule.when):
                rule_of_address = dict.fromkeys(rule.tell, rule) | rule_of_address
        return rule_of_address


def configured() -> Alerts | None:
    """The settings of this process; None where EVENHAND_ALERTS is not set.

    Raises:
        SpecError: the file cannot be read, other users can read it, or it is not usable.
    """
    path = os.environ.get(VARIABLE)
    return read_alerts(Path(path)) if path else None


def read_alerts(path: Path) -> Alerts:
    """The settings in a file.

    Raises:
        SpecError: as ``configured``.
    """
    try:
        file_stat = path.stat()
        if not stat.S_ISREG(file_stat.st_mode):  # to read a pipe or a device may never end
            raise SpecError(f"{VARIABLE}: {path} is no regular file; name a YAML file with `to` and `rules`")
        text, mode = path.read_text(encoding="utf-8"), stat.S_IMODE(file_stat.st_mode)
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(
            f"{VARIABLE}: {path} cannot be read ({error}); name a YAML file with `to` and `rules`"
        ) from error
    if mode & denied_bits():
        raise SpecError(
            f"{path} can be read or written by others (mode {mode:04o}) and may hold passwords; run: chmod 600 {path}"
        )
    try:
        parsed = parse(text)
    except SpecError as error:
        raise SpecError(f"{path}: {error}") from error
    twice = [f"{path}, line {line}: the key {key!r} stands there twice" for key, line in parsed.twice]
    raw, unset = _expanded(parsed.value)
    try:
        alerts = Alerts.model_validate(raw)
    except SpecError as error:
        faults = [*unset, *getattr(error, "faults", (error,))]
    except ValidationError as error:
        faults = [*unset, *_faults(error)]
    else:
        faults = unset or list(_unknown(alerts.to))
    placed = []
    for fault in faults:  # its line is that of the key, else of the nearest key above it
        at, lines = fault.location, parsed.lines
        placed.append((next((lines[at[:i]] for i in range(len(at), 0, -1) if at[:i] in lines), 0), fault))
    texts = []
    for line, fault in sorted(placed, key=lambda pair: pair[0]):
        key, place = ".".join(map(str, fault.location)), f"{path}, line {line}" if line else str(path)
        texts.append(f"{place}: {key}: {fault}" if key else f"{place}: {fault}")
    raise_together([SpecError(text) for text in [*twice, *texts]])
    return alerts


def _unknown(addresses: Mapping[str, str]) -> Iterator[SpecError]:
    """Addresses that no service of apprise takes; an address may hold a password, so that only its name is shown."""
    from apprise import Apprise  # loads its services, for a file without other faults only

    log = logging.getLogger("apprise")
    was_disabled, log.disabled = log.disabled, True
    try:
        for name, address in addresses.items():
            scheme, colon, rest = address.partition("://")
            keys = [key.lower().lstrip("+-: ") for key, _ in parse_qsl(rest.partition("?")[2], keep_blank_values=True)]
            if not colon or scheme.strip().lower() not in SCHEMES:
                schemes = ", ".join(sorted(SCHEMES))
                yield SpecError(f"an address begins with one of {schemes} and ://; give one of these", ("to", name))
            elif strange := [key for key in keys if key in _REFUSED or key.startswith("pgp")]:
                words = f"the parameter {strange[0]!r} names a file or another address; leave it out"
                yield SpecError(words, ("to", name))
            elif not Apprise.instantiate(address, suppress_exceptions=True):
                yield SpecError("no service of apprise has an address like this one; see docs/alerts.md", ("to", name))
    finally:
        log.disabled = was_disabled


def _expanded(raw: Any) -> tuple[Any, list[SpecError]]:
    """The values with environment variables in the addresses; those that are not set."""
    unset: list[SpecError] = []
    if not isinstance(raw, dict) or not isinstance(raw.get("to"), dict):
        return raw, unset

    def value(name: str, match: re.Match[str], address: str) -> str:
        variable = os.environ.get(match[1])
        if variable is None:
            unset.append(SpecError(f"the environment variable {match[1]!r} is not set; set it", ("to", name)))
            return ""
        return variable if match[0] == address else quote(variable, safe="")

    def expanded(name: str, address: Any) -> Any:
        if not isinstance(address, str):
            return address
        return _REFERENCE.sub(lambda match: value(name, match, address), address)

    return raw | {"to": {name: expanded(name, address) for name, address in raw["to"].items()}}, unset


def _faults(error: ValidationError) -> Iterator[SpecError]:
    """The faults; a list that is too short because its items are wrong is none."""
    problems = error.errors(include_url=False)
    places = [problem["loc"] for problem in problems]
    for problem in problems:
        at: Location = tuple(problem["loc"])
        if any(len(other) > len(at) and other[: len(at)] == at for other in places):
            continue
        words = f"expected {_expected(at)}"
        if problem["type"] == "extra_forbidden":
            keys = list((Rule if at[0] == "rules" else Alerts).model_fields)
            words = f"unknown key; {nearest(str(at[-1]), keys)}"
        elif problem["type"] == "missing":
            words = "this key is required"
        elif problem["type"] == "value_error":
            words = str(problem["msg"]).removeprefix("Value error, ")
        yield SpecError(words, at)


def _expected(at: Location) -> str:
    """What belongs at a place of the file."""
    if at and at[-1] == "[key]":
        return "a name for each address, such as `desk`"
    if at[:1] == ("to",):
        return "an address in one line of text" if at[1:] else "a name and an address, such as `desk: mailto://...`"
    if at[:1] != ("rules",):
        return "the keys `to` and `rules`"
    if at[2:]:
        return "`daily`" if at[2] == "digest" else "a name, or a list of names"
    return "a rule, such as `{when: outside, tell: desk}`" if at[1:] else "a list of rules, each below a `-`"
