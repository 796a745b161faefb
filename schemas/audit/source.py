"""The part ``source`` of the spec: where the rows come from, how files are read and which rows are kept."""

from collections.abc import Callable, Iterator, Sequence
from datetime import date
from itertools import pairwise
from pathlib import PurePath
from typing import Annotated, Any, ClassVar, Final, Literal, Self

from pydantic import (
    AliasChoices,
    Field,
    PrivateAttr,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
    model_validator,
)

from schemas.audit.intake import Intake, SecondFile
from schemas.audit.partition import Part
from schemas.bounds import Code, Seed, Strict
from schemas.vintages import Year, folder_of, words_of

ACTION = "action_taken"
"""The column of the decision in canonical applications of HMDA."""
APPROVED, DENIED = frozenset({"1", "2", "8"}), frozenset({"3", "7"})
"""Codes of actions that approve an application or a preapproval, and of those that deny one."""

Treatment = Literal["stop", "quarantine", "accept"]
"""Of a departure: the audit stops, the rows concerned are refused with the reason, or they are kept and it is told."""


class HmdaPolicy(Strict):
    """Treatment of each departure of a file. A departure of a column concerns all rows of its file."""

    missing_columns: Treatment = Field("stop", description="a column that the spec names and the file cannot give")
    unknown_columns: Treatment = Field("accept", description="a column that the file's layout does not know")
    unknown_codes: Treatment = Field("quarantine", description="a code that no filing guide lists, in a column named")


class VintageChoice(Strict):
    """Criteria for the edition of a year: the newest that fits in the lake is read."""

    dataset: str | None = Field(None, description="such as snapshot, one-year, three-year, historic or twin")
    geography: str | None = Field(None, description="nationwide, or the letters of a state")
    frozen: date | None = Field(None, description="the day on which the edition was frozen")


Encoding = Literal[
    "utf-8",
    "utf-16",
    "utf-32",
    "latin-1",
    "iso-8859-2",
    "iso-8859-9",
    "iso-8859-15",
    "cp1250",
    "cp1251",
    "cp1252",
    "cp1253",
    "cp1254",
    "cp1255",
    "cp1256",
    "cp1257",
    "cp932",
    "euc-jp",
    "gb18030",
    "big5",
    "euc-kr",
    "koi8-r",
]
_LATE_KEYS: Final = ("member", "sheet", "foot", "second_file", "intake", "rename", "starts", "attribute_files", "proxy")
"""Keys that came later than specs which are in use: a spec without them keeps its identity."""
TABLE_KINDS: Final = ("csv", "parquet", "excel", "stata", "sas", "spss", "jsonl", "feather")
"""Kinds of a table of one's own, which a file holds."""
_BELONGING: Final = (
    (("comment", "quote", "multiline", "maximum_bytes", "starts"), ("csv",), "delimited text"),
    (("header", "skip", "foot"), ("csv", "excel"), "delimited text and excel"),
    (("sheet",), ("excel",), "excel"),
    (("year_column", "member", "second_file", "intake", "attribute_files"), TABLE_KINDS, "a table of your own"),
    (("rename",), (*TABLE_KINDS, "hmda"), "a file"),
    (("proxy",), (*TABLE_KINDS, "frame"), "a table of your own"),
)
"""Keys, the kinds of source that have them, and those kinds in words."""


def name_of(path: str) -> str:
    """The name of a file without its folders, as this system or another one writes them."""
    return PurePath(path.replace("\\", "/")).name


_NO_DELIMITER: Final = '"\r\n\0'


def _plainly(end: float | date) -> str:
    return end.isoformat() if isinstance(end, date) else f"{end:g}"


