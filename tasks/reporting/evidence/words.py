"""Words of evidence tables: headers of measures and forms, settings, and where a whole table stands."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from schemas.tables.published import PUBLISHED_MEASURES
from tasks.reporting import material
from tasks.reporting.charts.numbers import MINUS
from tasks.reporting.declared import FORMS, Declared, Shown
from tasks.reporting.numbers import count, whole

_CODE = re.compile(r"^[a-z]+(?:_[a-z]+)+(?=: )")
"""Code at the head of a reason, such as ``too_few_events: ...``; a name alone stays as it is."""


def capital(text: str) -> str:
    """With a capital first letter; a symbol, such as p or k, stays as it is."""
    return text if len(text.split(maxsplit=1)[0]) == 1 else material.capital(text)


def header(said: Declared, shown: Shown) -> str:
    """Header of a column of a measure."""
    if shown.words:
        return capital(shown.words)
    words = said.measures[shown.measure].words
    return capital(f"{words}: {FORMS[shown.form]}" if shown.form else words)


def plain(note: str) -> str:
    """A note as a sentence; codes, such as ``too_few: ...``, without their underscores."""
    text = re.sub(r"(?:^|(?<=; ))[a-z]+(?:_[a-z]+)+(?=:|;|$)", lambda code: code[0].replace("_", " "), note)
    return f"{material.capital(text).rstrip('.')}."


def setting(value: Any, said: Declared, labels: Mapping[str, str]) -> str:
    """Value of a parameter, or a text of a side table, as it is printed."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return whole(value) if float(value).is_integer() else f"{value:.3g}".replace("-", MINUS)
    text = str(value)
    return said.values.get(text) or labels.get(text) or _CODE.sub(lambda code: code[0].replace("_", " "), text)


_IN_FILES = "sheet Measures of measures.xlsx, measures.parquet, or"


def measures_found(run: str, names: Iterable[str]) -> str:
    """Where all rows of measures stand."""
    listed = ", ".join(f"'{name}'" for name in dict.fromkeys(names))
    query = f"SELECT * FROM {PUBLISHED_MEASURES.name} WHERE run = '{_quoted(run)}' AND measure IN ({listed})"  # noqa: S608 - printed and not run
    return f'{_IN_FILES} `evenhand sql "{query}"`'


def method_found(run: str, method: str, rows: int) -> str:
    """How many rows of measures a method has, on its page or not, and where all of them stand."""
    where = f"run = '{_quoted(run)}' AND method = '{_quoted(method)}'"
    query = f"SELECT * FROM {PUBLISHED_MEASURES.name} WHERE {where}"  # noqa: S608 - printed and not run
    return f'All {count(rows)} rows of its measures: {_IN_FILES} `evenhand sql "{query}"`.'


def table_found(run: str, table: str) -> str:
    """Where all rows of a side table stand."""
    query = f"SELECT * FROM {table} WHERE run = '{_quoted(run)}'"  # noqa: S608 - printed and not run
    return f'`evenhand sql "{query}"`'


def _quoted(text: str) -> str:
    return text.replace("'", "''").replace('"', "")
