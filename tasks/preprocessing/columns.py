"""Applicants and their groups as arrays."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from schemas.audit.model import TakenAs
from schemas.audit.spec import Protected
from schemas.terms import Kind
from tasks.numerics import encoding
from tasks.numerics.arrays import Floats, Ints, Longs
from tasks.numerics.encoding import Columns, Scale, one_hot
from tasks.numerics.statistics.sampling import FLOOR, Asked, allotted, hashes

# --------------------------------------------------------------------------------------------------------------------
# Group memberships by protected attribute, as arrays in the order of the rows.


@dataclass(frozen=True)
class Grouped:
    """The groups of one protected attribute."""

    group: NDArray[np.int32]
    """``(n,)`` number of each row's group."""
    groups: tuple[str, ...]
    """Their names."""
    reference: int
    """Number of the reference group; -1 where none of the rows belongs to it."""

    @property
    def compared(self) -> bool:
        """Whether any rows exist to compare the groups with."""
        return self.reference >= 0

    @property
    def sizes(self) -> Longs:
        """``(g,)`` members of each group."""
        return np.bincount(self.group, minlength=len(self.groups))


def groups_of(
    memberships: pa.Table, ids: "np.ndarray[Any, Any]", protected: Sequence[Protected]
) -> Mapping[str, Grouped]:
    """The groups of the rows ``ids``, by name of the protected attribute.

    Raises:
        KeyError: a row has no group.
    """
    coded = codes_of(memberships, ids, [p.name for p in protected])
    return {
        p.name: Grouped(codes, names, names.index(p.reference) if p.reference in names else -1)
        for p, (codes, names) in zip(protected, coded, strict=True)
    }


def codes_of(
    memberships: pa.Table, ids: "Sequence[str] | np.ndarray[Any, Any]", attributes: Iterable[str]
) -> Iterator[tuple[NDArray[np.int32], tuple[str, ...]]]:
    """For each attribute the number of each row's group ``(n,)``, and the sorted names of the groups that have a row.

    Raises:
        KeyError: a row has no group.
    """
    identifiers = pa.array(ids, memberships.schema.field("row_id").type)
    previous, places = None, np.zeros(0, np.int64)
    for attribute in attributes:
        of_attribute = memberships.filter(pc.equal(memberships["protected_attribute"], attribute))
        row_ids = of_attribute["row_id"].combine_chunks()
        if previous is None or not row_ids.equals(previous):  # attributes mostly have their rows in one order
            positions = pc.index_in(identifiers, value_set=row_ids)
            if positions.null_count:
                raise KeyError(f"{positions.null_count} rows have no group of {attribute}")
            previous, places = row_ids, positions.to_numpy()
        coded = of_attribute["group"].combine_chunks().dictionary_encode()
        codes, all_names = coded.indices.to_numpy()[places], coded.dictionary.to_pylist()
        names = sorted(all_names[code] for code in np.unique(codes))
        number = np.array([names.index(name) if name in names else -1 for name in all_names], np.int32)
        yield number[codes], tuple(names)


def asked_of(
    groups: Mapping[str, Grouped], ids: "np.ndarray[Any, Any]", queries: int | None, seed: int
) -> dict[str, Asked]:
    """The sample of a large problem by protected attribute, where it is not the whole group.

    All groups but the reference group share ``queries``; of the reference group, of which some methods ask as well, so
    many are asked at most. Which rows these are follows from their ids, and not from the decision maker.
    """
    if queries is None:
        return {}
    partly = {}
    for name, grouped in groups.items():
        counts = grouped.sizes
        is_other = np.arange(len(counts)) != grouped.reference
        sizes = np.minimum(counts, queries)
        sizes[is_other] = allotted(counts[is_other], queries, min(FLOOR, queries))
        if (sizes < counts).any():
            partly[name] = sizes.astype(np.int64)
    if not partly:
        return {}
    hashed = hashes(ids.tolist(), seed)
    return {name: Asked.of(hashed, groups[name].group, size) for name, size in partly.items()}


def without_copies(applications: pa.Table, copied_rows: pa.Table) -> pa.Table:
    """The applications without those that ``preprocess`` refused as copies of others."""
    if not copied_rows.num_rows:
        return applications
    ids = copied_rows["row_id"].combine_chunks()
    return applications.filter(pc.invert(pc.is_in(applications["row_id"], value_set=ids)))


