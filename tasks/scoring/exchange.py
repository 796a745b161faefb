"""What a given model decides with a protected attribute exchanged: its own answer to whether equals are treated alike.

Each applicant is decided on again as if of the reference group, all other columns as they are. Only a model from a
file, or a rule, can answer: a model that is fitted here has learnt from decisions on the very groups. Nothing of an
applicant follows the attribute, as it would in the causal model: what reaches the decision through other columns is
the theory ``total``.

Scope: one column of a single attribute. Where the model takes the group in other columns too, exchanging one of them
would make applicants who cannot be, and it is refused.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from schemas.audit.model import Model
from schemas.audit.spec import Protected
from schemas.blocks import is_personal, kind_of
from tasks.numerics.arrays import Bools, Floats
from tasks.numerics.columns import Columns
from tasks.preprocessing.groups import Grouped
from tasks.scoring.decider import Decide


@dataclass(frozen=True)
class Exchanged:
    """A protected attribute that the model takes as an input."""

    attribute: str
    favourable: Bools | None = None
    """``(n,)`` decisions with the attribute exchanged; None where it is not."""
    column: str | None = None
    value: str | None = None
    """Of the column in the reference group."""
    reason: str = ""
    """Why it is not exchanged."""


def exchanges(
    columns: Columns, groups: Mapping[str, Grouped], protected: Sequence[Protected], model: Model, decide: Decide
) -> Iterator[Exchanged]:
    """Every protected attribute that the model takes; none where it takes no column of it.

    Args:
        columns: what ``n`` applicants handed in.
        groups: by name of the attribute.
        protected: the attributes.
        model: a rule, or a model from a file.
        decide: how it decides.
    """
    taken = model.takes(columns.names)
    attributes = {column for p in protected for column in p.columns}
    for p in protected:
        own = [name for name in p.columns if name in taken]
        others = [name for name in taken if name not in p.columns and _says(name, p, columns, groups, attributes)]
        if not own and not others:
            continue
        if reason := _refusal(p, own, others, groups[p.name]):
            yield Exchanged(p.name, reason=reason)
        else:
            yield _exchanged(p.name, columns, columns.names.index(own[0]), groups[p.name], decide)


def _refusal(p: Protected, own: Sequence[str], others: Sequence[str], grouped: Grouped) -> str:
    if not grouped.compared:
        return f"no complete application belongs to {p.reference}, the reference group"
    if len(p.columns) > 1:
        return f"{p.name} crosses {' and '.join(p.columns)}: only an attribute of one column is exchanged"
    if not own:
        return f"the model takes {', '.join(others)}, which tells the group, and not {p.columns[0]}"
    if others:
        return f"the model takes {', '.join(others)} beside {own[0]}: exchanging one alone makes nobody who could be"
    return ""


def _exchanged(attribute: str, columns: Columns, at: int, grouped: Grouped, decide: Decide) -> Exchanged:
    name, known = columns.names[at], columns.categories[at]
    there = np.unique(columns.values[grouped.group == grouped.reference, at])
    if len(there) > 1:
        reason = f"the reference group has {len(there)} values of {name}: name the one that the others are exchanged to"
        return Exchanged(attribute, column=name, reason=reason)
    values = columns.values.copy()
    values[:, at] = there[0]
    favourable, _ = decide(replace(columns, values=values), np.arange(len(values)))
    return Exchanged(attribute, favourable, name, known[int(there[0])] if known else f"{there[0]:g}")


def _says(name: str, p: Protected, columns: Columns, groups: Mapping[str, Grouped], attributes: set[str]) -> bool:
    """Whether a column tells the group in other words: by its name, or because the two never part in the data."""
    kinds = {kind_of(each) for each in (p.name, *p.columns)} - {""}
    if is_personal(name) and kind_of(name) in kinds and name not in attributes:
        return True
    values, grouped = columns.values[:, columns.names.index(name)], groups[p.name]
    return _is_told(values, grouped) or _tells(values, grouped)


def _is_told(values: Floats, grouped: Grouped) -> bool:
    """Whether a column that varies has one value in each group."""
    parts = [values[grouped.group == number] for number in range(len(grouped.groups))]
    return bool(np.ptp(values) > 0) and all(np.ptp(part) == 0 for part in parts if len(part))


def _tells(values: Floats, grouped: Grouped) -> bool:
    """Whether each value of a column lies in one group, and not all in the same.

    A column with as many values as there are pairs of rows, or more, is an amount: its values meet in no group.
    """
    known, codes = np.unique(values, return_inverse=True)
    if 2 * len(known) > len(values):
        return False
    many = len(grouped.groups)
    cells = np.bincount(codes * many + grouped.group, minlength=many * len(known)).reshape(-1, many)
    return bool((np.count_nonzero(cells, axis=1) <= 1).all() and np.count_nonzero(cells.any(axis=0)) > 1)
