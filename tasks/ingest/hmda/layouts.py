"""Published layouts of HMDA files, and recognition of a file's layout."""

import codecs
import csv
import gzip
import re
import shutil
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BufferedIOBase
from itertools import accumulate, chain
from pathlib import Path, PurePosixPath
from typing import IO, Literal

from schemas.errors import DataQualityError, InfrastructureError
from tasks.ingest.hmda import submission
from tasks.ingest.sources.delimited_text import Dialect, Records, whole_lines
from tasks.ingest.sources.raw import check_regular

# --------------------------------------------------------------------------------------------------------------------
# Opens a delivered file as plain text: as it is, from gzip, or from the one member of a zip archive.
#
# What comes from elsewhere is not trusted: a zip member is written under a name of our own, and nothing grows beyond
# what its packing makes plausible. What the text says is not looked at here.


_CHUNK = 4 * 2**20
_HEAD = 2**20
_ARCHIVES = 2
"""Levels of archives: a file set that holds the publisher's own zip."""
_NOT_ROWS = ("__MACOSX/", ".DS_Store")
"""What computers put into an archive beside its files."""


@dataclass(frozen=True)
class Limits:
    """How far a packed file may grow. The largest year is 11 GB of text, and HMDA packs to a tenth or so."""

    size: int = 64 * 2**30
    """Bytes of text."""
    ratio: float = 100.0
    """Bytes of text for a byte of the packed file; the first 16 MiB are free."""

    def allowed(self, packed: int) -> int:
        """Bytes to which a packed file of this size may grow."""
        return min(self.size, max(int(packed * self.ratio), 2**24))


@dataclass(frozen=True)
class Opened:
    """A file that can be read as it lies."""

    path: Path
    compression: Literal["none", "gzip"]
    encoding: Literal["utf-8", "latin-1"]
    """Latin-1 where some byte of the whole file is not UTF-8."""
    head: bytes
    """The first MiB of the text, without a byte order mark."""
    whole: bool
    """Whether the head is all of it."""
    lines: int
    """Lines of the whole file, blank ones and a last one without an end included."""
    line_end: str
    delimiter: str
    """Comma, pipe, tab or semicolon: that of which the first line has most."""