class Keep(Strict):
    """Which values of a column keep a row: those listed, those of a range, or any at all."""

    _EXPECTED: ClassVar[str] = "rows are kept by a list of codes, by {minimum: ..., maximum: ...}, or by `present`"

    values: tuple[Code, ...] = Field(
        (), description="codes that keep a row; in a spec, the list stands in place of the mapping"
    )
    minimum: float | date | None = Field(None, description="least number or first day kept")
    maximum: float | date | None = Field(None, description="largest number or last day kept")
    present: bool = Field(False, description="any value that is not missing")

    @model_validator(mode="before")
    @classmethod
    def _short_forms(cls, raw: Any) -> Any:
        """A list is short for its values, and the word `present` for itself."""
        if isinstance(raw, list | tuple):
            return {"values": raw}
        if raw == "present":
            return {"present": True}
        if isinstance(raw, str | int | float):
            raise ValueError(cls._EXPECTED)
        return raw

    @model_validator(mode="after")
    def _says_one_thing(self) -> Self:
        if bool(self.values) + self.ranged + self.present != 1:
            raise ValueError(self._EXPECTED)
        low, high = self.minimum, self.maximum
        if low is None or high is None:
            return self
        if isinstance(low, date) != isinstance(high, date):
            raise ValueError("a range goes from number to number, or from day to day (2023-01-01)")
        if low > high:  # type: ignore[operator]  # both are numbers, or both are days
            raise ValueError(f"minimum {_plainly(low)} is above maximum {_plainly(high)}: no row would be kept")
        return self

    @property
    def of_dates(self) -> bool:
        """Whether the range is one of days."""
        return isinstance(self.minimum, date) or isinstance(self.maximum, date)

    @property
    def ranged(self) -> bool:
        """Whether a range decides."""
        return self.minimum is not None or self.maximum is not None


LONGEST_NAME: Final = 200
"""Characters of a lender's name that pages have room for."""
CellRule = Literal["present", "absent"] | tuple[Code, ...]
"""Which cells of a column make a new value: those that are there, those that are missing, or those of some codes."""


