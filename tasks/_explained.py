"""Decision makers that can be looked into: a model's inputs, which fit decided on each row, and what it learnt from.

A lender's own decisions cannot be looked into. Of a cross-fitted model every row is explained by the fit that had not
seen it; after a holdout, only rows held out are. Here belongs how tables become ``Explained``.
"""

from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas.errors import SpecError
from schemas.settings import Model, Rule
from schemas.terms import DecisionMaker, Kind, Role
from tasks._columns import columns_of
from tasks._explaining import ModelFile, attributor
from tasks._given import Given
from tasks.algorithms.attributions.differences import log_odds
from tasks.algorithms.attributions.linear import Linear
from tasks.algorithms.columns import Columns
from tasks.algorithms.detector import Bools, Floats, LookInto
from tasks.algorithms.explained import NOBODY, Explained


def look_into(given: Given, encoded: Floats, maker: str, model: Model | None) -> LookInto | None:
    """What looks into the model when a method asks for it; None where there is no model, or nobody may look."""
    if maker != DecisionMaker.MODEL or model is None or model.kind == "none":
        return None
    return partial(_explained, given, encoded, model)


def _explained(given: Given, encoded: Floats, model: Model, substitute: bool) -> Explained:
    """The rows as the model saw them.

    Raises:
        SpecError: No column is financial, or the model has no gradient and no substitute was chosen.
    """
    columns = columns_of(given.applicants, given.encodings)
    financial, names = _financial(columns, given.encodings)
    own = given.decisions.filter(pc.equal(given.decisions["decision_maker"], str(DecisionMaker.MODEL)))
    label = own["outcome"].to_numpy(zero_copy_only=False)
    if model.rule is not None:
        favourable = own["favourable"].to_numpy(zero_copy_only=False)
        return _of_rule(model.rule, columns, label, favourable, (financial, names))
    explainer, pools = _explainers(own)
    files = [
        ModelFile(m["content"], f"the audited {model.kind}", substitute=substitute) for m in _by_fold(given.models)
    ]
    cut = _cut(own["threshold"][0].as_py())
    return Explained(
        x=encoded,
        feature_of_column=given.encodings["feature_index"].to_numpy(),
        features=columns.names,
        label=label,
        financial=financial,
        financial_names=names,
        explainer=explainer,
        models=tuple(attributor(file) for file in files),
        pools=pools,
        cuts=(cut,) * len(files),
    )


def _of_rule(
    rule: Rule, columns: Columns, label: Bools, favourable: Bools, financial: tuple[Floats, tuple[str, ...]]
) -> Explained:
    """A rule is linear in what applicants handed in, and was learnt from nobody: everybody may be a match."""
    n, at = len(label), [columns.names.index(name) for name in rule.weights]
    return Explained(
        x=columns.values[:, at],
        feature_of_column=np.arange(len(at), dtype=np.int32),
        features=tuple(rule.weights),
        label=label,
        financial=financial[0],
        financial_names=financial[1],
        explainer=np.zeros(n, np.int32),
        models=(Linear(np.array(list(rule.weights.values())), -rule.limit),),
        pools=(np.ones(n, dtype=bool),),
        favourable=favourable,
    )


def _cut(threshold: float) -> float:
    """The logit from which decisions are favourable, by a hair too low: the threshold is itself one of the scores."""
    cut = float(log_odds(np.array([threshold]))[0])
    return cut - 1e-9 * max(1.0, abs(cut))


def _explainers(own: pa.Table) -> tuple["np.ndarray[tuple[int], np.dtype[np.int32]]", tuple[Bools, ...]]:
    """Which fit explains each row, and for each fit the rows that it had learnt from."""
    fold = own["fold"].to_numpy().astype(np.int32)
    seen = ~own["explained"].to_numpy(zero_copy_only=False)
    if seen.any():
        return np.where(seen, NOBODY, fold).astype(np.int32), (seen,)
    return fold, tuple(fold != number for number in range(int(fold.max()) + 1))


def _by_fold(models: pa.Table) -> list[dict[str, bytes]]:
    return models.sort_by("fold").to_pylist()  # type: ignore[no-any-return]


def _financial(columns: Columns, encodings: pa.Table) -> tuple[Floats, tuple[str, ...]]:
    """The columns that make applicants comparable: numbers and ordered codes as they are, a column per category."""
    role = dict(zip(encodings["feature"].to_pylist(), encodings["role"].to_pylist(), strict=True))
    parts: list[Floats] = []
    names: list[str] = []
    for name, kind, known, values in zip(
        columns.names, columns.kinds, columns.categories, columns.values.T, strict=True
    ):
        if role[name] == Role.FINANCIAL:
            nominal = kind is Kind.NOMINAL
            parts += [values == code for code in range(len(known))] if nominal else [values]
            names += [f"{name}={category}" for category in known] if nominal else [name]
    if not names:
        message = "no column has the role `financial`; CEC matches applicants by what makes them comparable borrowers"
        raise SpecError(f"{message}: set role: financial for such columns", ("columns",))
    return np.column_stack(parts).astype(np.float64), tuple(names)
