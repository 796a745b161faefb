"""Generated tables with what counting can get wrong: NaN, infinities, limits beyond 2**53, odd names, absent keys."""

import math

import pyarrow as pa
from hypothesis import strategies as st

from schemas.table import Column, Table

CODES = ("a", "B", "it's", 'say "x"', "é", "")
COLUMNS = (
    Column("row_id", "string", "identifier"),
    Column("share", "double", "range", minimum=-1, maximum=0.5),
    Column("least", "double", "one limit", nullable=True, minimum=0.0),
    Column("n", "int64", "whole numbers", minimum=0, maximum=2**53),
    Column("place", "int32", "small whole numbers", nullable=True, maximum=3),
    Column("kind", "string", "codes", nullable=True, codes=CODES),
    Column("broken", "bool", "flag"),
    Column('odd "name"', "string", "a name to be quoted"),
    Column("values", "doubles", "a list"),
    Column("content", "binary", "bytes"),
)
KEYS = [(), ("row_id",), ("share",), ("place",), ("share", "kind"), ("n", "place", "broken"), ("kind", 'odd "name"')]
FLOATS = st.sampled_from([math.nan, math.inf, -math.inf, 0.0, -0.0, -1.0, 0.5, 0.5000000000000001, 5e-324])
OF_TYPE = {
    "string": st.sampled_from([*CODES, "b", "A", "a ", "nan", "\x00"]) | st.text(max_size=3),
    "double": FLOATS | st.floats(),
    "int64": st.sampled_from([0, -1, 2**53, 2**53 + 2, 2**63 - 1, -(2**63)]),
    "int32": st.integers(-1, 5),
    "bool": st.booleans(),
    "doubles": st.lists(FLOATS, max_size=2),
    "binary": st.binary(max_size=2),
}


@st.composite
def tables(draw: st.DrawFn) -> tuple[pa.Table, Table]:
    """Rows of few different values, absent ones among them, in one or several chunks."""
    declared = Table("things", "For tests.", COLUMNS, key=draw(st.sampled_from(KEYS)))
    n = draw(st.integers(0, 8))
    rows = {c.name: draw(st.lists(st.none() | OF_TYPE[c.type], min_size=n, max_size=n)) for c in COLUMNS}
    rows["row_id"] = draw(st.lists(st.none() | st.sampled_from("rstuvw"), min_size=n, max_size=n))
    schema = declared.schema()
    content = pa.table({f.name: pa.array(rows[f.name], f.type) for f in schema}, schema=schema)
    at = draw(st.integers(0, n))
    return pa.concat_tables([content.slice(0, at), content.slice(at)]), declared
