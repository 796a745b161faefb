"""Errors of an audit spec: file, line, what was expected, and the nearest valid name."""

import pytest
from conftest import REPOSITORY, SPEC

from schemas.audit.spec import AuditSpec
from schemas.errors import SpecError
from schemas.terms import ExitCode
from tasks.methods.fgce.settings import FgceSettings
from tasks.pipeline.registry import read_spec, validated


def line_of(text: str, part: str) -> int:
    return next(i for i, line in enumerate(text.splitlines(), 1) if part in line)


CASES = {
    "unknown key": ("seed: 1\nprofil: paper\n", "profil: paper", "profil: unknown key; did you mean 'profile'?"),
    "wrong type": ("income: {type: continuous", "income: {type: continous", "expected 'continuous'"),
    "unknown key inside": ("k: 4", "kk: 4", "methods.fgce.kk: unknown key"),
    "reference is no group": ("reference: white", "reference: whte", "did you mean 'white'?"),
    "missing order": (", order: [bad, fair, good]", "", "needs `order`"),
    "up and down of a nominal": ("nominal, constraint: immutable", "nominal, constraint: up", "has no up or down"),
    "both favourable and not": (
        "unfavourable: ['no']",
        "unfavourable: ['yes']",
        "cannot be favourable and unfavourable",
    ),
    "keep says nothing": (
        "path: loans.csv}",
        "path: loans.csv, keep: {income: all}}",
        "by a list of codes, by {minimum",
    ),
    "keep says two things": (
        "path: loans.csv}",
        "path: loans.csv, keep: {income: {minimum: 1, present: true}}}",
        "by a list of codes, by {minimum",
    ),
    "header of no text": ("csv, path", "parquet, header: [income], path", "`header` belongs to delimited text"),
    "header names a column twice": ("csv, path", "csv, header: [income, income], path", "names ['income'] more than"),
    "no files": ("path: loans.csv", "path: []", "needs a path"),
    "derived from one value twice": (
        "path: loans.csv}",
        "path: loans.csv, derive: {sex: {column: code, values: {m: [1], f: [1]}}}}",
        "['1'] have more than one value",
    ),
    "derived in two ways": (
        "path: loans.csv}",
        "path: loans.csv, derive: {sex: {column: code, values: {m: [1]}, rows: {f: {code: [2]}}}}}",
        "has `column` and `values`, or `rows`",
    ),
    "derived from no rule": (
        "path: loans.csv}",
        "path: loans.csv, derive: {sex: {rows: {m: {}}}}}",
        "needs a column with its rule",
    ),
    "one bin": ("income: {type: continuous,", "income: {type: continuous, bins: 1,", "greater than or equal to 2"),
    "epsilon of nothing": (
        "k: 4",
        "k: 4, epsilon: 0",
        "epsilon is 0; expected a positive number, or the name of a rule",
    ),
    "negative epsilon": ("k: 4", "k: 4, epsilon: -0.3", "epsilon is -0.3; expected a positive number"),
    "no bandwidth": ("k: 4", "k: 4, bandwidth: .nan", "bandwidth: .nan is no number to compute with"),
    "contradictory constraints": (
        "nominal, constraint: immutable",
        "nominal, constraint: immutable, transitions: {a: [b]}",
        "both say how the column may change",
    ),
    "empty threshold": (", minimum: 0.9", "", "needs a minimum or a maximum"),
    "direction of no feature": ("seed: 1\n", "verdicts: {direction: {incme: none}}", "did you mean 'income'?"),
    "direction of a nominal column": ("seed: 1\n", "verdicts: {direction: {purpose: up}}", "has no up or down"),
    "year": ("year: 2024", "year: soon", "got 'soon'"),
    "path in a name": ("name: loans", "name: ../../loans", "String should match pattern"),
}


@pytest.mark.parametrize("case", CASES)
def test_an_error_names_file_line_and_expectation(case: str) -> None:
    old, new, message = CASES[case]
    text = SPEC.replace(old, new) if old in SPEC else SPEC + new + "\n"
    with pytest.raises(SpecError) as error:
        read_spec(text, "loans.yaml")
    told = str(error.value)
    assert message in told
    assert "loans.yaml, line " in told
    if new:
        assert f"line {line_of(text, new)}:" in told or case in (
            "missing order",
            "reference is no group",
            "empty threshold",
        )
    assert error.value.exit_code == ExitCode.USAGE


