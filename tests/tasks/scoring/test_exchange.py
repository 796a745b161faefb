"""A given model asked again with the protected attribute exchanged: planted effects, and what is refused."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from conftest import SPEC, loans, spec_of

from schemas.audit.spec import AuditSpec
from schemas.tables.verdicts import VERDICTS
from schemas.terms import State
from tasks.in_memory import tables_through
from tasks.metrics import stage as measure
from tasks.metrics.limits import planned as planned_measures
from tasks.metrics.verdicts import NOT_DIRECT, NOT_TAKEN
from tasks.numerics.networks.network import Network, to_safetensors
from tasks.numerics.statistics.intervals import Changes, lower, upper

Tables = dict[str, pa.Table]

ROWS = 900
MALUS, LIMIT = 12.0, 40.0
TAKES = f"{{kind: rule, rule: {{weights: {{income: 1, black: -{MALUS:g}}}, limit: {LIMIT:g}}}}}"
BLIND = "{kind: rule, rule: {weights: {income: 1, black: 0}, limit: 40}}"
RACE = "{name: race, columns: [black], groups: {white: ['0'], Black: ['1']}, reference: white}"
SEX = "{name: sex, columns: [sex], groups: {men: [m], women: [f]}, reference: men}"
METHODS = {"adjusted": {"estimators": ["logit", "overlap"]}}
COLUMNS = {
    "income": {"type": "continuous", "constraint": "up"},
    "amount": {"type": "continuous", "constraint": "down"},
    "black": {"type": "continuous", "constraint": "immutable"},
    "sex": {"type": "binary", "constraint": "immutable"},
}


def people() -> pd.DataFrame:
    """Loans with race as a number, and with a sex."""
    frame = loans(ROWS)
    frame = frame[frame["race"] != ""].reset_index(drop=True)
    sex = np.random.default_rng(4).choice(["m", "f"], len(frame))
    return frame.assign(black=(frame["race"] == "b").astype(int), sex=sex).drop(columns="race")


def audit(place: Path, model: str, protected: str = RACE, **options: str) -> AuditSpec:
    """An audit by the denial ladder alone."""
    people().to_csv(place / "loans.csv", index=False)
    given = {"methods": json.dumps(METHODS), "columns": json.dumps(COLUMNS), "causal_graph": "{edges: []}"}
    text = SPEC.split("thresholds:")[0] + "disclosure: {profile: public}\nbootstrap: {draws: 100}\n"
    return spec_of(place, text, model=model, protected=f"[{protected}]", **given | options)


def tables(spec: AuditSpec, until: str = "measure") -> Tables:
    """Its tables, made in this process up to a stage."""
    return tables_through(spec, until)


def judged(found: Tables, spec: AuditSpec, *makers: str) -> Tables:
    """The measures alone once more, about these decision makers."""
    asked = spec.verdicts.model_copy(update={"decision_makers": makers or None})
    settings = measure.measure_settings(spec.model_copy(update={"verdicts": asked}))
    of = [found.get(table.name, table.empty()) for table in measure.measure.reads]
    return {**found, **measure.measure.function(*of, settings=settings).tables}


def direct(found, maker: str = "model") -> list[dict[str, object]]:
    rows = found[VERDICTS.name].to_pylist()
    return [row for row in rows if row["theory"] == "similar_applicants" and row["decision_maker"] in (maker, "")]


def planted() -> Changes:
    """Black applicants whom the malus alone denies, one by one."""
    own = people().query("black == 1")["income"]
    return Changes(sum(1 for income in own if LIMIT <= income < LIMIT + MALUS), 0, len(own))


def network(weights: list[float]) -> str:
    """A linear model as a file, its inputs by number of the category."""
    return to_safetensors(Network((np.array([weights]),), (np.array([-LIMIT]),), "relu"))


def file_model(place: Path, weights: list[float], inputs: str = "codes") -> str:
    (place / "model.bin").write_bytes(network(weights))
    return f"{{kind: file, file: {{path: {place / 'model.bin'}, inputs: {inputs}}}}}"


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> tuple[AuditSpec, Tables]:
    """By a rule that takes race, and not sex; nothing is said of whether the columns are complete."""
    spec = audit(tmp_path_factory.mktemp("taken"), TAKES, f"{RACE}, {SEX}")
    return spec, tables(spec, "detect")


def test_a_rule_that_takes_the_group_is_judged_by_its_own_answer(audited: tuple[AuditSpec, Tables]) -> None:
    spec, made = audited
    found = judged(made, spec, "model")
    whole, row = direct(found)
    wanted = planted()
    assert wanted.mean > 0.05
    assert (row["measure"], row["role"], row["value"]) == ("exchanged_effect", "primary", wanted.mean)
    assert (row["state"], whole["state"]) == (State.OUTSIDE, State.OUTSIDE)
    assert (row["low"], row["high"]) == (pytest.approx(lower(wanted, 0.05)), pytest.approx(upper(wanted, 0.05)))
    assert row["bias"] == 0, "the model sees its own columns only"
    assert (row["assumption"], whole["assumption"]) == ("none", "none")
    assert row["protected_attribute"] == "race", "the rule does not take sex, which has no row"
    (measured,) = [r for r in found["measures"].to_pylist() if r["measure"] == "exchanged_effect"]
    assert (measured["value"], measured["events"], measured["group"]) == (wanted.mean, wanted.raised, "Black")
    assert measured["low"] < measured["value"] < measured["high"]


def test_by_default_the_lender_is_judged_and_both_on_request(audited: tuple[AuditSpec, Tables]) -> None:
    spec, made = audited
    of_lender = {("lender", name) for name in ("adjusted_effect", "overlap_effect")}
    for makers, wanted in (((), of_lender), (("lender", "model"), of_lender | {("model", "exchanged_effect")})):
        rows = [
            row
            for row in judged(made, spec, *makers)[VERDICTS.name].to_pylist()
            if row["theory"] == "similar_applicants"
        ]
        assert {(row["decision_maker"], row["measure"]) for row in rows if row["group"]} == wanted
        assert rows[0]["assumption"] == "columns_complete"


def test_the_measure_is_planned_where_the_model_takes_an_attribute(place: Path) -> None:
    for model, there in ((TAKES, True), (BLIND, False), ("{kind: logistic_regression}", False)):
        forms = {
            form.measure for form, makers in planned_measures(audit(place, model))["adjusted"] if "model" in makers
        }
        assert ("exchanged_effect" in forms) is there


@pytest.mark.parametrize(
    ("model", "reason"), [(BLIND, NOT_TAKEN), ("{kind: logistic_regression, folds: 2, refits: 0}", NOT_DIRECT)]
)
def test_a_model_that_cannot_answer_is_not_run(place: Path, model: str, reason: str) -> None:
    spec = audit(place, model, verdicts__decision_makers="[model]", explain__decision_makers="[model]")
    found = tables(spec)
    (whole,) = direct(found)
    assert (whole["state"], whole["reason"]) == (State.NOT_RUN, reason)
    assert "exchanged_effect" not in found["measures"]["measure"].to_pylist()
    assert found["exchanges"].num_rows == found["exchanged_decisions"].num_rows == 0


@pytest.mark.parametrize("inputs", ["codes", "one_hot"])
def test_a_file_is_asked_with_one_attribute_exchanged_at_a_time(place: Path, inputs: str) -> None:
    of_sex = [0.0, -MALUS / 2] if inputs == "one_hot" else [-MALUS / 2]  # the categories are f and m
    model = file_model(place, [1.0, 0.0, -MALUS, *of_sex], inputs)
    found = tables(audit(place, model, f"{RACE}, {SEX}"), "score")
    frame = people()
    as_made = found["decisions"].to_pandas().query("decision_maker == 'model'")["favourable"].to_numpy()
    mine = found["exchanged_decisions"].to_pandas().groupby("protected_attribute")["favourable"]
    for i, row in frame.iterrows():
        sums = [
            row["income"] - MALUS * black - MALUS / 2 * (sex == "m") - LIMIT
            for black, sex in ((row["black"], row["sex"]), (0, row["sex"]), (row["black"], "m"))
        ]
        got = (as_made[i], mine.get_group("race").to_numpy()[i], mine.get_group("sex").to_numpy()[i])
        assert got == tuple(each >= 0 for each in sums)
    told = {row["protected_attribute"]: (row["column"], row["value"]) for row in found["exchanges"].to_pylist()}
    assert told == {"race": ("black", "0"), "sex": ("sex", "m")}


@pytest.mark.parametrize(
    ("protected", "extra", "reason"),
    [
        ("{name: both, columns: [black, sex], reference: 0 and m}", {}, "both crosses black and sex"),
        (
            "{name: race, columns: [shade], groups: {white: ['0', '1'], Black: ['2']}, reference: white}",
            {"shade": [0, 1, 2]},
            "the reference group has 2 values of shade",
        ),
        (RACE, {"is_black": [0, 1]}, "the model takes is_black beside black"),
        (
            "{name: race, columns: [group], groups: {white: [w], Black: [b]}, reference: white}",
            {"shade": [0, 1, 2]},
            "the model takes shade, which tells the group, and not group",
        ),
        (RACE, {"applicant_race_1": ["5", "3"]}, "the model takes applicant_race_1 beside black"),
        (RACE, {"nearly": [0, 1]}, "the model takes nearly beside black"),
    ],
)
def test_what_cannot_be_exchanged_is_refused_with_its_reason(
    place: Path, protected: str, extra: dict[str, list[object]], reason: str
) -> None:
    columns, frame = {name: COLUMNS[name] for name in ("income", "black", "sex")}, people()
    for name, values in extra.items():
        lighter = np.random.default_rng(1).integers(0, 2, len(frame))
        chosen = frame["black"] if len(values) == 2 else np.where(frame["black"], 2, lighter)
        if name == "nearly":  # of 100 applicants it tells the group of 97
            chosen = np.where(np.arange(len(frame)) % 33 == 0, 1 - frame["black"], frame["black"])
        frame[name] = np.array(values, dtype=object)[chosen]
        columns[name] = {"type": "continuous" if isinstance(values[0], int) else "nominal"}
    if "shade" in extra:
        del columns["black"]
    model = file_model(place, [1.0, *[-1.0] * (len(columns) - 1)])
    spec = audit(place, model, protected, columns=json.dumps(columns), explain__decision_makers="[model]")
    frame.assign(group=np.where(frame["black"], "b", "w")).to_csv(place / "loans.csv", index=False)
    found = tables(spec, "measure" if "crosses" in reason else "score")
    (told,) = found["exchanges"].to_pylist()
    assert told["reason"].startswith(reason)
    if "crosses" in reason:
        whole, *rows = direct(found)
        assert {row["state"] for row in (whole, *rows)} == {State.INCONCLUSIVE}
        assert {row["reason"] for row in rows} == {f"not measured: {told['reason']}"}
