"""Source of drawn applicants, by a generator with coefficients that the audit spec may set.

The truth about them is known, so that a method can be shown where there is something to find and where there is not.
Scope: drawn arrays as columns of text, as any other source gives. Draws: ``tasks.ingest.synthetic.algorithm``.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from pydantic import TypeAdapter, ValidationError

from schemas.audit.source import Source, Synthetic
from schemas.errors import Location, SpecError, nearest
from tasks.ingest.sources.raw import Raw
from tasks.ingest.synthetic import twin_files
from tasks.ingest.synthetic.algorithm import lending
from tasks.ingest.synthetic.algorithm.lending import Synthetic as MediatedLending
from tasks.ingest.synthetic.algorithm.lending import SyntheticLending
from tasks.ingest.synthetic.algorithm.twin import TwinSettings, blocks

MOST_ROWS: Final = 10_000_000
_WHERE: Location = ("source", "synthetic")


class _Generator(NamedTuple):
    parameters: type[Any]
    """Frozen dataclass with a default for every coefficient."""
    names: Callable[[Any], list[str]]
    """Columns, without drawing anything."""
    draw: Callable[[Any, np.random.Generator], dict[str, "np.ndarray[Any, Any]"]]
    """Column -> ``(n,)`` numbers or texts."""


def digest(source: Source) -> str:
    """sha256 of generator, seed and all coefficients: with the code, what decides the rows."""
    synthetic = _asked(source)
    key = [synthetic.generator, synthetic.seed, asdict(coefficients(source))]
    return hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()


def header(source: Source) -> list[str]:
    """Names of the columns.

    Raises:
        SpecError: there is no such generator, or it has no such parameter.
    """
    synthetic = _asked(source)
    return _generator(synthetic).names(coefficients(source))


def read(source: Source, columns: Sequence[str]) -> Raw:
    """The named columns of the drawn rows, as text that gives back the same numbers."""
    synthetic = _asked(source)
    try:
        columns_drawn = _generator(synthetic).draw(coefficients(source), np.random.default_rng(synthetic.seed))
    except ValueError as error:
        raise SpecError(str(error), (*_WHERE, "parameters")) from error
    text = {name: pa.array(list(map(str, columns_drawn[name].tolist())), pa.string()) for name in columns}
    table = pa.table(text)
    return Raw(table, list(range(1, table.num_rows + 1)))


def _asked(source: Source) -> Synthetic:
    if source.synthetic is None:
        raise ValueError("a source of kind `synthetic` needs settings of what to draw")
    return source.synthetic


def _generator(synthetic: Synthetic) -> _Generator:
    if synthetic.generator not in GENERATORS:
        hint = nearest(synthetic.generator, list(GENERATORS))
        raise SpecError(f"there is no generator {synthetic.generator!r}; {hint}", (*_WHERE, "generator"))
    return GENERATORS[synthetic.generator]


def coefficients(source: Source) -> Any:
    """The frozen object of the generator's coefficients, those that the spec leaves out at their defaults.

    Raises:
        SpecError: there is no such generator, or it has no such parameter.
    """
    synthetic = _asked(source)
    kind = _generator(synthetic).parameters
    parameter_names = [field.name for field in fields(kind)]
    for name in synthetic.parameters:
        if name not in parameter_names:
            message = (
                f"the generator {synthetic.generator!r} has no parameter {name!r}; {nearest(name, parameter_names)}"
            )
            raise SpecError(message, (*_WHERE, "parameters", name))
    rows = synthetic.parameters.get("rows")
    if isinstance(rows, float) and not 1 <= rows <= MOST_ROWS:
        message = f"{rows:,.0f} rows: expected 1 to {MOST_ROWS:,}, as all are held in memory at once"
        raise SpecError(message, (*_WHERE, "parameters", "rows"))
    try:
        return TypeAdapter(kind).validate_python(synthetic.parameters)
    except ValidationError as error:
        first = error.errors()[0]
        name, *_ = (*map(str, first["loc"]), "")
        message = f"{synthetic.parameters.get(name)!r} is no value for {name!r}: {first['msg']}"
        raise SpecError(message, (*_WHERE, "parameters", name)) from error


def _lending_names(settings: SyntheticLending) -> list[str]:
    return [*lending.names(settings), "group", "label"]


def _lending(settings: SyntheticLending, rng: np.random.Generator) -> dict[str, "np.ndarray[Any, Any]"]:
    rows = lending.generate(settings, rng)
    features = dict(zip(lending.names(settings), rows.features.T, strict=True))
    group = np.where(rows.protected, "protected", "other")
    return {**features, "group": group, "label": _labels(rows.favourable)}


def _mediated_names(_: MediatedLending) -> list[str]:
    return ["x", "m", "group", "label"]


def _mediated(settings: MediatedLending, rng: np.random.Generator) -> dict[str, "np.ndarray[Any, Any]"]:
    """What would have been in the other group is known to the generator and is no column."""
    rows = lending.synthetic(settings, rng)
    features = {"x": rows.covariates[:, 0], "m": rows.mediators[:, 0]}
    return {**features, "group": np.where(rows.category == 1, "A1", "A0"), "label": _labels(rows.favourable)}


def _twin(settings: TwinSettings, rng: np.random.Generator) -> dict[str, "np.ndarray[Any, Any]"]:
    """What a loader makes of the twin's file of the same seed, of the columns that audits ask for."""
    parts = [twin_files.canonical_columns(twin) for twin in blocks(settings, rng)]
    return {name: np.concatenate([part[name].to_numpy(zero_copy_only=False) for part in parts]) for name in parts[0]}


def _labels(favourable: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    return np.where(favourable, "favourable", "unfavourable")


GENERATORS = {
    "lending": _Generator(SyntheticLending, _lending_names, _lending),
    "mediated": _Generator(MediatedLending, _mediated_names, _mediated),
    "hmda": _Generator(TwinSettings, twin_files.names, _twin),
}
"""By the name in the audit spec."""
