"""A whole audit of a frame: the stages of ``evenhand audit``, in memory or kept in a lake."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import pandas as pd
import pyarrow as pa
import yaml

from evenhand.causal_graph import CausalGraph
from evenhand.errors import InputError, NotComputedError
from evenhand.frame_rows import Rows, check_groups, rows_of
from evenhand.models import Answering
from evenhand.results import QUESTIONS, group_frame
from evenhand.runs import calling, given_columns, merged, seed_of
from schemas.audit.column import is_personal, set_by_decision
from schemas.audit.model import Model
from schemas.audit.source import Source
from schemas.audit.spec import AuditSpec
from schemas.errors import nearest
from schemas.tables.verdicts import PRICES, in_approval
from tasks.ingest.sources.typed_cells import cell
from tasks.pipeline.registry import NAMES

KINDS: Final = {".csv": "csv", ".parquet": "parquet", ".xlsx": "excel", ".feather": "feather", ".jsonl": "jsonl"}
MOST_SHOWN: Final = 6


def audit(
    frame: Any,
    *,
    decision: str,
    favourable: Any,
    protected: str | Sequence[str],
    reference: Any = None,
    unfavourable: Any = None,
    name: str = "audit",
    title: str = "",
    year: int | None = None,
    columns: Mapping[str, Mapping[str, Any]] | None = None,
    methods: Mapping[str, Any] | Sequence[str] | None = None,
    causal_graph: Any = None,
    model: Any = None,
    columns_complete: bool | None = None,
    random_state: Any = 482,
    lake: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
) -> "AuditResult":
    """Audit the decisions of a frame as ``evenhand audit`` does: the same stages, checks and pages.

    Args:
        frame: A row for each application. All columns but the decision and the protected ones are features; columns
            about a person, and those that the decision sets, are left out and named in `notes`.
        decision: The column of the decision.
        favourable: Its value, or values, that favour the applicant.
        protected: A column of groups, or several; each is looked at by itself.
        reference: Group that the others are compared with, or column -> group; the largest if None.
        unfavourable: The values that do not favour; all others where there is one. Rows of neither are refused.
        name: Of the run.
        title: Of the report.
        year: Of the decisions; this year if None.
        columns: Column -> keys of an audit spec that its values do not show.
        methods: Names of methods, or name -> settings; no others run. Those of an audit by default if None.
        causal_graph: `CausalGraph` or what one is made of, for methods that need one.
        model: Audited as well: anything with `predict_proba` or `predict`; one is fitted if None. Of its classes the
            favourable one is that of the decision, or 1.
        columns_complete: Whether the frame holds every column that the decision rests on.
        random_state: Seed.
        lake: Directory that keeps the run, as ``evenhand audit --lake`` does; None keeps nothing.
        settings: Further parts of an audit spec (`thresholds`, `verdicts`, `disclosure`, ...).

    Raises:
        InputError: A fault of the frame or of an argument; it names the column.
        EvenhandError: As the stages say.
        MissingExtraError: A method needs a library of an extra.
    """
    rows = rows_of(frame, what="the frame")
    names = [protected] if isinstance(protected, str) else list(protected)
    given_columns([decision, *names], "audit", rows, "the frame")
    notes: list[str] = []
    values: dict[str, Any] = {
        "name": name,
        "title": title or name,
        "year": year or date.today().year,
        "source": {"kind": "frame"},
        "decision": _decision(rows, decision, favourable, unfavourable),
        "protected": [
            {"name": column, "columns": [column], "reference": _reference(rows, column, reference)} for column in names
        ],
        "columns": _features(rows, [decision, *names], columns or {}, notes),
        "disclosure": {"profile": "internal"},
        "seed": seed_of(random_state),
        **dict(settings or {}),
    }
    if methods is not None:
        chosen = dict(methods) if isinstance(methods, Mapping) else {method: {} for method in methods}
        values["methods"] = {**dict.fromkeys(NAMES), **chosen}
    if causal_graph is not None:
        values["causal_graph"] = CausalGraph.of(causal_graph).spec
    if columns_complete is not None:
        values["verdicts"] = {**values.get("verdicts", {}), "columns_complete": columns_complete}
    spec = _checked(values)
    if model is not None:
        features = tuple(column for column in rows.columns if column.name in spec.features())
        answering = Answering(model, Rows(features, rows.text, rows.index, rows.namespace), _class(model, favourable))
        spec = spec.model_copy(update={"model": Model.of_object(answering)})
    spec = spec.model_copy(update={"source": Source.of_frame(rows.text)})
    if lake is None:
        return calling(lambda: _in_memory(spec, rows, notes), "audit")  # type: ignore[no-any-return]
    if model is not None:
        raise InputError("lake keeps what can be read again, and a model in memory cannot; leave out lake, or model")
    return calling(lambda: _kept(spec, rows, notes, str(lake)), "audit with lake=")  # type: ignore[no-any-return]


def _decision(rows: Rows, name: str, favourable: Any, unfavourable: Any) -> dict[str, Any]:
    present = sorted({text for text in rows.text[name].to_pylist() if text})
    sides = []
    for values, what in ((favourable, "favourable"), (unfavourable, "unfavourable")):
        listed = values if isinstance(values, list | tuple | set) else [] if values is None else [values]
        texts = [cell(value) for value in listed]
        for text in texts:
            if text not in present:
                raise InputError(f"no row of {name!r} holds the {what} value {text!r}; {nearest(text, present)}")
        sides.append(texts)
    other_values = [text for text in present if text not in sides[0]]
    if not sides[0]:
        raise InputError(f"favourable is not given: which values of {name!r} favour the applicant ({present})?")
    if unfavourable is None and len(other_values) > 1:
        values_text = ", ".join(repr(text) for text in other_values[:MOST_SHOWN])
        raise InputError(f"{name!r} holds {values_text}, too: say which of them do not favour, unfavourable=[...]")
    if not other_values:
        raise InputError(f"{name!r} has one class only: all decisions are favourable")
    listed = sides[1] or other_values
    neither = [text for text in other_values if text not in listed]
    return {"column": name, "favourable": sides[0], "unfavourable": listed, "neither": neither}


def _class(model: Any, favourable: Any) -> Any:
    """The class of a model that is a favourable value of the decision; None where its classes are others."""
    listed = favourable if isinstance(favourable, list | tuple | set) else [favourable]
    classes = list(getattr(model, "classes_", ()))
    return next((value for value in listed if value in classes), None)


def _reference(rows: Rows, column: str, reference: Any) -> str:
    texts = pd.Series(rows.text[column].to_pylist())
    groups = sorted(set(texts) - {""})
    if len(groups) < 2:
        raise InputError(f"protected column {column!r} has one group only: no group to compare it with")
    check_groups(len(groups), f"protected column {column!r}")
    value = reference.get(column) if isinstance(reference, Mapping) else reference
    if value is None:
        return str(texts[texts != ""].value_counts().idxmax())
    group = cell(value)
    if group not in groups:
        raise InputError(f"no row of {column!r} is of the reference group {value!r}; {nearest(group, groups)}")
    return group


def _features(
    rows: Rows, roles: Sequence[str], overrides: Mapping[str, Mapping[str, Any]], notes: list[str]
) -> dict[str, dict[str, Any]]:
    given_columns(list(overrides), "columns", rows, "the frame")
    out: dict[str, dict[str, Any]] = {}
    for column in rows.columns:
        if column.name in roles and column.name not in overrides:
            continue
        keys = overrides.get(column.name, {})
        spec = merged(column, keys)
        why = "describes a person" if is_personal(column.name) else "is set by the decision"
        if "role" not in keys and (is_personal(column.name) or set_by_decision(column.name)):
            spec["role"] = ["excluded"]
            notes.append(f"{column.name} is left out, as it {why}; columns={{...: {{'role': 'feature'}}}} takes it in")
        out[column.name] = spec
    return out


def _checked(values: Mapping[str, Any]) -> AuditSpec:
    from tasks.metrics.limits import faults
    from tasks.pipeline.registry import checked

    return checked(values, "arguments", (faults,))


def _in_memory(spec: AuditSpec, rows: Rows, notes: list[str]) -> "AuditResult":
    """Run every stage, and validate its tables where Great Expectations is installed."""
    from schemas.tables.applications import VALIDATIONS
    from tasks.in_memory import call_plainly
    from tasks.pipeline.stage import hold
    from tasks.plan import plan

    validating = find_spec("great_expectations") is not None
    files: dict[str, bytes] = {}

    def kept(step: Any, produced: Any, rows_in: int) -> Mapping[str, Any]:
        files.update(produced.files)
        if not validating:
            return produced.unheld()  # type: ignore[no-any-return]
        content, refusals, results, _ = hold(step.stage, produced, rows_in)
        return {**content, "refusals": refusals, VALIDATIONS.name: results}

    planned = plan(spec)
    tables = {name: pa.concat_tables(parts) for name, parts in call_plainly(planned.steps, kept).items()}
    if not validating:
        notes.append("tables were not held against their declarations: pip install 'evenhand[pipeline]'")
    return AuditResult(planned.spec, planned.run, rows, tables, files, tuple(notes))


def _kept(spec: AuditSpec, rows: Rows, notes: list[str], place: str) -> "AuditResult":
    """Run every stage in a lake, and publish the run there."""
    from flows.runs.record import planned_in, publish_once
    from tasks.lake.store import Lake
    from tasks.plan import walk

    lake = Lake(place)
    planned = planned_in(lake, spec)
    done = walk(planned.steps, lambda step, artifacts: step.stage.run(lake, artifacts, step.settings, step.modules))
    publish_once(lake, planned, done)
    tables: dict[str, list[pa.Table]] = {}
    for partition in done:
        for artifact in partition.tables:
            tables.setdefault(artifact.table, []).append(lake.read(artifact))
    joined = {name: pa.concat_tables(parts, promote_options="default") for name, parts in tables.items()}
    home = f"reports/{planned.run}"
    paths = [*lake.storage.glob(f"{home}/*.*"), *lake.storage.glob(f"{home}/*/*.*")]
    files = {path.removeprefix(f"{home}/"): lake.storage.read(path) or b"" for path in paths}
    return AuditResult(planned.spec, planned.run, rows, joined, files, tuple(notes))


@dataclass(frozen=True)
class AuditResult:
    """What an audit found."""

    _spec: AuditSpec = field(repr=False)
    run: str
    """Id of the run."""
    _rows: Rows = field(repr=False)
    tables: Mapping[str, pa.Table] = field(repr=False)
    """Every table of the stages, by name."""
    files: Mapping[str, bytes] = field(repr=False)
    """Path -> content of the pages and exports of the report."""
    notes: tuple[str, ...] = ()
    """What was left out, and why."""

    @property
    def spec(self) -> "Spec":
        """The audit spec that the arguments amount to."""
        return Spec(self._spec)

    @property
    def report(self) -> dict[str, Any]:
        """The content of report.json."""
        content: dict[str, Any] = json.loads(self.files["report.json"])
        return content

    def first_page(self) -> "FirstPage":
        """The first page: what was found, question by question."""
        return FirstPage(self.report, self.files["report.html"].decode())

    def by_group(self, question: str, attribute: str | None = None) -> pd.DataFrame:
        """A question by group: estimate, 95 % interval, n, state and reason of each.

        Args:
            question: `approval_rates`, `similar_applicants`, `causal_model`, `path_to_approval`, `model_reasons` or
                `own_limits`. Of `approval_rates` the estimate is the rate of the group, the reference group's too; of
                all others it is the measure that is judged. A difference is group less reference group in the
                probability of approval, as on the first page: below 0, the group is approved less often.
            attribute: The protected column; the first if None.

        Raises:
            InputError: There is no such question or attribute.
            NotComputedError: The audit did not answer it.
        """
        name = self._attribute(attribute)
        verdicts = self._judged(question, name)
        if question != "approval_rates":
            if not len(verdicts):
                reason = self._whole(question)
                raise NotComputedError(f"{question} was not answered{': ' + reason if reason else ''}")
            return _verdict_frame(verdicts, name)
        rates = self._measure("approval_rate", name)
        if len(verdicts):
            by_verdict = _verdict_frame(verdicts, name)
            rates.update(by_verdict[["state", "reason"]])
        return rates

    @property
    def overall(self) -> pd.Series:
        """Approval rate of everybody with a decision: estimate, low, high (Wilson, 95 %) and n."""
        from tasks.numerics.statistics.intervals import quantile, wilson

        decisions = self.tables["decisions"].to_pandas()
        favourable = decisions.loc[decisions["decision_maker"] == "lender", "favourable"]
        low, high = wilson(int(favourable.sum()), len(favourable), quantile(0.025))
        return pd.Series(
            {"estimate": favourable.mean(), "low": low, "high": high, "n": len(favourable)}, name="overall"
        )

    def difference(self, attribute: str | None = None) -> pd.DataFrame:
        """Approval rate of every group less that of the reference group."""
        return self._measure("approval_rate_difference", self._attribute(attribute))

    def ratio(self, attribute: str | None = None) -> pd.DataFrame:
        """Approval rate of every group over that of the reference group."""
        return self._measure("approval_rate_ratio", self._attribute(attribute))

    def generator_checks(self, attribute: str | None = None) -> pd.DataFrame:
        """The checks of GCFN's generators: name, network, column, value, limit, side, passed, n.

        Args:
            attribute: The protected column; the first if None.

        Raises:
            NotComputedError: The audit ran without GCFN.
        """
        from evenhand.results import checks_frame

        name, table = self._attribute(attribute), self.tables.get("generator_checks")
        if table is None or not table.num_rows:
            raise NotComputedError("generators were not trained: methods={'gcfn': {}} trains them")
        return checks_frame(table, name)

    def to_html(self, path: str | Path) -> None:
        """Write the first page and the pages of the questions as one file that needs no network."""
        from tasks.reporting.exports.single_file import single

        Path(path).write_bytes(single(self.files))

    def to_folder(self, path: str | Path) -> None:
        """Write all pages and exports into a folder."""
        for name, content in self.files.items():
            place = Path(path) / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)

    def plot(self, question: str = "approval_rates", attribute: str | None = None) -> str:
        """`by_group` of a question as the report draws it: an SVG drawing, as text."""
        from evenhand.results import forest
        from tasks.reporting.charts.layout import svg

        return str(svg(forest(self.by_group(question, attribute), question), "evenhand"))

    def _repr_html_(self) -> str:
        return self.first_page()._repr_html_()

    def _attribute(self, name: str | None) -> str:
        names = [p.name for p in self._spec.protected]
        if name is None:
            return names[0]
        if name not in names:
            raise InputError(f"{name!r} is no protected column of this audit; {nearest(name, names)}")
        return name

    def _measure(self, measure: str, attribute: str) -> pd.DataFrame:
        rows = self.tables["measures"].to_pandas()
        chosen = (rows["measure"] == measure) & (rows["protected_attribute"] == attribute)
        return group_frame(rows[chosen & (rows["decision_maker"] == "lender") & (rows["subgroup"] == 0)], attribute)

    def _judged(self, question: str, attribute: str) -> pd.DataFrame:
        if question not in QUESTIONS:
            raise InputError(f"there is no question {question!r}; {nearest(question, QUESTIONS)}")
        rows = pd.DataFrame([in_approval(row) for row in self.tables["verdicts"].to_pylist()])
        chosen = (rows["theory"] == question) & (rows["protected_attribute"] == attribute)
        return rows[chosen & rows["role"].isin(("primary", "adds")) & ~rows["measure"].isin(PRICES)]

    def _whole(self, question: str) -> str:
        rows = self.tables["verdicts"].to_pandas()
        summary = rows[(rows["theory"] == question) & (rows["role"] == "theory")]
        return str(summary["reason"].iloc[0]) if len(summary) else ""


def _verdict_frame(rows: pd.DataFrame, attribute: str) -> pd.DataFrame:
    """Rows of verdicts as a frame with a group a row, by their two-sided 95 % interval."""
    plain = rows.assign(low=rows["plain_low"], high=rows["plain_high"], note="")
    frame = group_frame(plain, attribute)
    frame["measure"] = rows.set_index("group")["measure"].sort_index(kind="stable").to_list()
    return frame


@dataclass(frozen=True)
class FirstPage:
    """The first page of a report: printed it is text, in a notebook it is the page."""

    report: Mapping[str, Any] = field(repr=False)
    html: str = field(repr=False)

    @property
    def headline(self) -> str:
        """The first sentence."""
        return str(self.report["headline"]["words"])

    @property
    def questions(self) -> pd.DataFrame:
        """A row for each question: its words, its state, and the sentence that answers it."""
        rows = self.report["questions"]
        return pd.DataFrame(
            {
                "question": [row["question"] for row in rows],
                "state": [row["state"] for row in rows],
                "answer": [row["sentence"] for row in rows],
            },
            index=pd.Index([row["theory"] for row in rows], name="key"),
        )

    def __str__(self) -> str:
        lines = [f"{row.question} {row.answer}" for row in self.questions.itertuples()]
        return "\n".join([self.headline, "", *lines])

    def _repr_html_(self) -> str:
        from html import escape

        return f'<iframe srcdoc="{escape(self.html)}" style="width:100%;height:60em;border:0" title="report"></iframe>'


@dataclass(frozen=True)
class Spec:
    """An audit spec, to be written for ``evenhand audit``."""

    audit_spec: AuditSpec

    def to_dict(self) -> dict[str, Any]:
        """The keys of the spec; what is as by default is left out."""
        values: dict[str, Any] = self.audit_spec.model_dump(mode="json", exclude_defaults=True, exclude={"unconfirmed"})
        running = self.audit_spec.methods.running()
        values["methods"] = {
            name: self.audit_spec.methods.named(name).model_dump(mode="json", exclude_defaults=True) for name in running
        }
        return values

    def to_yaml(self, path: str | Path, data: str | None = None) -> None:
        """Write the spec.

        Args:
            path: Of the YAML file.
            data: File of the same rows, beside it, that ``evenhand audit`` is to read; without one the source is to be
                filled in.

        Raises:
            InputError: A file of a kind that no audit reads.
        """
        values, head = self.to_dict(), ""
        if data is None:
            head = "# The rows were a frame in Python: write them to a file, and give its kind and path as `source`.\n"
        else:
            kind = KINDS.get(Path(data).suffix.casefold())
            if kind is None:
                raise InputError(f"{data!r} is of no kind that is read here; {', '.join(KINDS)} are")
            values["source"] = {"kind": kind, "path": data}
        text = yaml.safe_dump(values, sort_keys=False, allow_unicode=True)
        Path(path).write_text(head + text, encoding="utf-8")
