"""Writes the files of a twin block by block: rows in a published layout, and the truth beside them."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from schemas.errors import SpecError, nearest
from tasks.ingest.hmda.files.layouts import BY_NAME
from tasks.ingest.synthetic.twin import historic, modern, truth
from tasks.ingest.synthetic.twin.algorithm.drawing import Twin, blocks
from tasks.ingest.synthetic.twin.algorithm.settings import YEARS, TwinSettings
from tasks.ingest.synthetic.twin.modern import Columns


class _Form(NamedTuple):
    columns: Callable[[Twin], Columns]
    delimiter: str
    header: Callable[[str], str]
    """What the file calls a column."""
    suffix: str


@dataclass(frozen=True)
class Written:
    """What was written, and where."""

    rows: Path
    truth: Path
    count: int


def write(folder: Path, settings: TwinSettings, year: int, layout: str, seed: int) -> Written:
    """Write ``hmda_twin_YEAR_LAYOUT.txt`` or ``.csv``, and the truth beside it as Parquet.

    Args:
        folder: Made if it is not there.
        settings: What is drawn; its year gives way to ``year``.
        year: Of activity.
        layout: ``public_lar`` (pipes) or ``data_browser`` (commas) from 2018, ``historic_codes`` before.
        seed: The same seed, settings and layout give the same bytes.

    Raises:
        SpecError: There is no such layout, the year was not published in it, or a parameter is not what it has to be.
    """
    form = _form_of(layout, year)
    folder.mkdir(parents=True, exist_ok=True)
    rows = folder / f"hmda_twin_{year}_{layout}{form.suffix}"
    asked = replace(settings, year=year)
    written = Written(rows, rows.with_suffix(".truth.parquet"), asked.size)
    drafts = replace(written, rows=_draft(written.rows), truth=_draft(written.truth))
    try:
        _write(drafts, form, layout, blocks(asked, np.random.default_rng(seed)))
    except ValueError as error:
        raise SpecError(str(error)) from error
    drafts.rows.replace(written.rows)
    drafts.truth.replace(written.truth)
    return written


def _form_of(layout: str, year: int) -> _Form:
    if layout not in FORMS:
        raise SpecError(f"a twin has no layout {layout!r}; {nearest(layout, list(FORMS))}")
    first, last = BY_NAME[layout].years
    if not first <= year <= last:
        others = [name for name in FORMS if BY_NAME[name].years[0] <= year <= BY_NAME[name].years[1]]
        hint = f"try {' or '.join(map(repr, others))}" if others else f"twins are of {YEARS[0]} to {YEARS[1]}"
        raise SpecError(f"{year} was not published in the layout {layout!r}; {hint}")
    return FORMS[layout]


def _draft(path: Path) -> Path:
    """Where a file is written before it gets its name, so that a file of that name is a whole one."""
    return path.with_name(f"{path.name}.part")


def _write(to: Written, form: _Form, layout: str, drawn: Iterator[Twin]) -> None:
    names = BY_NAME[layout].columns
    options = pacsv.WriteOptions(include_header=False, delimiter=form.delimiter, quoting_style="none")
    schema = pa.schema([(name, pa.string()) for name in names])
    first = 1
    with to.rows.open("wb") as stream, pq.ParquetWriter(to.truth, truth.SCHEMA) as known:
        stream.write((form.delimiter.join(map(form.header, names)) + "\n").encode())
        with pacsv.CSVWriter(stream, schema, write_options=options) as file:
            for twin in drawn:
                columns = form.columns(twin)
                file.write_table(pa.table([columns[name] for name in names], schema=schema))
                known.write_table(truth.table(twin, first))
                first += len(twin.action)


def _browser(twin: Twin) -> Columns:
    """The data browser has one column under another name."""
    columns = modern.columns(twin)
    return {**columns, "loan_to_value_ratio": columns["combined_loan_to_value_ratio"]}


def _with_hyphens(name: str) -> str:
    """A name as the data browser spells it, such as ``co-applicant_race-1``."""
    spelt = name.replace("co_applicant", "co-applicant").replace("msa_md", "msa-md").replace("open_end", "open-end")
    if name.startswith(("ffiec_", "tract_")):
        return name
    return re.sub(r"_(\d)$", r"-\1", spelt)


def _as_it_is(name: str) -> str:
    return name


FORMS = {
    "public_lar": _Form(modern.columns, "|", _as_it_is, ".txt"),
    "data_browser": _Form(_browser, ",", _with_hyphens, ".csv"),
    "historic_codes": _Form(historic.columns, ",", _as_it_is, ".csv"),
}
"""By the name of the layout."""