def test_a_cyclic_causal_graph_shows_its_cycle() -> None:
    text = SPEC.replace("[income, amount]]", "[income, amount], [amount, race]]")
    with pytest.raises(SpecError, match=r"line \d+: causal_graph.edges: .* cycle: .*income.* -> ") as error:
        read_spec(text, "loans.yaml")
    assert "remove one edge" in str(error.value)


def test_an_unknown_node_of_the_causal_graph_offers_the_nearest() -> None:
    with pytest.raises(SpecError, match="unknown node 'incme'; did you mean 'income'"):
        read_spec(SPEC.replace("[race, income]", "[race, incme]"), "loans.yaml")


@pytest.mark.parametrize("text", ["a: [", "- 1\n", "", "\x00"])
def test_what_is_no_mapping_is_said_so(text: str) -> None:
    with pytest.raises(SpecError, match=r"loans\.yaml: "):
        read_spec(text, "loans.yaml")


def test_overrides_by_dotted_key() -> None:
    given = {"methods.fgce.epsilon": "0.3", "protected.0.reference": "Black", "seed": "9"}
    spec = read_spec(SPEC, "loans.yaml", given).spec
    fgce = spec.methods.of(FgceSettings)
    assert fgce is not None
    assert (fgce.epsilon, spec.protected[0].reference, spec.seed) == (0.3, "Black", 9)


def test_without_the_methods_that_there_are_a_spec_with_methods_is_not_validated() -> None:
    raw = read_spec(SPEC, "loans.yaml").spec.model_dump(mode="json")
    for methods in ({}, {"methods": {}}):
        with pytest.raises(TypeError, match=r"see tasks\.pipeline\.registry"):
            AuditSpec.model_validate({name: value for name, value in raw.items() if name != "methods"} | methods)


def test_methods_are_dumped_in_the_order_of_reports_and_null_where_left_out() -> None:
    spec = read_spec(SPEC.replace("methods:\n  fgce:", "methods:\n  raguel: {}\n  fgce:"), "loans.yaml").spec
    said = spec.model_dump(mode="json")["methods"]
    assert [(name, own is None) for name, own in said.items()] == [
        ("adjusted", False),
        ("fgce", False),
        ("cst", False),
        ("cec", True),
        ("gcfn", True),
        ("raguel", False),
    ]
    assert list(said["fgce"])[:6] == ["epsilon", "epsilon_quantile", "strict", "max_edges", "nearest", "cost"]


def test_an_audit_that_names_no_method_runs_the_default_one_with_the_values_of_its_profile() -> None:
    text = SPEC[: SPEC.index("methods:")] + SPEC[SPEC.index("thresholds:") :]
    for profile, strict in (("default", False), ("paper", True)):
        spec = read_spec(text + f"profile: {profile}\n", "loans.yaml").spec
        assert spec.methods.running() == ("adjusted", "fgce")
        fgce = spec.methods.of(FgceSettings)
        assert fgce is not None
        assert fgce.strict is strict


@pytest.mark.parametrize("key", ["methods.fgce.epsilo", "nonsense", "protected.7.name", "name.x"])
def test_an_override_of_nothing_is_an_error(key: str) -> None:
    with pytest.raises(SpecError, match="--set"):
        read_spec(SPEC, "loans.yaml", {key: "1"})


def test_the_paper_profile_changes_only_what_was_left_open() -> None:
    paper = read_spec(SPEC.replace("model: {kind: logistic_regression, folds: 5}\n", "") + "profile: paper\n", "x").spec
    assert (paper.model.split, paper.model.threshold, paper.explain.candidate_score) == ("holdout", 0.5, 0.6)
    fgce = paper.methods.of(FgceSettings)
    assert fgce is not None
    assert fgce.strict
    assert fgce.size_matched_draws == 5  # the spec's own value wins
    kept = read_spec(SPEC + "profile: paper\nexplain: {candidate_score: 0.7}\n", "x").spec
    assert kept.explain.candidate_score == 0.7


def test_a_key_that_stands_twice_is_named() -> None:
    with pytest.raises(SpecError, match=r"line \d+: the key 'year' stands there twice"):
        read_spec(SPEC + "year: 2023\n", "loans.yaml")