def cells_of(applications: pa.Table, groups: Iterable[Ints]) -> list[Ints]:
    """Codes of every cell but the identifiers, and of the groups: what copies are equal in."""
    import pandas as pd  # every command imports this module

    names = [name for name in applications.column_names if name not in ("row_id", "source_row")]
    columns = [pd.factorize(applications[name].to_pandas(), use_na_sentinel=False)[0] for name in names]
    return [*(column.astype(np.int32) for column in columns), *groups]


# --------------------------------------------------------------------------------------------------------------------
# Applicants as arrays: raw values, values encoded as preprocess specified, and inputs of a model.
#
# Every reader of an applicant's values uses this module, so that counterfactual and real applicants are encoded alike.


@dataclass(frozen=True)
class Inputs:
    """What a model sees of ``n`` applicants, in the order of the spec's columns."""

    x: Floats
    """``(n, d)``."""
    column: Ints
    """``(d,)`` number of the column that each input is of."""
    names: tuple[str, ...]
    """Of the ``d`` inputs; an input for a category is ``column=category``."""


def inputs_of(
    columns: Columns, encodings: pa.Table, taken_as: TakenAs, encoded_columns: Floats | None = None
) -> Inputs:
    """Applicants as a model takes them.

    Args:
        columns: what they handed in.
        encodings: how it is encoded.
        taken_as: numbers in the user's units and an input for each category (``one_hot``), or the number of the
            category (``codes``); or ``encoded``, as models see them that are fitted here.
        encoded_columns: ``(n, q)`` the encoded features, where preprocess made them already.
    """
    if taken_as == "encoded":
        x = encoded(columns, encodings) if encoded_columns is None else encoded_columns
        return Inputs(x, encodings["feature_index"].to_numpy(), tuple(encodings["encoded"].to_pylist()))
    if taken_as == "codes":
        return Inputs(columns.values, np.arange(len(columns.names), dtype=np.int32), columns.names)
    x, column = one_hot(columns)
    names = (
        [f"{name}={category}" for category in categories] or [name]
        for name, categories in zip(columns.names, columns.categories, strict=True)
    )
    return Inputs(x, column, tuple(name for kind_names in names for name in kind_names))


def columns_of(applicants: pa.Table, encodings: pa.Table) -> Columns:
    """The features of applicants, in the order of their table."""
    firsts = _features(encodings)
    kinds = tuple(Kind(first["kind"]) for first in firsts)
    categories = tuple(tuple(json.loads(first["categories"] or "[]")) for first in firsts)
    parts = [
        _category_codes(applicants[first["feature"]], categories)
        if categories
        else applicants[first["feature"]].to_numpy()
        for first, categories in zip(firsts, categories, strict=True)
    ]
    none = np.empty((applicants.num_rows, 0))  # of applicants without features
    values = np.column_stack([none, *parts]).astype(np.float64)
    return Columns(tuple(first["feature"] for first in firsts), kinds, categories, values)


def encoded(columns: Columns, encodings: pa.Table) -> Floats:
    """``(n, q)`` features in [0, 1], a column for each row of ``encodings``."""
    return np.column_stack([np.empty((len(columns.values), 0)), *encoded_features(columns, encodings)])


def encoded_features(columns: Columns, encodings: pa.Table) -> Iterator[Floats]:
    """Each feature in [0, 1]: ``(n,)``, or of one without an order ``(n, categories)``."""
    for first, kind, categories, values in zip(
        _features(encodings), columns.kinds, columns.categories, columns.values.T, strict=True
    ):
        if kind is Kind.CONTINUOUS:
            bins = None if first["bins"] is None else int(first["bins"])
            yield encoding.encode_continuous(values, Scale(first["low"], first["high"], bins))
        else:
            encode = encoding.encode_one_hot if kind is Kind.NOMINAL else encoding.encode_ordered
            yield encode(values.astype(np.int32), len(categories))


def _category_codes(values: pa.ChunkedArray, categories: Sequence[str]) -> Ints:
    """Number of each value ``(n,)`` among the categories, -1 where it is none of them."""
    coded = values.combine_chunks().dictionary_encode(null_encoding="encode")
    codes: Ints = encoding.category_codes(coded.dictionary.to_pylist(), categories)[coded.indices.to_numpy()]
    return codes


def _features(encodings: pa.Table) -> list[dict[str, Any]]:
    """The first row of each feature, in the order of the features."""
    firsts: dict[int, dict[str, Any]] = {}
    for row in encodings.to_pylist():
        firsts.setdefault(row["feature_index"], row)
    return [firsts[index] for index in sorted(firsts)]
