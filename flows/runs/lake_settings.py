"""Settings of a lake, ``LAKE/settings.yaml``: how long runs are kept, and where their lineage is sent.

Whoever answers for the records sets them. A lake without the file has the defaults. Scope: the file. What is done with
them: ``flows.operations.retention`` and ``flows.concurrency.openlineage``.
"""

from typing import Final, Literal, Self

from pydantic import BaseModel, Field, ValidationError, model_validator

from schemas.audit.file import parse
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


class Lineage(Strict):
    """Where events of OpenLineage are sent."""

    transport: Literal["file", "http", "console"] = Field(description="a file of lines, a receiver, or standard error")
    url: str = Field("", description="of the receiver, as OPENLINEAGE_URL has it")
    path: str = Field("", description="of the file, below the directory of the lake")
    timeout: float = Field(
        2, gt=0, le=60, description="seconds that one event may take, and all that is left at the end"
    )

    @model_validator(mode="after")
    def _placed(self) -> Self:
        place = {"http": self.url, "file": self.path}.get(self.transport, self.transport)
        if not place:
            key = {"http": "url", "file": "path"}[self.transport]
            raise ValueError(f"the transport {self.transport} needs the key {key!r}")
        return self


class LakeSettings(Strict):
    """All settings of a lake."""

    retention: Retention = Retention()
    lineage: Lineage | None = None


_PARTS: Final[dict[str, type[BaseModel]]] = {"retention": Retention, "lineage": Lineage}


def lake_settings(storage: Storage) -> LakeSettings:
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
        settings = LakeSettings.model_validate(parsed.value if parsed.value is not None else {})
    except ValidationError as error:
        for fault in error.errors(include_url=False):
            location: Location = fault["loc"]
            prefixes = (location[:n] for n in range(len(location), -1, -1))
            line = next((parsed.lines[prefix] for prefix in prefixes if prefix in parsed.lines), 1)
            key = ".".join(map(str, location))
            if fault["type"] == "extra_forbidden":
                model = _PARTS.get(str(location[0]), LakeSettings) if len(location) > 1 else LakeSettings
                hint = nearest(str(location[-1]), [*model.model_fields])
                messages.append(f"{where}, line {line}: no setting is called {key!r}; {hint}")
            else:
                # the address of a receiver may hold a password
                words = "" if location[:1] == ("lineage",) else f", and not {fault['input']!r}"
                why = f"{fault['msg']}{words}"
                messages.append(f"{where}, line {line}: {key or 'the file'}: {why}")
    raise_together([SpecError(message) for message in messages])
    return settings
