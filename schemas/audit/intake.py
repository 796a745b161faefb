"""The part ``source.intake`` of the spec: the recipe by which the cells of a table are read, and the second file."""

from typing import Final, Literal, Self

from pydantic import Field, model_validator

from schemas.bounds import Code, Strict

Folding = Literal["case", "blanks", "unicode", "stop"]
FOLDINGS: Final[tuple[Folding, ...]] = ("case", "blanks", "unicode", "stop")

RULES: Final = 1
"""Version of the rules of reading; a spec keeps the version it was written with."""


class ColumnRecipe(Strict):
    """How the cells of one column are read."""

    read: Literal["number", "date", "bands", "text"] = Field(
        "text", description="number, date, ordered bands, or text whose spellings are joined"
    )
    decimal: Literal[".", ","] | None = Field(None, description="of a number: the decimal mark, `.` if left out")
    thousands: tuple[str, ...] = Field((), description="of a number: marks between digits, such as `,` or a blank")
    unit: str | None = Field(None, description="of a number: USD, EUR, %, months, years, days; for people and labels")
    format: tuple[str, ...] = Field((), description="of a date: formats of strptime; a cell has to fit one of them")
    order: tuple[Code, ...] = Field((), description="of bands: from the lowest to the highest")
    missing: tuple[Code, ...] = Field((), description="words that mean missing here, beside those that always do")
    codes: tuple[Code, ...] = Field((), description="codes that mean missing here, such as -999")

    @model_validator(mode="before")
    @classmethod
    def _one_or_several(cls, raw: object) -> object:
        """A single mark or format is a list of one."""
        if isinstance(raw, dict):
            return {k: [v] if k in ("thousands", "format") and isinstance(v, str) else v for k, v in raw.items()}
        return raw

    @model_validator(mode="after")
    def _fits_its_reading(self) -> Self:
        belongs = {"decimal": "number", "thousands": "number", "unit": "number", "format": "date", "order": "bands"}
        for key, reading in belongs.items():
            if getattr(self, key) and self.read != reading:
                raise ValueError(f"`{key}` belongs to `read: {reading}`, not to `read: {self.read}`")
        if self.read == "date" and not self.format:
            raise ValueError("`read: date` needs `format`, such as '%Y-%m-%d'")
        if self.read == "bands" and not self.order:
            raise ValueError("`read: bands` needs `order`, the bands from the lowest to the highest")
        if self.decimal is not None and self.decimal in self.thousands:
            raise ValueError(f"{self.decimal!r} cannot be the mark of decimals and of thousands in one column")
        return self


class Intake(Strict):
    """The recipe by which the cells of a table are read; ingest applies it and nothing else."""

    rules: Literal[1] = Field(RULES, description="version of the rules")
    fold: tuple[Folding, ...] = Field(
        FOLDINGS, description="what spellings of decisions, groups and categories may differ by; [] joins none"
    )
    repeats: Literal["first", "all", "none"] = Field(
        "all", description="of rows equal in every cell: keep the first, all of them, or none"
    )
    columns: dict[str, ColumnRecipe] = Field({}, description="column -> how its cells are read; text if left out")


class JoinKey(Strict):
    """The columns by which two files are joined."""

    this: str = Field(description="of the first file")
    other: str = Field(description="of the second file")


class SecondFile(Strict):
    """A second file that gives further columns of the same applications."""

    path: str = Field(description="the file, beside the spec or in the working directory")
    key: JoinKey = Field(description="column that identifies an application in both files, or {this: A, other: B}")
    columns: tuple[str, ...] = Field(min_length=1, description="columns of the second file to join")
    member: str | None = Field(None, description="the table in a zip that holds several")
    sheet: str | None = Field(None, description="of an Excel workbook: the sheet")

    @model_validator(mode="before")
    @classmethod
    def _one_name(cls, raw: object) -> object:
        """One name names the same column in both files."""
        if isinstance(raw, dict) and isinstance(raw.get("key"), str):
            return {**raw, "key": {"this": raw["key"], "other": raw["key"]}}
        return raw
