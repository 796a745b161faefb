"""The part ``source.intake`` of the spec: the recipe by which the cells of a table are read, and the second file."""

from typing import Final, Literal, Self

from pydantic import Field, model_validator

from schemas.bounds import Code, Strict

Folding = Literal["case", "blanks", "unicode", "stop"]
FOLDINGS: Final[tuple[Folding, ...]] = ("case", "blanks", "unicode", "stop")

RULES: Final = 2
"""Version of the rules of reading; a spec keeps the version it was written with, and 1 where it names none."""


_BELONGING: Final = {
    "decimal": ("number",),
    "thousands": ("number",),
    "unit": ("number",),
    "format": ("date", "age"),
    "order": ("bands",),
    "at": ("age",),
}
"""Key of a recipe -> the ways of reading that it belongs to."""
EXCEL: Final = "excel"
"""The format of days since 1899-12-30, as Excel counts them."""


def tells_birth(layout: str) -> bool:
    """Whether a format gives the day and the century of a birth: two digits of a year may mean 1925 or 2025."""
    return layout == EXCEL or ("%Y" in layout and ("%d" in layout or "%e" in layout))


class ColumnRecipe(Strict):
    """How the cells of one column are read."""

    read: Literal["number", "date", "age", "bands", "text"] = Field(
        "text",
        description="number, date, age at a decision from a date of birth, ordered bands, or text whose spellings "
        "are joined",
    )
    decimal: Literal[".", ","] | None = Field(None, description="of a number: the decimal mark, `.` if left out")
    thousands: tuple[str, ...] = Field((), description="of a number: marks between digits, such as `,` or a blank")
    unit: str | None = Field(
        None,
        description="of a number: USD, EUR, %, months, years or days, taken off the cells. A cell in another unit is "
        "unread",
    )
    format: tuple[str, ...] = Field(
        (), description="of a date, or of a date of birth: formats of strptime; a cell has to fit one of them"
    )
    at: str | None = Field(None, description="of an age: the column with the date of the decision, read as a date")
    order: tuple[Code, ...] = Field((), description="of bands: from the lowest to the highest")
    missing: tuple[Code, ...] = Field(
        (), description="words that mean missing here, in addition to those that always do (`N/A`, `null`, `-`)"
    )
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
        for key, readings in _BELONGING.items():
            if getattr(self, key) and self.read not in readings:
                raise ValueError(f"`{key}` belongs to `read: {readings[0]}`, not to `read: {self.read}`")
        if self.read == "date" and not self.format:
            raise ValueError("`read: date` needs `format`, such as '%Y-%m-%d'")
        if self.read == "age" and not (self.format and self.at):
            raise ValueError("`read: age` needs `format` of the birth, and `at`, the column of the decision date")
        if self.read == "age" and (short := [layout for layout in self.format if not tells_birth(layout)]):
            raise ValueError(
                f"{short[0]!r} gives no year of four digits with a day, so that no age in whole years follows from it"
            )
        if self.read == "bands" and not self.order:
            raise ValueError("`read: bands` needs `order`, the bands from the lowest to the highest")
        if self.decimal is not None and self.decimal in self.thousands:
            raise ValueError(f"{self.decimal!r} cannot be the mark of decimals and of thousands in one column")
        return self


class Intake(Strict):
    """The recipe by which the cells of a table are read; ingest applies it and nothing else."""

    rules: Literal[1, 2] = Field(1, description="version of the rules")
    fold: tuple[Folding, ...] = Field(
        FOLDINGS, description="what spellings of decisions, groups and categories may differ by; [] joins none"
    )
    repeats: Literal["first", "all", "none"] = Field(
        "all", description="of rows equal in every cell: keep the first, all of them, or none"
    )
    columns: dict[str, ColumnRecipe] = Field({}, description="column -> how its cells are read; text if left out")

    @model_validator(mode="after")
    def _ages_have_a_date(self) -> Self:
        for name, recipe in self.columns.items():
            decided = self.columns.get(recipe.at or "")
            if recipe.at and (decided is None or decided.read != "date" or recipe.at == name):
                raise ValueError(f"`at` of {name!r} is a column with a recipe `read: date`, and {recipe.at!r} is none")
        return self


class JoinKey(Strict):
    """The columns by which two files are joined."""

    this: str = Field(description="of the first file")
    other: str = Field(description="of the second file")


class SecondFile(Strict):
    """A second file that gives further columns of the same applications."""

    path: str = Field(description="the file, next to the spec or in the working directory")
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
