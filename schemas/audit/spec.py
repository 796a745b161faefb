"""The audit spec: all settings that a user decides before a run, frozen and validated.

Scope: the shape of the spec and checks that need the spec alone. Reading YAML, with lines of errors: ``file``. Checks
against the data: the stage ingest.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar, Final, Literal, Self

from pydantic import Field, ValidationInfo, model_validator

from schemas.audit.causal import CausalGraph, is_order
from schemas.audit.column import ColumnSpec
from schemas.audit.expectations import FileOrList
from schemas.audit.intake import JoinKey
from schemas.audit.limits import Bootstrap, Disclosure, Expected, Threshold, Verdicts
from schemas.audit.methods import Methods, known_in
from schemas.audit.model import Leakage, Model
from schemas.audit.partition import ALL, By, Growth, Sampling, Size
from schemas.audit.source import ACTION, APPROVED, DENIED, KeptRefusals, Source, name_of
from schemas.bounds import Code, Seed, Strict
from schemas.errors import Location, SpecError, nearest, raise_together
from schemas.questions import DecisionWords, words_by_domain
from schemas.terms import NO_FEATURE, Kind
from schemas.vintages import Year

UNCONFIRMED: Final = "CHECK"
"""The value of a key that somebody has still to give or confirm."""


class Decision(Strict):
    """The column that holds the decision, and which of its values favour the applicant."""

    column: str = Field(description="column of the source")
    favourable: tuple[Code, ...] = Field(min_length=1, description="values that favour the applicant")
    unfavourable: tuple[Code, ...] = Field(min_length=1, description="values that do not")
    neither: tuple[Code, ...] = Field(
        (), description="values that are no decision, such as withdrawn; their rows are refused as `not_a_decision`"
    )
    words: DecisionWords | None = Field(
        None, description="what the two sides and the people are called; by the names of column and values if null"
    )

    @model_validator(mode="after")
    def _is_chosen(self) -> Self:
        advice = "write it here, or draft anew with `evenhand init FILE --decision COLUMN --favourable VALUE`"
        if self.column == UNCONFIRMED:
            raise ValueError(f"which column is the decision? {advice}")
        if UNCONFIRMED in (*self.favourable, *self.unfavourable):
            raise ValueError(f"which values of {self.column} favour the applicant, and which do not? {advice}")
        return self

    @property
    def wording(self) -> DecisionWords:
        """What the two sides and the people are called."""
        return self.words or words_by_domain(self.column, *self.favourable, *self.unfavourable)

    @model_validator(mode="after")
    def _disjoint(self) -> Self:
        overlap = sorted(set(self.favourable) & set(self.unfavourable))
        if overlap:
            raise ValueError(f"{overlap} cannot be favourable and unfavourable at once")
        overlap = sorted(set(self.neither) & {*self.favourable, *self.unfavourable})
        if overlap:
            raise ValueError(f"{overlap} cannot be a decision and no decision at once; leave it out of one list")
        return self


_UNKNOWN: Final = ("not provided", "missing", "(missing)", "unknown")
_NOBODY: Final = ("joint", *_UNKNOWN)
_NOT_GIVEN: Final = ("not provided", "not available", "not applicable")
"""Names of groups that are no people: an attribute that was not told, or of two applicants who differ in it."""


class Protected(Strict):
    """One protected attribute: its column, or several crossed, and the groups of their values."""

    name: str = Field(min_length=1, description="name of the attribute, used once")
    columns: tuple[str, ...] = Field(
        min_length=1,
        description="one column, or several that are crossed: by groups of an attribute over one of them, else by "
        "value",
    )
    groups: dict[str, tuple[Code, ...]] = Field(
        {}, description="group -> values of the single column; if left out, each value is a group"
    )
    bands: tuple[float, ...] = Field(
        (),
        description="ages or other numbers at which groups begin: [40, 62] makes `under 40`, `40 to 61`, `62 and over`",
    )
    reference: str = Field(description="group that the others are compared with")
    missing: str = Field("(missing)", description="group of the rows without a value; no row is refused for that")
    unlisted: str = Field("(other)", description="the group of values that `groups` does not list")
    file: str | None = Field(
        None,
        description="a second file that has the columns, such as demographics that are kept apart; next to the spec or "
        "in the working directory. A row without a partner there has the group `missing`; one whose key is there twice "
        "is refused (`outside_join`)",
    )
    key: JoinKey | None = Field(
        None, description="of `file`: the column that identifies an application in both files, or {this: A, other: B}"
    )
    reported_only: tuple[str, ...] = Field(
        (),
        description="groups that are reported and never judged. Groups that are no people, such as `not available`, "
        "are never judged",
    )

    @model_validator(mode="before")
    @classmethod
    def _one_key(cls, raw: Any) -> Any:
        """One name names the same column in both files."""
        if isinstance(raw, Mapping) and isinstance(raw.get("key"), str):
            return {**raw, "key": {"this": raw["key"], "other": raw["key"]}}
        return raw

    @model_validator(mode="after")
    def _file_has_a_key(self) -> Self:
        if (self.file is None) != (self.key is None):
            absent = "key" if self.key is None else "file"
            raise ValueError(f"a second file is joined by a key: add `{absent}`, or leave out both `file` and `key`")
        return self

    @model_validator(mode="after")
    def _groups_fit(self) -> Self:
        if self.groups and len(self.columns) > 1:
            raise ValueError("groups can be listed for a single column only; crossed columns are grouped by value")
        if self.bands and (self.groups or len(self.columns) > 1):
            raise ValueError("bands cut the numbers of a single column; leave out `groups`, and name one column")
        if list(self.bands) != sorted(set(self.bands)):
            raise ValueError(f"bands {list(self.bands)} have to ascend, each once")
        groups = [*self.groups, *self.band_names]
        if groups and self.reference not in groups:
            raise ValueError(f"reference {self.reference!r} is not a group; {nearest(self.reference, groups)}")
        for name in self.reported_only:
            if name == self.reference:
                raise ValueError(f"{name!r} is the reference group, which the others are judged by; leave it out")
            if groups and name not in groups:
                raise ValueError(f"reported_only names {name!r}, which is no group; {nearest(name, groups)}")
        listed = [value for values in self.groups.values() for value in set(values)]
        twice = sorted({value for value in listed if listed.count(value) > 1})
        if twice:
            raise ValueError(f"{twice} are in more than one group")
        return self

    @property
    def band_names(self) -> tuple[str, ...]:
        """Groups that `bands` makes, from the lowest: `under 40`, `40 to 61`, `62 and over`."""
        if not self.bands:
            return ()
        whole_ends = all(end.is_integer() for end in self.bands)
        between = [
            f"{low:g} to {high - 1:g}" if whole_ends else f"{low:g} to below {high:g}"
            for low, high in pairwise(self.bands)
        ]
        return (f"under {self.bands[0]:g}", *between, f"{self.bands[-1]:g} and over")

    def identifying(self) -> dict[str, Any]:
        """What identifies it; without a second file, as specs that came before these keys."""
        values = self.model_dump(mode="json")
        file, key = values.pop("file"), values.pop("key")
        return values if file is None else {**values, "file": name_of(file), "key": key}

    def judges(self, group: str) -> bool:
        """Whether verdicts are about this group: people other than the reference group, and not only reported."""
        words = group.casefold()
        nobody = words in _NOBODY or any(phrase in words for phrase in _NOT_GIVEN)
        return not nobody and group not in (self.reference, self.missing, self.unlisted, *self.reported_only)

    def unknown(self, group: str) -> bool:
        """Whether it holds the applications whose group nobody gave; not those of two people of different groups."""
        words = group.casefold()
        is_not_given = words in _UNKNOWN or any(phrase in words for phrase in _NOT_GIVEN)
        return group != self.reference and (is_not_given or group == self.missing)


class Comparable(Strict):
    """How much worse a mitigation may be and still count as performing as well; fixed before the run."""

    accuracy: float | None = Field(None, gt=0, lt=1, description="by how much the accuracy may be lower")
    auc: float | None = Field(
        None, gt=0, lt=1, description="by how much the AUC may be lower; without either the accuracy, by 0.01"
    )

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if self.accuracy is not None and self.auc is not None:
            raise ValueError("give `accuracy` or `auc`: one margin decides")
        return self

    @property
    def by(self) -> Literal["accuracy", "auc"]:
        """The quantity."""
        return "accuracy" if self.auc is None else "auc"

    @property
    def margin(self) -> float:
        """Of the quantity."""
        return self.auc or self.accuracy or 0.01


class Explain(Strict):
    """The decision maker that is explained (factuals), and the rows that may serve as counterfactuals (candidates)."""

    decision_makers: tuple[Literal["model", "lender"], ...] = Field(
        ("model", "lender"), min_length=1, description="whose decisions the methods look at; approval rates cover both"
    )
    factuals: Literal["unfavourable", "false_negatives"] = Field(
        "unfavourable", description="all unfavourable decisions, or only those whose outcome was favourable"
    )
    candidate_score: float | None = Field(
        None, ge=0, le=1, description="model score above which a row is a candidate; its decision counts if null"
    )

    @classmethod
    def paper(cls, overrides: Mapping[str, Any]) -> dict[str, Any]:
        """The keys of a spec under the profile `paper`."""
        return {"decision_makers": ["model"], "factuals": "false_negatives", "candidate_score": 0.6, **overrides}


class AuditSpec(Strict):
    """One audit. data/audits/*.yaml are the examples."""

    name: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$",
        description="name of the audit and start of the run id: letters, digits, - and _, 64 at most",
    )
    title: str = Field("", description="title in the report; the name if empty")
    year: Year = Field(
        description="year of the decisions, printed and part of the run id; it selects no rows (`source.keep` does)"
    )
    profile: Literal["default", "paper"] = Field(
        "default",
        description="`paper` changes the defaults of some keys (table at the end), to reproduce published figures",
    )
    source: Source = Field(description="where the applications come from")
    by: By | None = Field(None, description="one audit for each value of a column, such as one a lender")
    sampling: Sampling | None = Field(
        Sampling(), description="how many applicants of a large audit are sampled; null: all"
    )
    row_id: str | None = Field(
        None,
        description="column that identifies a row; if null, its number from 1. Rows that share an id are all refused",
    )
    decision: Decision = Field(
        description="column that holds the decision, and which of its values favour the applicant"
    )
    outcome: Decision | None = Field(
        None, description="the true label, in the form of `decision`, where it is not the decision itself"
    )
    protected: tuple[Protected, ...] = Field(
        min_length=1, description="protected attributes: columns, groups and reference group"
    )
    columns: dict[str, ColumnSpec] = Field(
        min_length=1,
        description="the features: how each column is read, encoded and allowed to change, in the order of encoding",
    )
    missing: Literal["exclude", "impute"] = Field(
        "exclude", description="rows without a value in a feature: refused, or filled in as a labelled sensitivity run"
    )
    refusals: KeptRefusals = KeptRefusals()
    expectations: FileOrList | None = Field(
        None, description="own expectations about the applications: a list, or the file of a suite next to the spec"
    )
    leakage: Leakage = Field(Leakage(), description="columns that may predict the decision without any other column")
    model: Model = Model()
    explain: Explain = Explain()
    causal_graph: CausalGraph = CausalGraph()
    compare: tuple[str, ...] = Field((), description="mitigations that are trained and compared")
    comparable: Comparable = Comparable()
    methods: Methods = Field(
        description="methods to run and their settings; null leaves a method out, {} runs it with its defaults"
    )
    """By the defaults where the spec says nothing."""
    thresholds: tuple[Threshold, ...] = Field((), description="your own limits on any measure, fixed before the run")
    verdicts: Verdicts = Verdicts()
    disclosure: Disclosure = Disclosure()
    bootstrap: Bootstrap = Bootstrap()
    seed: Seed = Field(482, description="seed of everything random: folds, models, bootstrap, samples")
    expected: Expected | None = None
    unconfirmed: tuple[str, ...] = Field(
        (),
        description="keys that were guessed and not confirmed. A key with the comment `# CHECK` is one; an audit with "
        "a key of `decision` among them does not start",
    )

    @model_validator(mode="before")
    @classmethod
    def _left_out(cls, raw: Any, info: ValidationInfo) -> Any:
        """Under `paper`, what the user left out takes the paper's value instead of the defended one."""
        if not isinstance(raw, Mapping):
            return raw
        out: dict[str, Any] = {"methods": {}, **raw}
        for settings in out["methods"].values() if isinstance(out["methods"], Mapping) else ():
            # a method that asks for the saturated graph of an order: the graph of the audit is that one
            if (
                isinstance(settings, Mapping)
                and settings.get("graph") == "saturated"
                and is_order(settings.get("causal_order"))
            ):
                graph = out.get("causal_graph") or {}
                out["causal_graph"] = (
                    {**graph, "order": settings["causal_order"]} if isinstance(graph, Mapping) else graph
                )
        out |= _with_attribute_files(out)
        source, disclosure = out.get("source"), out.get("disclosure") or {}
        if isinstance(source, Mapping) and source.get("kind") == "hmda" and isinstance(disclosure, Mapping):
            # anyone may download its rows; a lender's own submission is refused under this profile
            out["disclosure"] = {"profile": "published", **disclosure}
        if raw.get("profile") == "paper":
            out.setdefault("sampling", None)  # no paper asks a sample
        if raw.get("profile") != "paper" or not isinstance(out["methods"] or {}, Mapping):
            return out  # the fields say what is wrong with it
        for part, defaults in (("model", Model.paper), ("explain", Explain.paper)):
            if isinstance(out.get(part) or {}, Mapping):
                out[part] = defaults(out.get(part) or {})
        known_methods = known_in(info)
        methods = dict(out["methods"] or {name: {} for name, kind in known_methods.items() if kind.by_default})
        named = {name: kind for name, kind in known_methods.items() if isinstance(methods.get(name), Mapping)}
        paper_settings = {name: kind.under_paper(methods[name]) for name, kind in named.items()}
        return out | {"methods": methods | paper_settings}

    @model_validator(mode="after")
    def _refers_to_itself(self) -> Self:
        of_columns = (*self._of_names(), *self._of_by(), *self._of_model(), *self._of_directions(), *self._of_actions())
        of_columns = (*of_columns, *self._of_leakage(), *self._of_proxy())
        of_columns = (*of_columns, *self._of_few())
        raise_together([*of_columns, *self._of_verdicts(), *self._of_graph(), *self.methods.faults()])
        return self

    def _of_few(self) -> Iterator[SpecError]:
        """Least numbers below that of the profile: a withheld group would decide the state, which is printed."""
        smallest = self.disclosure.smallest
        for name, number in (("verdicts", self.verdicts.minimum_n), ("bootstrap", self.bootstrap.minimum_n)):
            if number < smallest:
                yield SpecError(
                    f"{number} is below {smallest}, the fewest people that profile {self.disclosure.profile} reports "
                    f"on, and the run's state would report on fewer; give {smallest}, or another disclosure.profile",
                    (name, "minimum_n"),
                )

    def _of_names(self) -> Iterator[SpecError]:
        names = [p.name for p in self.protected]
        if len(set(names)) != len(names):
            yield SpecError(f"protected attributes need different names, got {names}", ("protected",))
        for label in (self.decision, self.outcome):
            if label and label.column in self.kept():
                message = f"{label.column!r} is the decision or its outcome, and so no feature: leave it out"
                yield SpecError(message, ("columns", label.column))

    def _of_proxy(self) -> Iterator[SpecError]:
        """Names that some table of the lake would have."""
        if self.source.proxy is None:
            return
        names = {name for name in (self.source.proxy.surname, self.source.proxy.first_name) if name}
        elsewhere: dict[str, set[str | None]] = {
            "columns": set(self.kept()),
            "protected": {column for p in self.protected for column in p.columns},
            "row_id": {self.row_id},
            "by": {self.by.column} if self.by else set(),
            "source.derive": {derived.column for derived in self.source.derive.values()},
        }
        for part, columns in elsewhere.items():
            for name in sorted(names & columns, key=str):
                message = f"{name!r} holds names, which are dropped after the look-up; take it out of `{part}`"
                yield SpecError(message, ("source", "proxy"))

    def _of_by(self) -> Iterator[SpecError]:
        if self.by is not None:
            attributes = {column: p.name for p in self.protected for column in p.columns}
            decided = [label.column for label in (self.decision, self.outcome) if label]
            derived = {name: derivation.columns[0] for name, derivation in self.source.derive.items()}
            yield from self.by.faults(attributes, decided, derived)
            if not self.source.paths and self.source.vintage is None:
                message = f"a source of kind {self.source.kind!r} has neither vintage nor path, and so no partitions"
                yield SpecError(f"{message}; take `by` out, or give the rows as a file", ("by",))

    def _of_model(self) -> Iterator[SpecError]:
        if self.model.file is not None and not self.features():
            yield SpecError(f"{NO_FEATURE}, and a model file decides by features; list its inputs", ("model", "file"))
        for name in self.model.rule.weights if self.model.rule else ():
            if name not in self.features() or self.columns[name].type is not Kind.CONTINUOUS:
                numbers = [n for n, column in self.features().items() if column.type is Kind.CONTINUOUS]
                message = f"{name!r} is no continuous column, as a rule's have to be; {nearest(name, numbers)}"
                yield SpecError(message, ("model", "rule", "weights", name))

    def _of_graph(self) -> Iterator[SpecError]:
        attributes = [name for p in self.protected for name in (p.name, *p.columns)]
        nodes = list(dict.fromkeys([*self.features(), *attributes, self.decision.column]))
        if self.causal_graph.order:
            yield from self._of_order(nodes)
            return
        for i, edge in enumerate(self.causal_graph.edges):
            for node in edge:
                if node not in nodes:
                    yield SpecError(f"unknown node {node!r}; {nearest(node, nodes)}", ("causal_graph", "edges", i))
            if edge[1] in attributes:
                message = f"{edge[1]!r} is a protected attribute, and {edge[0]!r} cannot be its cause; turn the edge"
                yield SpecError(message, ("causal_graph", "edges", i))

    def _of_order(self, nodes: list[str]) -> Iterator[SpecError]:
        """Faults of the tiers of a saturated graph, at the method that asks for it."""
        asking = (name for name in self.methods.running() if getattr(self.methods.named(name), "causal_order", ()))
        name = next(asking, None)
        place: Location = ("causal_graph", "order") if name is None else ("methods", name, "causal_order")
        order = self.causal_graph.order
        listed = [column for tier in order for column in tier]
        for column in dict.fromkeys(listed):
            if column not in nodes:
                yield SpecError(f"unknown column {column!r}; {nearest(column, nodes)}", place)
            if listed.count(column) > 1:
                yield SpecError(f"{column!r} is in more than one tier; leave it in one", place)
            if column == self.decision.column:
                yield SpecError(f"{column!r} is the decision, which all columns lead to: take it out", place)
        for p in self.protected:
            named = {p.name, *p.columns} if len(p.columns) == 1 else {p.name}
            later = sorted(named & {column for tier in order[1:] for column in tier})
            if later:
                yield SpecError(
                    f"{later[0]!r} is a protected attribute, which no column causes: put it in the first tier", place
                )
            elif len(p.columns) == 1 and not named & set(order[0]):
                yield SpecError(f"the protected attribute {p.name!r} is missing: put it in the first tier", place)
        protected = {column for p in self.protected for column in p.columns}
        for column in self.causal_graph.mechanisms:
            if column in order[0]:
                message = f"{column!r} is in the first tier of the order, so that nothing causes it"
                yield SpecError(message, ("causal_graph", "mechanisms", column))
            elif column not in listed:
                message = f"{column!r} has no tier in the order; {nearest(column, listed)}"
                yield SpecError(message, ("causal_graph", "mechanisms", column))
        missing = [feature for feature in self.features() if feature not in {*listed, *protected}]
        if missing:
            tiers = ", ".join(f"[{', '.join(tier)}]" for tier in (*order[:-1], (*order[-1], *missing)))
            yield SpecError(
                f"{', '.join(missing)}: missing from the order, in which every feature has a tier; if no later column "
                f"follows from {'it' if len(missing) == 1 else 'them'}: "
                f"--set '{'.'.join(map(str, place))}=[{tiers}]'",
                place,
            )

    def _of_directions(self) -> Iterator[SpecError]:
        for name, direction in self.verdicts.direction.items():
            if name not in self.features():
                message = f"{name!r} is no feature of this audit; {nearest(name, list(self.features()))}"
                yield SpecError(message, ("verdicts", "direction", name))
            elif direction != "none" and self.columns[name].type is Kind.NOMINAL:
                message = f"{name!r} is nominal and so has no up or down; give it `order`, or say none"
                yield SpecError(message, ("verdicts", "direction", name))

    def _of_leakage(self) -> Iterator[SpecError]:
        for position, name in enumerate(self.leakage.allow):
            if name not in self.features():
                message = f"{name!r} is no feature of this audit; {nearest(name, list(self.features()))}"
                yield SpecError(message, ("leakage", "allow", position))

    def _of_actions(self) -> Iterator[SpecError]:
        """Actions of HMDA on the wrong side of the decision."""
        for side, actions in (("favourable", DENIED), ("unfavourable", APPROVED)):
            wrong = sorted(set(getattr(self.decision, side)) & actions)
            if self.codes_decide and wrong:
                message = (
                    f"code {', '.join(wrong)} of {self.decision.column} is not {side}: HMDA has 1, 2 and 8 for "
                    "approved and 3 and 7 for denied; exchange favourable and unfavourable"
                )
                yield SpecError(message, ("decision", side))

    def _of_verdicts(self) -> Iterator[SpecError]:
        if self.verdicts.complete and self.source.kind == "hmda":
            message = (
                "public HMDA holds no credit score, reserves or verification: its columns are not complete; say false"
            )
            yield SpecError(message, ("verdicts", "columns_complete"))
        if self.audited_model.kind == "none" and "model" in (self.verdicts.decision_makers or ()):
            why = "model.kind is none" if self.model.kind == "none" else NO_FEATURE
            message = f"there is no model whose decisions could be judged ({why}); name the lender alone"
            yield SpecError(message, ("verdicts", "decision_makers"))

    @property
    def partition(self) -> dict[str, str] | None:
        """Column and value of the partition that the audit is about; None of a spec without ``by``."""
        if self.source.part is not None:
            return {"column": self.source.part.column, "value": self.source.part.value}
        return None if self.by is None else {"column": self.by.column, "value": ALL}

    @property
    def codes_decide(self) -> bool:
        """Whether the decision holds HMDA's action codes; tables of other kinds may hold other codes."""
        return self.decision.column == ACTION and self.source.kind in ("hmda", "synthetic")

    @property
    def lender_name(self) -> str:
        """Name of the lender for pages; empty where none is known."""
        return self.source.lender_name

    def directions(self) -> dict[str, int]:
        """Features with a direction: 1 where more is better for the applicant, -1 where less is."""
        signs, overrides = {"up": 1, "down": -1}, self.verdicts.direction
        words = {name: overrides.get(name, str(column.constraint)) for name, column in self.features().items()}
        return {name: signs[word] for name, word in words.items() if word in signs}

    def remarks(self) -> Iterator[str]:
        """What a reader of the verdicts should know of the spec."""
        if self.audited_model != self.model:
            yield f"no model is audited: {NO_FEATURE}, and a model is fitted to features"
        if self.verdicts.columns_complete in (None, "CHECK") and self.source.kind != "hmda":
            yield (
                "verdicts.columns_complete is not said, and read as false: the interval of `similar_applicants` is "
                "widened for columns that the table may lack; say true if it holds every column that decided"
            )
        for limit in self.thresholds:
            if 0 in (limit.minimum, limit.maximum):
                yield f"thresholds: a limit of 0 on {limit.measure} can hardly be kept, as intervals have width"

    def features(self) -> dict[str, ColumnSpec]:
        """The columns that models and distances use, in the order of the spec."""
        return {name: column for name, column in self.columns.items() if column.used}

    @property
    def audited_model(self) -> Model:
        """The model that the audit runs: none where one would be fitted and the spec has no feature."""
        fitted = not self.model.is_given and not self.features()
        return Model(kind="none") if fitted else self.model

    def kept(self) -> dict[str, ColumnSpec]:
        """The columns that are read: the features and the controls of the denial ladder."""
        return {name: column for name, column in self.columns.items() if column.kept}


def _with_attribute_files(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The part `source` with the files of protected attributes; attributes of one file and key are joined at once."""
    source, protected = raw.get("source"), raw.get("protected")
    if not isinstance(source, Mapping) or source.get("attribute_files") or not isinstance(protected, list | tuple):
        return {}
    files: list[dict[str, Any]] = []
    for p in protected:
        if not (
            isinstance(p, Mapping) and isinstance(p.get("file"), str) and isinstance(p.get("columns"), list | tuple)
        ):
            continue  # of no second file, or the fields report what is wrong
        same = (file for file in files if (file["path"], file["key"]) == (p["file"], p.get("key")))
        file = next(same, None)
        if file is None:
            file = {"path": p["file"], "key": p.get("key"), "columns": []}
            files.append(file)
        file["columns"] += [name for name in p["columns"] if name not in file["columns"]]
    return {"source": {**source, "attribute_files": files}} if files else {}


def check_decided(spec: AuditSpec) -> None:
    """Stops where the decision or its sides are a guess without confirmation: swapped, they turn every result round.

    Raises:
        SpecError: a key of the decision is marked CHECK.
    """
    open_keys = [key for key in spec.unconfirmed if key == "decision" or key.startswith("decision.")]
    if open_keys:
        raise SpecError(
            f"{', '.join(open_keys)}: a guess that is not confirmed, and the wrong way round it turns every result. "
            "Read it: evenhand init --check SPEC; confirm it: evenhand init --confirm SPEC decision",
            ("decision",),
        )


def without_places(
    source: Source | None, model: Model | None, protected: Sequence[Protected] | None = None
) -> dict[str, Any]:
    """The parts `source`, `model` and `protected` of a spec, if present, without the folders of their files.

    So the same files give the same run and the same keys in every folder; digests of the files stand beside.
    """
    parts: dict[str, Any] = {} if source is None else {"source": source.identifying()}
    parts |= {} if protected is None else {"protected": [p.identifying() for p in protected]}
    return parts if model is None else parts | {"model": model.identifying()}


class StageSettings(Strict):
    """The part of the audit spec that one stage depends on, with the same field names as the spec."""

    memory: ClassVar[Growth] = Growth()

    @classmethod
    def of(cls, spec: AuditSpec, **overrides: object) -> Self:
        """Take this stage's fields from the spec; ``overrides`` gives what the spec does not hold."""
        spec_values = {name: getattr(spec, name) for name in cls.model_fields if name not in overrides}
        return cls.model_validate({**spec_values, **overrides})

    def identifying(self) -> dict[str, Any]:
        """What identifies them in the key of a stage: not where files lie."""
        values: dict[str, Any] = self.model_dump(mode="json")
        parts = (getattr(self, name, None) for name in ("source", "model", "protected"))
        return values | without_places(*parts)

    def forecast_mb(self, size: Size) -> float:
        """Memory of the stage beyond what a process holds anyway, in MB; 0 where it is not known."""
        return self.memory.at(size)
