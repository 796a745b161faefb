"""A synthetic national year in the layout of the public register: states, and lenders with a long tail.

Applicants, loans and decisions are a twin's, without the truth beside them: it is for the time that work takes.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

from schemas.errors import SpecError
from tasks.ingest.hmda.files.layouts import BY_NAME
from tasks.ingest.synthetic.twin import modern
from tasks.ingest.synthetic.twin.algorithm.drawing import Twin, blocks
from tasks.ingest.synthetic.twin.algorithm.nation import STATES, Nation
from tasks.ingest.synthetic.twin.algorithm.settings import TwinSettings
from tasks.ingest.synthetic.twin.codes import TRACTS
from tasks.ingest.synthetic.twin.modern import Columns
from tasks.ingest.synthetic.twin.texts import words
from tasks.numerics.arrays import Ints

_LAYOUT = BY_NAME["public_lar"]
_MISSING = "NA"


def write_nation(file: Path, rows: int, year: int, seed: int) -> Path:
    """Write a year of so many rows, pipes between its 99 columns, in blocks: memory does not grow with the rows.

    Raises:
        SpecError: there are too few rows for two lenders, or the year is before 2018.
    """
    rng = np.random.default_rng(seed)
    settings = TwinSettings(rows=rows, year=year, discrimination="direct")
    if not settings.modern:
        raise SpecError(f"a national year is drawn in the layout of 2018 and later, and not of {year}")
    try:
        nation = Nation.of(rows, rng)
    except ValueError as error:
        raise SpecError(str(error)) from error
    settings = replace(settings, lenders=len(nation.home))
    schema = pa.schema([(name, pa.string()) for name in _LAYOUT.columns])
    options = pacsv.WriteOptions(delimiter="|", quoting_style="none", quoting_header="none")
    with pacsv.CSVWriter(file, schema, write_options=options) as opened:
        for twin in blocks(settings, rng):
            lender, state = nation.draw(len(twin.action), rng)
            drawn = replace(twin, people=replace(twin.people, lender=lender))
            columns = {**modern.columns(drawn), **_place(drawn, state)}
            opened.write_table(pa.table([columns[name] for name in schema.names], schema=schema))
    return file


def _place(twin: Twin, state: Ints) -> Columns:
    """State, county and tract of each row; a state has one county here."""
    counties = [f"{fips}001" if fips else _MISSING for _, fips, _ in STATES]
    tracts = [text.replace(".", "") for text in TRACTS]
    whole = [county if county == _MISSING else county + tract for county in counties for tract in tracts]
    return {
        "state_code": words(state, [code for code, _, _ in STATES]),
        "county_code": words(state, counties),
        "census_tract": words(state * len(tracts) + twin.people.place % len(tracts), whole),
    }
