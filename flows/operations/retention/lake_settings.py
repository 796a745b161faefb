"""Settings of a lake, ``LAKE/settings.yaml``: how long runs are kept, set by whoever answers for the records.

A lake without the file has the defaults. Scope: the file. What is done with them: ``removals``.
"""

from typing import Any, Final

from pydantic import Field, ValidationError

from schemas.audit.text import Parsed, parse
from schemas.bounds import Strict
from schemas.errors import Location, SpecError, nearest, raise_together
from tasks.lake.storage import Storage

FILE: Final = "settings.yaml"
THREE_YEARS: Final = 1095
"""Days: as long as a lender keeps its register of applications (12 CFR 1003.5(a)(1)(i))."""


class Retention(Strict):
    """What ``evenhand gc`` keeps."""

    keep_runs: int | None = Field(None, ge=1, description="the newest so many runs of every audit, year and partition")
    keep_days: float | None = Field(None, ge=0, description="runs that ended within so many days stay as well")
    keep_vintages: int | None = Field(None, ge=1, description="the newest so many vintages of every year and kind")
    minimum_days: float = Field(THREE_YEARS, ge=0, description="no younger run goes without a reason in the log")


class LakeSettings(Strict):
    """All settings of a lake."""

    retention: Retention = Retention()


def settings_of(storage: Storage) -> LakeSettings:
    """The settings of a lake; the defaults where it has no file.

    Raises:
        SpecError: the file is not usable: every fault with its line.
    """
    content = storage.read(FILE)
    if content is None:
        return LakeSettings()
    where = storage.where(FILE)
    try:
        parsed = parse(content.decode("utf-8-sig"))
    except (SpecError, UnicodeDecodeError) as error:
        raise SpecError(f"{where}: {error}") from error
    messages = [f"{where}, line {line}: the key {key!r} stands there twice" for key, line in parsed.twice]
    try:
        found = LakeSettings.model_validate(parsed.value if parsed.value is not None else {})
    except ValidationError as error:
        messages += [_described(where, parsed, each) for each in error.errors(include_url=False)]
    raise_together([SpecError(message) for message in messages])
    return found


def _described(where: str, parsed: Parsed, fault: Any) -> str:
    location: Location = fault["loc"]
    line = next((parsed.lines[location[:n]] for n in range(len(location), -1, -1) if location[:n] in parsed.lines), 1)
    key = ".".join(map(str, location))
    if fault["type"] == "extra_forbidden":
        model = Retention if location[:1] == ("retention",) else LakeSettings
        return (
            f"{where}, line {line}: no setting is called {key!r}; {nearest(str(location[-1]), [*model.model_fields])}"
        )
    return f"{where}, line {line}: {key or 'the file'}: {fault['msg']}, and not {fault['input']!r}"