def opened(path: Path, scratch: Path, limits: Limits | None = None) -> Opened:
    """The file, or what a zip archive holds, written into ``scratch``. Every byte is read once, for its encoding.

    Raises:
        DataQualityError: it is empty or no text; an archive without exactly one plain member, with a password, cut
            short, or of such a packing that it can only be meant to fill a disk; a quote that is not closed in its
            line, or a line without end.
        SpecError: it is a directory, a FIFO or a device.
        InfrastructureError: it cannot be read, or the disk is too small for what it holds.
    """
    limits = limits or Limits()
    check_regular(path)
    try:
        magic = _first_bytes(path)
        if magic == b"PAR1":
            raise DataQualityError(
                f"{path.name} is Parquet, and files of HMDA are delivered as text, plain or packed; an audit takes a "
                "vintage's rows (applications) as source.path, and other Parquet as kind: parquet"
            )
        plain, folder = path, scratch
        for _ in range(_ARCHIVES):
            if magic.startswith(b"PK"):
                plain, folder = _extracted(plain, folder, limits), folder / "inner"
                magic = _first_bytes(plain)
        if magic.startswith(b"PK"):
            raise DataQualityError(f"{path.name} holds a zip in a zip in a zip: unpack it and give the file of rows")
        compression: Literal["none", "gzip"] = "gzip" if magic.startswith(b"\x1f\x8b") else "none"
        if (form := _form(plain, compression)) is not None:
            plain, compression = _rewritten(plain, compression, form, scratch, limits), "none"
        return _text(plain, compression, limits, path.name)
    except (zipfile.BadZipFile, NotImplementedError, gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise DataQualityError(f"{path.name} is damaged or cut short ({error}): fetch it again") from error
    except OSError as error:
        why = error.strerror or error
        raise InfrastructureError(
            f"{str(path)!r} cannot be read ({why}): see whether it is a file that this user may read"
        ) from error


def _first_bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(4)


def _extracted(path: Path, scratch: Path, limits: Limits) -> Path:
    """The archive's member in ``scratch``, under the archive's name: it does not say itself where it is written."""
    with zipfile.ZipFile(path) as archive:
        member = _only_member(archive, path.name)
        allowed = limits.allowed(member.compress_size)
        if member.file_size > allowed:
            raise _bomb(path.name, member.file_size, allowed)
        scratch.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(scratch).free
        if member.file_size > free:
            raise InfrastructureError(
                f"{path.name} holds {member.file_size:,} bytes and {scratch} has {free:,} free: make room, or unpack it"
            )
        target = scratch / f"{path.name}.txt"
        with archive.open(member) as packed, target.open("wb") as plain:
            for chunk in _chunks(packed, allowed, path.name):
                plain.write(chunk)
    return target


def _only_member(archive: zipfile.ZipFile, name: str) -> zipfile.ZipInfo:
    members = [member for member in archive.infolist() if not member.filename.startswith(_NOT_ROWS)]
    if len(members) != 1:
        raise DataQualityError(
            f"{name} holds {len(members)} members, and one file of rows is expected: unpack it and give the file"
        )
    member = members[0]
    inside = PurePosixPath(member.filename.replace("\\", "/"))
    if member.is_dir() or inside.is_absolute() or len(inside.parts) != 1 or ".." in inside.parts or ":" in str(inside):
        raise DataQualityError(
            f"{name} holds {member.filename!r}, which is a path and no plain file name: this is no file of the "
            "publisher; unpack it yourself if you trust it, and give the file"
        )
    if member.flag_bits & 0x1:
        raise DataQualityError(f"{name} is locked by a password: unpack it and give the file")
    return member


def _chunks(stream: IO[bytes] | BufferedIOBase, allowed: int, name: str) -> Iterator[bytes]:
    """The bytes of a stream, up to the allowed number, regardless of the declared size."""
    total = 0
    while chunk := stream.read(_CHUNK):
        total += len(chunk)
        if total > allowed:
            raise _bomb(name, total, allowed)
        yield chunk


_SEPARATOR = re.compile(r"""["']?sep=.["']?[ ,;|\t]*""", re.IGNORECASE)
"""A first line with the mark between cells, as spreadsheets write it."""


@dataclass(frozen=True)
class _Form:
    """How a file is written that DuckDB does not read as it lies."""

    encoding: str
    skips_first: bool
    """Whether its first line names the mark between cells (`sep=|`), as spreadsheets write it."""
    cuts_marks: bool
    """Whether the lines of a submission end with marks behind their last field."""


def _form(path: Path, compression: Literal["none", "gzip"]) -> _Form | None:
    """Whether a file is UTF-16, begins with `sep=`, or has lines that end with marks; None of another file."""
    with _unpacked(path, compression) as stream:
        head = stream.read(2**16)
    encoding = _wide(head) or "utf-8"
    lines = head.decode(encoding, errors="ignore").removeprefix("\ufeff").lstrip(" \r\n").splitlines()
    skips_first = bool(lines) and _SEPARATOR.fullmatch(lines[0]) is not None
    first = lines[skips_first : skips_first + 3]
    cuts = bool(first) and any(submission.without_marks(line) != line for line in first)
    return _Form(encoding, skips_first, cuts) if encoding != "utf-8" or skips_first or cuts else None


def begins_as_submission(path: Path) -> bool:
    """Whether a file that is not packed begins as a lender's own submission, by its first line alone."""
    with path.open("rb") as file:
        head = file.read(2**16)
    lines = head.decode(_wide(head) or "utf-8", errors="replace").removeprefix("\ufeff").lstrip().splitlines()
    line = next((line for line in lines if not _SEPARATOR.fullmatch(line)), "")
    return submission.begins_one(submission.without_marks(line).encode())


def _wide(head: bytes) -> str | None:
    """UTF-16 by its mark, or by the zeros in every other of its first bytes; None of another encoding."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    zeros = [not any(head[start:64:2]) for start in (0, 1)]
    if len(head) < 8 or sum(zeros) != 1 or 0 in head[zeros.index(False) : 64 : 2]:
        return None
    return "utf-16-be" if zeros[0] else "utf-16-le"


def _unpacked(path: Path, compression: Literal["none", "gzip"]) -> IO[bytes] | gzip.GzipFile:
    return gzip.open(path) if compression == "gzip" else path.open("rb")


def _rewritten(path: Path, compression: Literal["none", "gzip"], form: _Form, scratch: Path, limits: Limits) -> Path:
    """The file as UTF-8 in ``scratch``, without the line and the marks that are no part of its rows."""
    packed = path.stat().st_size
    allowed = limits.allowed(packed) if compression == "gzip" else packed
    decoder, target = codecs.getincrementaldecoder(form.encoding)(errors="surrogateescape"), scratch / "rows.txt"
    scratch.mkdir(parents=True, exist_ok=True)
    skips, rest = form.skips_first, ""
    with _unpacked(path, compression) as stream, target.open("wb") as plain:
        for chunk in chain(_chunks(stream, allowed, path.name), (b"",)):
            try:
                text = rest + decoder.decode(chunk, final=not chunk)
            except UnicodeDecodeError as error:
                raise DataQualityError(
                    f"{path.name} is UTF-16 and has bytes that are no characters, or is cut short: fetch it again, or "
                    "save it as UTF-8"
                ) from error
            text, rest = (text, "") if not chunk else (text[: (end := text.rfind("\n") + 1)], text[end:])
            text = text.removeprefix("\ufeff")
            if skips and text:
                text, skips = text.lstrip(" \r\n").partition("\n")[2], False
            if form.cuts_marks:
                text = "\n".join(map(submission.without_marks, text.split("\n")))
            plain.write(text.encode("utf-8", errors="surrogateescape"))
    return target


def _text(path: Path, compression: Literal["none", "gzip"], limits: Limits, name: str) -> Opened:
    packed = path.stat().st_size
    allowed = limits.allowed(packed) if compression == "gzip" else packed
    head, total, encoding, records = b"", 0, _Encoding(), Records(name, _dialect(b""))
    with _unpacked(path, compression) as stream:
        for chunk in whole_lines(_chunks(stream, allowed, name)):
            if not head.strip():
                records.dialect = _dialect(chunk)
            head += chunk[: _HEAD - len(head)]
            total += len(chunk)
            encoding.add(chunk)
            records.add(chunk.removeprefix(codecs.BOM_UTF8) if total == len(chunk) else chunk)
    records.finish()
    if not head.strip():
        raise DataQualityError(f"{name} is empty: rows of applications are expected")
    if b"\0" in head:
        raise DataQualityError(f"{name} is no text in UTF-8, UTF-16 or Latin-1: is it another kind of file?")
    head = head.removeprefix(codecs.BOM_UTF8)
    feeds, returns, pairs = records.line_feeds, records.returns, records.pairs
    if returns != pairs or pairs not in (0, feeds):
        raise DataQualityError(
            f"{name} has {feeds:,} line ends and {returns:,} carriage returns, {pairs:,} of them "
            "together as Windows has it: lines have to end alike, and cells to hold none; correct it or fetch it again"
        )
    line_end = "\r\n" if pairs else "\n"
    return Opened(
        *(path, compression, encoding.name, head, total <= _HEAD, records.lines, line_end),
        delimiter=records.dialect.delimiter.decode(),
    )


def _dialect(chunk: bytes) -> Dialect:
    """By the first line; what has none of these marks has columns of fixed widths, and a submission has no quotes."""
    first = chunk.removeprefix(codecs.BOM_UTF8).lstrip(b" \r\n").split(b"\n", 1)[0]
    delimiter = max((b",", b"|", b"\t", b";"), key=first.count)  # of equal counts the first
    return Dialect(delimiter, quoting=delimiter in first and not submission.begins_one(first))


class _Encoding:
    """UTF-8, as long as no byte contradicts it."""

    def __init__(self) -> None:
        self.name: Literal["utf-8", "latin-1"] = "utf-8"
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def add(self, chunk: bytes) -> None:
        if self.name == "latin-1" or (chunk.isascii() and not self._decoder.getstate()[0]):
            return
        try:
            self._decoder.decode(chunk)
        except UnicodeDecodeError:
            self.name = "latin-1"


def _bomb(name: str, size: int, allowed: int) -> DataQualityError:
    return DataQualityError(
        f"{name} grows to {size:,} bytes or more, and {allowed:,} are plausible for its packed size: not unpacked; "
        "unpack it yourself if you trust it, and give the file"
    )


# --------------------------------------------------------------------------------------------------------------------
# Published layouts of HMDA: names and order of their columns, and the years that they cover.
#
# Names are those of the files after ``normalised``: with underscores, in lower case. What the columns mean, and what
# becomes of their codes, is not said here. Columns and positions: FFIEC and CFPB record formats of 2004 to 2025.


Family = Literal["historic", "flat_2017", "modern", "canonical"]


@dataclass(frozen=True)
class Layout:
    """One published form of the loan application register."""

    name: str
    family: Family
    """Whose codes and units the columns hold."""
    years: tuple[int, int]
    """First and last year of activity that was published so."""
    columns: tuple[str, ...]
    """Names in the order of the file."""
    header: bool
    """Whether it was published with a first line that names the columns; some files come otherwise."""
    stops: tuple[int, ...] = ()
    """Of fixed width: the position, from 1, at which each column ends; the next begins after it."""


_SYNONYMS = {  # the header of a lender's Modified LAR says these otherwise
    "applicant_credit_scoring_model": "applicant_credit_score_type",
    "co_applicant_credit_scoring_model": "co_applicant_credit_score_type",
    "other_non_amortizing_features": "other_nonamortizing_features",
}


def normalised(name: str) -> str:
    """A column's normalised name: data browser and snapshot differ in hyphens only, with one exception."""
    plain = name.strip().lower().replace("-", "_")
    return _SYNONYMS.get(plain, plain)


def _names(text: str) -> list[str]:
    """Names between blanks; ``race:5`` means race_1 to race_5."""
    out = []
    for word in text.split():
        stem, colon, count = word.partition(":")
        out += [f"{stem}_{i}" for i in range(1, int(count) + 1)] if colon else [word]
    return out


_PEOPLE = _names("applicant_ethnicity co_applicant_ethnicity applicant_race:5 co_applicant_race:5")

_HISTORIC_TRACT = _names(
    "population minority_population hud_median_family_income tract_to_msamd_income "
    "number_of_owner_occupied_units number_of_1_to_4_family_units"
)

_HISTORIC_CODES = (
    *_names("as_of_year respondent_id agency_code loan_type property_type loan_purpose owner_occupancy"),
    *_names("loan_amount_000s preapproval action_taken msamd state_code county_code census_tract_number"),
    *_PEOPLE,
    *_names("applicant_sex co_applicant_sex applicant_income_000s purchaser_type denial_reason:3"),
    *_names("rate_spread hoepa_status lien_status edit_status sequence_number"),
    *_HISTORIC_TRACT,
    "application_date_indicator",
)

_WITHOUT_LABEL = {
    *_names("as_of_year respondent_id loan_amount_000s census_tract_number applicant_income_000s rate_spread"),
    *("sequence_number", *_HISTORIC_TRACT, "application_date_indicator"),
}


def _labels_of(column: str) -> list[str]:
    """The columns with the words for a code; they come before it."""
    if column in _WITHOUT_LABEL:
        return []
    stem, _, last = column.rpartition("_")
    if last.isdigit():
        return [f"{stem}_name_{last}"]
    if column in ("agency_code", "state_code"):
        return [f"{stem}_name", f"{stem}_abbr"]
    return [f"{stem if last == 'code' else column}_name"]


_HISTORIC_LABELS = tuple(name for column in _HISTORIC_CODES for name in (*_labels_of(column), column))

_SLICE_NUMBERS = _names(
    "tract_to_msamd_income rate_spread population minority_population number_of_owner_occupied_units "
    "number_of_1_to_4_family_units loan_amount_000s hud_median_family_income applicant_income_000s"
)
_SLICE_TEXTS = {label for column in _HISTORIC_CODES for label in _labels_of(column)} | _WITHOUT_LABEL
_HISTORIC_SLICE = (*_SLICE_NUMBERS, *sorted(_SLICE_TEXTS - set(_SLICE_NUMBERS), reverse=True))

_NARA = (
    *_names("as_of_year respondent_id agency_code loan_type loan_purpose owner_occupancy loan_amount_000s"),
    *_names("action_taken msamd state_code county_code census_tract_number applicant_sex co_applicant_sex"),
    *_names("applicant_income_000s purchaser_type denial_reason:3 edit_status property_type preapproval"),
    *_PEOPLE,
    *_names("rate_spread hoepa_status lien_status sequence_number"),
)
_NARA_WIDER = {  # all others are codes of one character
    **{"as_of_year": 4, "respondent_id": 10, "loan_amount_000s": 5, "msamd": 5, "state_code": 2, "county_code": 3},
    **{"census_tract_number": 7, "applicant_income_000s": 4, "rate_spread": 5, "sequence_number": 7},
}
_NARA_STOPS = tuple(accumulate(_NARA_WIDER.get(name, 1) for name in _NARA))

_TRACT = _names(
    "tract_population tract_minority_population_percent ffiec_msa_md_median_family_income "
    "tract_to_msa_income_percentage tract_owner_occupied_units"
)
_DERIVED = _names("derived_loan_product_type derived_dwelling_category derived_ethnicity derived_race derived_sex")

_FLAT_2017 = (
    *_names("activity_year respondent_id agency_code loan_type property_type loan_purpose occupancy_type"),
    *_names("loan_amount preapproval action_taken msa_md state_code county_code census_tract"),
    *_PEOPLE,
    *_names("applicant_sex co_applicant_sex income purchaser_type denial_reason:3"),
    *_names("rate_spread hoepa_status lien_status"),
    *(*_TRACT, "tract_one_to_four_family_units"),
)

_MODERN_PEOPLE = _names(
    "applicant_ethnicity:5 co_applicant_ethnicity:5 applicant_ethnicity_observed co_applicant_ethnicity_observed "
    "applicant_race:5 co_applicant_race:5 applicant_race_observed co_applicant_race_observed "
    "applicant_sex co_applicant_sex applicant_sex_observed co_applicant_sex_observed"
)
_COSTS = _names("total_loan_costs total_points_and_fees origination_charges discount_points lender_credits")
_SCORES = _names("applicant_credit_score_type co_applicant_credit_score_type")
_DWELLING = _names(
    "manufactured_home_secured_property_type manufactured_home_land_property_interest total_units "
    "multifamily_affordable_units"
)

_PUBLIC_LAR = (
    *_names("activity_year lei derived_msa_md state_code county_code census_tract conforming_loan_limit"),
    *_DERIVED,
    *_names("action_taken purchaser_type preapproval loan_type loan_purpose lien_status reverse_mortgage"),
    *_names("open_end_line_of_credit business_or_commercial_purpose loan_amount combined_loan_to_value_ratio"),
    *_names("interest_rate rate_spread hoepa_status"),
    *_COSTS,
    *_names("loan_term prepayment_penalty_term intro_rate_period negative_amortization interest_only_payment"),
    *_names("balloon_payment other_nonamortizing_features property_value construction_method occupancy_type"),
    *(*_DWELLING, "income", "debt_to_income_ratio", *_SCORES, *_MODERN_PEOPLE),
    *_names("applicant_age co_applicant_age applicant_age_above_62 co_applicant_age_above_62"),
    *_names("submission_of_application initially_payable_to_institution aus:5 denial_reason:4"),
    *(*_TRACT, "tract_one_to_four_family_homes", "tract_median_age_of_housing_units"),
)

_MODIFIED_LAR = (
    *_names("activity_year lei loan_type loan_purpose preapproval construction_method occupancy_type"),
    *_names("loan_amount action_taken state_code county_code census_tract"),
    *_MODERN_PEOPLE,
    *_names("applicant_age applicant_age_above_62 co_applicant_age co_applicant_age_above_62 income"),
    *_names("purchaser_type rate_spread hoepa_status lien_status"),
    *_SCORES,
    *_names("denial_reason:4"),
    *_COSTS,
    *_names("interest_rate prepayment_penalty_term debt_to_income_ratio combined_loan_to_value_ratio loan_term"),
    *_names("intro_rate_period balloon_payment interest_only_payment negative_amortization"),
    *("other_nonamortizing_features", "property_value", *_DWELLING),
    *_names("submission_of_application initially_payable_to_institution aus:5"),
    *_names("reverse_mortgage open_end_line_of_credit business_or_commercial_purpose"),
)

_DATA_BROWSER = tuple("loan_to_value_ratio" if c == "combined_loan_to_value_ratio" else c for c in _PUBLIC_LAR)

_NO_LAST = 9999
"""The modern layouts have no last year yet."""

LAYOUTS: tuple[Layout, ...] = (
    Layout("historic_labels", "historic", (2007, 2017), _HISTORIC_LABELS, header=True),
    Layout("historic_codes", "historic", (2007, 2017), _HISTORIC_CODES, header=True),
    Layout("historic_slice", "historic", (2007, 2017), _HISTORIC_SLICE, header=True),
    Layout("nara_fixed", "historic", (2004, 2013), _NARA, header=False, stops=_NARA_STOPS),
    # A file of 2017 with 45 fields is of this layout: the three more than 42 are what it had before.
    Layout("ffiec_flat", "historic", (2014, 2017), _HISTORIC_CODES, header=False),
    Layout("flat_2017", "flat_2017", (2017, 2017), _FLAT_2017, header=False),
    Layout("flat_2017_three_year", "flat_2017", (2017, 2017), (*_FLAT_2017, *_DERIVED), header=False),
    Layout("public_lar", "modern", (2018, _NO_LAST), _PUBLIC_LAR, header=True),
    Layout("data_browser", "modern", (2018, _NO_LAST), _DATA_BROWSER, header=True),
    Layout("modified_lar", "modern", (2018, _NO_LAST), _MODIFIED_LAR, header=True),
)
SUBMISSION = Layout(submission.NAME, "modern", (2018, _NO_LAST), submission.FIELDS, header=False)
"""A lender's own submission, which is not published: no header is held against its names."""
BY_NAME = {layout.name: layout for layout in (*LAYOUTS, SUBMISSION)}


# --------------------------------------------------------------------------------------------------------------------
# Recognises the layout of a file by its content: header, number of fields, and the shapes of values.
#
# The name of a file is never asked. What does not fit is an error that says what was found; a few broken lines are not,
# they are counted where the rows are read.


_SAMPLE_ROWS = 2000
_LEAST_COLUMNS = 3
_MOST_CHARACTERS = 131_072
"""Of a cell. Python's own limit is one for the process, and libraries raise it."""

_SHAPES = {  # of the columns by which one layout is told from another; blank cells say nothing
    **dict.fromkeys(("activity_year", "as_of_year"), r"(19|20)\d\d"),
    "lei": r"[0-9A-Za-z]{20}",
    "agency_code": r"[1-9]",
    "action_taken": r"[1-8]",
    "loan_type": r"[1-4]",
    "loan_purpose": r"[1-5]|31|32",
    "preapproval": r"[1-3]",
    **dict.fromkeys(("action_taken_name", "loan_type_name", "loan_purpose_name"), r"[A-Za-z].*"),
    **dict.fromkeys(("applicant_race_1", "co_applicant_race_1"), r"[1-8]|2[1-7]|4[1-4]"),
    **dict.fromkeys(("lien_status", "occupancy_type", "owner_occupancy"), r"[1-4]"),
    **dict.fromkeys(("loan_amount", "loan_amount_000s", "tract_population", "population"), r"[-+0-9.eE]+|NA|Exempt"),
}
_YEARS = ("activity_year", "as_of_year")
_RATIO = "debt_to_income_ratio"
FILLER = "no_field"
"""Name of what stands behind the mark at the end of each line: nothing."""
_FIXED = BY_NAME["nara_fixed"]
"""The one layout of fixed width."""


@dataclass(frozen=True)
class Recognised:
    """A file and how it is to be read."""

    path: Path
    """A file that DuckDB reads as it is: text, packed by gzip or not, or Parquet of the canonical layout."""
    layout: Layout
    delimiter: str
    """Empty where the columns have fixed widths."""
    encoding: Literal["utf-8", "latin-1"]
    columns: tuple[str, ...]
    """Names in the order of the file, normalised."""
    missing: tuple[str, ...] = ()
    """Columns of the layout that the file has not."""
    unknown: tuple[str, ...] = ()
    """Columns of the file that the layout has not."""
    header: bool = True
    """Whether the first line is a header, or the transmittal sheet of a submission."""
    compression: Literal["none", "gzip"] = "none"
    line_end: str = "\n"
    lines: int = 0
    """Lines of the file, its header included."""
    sheet: submission.Sheet | None = None
    """Of a submission, if it has one."""
    exact_ratio: bool = False
    """Whether debt-to-income ratios are exact numbers in place of published bands."""

    @property
    def given(self) -> tuple[str, ...]:
        """Columns that leave the reader, by which canonical columns are made."""
        return submission.GIVEN if self.layout is SUBMISSION else self.columns

    @property
    def restricted(self) -> bool:
        """Whether it is a lender's own file: only its counts may be printed."""
        return self.layout is SUBMISSION


def recognise(
    path: Path, scratch: Path, limits: Limits | None = None, rename: Mapping[str, str] | None = None
) -> Recognised:
    """The layout of a file.

    Args:
        path: the file.
        scratch: where the member of a zip archive is written; it stays the caller's.
        limits: of the file.
        rename: name in the header -> the name by which the column is read.

    Raises:
        DataQualityError: no known layout; a header over rows of another layout; rows of a year that was not published
            so; a lender's own submission; or the file cannot be opened (see ``opening``).
        InfrastructureError: the file cannot be read, or the disk is too small.
    """
    return _recognised(path, opened(path, scratch, limits), rename or {})[0]


def _recognised(path: Path, file: Opened, rename: Mapping[str, str]) -> tuple[Recognised, list[list[str]]]:
    """The layout of an opened file, and the first records below its header; none of fixed widths."""
    lines = _lines(file)
    if not lines:
        raise DataQualityError(f"{path.name} has blank lines alone: rows of applications are expected")
    if file.head.lstrip()[:1] == b"<":
        raise DataQualityError(f"{path.name} is a web page and no data: the download failed, fetch it again")
    sheet, exact, records = None, False, list[list[str]]()
    if _is_fixed(lines):
        layout, names, has_header = _fixed(path.name, lines), list(_FIXED.columns), False
    else:
        records = _records(path.name, lines, file.delimiter)
        if submission.is_submission(records):
            sheet = submission.sheet_of(path.name, records)
            layout, names, has_header = SUBMISSION, list(SUBMISSION.columns), sheet is not None
        else:
            layout, names, has_header = _delimited(path.name, records, rename)
            exact = _is_exact(names, records[has_header:])
    layout_names, file_names = set(layout.columns), set(names)
    recognised = Recognised(
        *(file.path, layout, "" if layout.stops else file.delimiter, file.encoding, tuple(names)),
        missing=tuple(name for name in layout.columns if name not in file_names),
        unknown=tuple(name for name in names if name not in layout_names and name != FILLER),
        header=has_header,
        compression=file.compression,
        line_end=file.line_end,
        lines=file.lines,
        sheet=sheet,
        exact_ratio=exact,
    )
    return recognised, records[has_header:]


@dataclass(frozen=True)
class Outline:
    """What the first rows of a file say of all of them."""

    layout: str
    rows: int
    """Lines without a header or a sheet."""
    years: tuple[int, ...]
    """In order; none where it has no such column."""
    lenders: frozenset[str]
    """LEIs; none of years before 2018."""
    states: frozenset[str]


def outlined(path: Path, scratch: Path) -> tuple[Recognised, Outline]:
    """The layout of a file, and what it is by its first rows.

    Raises:
        DataQualityError, InfrastructureError: as ``recognise`` says.
    """
    file = opened(path, scratch)
    recognised, records = _recognised(path, file, {})
    rows, sheet = recognised.lines - recognised.header, recognised.sheet
    if recognised.layout.stops:
        years = {line[: _FIXED.stops[0]] for line in _lines(file)}
        return recognised, Outline(recognised.layout.name, rows, _years(years), frozenset(), frozenset())
    below = [row for row in records if len(row) == len(recognised.columns)]
    cells = {name: {_plain(row[i]) for row in below} for i, name in enumerate(recognised.columns)}
    if recognised.layout is SUBMISSION:
        years = submission.year_of(sheet, below)
    else:
        years = next((cells[name] for name in _YEARS if name in cells), set())
    filed = {sheet.lei} if sheet else cells.get("lei", set())
    leis = {cell for cell in filed if re.fullmatch(_SHAPES["lei"], cell)}
    states = {cell for cell in cells.get("state_code", ()) if re.fullmatch("[A-Z]{2}", cell) and cell != "NA"}
    return recognised, Outline(recognised.layout.name, rows, _years(years), frozenset(leis), frozenset(states))


def _years(texts: Iterable[str]) -> tuple[int, ...]:
    return tuple(sorted({int(year) for year in texts if re.fullmatch(_SHAPES["as_of_year"], year)}))


def _lines(file: Opened) -> list[str]:
    """The first lines of the text; one that the head cuts through is left out."""
    lines = file.head.decode(file.encoding, errors="ignore").split(file.line_end)
    complete = lines if file.whole or len(lines) < 2 else lines[:-1]
    return [line for line in complete if line.strip()][: _SAMPLE_ROWS + 1]


def _plain(cell: str) -> str:
    """A code without blanks and without the decimals that spreadsheets and data frames append."""
    return re.sub(r"\.0+$", "", cell.strip())


def _records(name: str, lines: Sequence[str], delimiter: str) -> list[list[str]]:
    if submission.begins_one(lines[0].encode()):  # its quotes are letters, as in a street's name
        return [line.split(delimiter) for line in lines]
    try:
        records = [record for record in csv.reader(lines, delimiter=delimiter) if record]
        if any(len(cell) > _MOST_CHARACTERS for record in records for cell in record):
            raise csv.Error(f"a cell of more than {_MOST_CHARACTERS:,} characters")
    except csv.Error as error:
        raise DataQualityError(f"{name}: its first lines do not split into cells ({error}); correct it") from error
    return records


def _is_fixed(lines: Sequence[str]) -> bool:
    """Whether most lines are as long as a record of the National Archives, and begin with a year."""
    record = _FIXED.stops[-1]
    fits = [record in (len(line), len(line.rstrip())) and re.match(_SHAPES["as_of_year"], line) for line in lines]
    return sum(map(bool, fits)) * 2 > len(lines)


def _fixed(name: str, lines: Sequence[str]) -> Layout:
    starts = (0, *_FIXED.stops[:-1])
    records = [[line[a:b].strip() for a, b in zip(starts, _FIXED.stops, strict=True)] for line in lines]
    if wrong := _misfits(_FIXED, _FIXED.columns, records):
        raise DataQualityError(f"{name} has lines of {_FIXED.stops[-1]} characters, and yet {_told(wrong)}")
    return _FIXED


def _delimited(
    name: str, records: Sequence[Sequence[str]], rename: Mapping[str, str]
) -> tuple[Layout, list[str], bool]:
    """The layout, the names of the file's columns, and whether the first record is a header."""
    names = [normalised(cell) or f"unnamed_{i}" for i, cell in enumerate(records[0], start=1)]
    other_names = {normalised(before): now for before, now in rename.items()}
    names = [other_names.get(name, name) for name in names]
    layout_columns = {name for layout in LAYOUTS for name in layout.columns}
    is_header = sum(name in layout_columns for name in names) * 2 > len(names)
    if not is_header:
        layout = _by_count(name, records)
        return layout, [*layout.columns, FILLER][: max(len(layout.columns), len(records[0]))], False
    if not records[0][-1].strip() and _ends_blank(records):
        names[-1] = FILLER
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise DataQualityError(f"{name}: the header names {twice} more than once; every column needs its own name")
    counts = Counter(map(len, records[1:]))
    usual = counts.most_common(1)[0][0] if counts else len(names)
    if usual != len(names):
        of = [layout.name for layout in LAYOUTS if len(layout.columns) == usual]
        hint = f", as in layout {' or '.join(of)}" if of else ""
        raise DataQualityError(
            f"{name} has a header of {len(names)} columns over rows of {usual} fields{hint}: header and body are of "
            "different layouts; fetch the file again, or take the header that belongs to it"
        )
    return _by_names(name, names, records[1:]), names, True


def _by_names(name: str, names: Sequence[str], rows: Sequence[Sequence[str]]) -> Layout:
    """The layout with the most columns with fitting values, and of several the one with fewest missing columns."""
    shared = {layout.name: len(set(names) & set(layout.columns)) for layout in LAYOUTS}
    most = max(shared.values())
    if most < _LEAST_COLUMNS:
        raise DataQualityError(f"{name} has {most} columns of HMDA, too few to know their layout; use kind: csv")
    equal = [layout for layout in LAYOUTS if shared[layout.name] == most]
    fitting = [layout for layout in equal if not _misfits(layout, names, rows)]
    if not fitting:
        wrong = _misfits(equal[0], names, rows)
        raise DataQualityError(
            f"{name} has the header of layout {equal[0].name}, and below it {_told(wrong)}: header and body are of "
            "different layouts, or the file is of another year"
        )
    if len({layout.family for layout in fitting}) > 1:
        raise DataQualityError(
            f"{name}: its columns fit {' and '.join(layout.name for layout in fitting)} alike, with different codes; "
            "a file with more of its columns is needed"
        )
    return min(fitting, key=lambda layout: (len(layout.columns), not layout.header))


def _by_count(name: str, records: Sequence[Sequence[str]]) -> Layout:
    """The layout with as many columns as most lines have fields, and with fitting values; without header first.

    A mark behind the last field of every line ends no field of its own.
    """
    count = Counter(map(len, records)).most_common(1)[0][0]
    rows = [record for record in records if len(record) == count]
    cut = [record[:-1] for record in rows] if _ends_blank(records) else []
    for width, cells in ((count, rows), (count - 1, cut)):
        of_length = [layout for layout in LAYOUTS if len(layout.columns) == width and not layout.stops and cells]
        for layout in sorted(of_length, key=lambda layout: layout.header):
            if not _misfits(layout, layout.columns, cells):
                return layout
    layout_list = ", ".join(f"{len(layout.columns)} ({layout.name})" for layout in LAYOUTS)
    of_length = [layout for layout in LAYOUTS if len(layout.columns) == count and not layout.stops]
    closest_layout = (
        f"; as {of_length[0].name}, {_told(_misfits(of_length[0], of_length[0].columns, rows))}" if of_length else ""
    )
    raise DataQualityError(
        f"{name} begins with no header of HMDA, and its rows of {count} fields fit no layout"
        f"{closest_layout}. Known are {layout_list} columns; other files: use kind: csv"
    )


def _ends_blank(records: Sequence[Sequence[str]]) -> bool:
    return not any(record[-1].strip() for record in records)


def _is_exact(names: Sequence[str], rows: Iterable[Sequence[str]]) -> bool:
    """Whether a file has a debt-to-income ratio that the publisher would have put into a band."""
    if _RATIO not in names:
        return False
    at = names.index(_RATIO)
    values = {_plain(row[at]) for row in rows if len(row) == len(names)}
    return any(re.fullmatch(r"\d+\.\d+|[0-2]?\d|3[0-5]|[5-9]\d|\d{3,}", value) for value in values)


def _misfits(layout: Layout, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[tuple[str, str]]:
    """Columns where most values have another shape, or years that were not published so, each with such a value."""
    wrong = []
    full_rows = [row for row in rows if len(row) == len(columns)]
    for i, column in enumerate(columns):
        if column not in _SHAPES or column not in layout.columns:
            continue
        values = [_plain(row[i]) for row in full_rows]
        filled_values = [value for value in values if value and value != "NA"]
        odd = [value for value in filled_values if not _fits(layout, column, value)]
        if len(odd) * 2 > len(filled_values):
            wrong.append((column, odd[0]))
    return wrong


def _fits(layout: Layout, column: str, value: str) -> bool:
    if not re.fullmatch(_SHAPES[column], value):
        return value in ("Exempt", "1111")
    return column not in _YEARS or layout.years[0] <= int(value) <= layout.years[1]


def _told(wrong: Sequence[tuple[str, str]]) -> str:
    return "most values of " + ", ".join(f"{column} are like {value!r}" for column, value in wrong[:3])
