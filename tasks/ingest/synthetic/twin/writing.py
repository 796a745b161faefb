"""Writes the files of a twin block by block: rows in the published layout of the year, and the truth beside them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from schemas.errors import SpecError
from tasks.ingest.hmda.files.layouts import BY_NAME
from tasks.ingest.synthetic.twin import historic, modern, truth
from tasks.ingest.synthetic.twin.algorithm.drawing import Twin, blocks
from tasks.ingest.synthetic.twin.algorithm.settings import TwinSettings
from tasks.ingest.synthetic.twin.modern import Columns


class _Form(NamedTuple):
    layout: str
    columns: Callable[[Twin], Columns]
    delimiter: str
    suffix: str


_HISTORIC = _Form("historic_codes", historic.columns, ",", ".csv")
_MODERN = _Form("public_lar", modern.columns, "|", ".txt")


@dataclass(frozen=True)
class Written:
    """What was written, and where."""

    rows: Path
    truth: Path
    count: int


def write(folder: Path, settings: TwinSettings, seed: int) -> Written:
    """Write ``hmda_twin_YEAR_public_lar.txt`` or, before 2018, ``hmda_twin_YEAR_historic_codes.csv``.

    The truth is beside it as Parquet.

    Args:
        folder: Made if it is not there.
        settings: What is drawn.
        seed: The same seed and settings give the same bytes.

    Raises:
        SpecError: A parameter is not what it has to be.
    """
    form = _MODERN if settings.modern else _HISTORIC
    folder.mkdir(parents=True, exist_ok=True)
    rows = folder / f"hmda_twin_{settings.year}_{form.layout}{form.suffix}"
    written = Written(rows, rows.with_suffix(".truth.parquet"), settings.rows)
    drafts = replace(written, rows=_draft(written.rows), truth=_draft(written.truth))
    try:
        _write(drafts, form, blocks(settings, np.random.default_rng(seed)))
    except ValueError as error:
        raise SpecError(str(error)) from error
    drafts.rows.replace(written.rows)
    drafts.truth.replace(written.truth)
    return written


def _draft(path: Path) -> Path:
    """Where a file is written before it gets its name, so that a file of that name is a whole one."""
    return path.with_name(f"{path.name}.part")


def _write(to: Written, form: _Form, drawn: Iterator[Twin]) -> None:
    names = BY_NAME[form.layout].columns
    options = pacsv.WriteOptions(delimiter=form.delimiter, quoting_style="none", quoting_header="none")
    schema = pa.schema([(name, pa.string()) for name in names])
    first = 1
    with (
        pacsv.CSVWriter(to.rows, schema, write_options=options) as file,
        pq.ParquetWriter(to.truth, truth.SCHEMA) as known,
    ):
        for twin in drawn:
            columns = form.columns(twin)
            file.write_table(pa.table([columns[name] for name in names], schema=schema))
            known.write_table(truth.table(twin, first))
            first += len(twin.action)
