"""The methods as classes with ``fit``: who was approved less often, and in which sense."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import pandas as pd

from evenhand.causal_graph import CausalGraph
from evenhand.errors import InputError, NotComputedError
from evenhand.frame_rows import Rows, decided, rows_of, sensitive_of
from evenhand.models import Answering
from evenhand.results import Results, row_place
from evenhand.runs import Data, given_columns, run, spec_of
from schemas.audit.model import Model

Columns = Mapping[str, Mapping[str, Any]]
Settings = Mapping[str, Any]
IMMUTABLE = {"constraint": "immutable"}


class AdjustedDisparity(Results):
    """Differences of denial between groups among applicants who are alike in recorded columns (the denial ladder).

    Munnell and others (1996); expected denials of Peters (1941) and Belson (1956). The estimate is the probability of
    denial of a group less that of reference applicants with the same controls: above 0, the group is denied more often.

    Args:
        reference: Group that the others are compared with; the largest if None.
        blocks: Name -> control columns, added one block after the other; by names of columns if None.
        favourable: Value of `y` that favours the applicant; 1 or true if None.
        columns: Column -> keys of an audit spec that its values do not show (`type`, `order`, `block`, `scale`, ...).
        settings: Further keys of `methods.adjusted` of an audit spec.
        random_state: Seed.
    """

    METHOD, MEASURE, COMPARED = "adjusted", "adjusted_effect", ()

    def __init__(
        self,
        *,
        reference: Any = None,
        blocks: Mapping[str, Sequence[str]] | None = None,
        favourable: Any = None,
        columns: Columns | None = None,
        settings: Settings | None = None,
        random_state: int = 0,
    ) -> None:
        self.reference = reference
        self.blocks = blocks
        self.favourable = favourable
        self.columns = columns
        self.settings = settings
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, sensitive_features: Any) -> Self:  # noqa: N803 as scikit-learn
        """Climb the ladder.

        Args:
            X: ``(n, p)`` frame of control columns, in their own units.
            y: ``(n,)`` decisions.
            sensitive_features: ``(n,)`` groups, or ``(n, s)`` to be crossed; a row without one is in the group
                `(missing)`.

        Raises:
            InputError: A fault of the frame, the decisions or the groups; it names the column.
            SpecError: A setting that the method does not know, or a value out of range.
        """
        data = Data.of(X, y, sensitive_features, self.favourable)
        for name, controls in (self.blocks or {}).items():
            given_columns(controls, f"block {name!r}", data.rows)
        blocks = {name: list(controls) for name, controls in (self.blocks or {}).items()}
        settings = {**({"blocks": blocks} if blocks else {}), **(self.settings or {})}
        spec = spec_of(
            data,
            methods={self.METHOD: settings},
            reference=self.reference,
            columns=self.columns,
            random_state=self.random_state,
        )
        self._keep(run(data, spec, type(self).__name__), self.METHOD, "lender")
        return self


class CounterfactualSituationTesting(Results):
    """Whether applicants would be treated otherwise as members of the reference group, by an assumed causal graph.

    Alvarez and Ruggieri (2023), Definition 3.2 and equations 2 to 6. Around each applicant outside the reference group
    and around its counterfactual, `k` neighbours each are compared. `by_group` is the total effect on the share denied,
    from -1 to 1; above 0, the group is denied more often.

    Args:
        graph: `CausalGraph`, or what one is made of: edges, a networkx.DiGraph, GML.
        k: Neighbours in the control and in the test group.
        alpha: Level of the one-sided test of each applicant.
        reference: Group that the others are compared with; the largest if None.
        favourable: Value of `y` that favours the applicant; 1 or true if None.
        columns: Column -> keys of an audit spec that its values do not show.
        settings: Further keys of `methods.cst` of an audit spec.
        random_state: Seed.
    """

    METHOD, MEASURE, COMPARED = "cst", "cst_effect", ()

    def __init__(
        self,
        graph: Any,
        *,
        k: int = 30,
        alpha: float = 0.05,
        reference: Any = None,
        favourable: Any = None,
        columns: Columns | None = None,
        settings: Settings | None = None,
        random_state: int = 0,
    ) -> None:
        self.graph = graph
        self.k = k
        self.alpha = alpha
        self.reference = reference
        self.favourable = favourable
        self.columns = columns
        self.settings = settings
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, sensitive_features: Any) -> Self:  # noqa: N803 as scikit-learn
        """Fit the mechanisms of the graph, and compare neighbours of applicants and counterfactuals.

        Args:
            X: ``(n, p)`` frame of the columns of the graph and of the distance.
            y: ``(n,)`` decisions.
            sensitive_features: ``(n,)`` groups, named as in the graph.

        Raises:
            InputError: A fault of the frame, the decisions, the groups or the nodes of the graph; it names the column.
            SpecError: No edge leads out of the sensitive feature.
        """
        data = Data.of(X, y, sensitive_features, self.favourable)
        graph = CausalGraph.of(self.graph)
        graph.check_nodes(data.rows.names, list(data.sensitive), data.decision)
        settings = {"k": self.k, "ks": [self.k], "alpha": self.alpha, **(self.settings or {})}
        spec = spec_of(
            data,
            methods={self.METHOD: settings},
            reference=self.reference,
            columns=self.columns,
            random_state=self.random_state,
            further={"causal_graph": graph.spec},
        )
        self._keep(run(data, spec, type(self).__name__), self.METHOD, "lender")
        return self

    @property
    def counterfactuals_(self) -> Any:
        """Every applicant outside the reference group as a member of it: its columns then, or why there is none."""
        fitted = self._fitted
        audited, rows = fitted.run, fitted.run.data.rows
        table = audited.rows("counterfactuals", protected_attribute=fitted.attribute)
        table = table.assign(place=[row_place(i) for i in table["row_id"]]).sort_values("place")
        names = [column.name for column in rows.columns if column.name in table]
        return rows.native(_values(table[[*names, "refusal"]].set_index(audited.labels(table["row_id"])), rows))


class GroupCounterfactuals(Results):
    """How far applicants of each group are from approval, on a graph of steps that applicants could take (FGCE).

    Fragkathoulas, Papanikou, Pitoura and Terzi, Problems 1 and 2 and Algorithm 1. `by_group` is the share of a group's
    denied without any feasible path, from 0 to 1.

    Args:
        model: Anything with `predict_proba` or `predict` on the frame, or a function; None: the decisions `y`. With
            classes other than 0 and 1 it needs `favourable`.
        actionable: Column -> `up`, `down` or `free`; all other columns stay. All may change if None.
        radius: Of one step in encoded units; `auto`: from the distances of the rows.
        k: Most counterfactuals selected for a group.
        reference: Group that the others are compared with; the largest if None.
        favourable: Class of the model, or value of `y`, that favours the applicant.
        columns: Column -> keys of an audit spec that its values do not show.
        settings: Further keys of `methods.fgce` of an audit spec.
        random_state: Seed.
    """

    METHOD, MEASURE = "fgce", "infeasible_share"

    def __init__(
        self,
        model: Any = None,
        *,
        actionable: Mapping[str, str] | None = None,
        radius: float | str = "auto",
        k: int = 10,
        reference: Any = None,
        favourable: Any = None,
        columns: Columns | None = None,
        settings: Settings | None = None,
        random_state: int = 0,
    ) -> None:
        self.model = model
        self.actionable = actionable
        self.radius = radius
        self.k = k
        self.reference = reference
        self.favourable = favourable
        self.columns = columns
        self.settings = settings
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, sensitive_features: Any) -> Self:  # noqa: N803 as scikit-learn
        """Build the graph, and search it for every denied applicant.

        Args:
            X: ``(n, p)`` frame that the model takes.
            y: ``(n,)`` decisions or outcomes; those of the model if None.
            sensitive_features: ``(n,)`` groups.

        Raises:
            InputError: A fault of the frame, the model or the groups; it names the column.
            SpecError: A setting that the method does not know, or a value out of range.
        """
        data, model = with_model(self.model, X, y, sensitive_features, self.favourable)
        changes = _changes(self.actionable, "column -> 'up', 'down' or 'free'", data.rows)
        overrides = None if changes is None else {name: {"constraint": changes[name]} for name in changes}
        radius = {} if self.radius == "auto" else {"epsilon": self.radius}
        spec = spec_of(
            data,
            methods={self.METHOD: {"k": self.k, **radius, **(self.settings or {})}},
            reference=self.reference,
            columns=_restricted(data.rows, overrides, self.columns),
            model=model,
            random_state=self.random_state,
        )
        self._keep(run(data, spec, type(self).__name__), self.METHOD, "lender" if model is None else "model")
        return self

    def curve(self, measure: str, over: str) -> pd.DataFrame:
        """A measure over one of its parameters, in long form, with its other parameters as columns.

        Args:
            measure: Such as `coverage`, `coverage_at_k`, `kauc`.
            over: The parameter, such as `k` or `d`.

        Raises:
            NotComputedError: There is no such measure, or it has no such parameter.
        """
        measures = self.measures_
        rows = measures[measures["measure"] == measure]
        rows = rows[[over in parameters for parameters in rows["parameters"]]].reset_index(drop=True)
        if not len(rows):
            pairs = zip(measures["measure"], measures["parameters"], strict=True)
            curves = sorted({f"{name} over {key}" for name, parameters in pairs for key in parameters})
            raise NotComputedError(f"{measure} over {over!r} was not computed; there are {', '.join(curves)}")
        parameters = pd.DataFrame(rows["parameters"].to_list())
        frame = pd.concat([parameters, rows.drop(columns=["measure", "parameters"])], axis=1)
        return frame.sort_values([over, "group"], kind="stable").reset_index(drop=True)

    def path(self, row: Any) -> Any:
        """The applicants on the shortest way from a denied one to the cheapest approved one, the first is the row.

        Args:
            row: Its label in the index of the frame.

        Raises:
            InputError: No such row.
            NotComputedError: The row was approved, is not in the graph, or has no feasible path.
        """
        from tasks.methods.fgce.algorithm.costs import shortest_path
        from tasks.numerics.problem import FeasibilityGraph

        audited = self._fitted.run
        rows = audited.data.rows
        if row not in rows.index:
            raise InputError(f"the frame has no row {row!r}")
        nodes = audited.rows("feasibility_nodes", draw=0).assign(place=lambda f: [row_place(i) for i in f["row_id"]])
        by_place = nodes.set_index("place")["node"]
        evidence = audited.rows(
            "evidence", method=self.METHOD, role="cheapest", protected_attribute=self._fitted.attribute
        )
        place = int(rows.index.get_loc(row))
        ways = {row_place(a): row_place(b) for a, b in zip(evidence["row_id"], evidence["other_row_id"], strict=True)}
        if place not in ways:
            raise NotComputedError(f"row {row!r} has no path: it was approved, was refused, or nobody is in reach")
        edges = audited.tables["feasibility_edges"]
        starts = np.searchsorted(edges["source"].to_numpy(), np.arange(int(nodes["node"].max()) + 2)).astype(np.int64)
        graph = FeasibilityGraph(starts, edges["destination"].to_numpy(), edges["distance"].to_numpy())
        way = shortest_path(graph, int(by_place[place]), int(by_place[ways[place]]))
        first = nodes.drop_duplicates("node").set_index("node")["place"]
        places = [place, *(int(first[node]) for node in way[1:-1]), ways[place]]  # alike rows share a node
        labels = rows.index[places]
        values = {c.name: [_value(c, rows.text[c.name][at].as_py()) for at in places] for c in rows.columns}
        return rows.native(pd.DataFrame(values, index=labels))


class ExplanationConsistency(Results):
    """Whether a model has the same reasons for comparable applicants of different groups (CEC).

    Popoola and Sheppard (2026), Definitions 1 to 3 and Algorithm 1. Each applicant is matched with the most comparable
    one of the other group with the same outcome, and their attributions are compared: 0 is the same reasons, 1 is
    opposite ones.

    Args:
        model: Anything with `predict_proba` or `predict` on the frame, or a function. With classes other than 0 and 1
            it needs `favourable`.
        comparable_by: Columns that make two applicants comparable.
        k: Nearest applicants of the other group over whom an applicant's CEC is a mean; the paper takes the nearest
            one. With more, no relabelling tests CEC above the own group.
        substitute: Whether differences along the path stand in for a model without a gradient, such as trees.
        reference: Group that the others are compared with; the largest if None.
        favourable: Class of the model, or value of `y`, that favours the applicant.
        columns: Column -> keys of an audit spec that its values do not show.
        settings: Further keys of `methods.cec` of an audit spec.
        random_state: Seed.
    """

    METHOD, MEASURE, COMPARED = "cec", "cec", ()

    def __init__(
        self,
        model: Any,
        *,
        comparable_by: Sequence[str],
        k: int = 1,
        substitute: bool = True,
        reference: Any = None,
        favourable: Any = None,
        columns: Columns | None = None,
        settings: Settings | None = None,
        random_state: int = 0,
    ) -> None:
        self.model = model
        self.comparable_by = comparable_by
        self.k = k
        self.substitute = substitute
        self.reference = reference
        self.favourable = favourable
        self.columns = columns
        self.settings = settings
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, sensitive_features: Any) -> Self:  # noqa: N803 as scikit-learn
        """Explain every applicant, and compare the explanations of comparable ones.

        Args:
            X: ``(n, p)`` frame that the model takes.
            y: ``(n,)`` outcomes that comparable applicants share; the decisions of the model if None.
            sensitive_features: ``(n,)`` groups.

        Raises:
            InputError: A fault of the frame, the model or the groups; it names the column.
            SpecError: A setting that the method does not know, or a value out of range.
        """
        data, model = with_model(self.model, X, y, sensitive_features, self.favourable)
        names = given_columns(self.comparable_by, "comparable_by", data.rows)
        if not names:
            raise InputError("comparable_by is empty; give the columns that make two applicants comparable")
        roles: dict[str, dict[str, Any]] = {name: {"role": ["financial"]} for name in names}
        for name, keys in (self.columns or {}).items():
            roles[name] = {**roles.get(name, {}), **keys}
        untested = {"relabelled_draws": 0} if self.k > 1 else {}
        spec = spec_of(
            data,
            methods={self.METHOD: {"substitute": self.substitute, "k": self.k, **untested, **(self.settings or {})}},
            reference=self.reference,
            columns=roles,
            model=model,
            random_state=self.random_state,
        )
        self._keep(run(data, spec, type(self).__name__), self.METHOD, "model")
        return self


class RecourseAwareRanking(Results):
    """Applicants ranked by recourse cost, and the list ranked again with offers of recourse (RAGUEL).

    Haldar, Cunningham and Ferhatosmanoglu (2022), equations 1 to 4 and Algorithms 1 and 2. `by_group` is the recourse
    cost of a group: the weighted distance to a favourable decision, in standard deviations.

    Args:
        actionable: Column -> how hard it is to change beside the others; all other columns stay. All may change if
            None.
        block_size: Applicants of a block of the list; ten blocks if None.
        threshold: Score from which a decision is favourable.
        model: Whose boundary costs lead to; None: costs lead to the nearest applicant above the threshold.
        reference: Group that the others are compared with; the largest if None.
        columns: Column -> keys of an audit spec that its values do not show.
        settings: Further keys of `methods.raguel` of an audit spec.
        random_state: Seed.
    """

    METHOD, MEASURE = "raguel", "recourse_cost"

    def __init__(
        self,
        *,
        actionable: Mapping[str, float] | None = None,
        block_size: int | None = None,
        threshold: float = 0.5,
        model: Any = None,
        reference: Any = None,
        columns: Columns | None = None,
        settings: Settings | None = None,
        random_state: int = 0,
    ) -> None:
        self.actionable = actionable
        self.block_size = block_size
        self.threshold = threshold
        self.model = model
        self.reference = reference
        self.columns = columns
        self.settings = settings
        self.random_state = random_state

    def fit(self, X: Any, scores: Any = None, *, sensitive_features: Any) -> Self:  # noqa: N803 as scikit-learn
        """Price the path of every denied applicant, and rank the list again.

        Args:
            X: ``(n, p)`` frame.
            scores: ``(n,)`` scores, or decisions; those of the model if None.
            sensitive_features: ``(n,)`` groups.

        Raises:
            InputError: A fault of the frame, the scores or the groups; it names the column.
            SpecError: A setting that the method does not know, or a value out of range.
        """
        above = None if scores is None else _above(scores, self.threshold)
        data, model = with_model(self.model, X, above, sensitive_features, None, self.threshold)
        if self.block_size is not None and self.block_size < 1:
            raise InputError(f"block_size is {self.block_size}; give 1 or more applicants")
        changes = _changes(self.actionable, "column -> its weight, a number", data.rows)
        overrides = None if changes is None else {name: {"recourse": {"weight": changes[name]}} for name in changes}
        denied = int((~data.favourable).sum())
        blocks = {} if self.block_size is None else {"blocks": max(1, -(-denied // self.block_size))}
        spec = spec_of(
            data,
            methods={self.METHOD: {**blocks, **(self.settings or {})}},
            reference=self.reference,
            columns=_restricted(data.rows, overrides, self.columns),
            model=model,
            random_state=self.random_state,
        )
        self._keep(run(data, spec, type(self).__name__), self.METHOD, "lender" if model is None else "model")
        return self

    def transform(self, X: Any) -> Any:  # noqa: N803 as scikit-learn
        """The place of every row before and after, its cost, and what it is offered; nothing of rows not ranked.

        Args:
            X: The frame that was fitted, or some of its rows.

        Raises:
            InputError: It has a row that was not fitted.
        """
        audited = self._fitted.run
        chosen = rows_of(X, audited.data.rows)
        strangers = ~chosen.index.isin(audited.data.rows.index)
        if strangers.any():
            raise InputError(f"row {chosen.index[strangers].tolist()[0]!r} is not in the list that was fitted")
        rows = audited.rows("reranked", protected_attribute=self._fitted.attribute)
        rows = rows[rows["order"].isin(("list", "fair_star", "foeir"))]
        frame = rows.set_index(audited.labels(rows["row_id"]))
        numbers = ["rank", "rank_after", "block", "block_after"]
        frame = frame[[*numbers, "cost", "cost_after", "attained", "refusal"]].reindex(chosen.index)
        frame = frame.astype(dict.fromkeys(numbers, "Int64"))
        frame["offer"] = self._offers(chosen.index)
        return chosen.native(frame)

    def _offers(self, index: pd.Index) -> list[str | None]:
        """What each row is to change, as JSON: column -> value."""
        audited = self._fitted.run
        offers = audited.rows("offers", protected_attribute=self._fitted.attribute)
        offers = offers[offers["order"].isin(("list", "fair_star", "foeir"))]
        changes: dict[Any, dict[str, str]] = {}
        for label, name, value in zip(
            audited.labels(offers["row_id"]), offers["attribute"], offers["to_value"], strict=True
        ):
            changes.setdefault(label, {})[name] = value
        return [json.dumps(changes[label]) if label in changes else None for label in index]

    @property
    def exposure_(self) -> pd.DataFrame:
        """The share of every group in each block of the list, before and after."""
        rows = self.measures_
        rows = rows[rows["measure"] == "block_share"].reset_index(drop=True)
        parameters = pd.DataFrame(rows["parameters"].to_list()).reindex(columns=["order", "block"])
        frame = pd.concat([parameters, rows[["group", "estimate", "low", "high", "n"]]], axis=1)
        return frame.assign(order=frame["order"].fillna("before")).rename(columns={"order": "list"})


def with_model(
    model: Any,
    X: Any,  # noqa: N803 as scikit-learn
    y: Any,
    sensitive_features: Any,
    favourable: Any,
    threshold: float = 0.5,
) -> tuple[Data, Model | None]:
    """The rows with their decisions, and the model; None where the decisions alone are looked at.

    Raises:
        InputError: A fault of the frame, the model or the groups.
    """
    if model is None:
        return Data.of(X, y, sensitive_features, favourable), None
    rows = rows_of(X)
    groups = sensitive_of(sensitive_features, rows)
    answering = Answering(model, rows, favourable)
    if y is None:
        decisions = answering.scores(X, len(rows)) >= threshold
        if decisions.all() or not decisions.any():
            side = "favourable" if decisions.all() else "unfavourable"
            raise InputError(f"every decision of the model is {side}; there is nothing to compare")
        name = "decision"
    else:
        name, decisions = decided(y, favourable, rows)
    return Data.joined(rows, groups, name, decisions), Model.of_object(answering, threshold)


def _changes(actionable: Any, expected: str, rows: Rows) -> Mapping[str, Any] | None:
    """What may change, as a mapping of columns that the frame has; None where all may."""
    if actionable is not None and not isinstance(actionable, Mapping):
        raise InputError(f"actionable is a {type(actionable).__name__}; give {expected}")
    given_columns(list(actionable or {}), "actionable", rows)
    return actionable


def _restricted(rows: Rows, overrides: Columns | None, columns: Columns | None) -> dict[str, dict[str, Any]]:
    """Keys of the columns where only those in ``overrides`` may change; all may if None."""
    out: dict[str, dict[str, Any]] = {}
    if overrides is not None:
        out = {name: dict(overrides.get(name, IMMUTABLE)) for name in rows.names}
    for name, keys in (columns or {}).items():
        out[name] = {**out.get(name, {}), **keys}
    return out


def _above(scores: Any, threshold: float) -> Any:
    """Whether each score reaches the threshold, as decisions of the same index."""
    if isinstance(scores, pd.Series):
        return (scores >= threshold).where(scores.notna()).astype("boolean").rename(scores.name)
    try:
        values = np.asarray(scores.to_numpy() if hasattr(scores, "to_numpy") else scores, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"scores are no numbers ({error}); give scores, or decisions as 1 and 0") from error
    if values.ndim == 2 and values.shape[1] != 1:
        raise InputError(f"scores have {values.shape[1]} columns; give one, such as predict_proba(X)[:, 1]")
    above = (values >= threshold).astype(object)
    above[np.isnan(values)] = None
    return above


def _value(column: Any, text: str) -> Any:
    if text == "":
        return None
    return column.value(text) if column.values else float(text)


def _values(frame: pd.DataFrame, rows: Rows) -> pd.DataFrame:
    """Columns of a table with the values of the frame instead of their texts."""
    frame = frame.copy()
    for column in rows.columns:
        if column.name in frame and column.values:
            texts = frame[column.name]
            frame[column.name] = [None if pd.isna(text) else column.value(text) for text in texts]
    return frame