class Derived(Strict):
    """A column made from one of the source by a mapping of its values, or from several by a rule for each new value."""

    column: str | None = Field(None, description="the column of the source that it is made from")
    values: dict[Code, tuple[Code, ...]] = Field({}, description="new value -> the source's values")
    rows: dict[Code, dict[str, CellRule]] = Field(
        {},
        description="in place of both: new value -> column -> `present`, `absent` or a list of codes; its rows keep "
        "every rule. A row of two new values is refused, and one of none has no value",
    )

    @field_validator("values")
    @classmethod
    def _each_value_once(cls, values: dict[Code, tuple[Code, ...]]) -> dict[Code, tuple[Code, ...]]:
        listed = [code for codes in values.values() for code in set(codes)]
        twice = sorted({code for code in listed if listed.count(code) > 1})
        if twice:
            raise ValueError(f"{twice} have more than one value")
        return values

    @model_validator(mode="after")
    def _is_made_in_one_way(self) -> Self:
        if (self.column is None) != (not self.values) or bool(self.values) == bool(self.rows):
            raise ValueError("a derived column has `column` and `values`, or `rows` with a rule for each new value")
        if not all(self.rows.values()):
            raise ValueError("each new value of `rows` needs a column with its rule, such as {approved_on: present}")
        return self

    @model_serializer(mode="wrap")
    def _without_the_other_way(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """A column with `values` has the identity that it had before there was `rows`."""
        written: dict[str, Any] = handler(self)
        return {"rows": written["rows"]} if self.rows else {"column": self.column, "values": written["values"]}

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the source that it is made from."""
        if self.column is not None:
            return (self.column,)
        return tuple(dict.fromkeys(name for rules in self.rows.values() for name in rules))

    def codes_of(self, column: str) -> Iterator[str]:
        """The values of a column that its rules name."""
        if column == self.column:
            yield from (code for codes in self.values.values() for code in codes)
        for rules in self.rows.values():
            rule = rules.get(column, ())
            yield from () if isinstance(rule, str) else rule

    def respelled(self, spelled: Callable[[str, tuple[str, ...]], tuple[str, ...]]) -> Self:
        """The same with the codes of each column as a function spells them."""
        values = {new: spelled(self.columns[0], old) for new, old in self.values.items()}
        rows = {
            new: {name: rule if isinstance(rule, str) else spelled(name, rule) for name, rule in rules.items()}
            for new, rules in self.rows.items()
        }
        return self.model_copy(update={"values": values, "rows": rows})


KeptRule = Literal["all", "sample", "counts"]


class KeptRefusals(Strict):
    """Which refused rows are written; they are counted exactly in any case."""

    keep: KeptRule = Field(
        "sample",
        description="sample: every row up to 100,000 a stage, beyond that 1,000 a reason and column with a weight; "
        "all: every row; counts: no row",
    )


class Synthetic(Strict):
    """Applicants to draw: which generator, from which seed, with which coefficients."""

    generator: str = Field(description="what is drawn, such as `lending`, the synthetic applicants of the CEC paper")
    seed: Seed = Field(0, description="the same seed draws the same applicants")
    parameters: dict[str, float | str | tuple[float, ...] | None] = Field(
        {}, description="coefficient -> its value, where it is not the generator's default"
    )


class Proxy(Strict):
    """Columns that race is guessed from where no column has it: for screening, never for a verdict."""

    surname: str = Field(description="column with the surname; no table of the lake has it")
    place: str = Field(
        description="column with the ZIP code, of five or nine digits, or with the census tract, of eleven"
    )
    first_name: str | None = Field(
        None, description="column with the first name, for BIFSG; BISG without one. No table of the lake has it"
    )
    reference: Literal["white", "black", "api", "native", "multiple", "hispanic"] = Field(
        "white", description="race that the others are compared with"
    )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read and dropped."""
        return tuple(name for name in (self.surname, self.place, self.first_name) if name)


class Source(Strict):
    """Where the applications come from."""

    kind: Literal[
        "boston1990",
        "csv",
        "parquet",
        "excel",
        "stata",
        "sas",
        "spss",
        "jsonl",
        "feather",
        "synthetic",
        "hmda",
        "frame",
    ] = Field(
        description="how the source is read: the bundled data, delimited text, other files, synthetic rows, or public "
        "HMDA"
    )
    path: str | tuple[str, ...] | None = Field(
        None,
        description="the file, or several of one layout. Looked for next to the spec, then in the working directory. "
        "A packed file (gz, zst, bz2, zip) is read as it is. `{year}` stands for the year of the audit",
    )
    member: str | None = Field(
        None,
        description="the table in a zip with several files, by its path in the zip; a pattern such as `loans-*.csv` "
        "reads all that match",
    )
    sheet: str | None = Field(None, description="of excel: the sheet; the first that is not hidden if left out")
    synthetic: Synthetic | None = Field(None, description="what to draw, of the kind `synthetic`")
    header: tuple[str, ...] = Field((), description="names of the columns, where the file does not begin with them")
    skip: int = Field(0, ge=0, le=1_000_000, description="lines to leave out at the start of each file")
    foot: int = Field(
        0,
        ge=0,
        le=1_000_000,
        description="records at the end that are no applications, such as a total; refused as `footer`",
    )
    starts: tuple[int, ...] = Field(
        (),
        description="of text whose cells stand below each other, with blanks between them: the characters of a line, "
        "from 0, at which its cells begin; `delimiter` is a character that is in no cell",
    )
    comment: str | None = Field(None, min_length=1, description="lines that start with this text are no rows")
    delimiter: str = Field(",", description="one ASCII character; no quote and no line end")
    encoding: Encoding = Field("utf-8", description="of delimited text; a byte order mark is understood")
    quote: Literal["none", "double"] = Field("double", description="whether double quotes enclose cells")
    multiline: bool = Field(False, description="whether a cell in quotes may go over several lines")
    maximum_bytes: int = Field(64 * 10**9, ge=1, description="bytes of text, unpacked, at which reading stops")
    missing: tuple[Code, ...] = Field(
        ("", "NA"), description="texts that mean a missing value, in every column; an empty cell always does"
    )
    exempt: tuple[Code, ...] = Field(("Exempt",), description="texts that mean exempt from reporting")
    keep: dict[str, Keep] = Field(
        {},
        description="column -> rule for the rows to keep: a list of codes, a range, or `present`; other rows are "
        "refused (`filtered`)",
    )
    derive: dict[str, Derived] = Field(
        {},
        description="new column -> the column and the values it is made from, or the columns and their rules; a code "
        "that is not listed refuses its row",
    )
    rename: dict[str, str] = Field(
        {}, description="column of a file -> its name in this spec, in each file of csv, parquet and hmda that has it"
    )
    year: Annotated[Year, Field(ge=1990)] | None = Field(
        None, description="of HMDA: the year of activity that all rows must have; the year of the audit if null"
    )
    second_file: SecondFile | None = Field(
        None,
        validation_alias=AliasChoices("with", "second_file"),
        description="a second file with further columns, joined by a key",
    )
    proxy: Proxy | None = Field(
        None, description="race by surname and place, where the table has none (extra `evenhand[proxy]`)"
    )
    intake: Intake | None = Field(
        None, description="how cells are read: spellings, numbers, dates, bands; unchanged if null"
    )
    year_column: str | None = Field(
        None,
        description="of a table of your own: column with the year of each row, or its date by `intake`; activity_year "
        "or as_of_year if null",
    )
    policy: HmdaPolicy = Field(HmdaPolicy(), description="of HMDA: what is done where a file departs from its layout")
    vintage: VintageChoice | None = Field(
        None, description="of HMDA, instead of a path: the edition of a year in the lake; {} is the one frozen last"
    )
    vintage_file: str | None = Field(None, description="the vintage's file, which evenhand fills in")
    part: Part | None = Field(None, description="the partition that is read, which evenhand fills in")
    attribute_files: tuple[SecondFile, ...] = Field(
        (), description="the files of protected attributes (`protected[].file`), which evenhand fills in"
    )
    lender_name: str = Field(
        "",
        max_length=LONGEST_NAME,
        description="of HMDA: name of the lender for pages; from the panel of the year in the lake if empty",
    )
    lacking: tuple[str, ...] = Field(
        (), description="columns that the audit asks for and this year does not have; a back-fill fills it in"
    )

    _frame: Any = PrivateAttr(None)

    @classmethod
    def of_frame(cls, table: Any) -> Self:
        """A table in memory, whose columns are text; an empty text is a missing value."""
        source = cls(kind="frame", missing=("",), exempt=())
        source._frame = table
        return source

    @property
    def frame(self) -> Any:
        """The table of the kind `frame`; None where the spec was read from a file."""
        return self._frame

    @field_validator("delimiter")
    @classmethod
    def _parts_cells(cls, value: str) -> str:
        if len(value) != 1 or not value.isascii() or value in _NO_DELIMITER:
            raise ValueError("expected one ASCII character that parts cells, and no quote, line end or null character")
        return value

    @field_validator("starts")
    @classmethod
    def _rises(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if value and (value[0] < 0 or any(low >= high for low, high in pairwise(value))):
            raise ValueError("expected characters of a line from 0, each after the one before")
        return value

    @model_validator(mode="after")
    def _comment_can_be_found(self) -> Self:
        try:
            (self.comment or "").encode(self.encoding)
        except UnicodeEncodeError as error:
            text = f"{self.encoding} has no {error.object[error.start]!r}, with which `comment` begins or goes on"
            raise ValueError(f"{text}; give text of the file's own encoding") from error
        return self

    @model_validator(mode="after")
    def _says_once_what_to_read(self) -> Self:
        if self.path is not None and self.vintage is not None:
            raise ValueError(
                "path and vintage both say what to read; drop one (to use FILE: --set source.vintage=null)"
            )
        if self.rename and self.vintage is not None:
            raise ValueError(
                "`rename` is about a file, and a vintage has the names of the lake: "
                "evenhand data add FILE --replace --rename OLD=NEW"
            )
        if self.vintage_file is not None and self.vintage is None:
            raise ValueError("`vintage_file` is filled in by evenhand, of a vintage; a file of your own is `path`")
        return self

    @model_validator(mode="after")
    def _fits_its_kind(self) -> Self:
        if self.kind in ("boston1990", "synthetic", "frame") and self.path is not None:
            raise ValueError(
                f"a source of kind {self.kind!r} reads no file; leave out path, or give a kind that reads it"
            )
        if self.kind in TABLE_KINDS and not self.paths:
            raise ValueError(f"a source of kind {self.kind!r} needs a path")
        if (self.kind == "synthetic") != (self.synthetic is not None):
            raise ValueError(
                "a source of kind 'synthetic' needs `synthetic: {generator: ...}`, and no other kind has it"
            )
        for names, kinds, words in _BELONGING:
            for name in names:
                if self.kind not in kinds and getattr(self, name) != type(self).model_fields[name].default:
                    raise ValueError(f"`{name}` belongs to {words}, not to {self.kind}")
        if len(set(self.rename.values())) < len(self.rename):
            raise ValueError("`rename` gives one name to several columns; every column needs its own name")
        self._check_hmda()
        twice = sorted({name for name in self.header if self.header.count(name) > 1})
        if twice:
            raise ValueError(f"`header` names {twice} more than once; every column needs its own name")
        return self

    def _check_hmda(self) -> None:
        if self.kind == "hmda" and not self.paths and self.vintage is None:
            raise ValueError(
                "a source of kind 'hmda' needs a path, or `vintage: {}` for the newest that the lake holds"
            )
        for name in ("year", "policy", "vintage"):
            if self.kind != "hmda" and getattr(self, name) != type(self).model_fields[name].default:
                raise ValueError(f"`{name}` belongs to a source of kind hmda, not to {self.kind}")

    @property
    def paths(self) -> tuple[str, ...]:
        """The files in the order in which they are read."""
        path = self.path or self.vintage_file
        declared = (path,) if isinstance(path, str) else path or ()
        return tuple(path for path in declared if path)

    @property
    def second_files(self) -> tuple[SecondFile, ...]:
        """The further files that are joined by a key, in the order in which they are."""
        return (*([self.second_file] if self.second_file else []), *self.attribute_files)

    @property
    def words(self) -> str:
        """Description of the source for people: the vintage or the file names, without their folders."""
        description = self._file_words()
        return description if self.part is None else f"{self.part.column} {self.part.value} of {description}"

    def identifying(self) -> dict[str, Any]:
        """What identifies the rows in addition to their digest: file names or the vintage, without folders.

        A partition is its own rows, whatever file or vintage they are in.
        """
        names = self._names() if self.vintage_file is None else []
        late = {name for name in _LATE_KEYS if getattr(self, name) == type(self).model_fields[name].default}
        said = {**self.model_dump(mode="json", exclude={"vintage_file", "lender_name", *late}), "path": names}
        if self.part is None and self.vintage_file is not None:
            said["vintage_file"] = "/".join(folder_of(self.vintage_file))
        for file in (said.get("second_file"), *said.get("attribute_files", ())):
            if file:
                file["path"] = name_of(file["path"])
        return said

    def lying_at(self, files: tuple[str, ...]) -> Self:
        """The same source with the places of its files."""
        one = files[0] if isinstance(self.path, str) else files
        return self.model_copy(update={"path": one})

    def joining(self, files: Sequence[str]) -> Self:
        """The same source with the places of its further files, in the order of ``second_files``."""
        placed = [file.model_copy(update={"path": path}) for file, path in zip(self.second_files, files, strict=True)]
        second = placed.pop(0) if self.second_file else None
        return self.model_copy(update={"second_file": second, "attribute_files": tuple(placed)})

    def _names(self) -> list[str]:
        return [name_of(path) for path in self.paths]

    def _file_words(self) -> str:
        if self.vintage_file is not None:
            return words_of(self.vintage_file)
        return " and ".join(self._names()) or self.kind