def test_short_forms_of_keep_and_of_path_say_the_same_as_the_long_ones() -> None:
    given = {
        "source.keep": "{a: [1, 2], b: present, c: {maximum: 3}}",
        "source.path": "[one.csv, two.csv]",
        "columns.income.bins": "6",
    }
    spec = read_spec(SPEC, "loans.yaml", given).spec
    assert spec.source.keep["a"].values == ("1", "2")
    assert spec.source.keep["b"].present
    assert (spec.source.keep["c"].minimum, spec.source.keep["c"].maximum) == (None, 3)
    assert spec.source.paths == ("one.csv", "two.csv")
    assert spec.columns["income"].bins == 6
    assert validated(AuditSpec, spec.model_dump(mode="json")) == spec


@pytest.mark.parametrize("file", sorted((REPOSITORY / "data" / "audits").rglob("*.yaml")), ids=lambda file: file.stem)
def test_the_specs_of_the_project_are_valid(file) -> None:  # type: ignore[no-untyped-def]
    spec = read_spec(file.read_text(encoding="utf-8"), file.name).spec
    assert (spec.profile == "paper") == (file.parent.name == "paper")
    assert all(column.label for column in spec.columns.values() if spec.profile == "default")


def test_a_column_misspelt_on_the_command_line_gets_the_nearest_name() -> None:
    with pytest.raises(SpecError) as error:
        read_spec(SPEC, "loans.yaml", {"columns.incom.constraint": "up"})
    assert "columns.incom.type: this key is required" in str(error.value)
    assert "'incom' is new, made by --set: did you mean 'income'?" in str(error.value)


HMDA = {
    "source.kind": "hmda",
    "decision": "{column: action_taken, favourable: [1, 2], unfavourable: [3, 7]}",
}
TWIN = {"source": "{kind: synthetic, synthetic: {generator: hmda}}", "source.kind": "synthetic"}


@pytest.mark.parametrize(
    ("side", "codes", "wrong"),
    [("favourable", "[1, 3]", "3"), ("favourable", "[7]", "7"), ("unfavourable", "[1, 2, 8]", "1, 2, 8")],
)
@pytest.mark.parametrize("source", [{}, TWIN], ids=["hmda", "synthetic"])
def test_an_action_of_hmda_on_the_wrong_side_is_an_error(
    side: str, codes: str, wrong: str, source: dict[str, str]
) -> None:
    other = {"favourable": "unfavourable", "unfavourable": "favourable"}[side]
    with pytest.raises(SpecError) as error:
        read_spec(SPEC, "loans.yaml", HMDA | source | {f"decision.{side}": codes, f"decision.{other}": "[5]"})
    assert f"code {wrong} of action_taken is not {side}" in str(error.value)
    assert error.value.exit_code is ExitCode.USAGE


def test_the_codes_of_hmda_need_no_check_by_columns() -> None:
    assert read_spec(SPEC, "loans.yaml", HMDA).spec.codes_decide
    assert read_spec(SPEC, "loans.yaml", HMDA | TWIN).spec.codes_decide


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("codes", ["favourable: [1], unfavourable: [2]", "favourable: [7], unfavourable: [1, 8]"])
def test_a_table_of_ones_own_may_have_codes_of_its_own_in_a_column_of_that_name(kind: str, codes: str) -> None:
    own = {"source.kind": kind, "decision": f"{{column: action_taken, {codes}}}"}
    assert not read_spec(SPEC, "loans.yaml", own).spec.codes_decide, "columns have to be looked at"


def test_directions_follow_constraints_unless_the_spec_says_otherwise() -> None:
    assert read_spec(SPEC, "loans.yaml").spec.directions() == {"income": 1, "amount": -1, "history": 1}
    said = {"verdicts.direction": "{income: none, amount: up}"}
    assert read_spec(SPEC, "loans.yaml", said).spec.directions() == {"amount": 1, "history": 1}


def test_methods_given_as_a_whole_are_all_that_run() -> None:
    def running(**overrides: str) -> tuple[str, ...]:
        dotted = {key.replace("__", "."): value for key, value in overrides.items()}
        return read_spec(SPEC, "loans.yaml", dotted).spec.methods.running()

    assert running(methods="{adjusted: {}}") == ("adjusted",)
    assert running(methods="{raguel: {}, fgce: {k: 2}}") == ("fgce", "raguel")
    assert set(running(methods__raguel="{}")) == {*running(), "raguel"}
