"""Settings that make no sense are refused, all of them at once, each with its line; YAML is read within limits."""

import time

import pytest
from conftest import SPEC

from flows.cli.options import load_spec, only
from schemas.audit.file import SpecFile
from schemas.audit.spec import AuditSpec
from schemas.errors import SpecError
from schemas.terms import ExitCode
from schemas.vintages import latest_year
from tasks.metrics.limits import faults
from tasks.pipeline.registry import checked, read_spec, validated


def read(text: str = SPEC, **overrides: str) -> SpecFile:
    dotted = {key.replace("__", "."): value for key, value in overrides.items()}
    return read_spec(text, "loans.yaml", dotted, (faults,))


def told(text: str = SPEC, **overrides: str) -> list[str]:
    with pytest.raises(SpecError) as error:
        read(text, **overrides)
    assert error.value.exit_code == ExitCode.USAGE
    return str(error.value).splitlines()


DRAWN = "{kind: synthetic, synthetic: {generator: lending, seed: 4294967296}}"
MEASURED = {
    "a limit of minus infinity": (
        {"thresholds": "[{measure: approval_rate_ratio, minimum: -.inf}]"},
        "thresholds.0.minimum: -.inf is no number that a measure can be held against",
    ),
    "a limit that is no number": (
        {"thresholds": "[{measure: approval_rate_ratio, minimum: .nan}]"},
        "thresholds.0.minimum: .nan is no number that a measure can be held against",
    ),
    "seven for a share": (
        {"thresholds": "[{measure: approval_rate, maximum: 7}]"},
        "thresholds.0.maximum: approval_rate lies between 0 and 1, and 7 does not",
    ),
    "an unknown method": (
        {"thresholds": "[{measure: burden, method: fgcee, maximum: 1}]"},
        "thresholds.0.method: there is no method 'fgcee'; did you mean 'fgce'?",
    ),
    "parameters that never occur": (
        {"thresholds": "[{measure: approval_rate, parameters: {k: 99}, minimum: 0.5}]"},
        "no measure approval_rate with k=99 will be made; there are approval_rate without parameters",
    ),
    "minimum above maximum": (
        {"thresholds": "[{measure: approval_rate, minimum: 0.9, maximum: 0.1}]"},
        "thresholds.0: minimum 0.9 is above maximum 0.1",
    ),
    "a threshold of 2": (
        {"model.threshold": "2"},
        "model.threshold: a probability lies between 0 and 1, and 2 does not",
    ),
    "a billion draws": (
        {"bootstrap.draws": "1000000000"},
        "1,000,000,000 draws would take about 26 days; at most 100,000",
    ),
    "a level beyond its draws": ({"bootstrap.level": "0.99999999999"}, "less than or equal to 0.999"),
    "a seed of 2^32": ({"seed": "4294967296"}, "seed: at most 4294967295, which is what the generators take"),
    "a source's seed of 2^32": ({"source": DRAWN}, "source.synthetic.seed: at most 4294967295, which is what"),
    "bounds turned round": (
        {"columns.income.bounds": "[9, 1]"},
        "columns.income.bounds: expected the lower number first, then a higher one; got [9, 1]",
    ),
    "bounds that are no numbers": (
        {"columns.income.bounds": "[.nan, 1]"},
        "columns.income.bounds.0: .nan is no number to compute with",
    ),
    "plausible turned round": ({"columns.income.plausible": "[9, 1]"}, "columns.income.plausible: expected the lower"),
    "recourse bounds turned round": (
        {"columns.income.recourse": "{bounds: [2, 2]}"},
        "recourse.bounds: expected the lower",
    ),
    "clipping turned round": ({"methods.cec": "{winsorise: [0.9, 0.1]}"}, "expected two quantiles, the lower first"),
    "a year to come": ({"year": "2200"}, f"year: expected a year from 1900 to {latest_year()}, got 2200"),
}
MORE = {
    "fewer people than the profile reports on": (
        {"verdicts.minimum_n": "5", "disclosure.profile": "strict"},
        "verdicts.minimum_n: 5 is below 8, the fewest people that profile strict reports on",
    ),
    "a measure that the method does not make here": (
        {"methods.cst": "null", "thresholds": "[{measure: share_detected, maximum: 0.1}]"},
        "the method 'cst' does not run in this spec; add it to `methods`",
    ),
    "a method that does not run": (
        {"thresholds": "[{measure: cec, method: cec, maximum: 0.1}]"},
        "thresholds.0.method: the method 'cec' does not run in this spec",
    ),
    "a k that is not selected": (
        {"thresholds": "[{measure: coverage_at_k, parameters: {k: 10}, minimum: 0.8}]"},
        "there are coverage_at_k with k = 1, 2, 3, 4",
    ),
    "a comparison that is not made": (
        {
            "methods.fgce.size_matched_draws": "0",
            "thresholds": "[{measure: burden_size_matched_difference, maximum: 0}]",
        },
        "no measure burden_size_matched_difference will be made with these settings",
    ),
    "a decision maker who has no such measure": (
        {"thresholds": "[{measure: components, decision_maker: model, maximum: 3}]"},
        "thresholds.0.decision_maker: no measure components of the model will be made; there are those of the lender",
    ),
    "a model where there is none": (
        {"model": "{kind: none}", "thresholds": "[{measure: burden, decision_maker: model, maximum: 1}]"},
        "no measure burden of the model will be made; there are those of the lender",
    ),
    "a limit that nobody misses": (
        {"thresholds": "[{measure: approval_rate, maximum: 1}]"},
        "every value of approval_rate keeps this limit, as it lies between 0 and 1",
    ),
    "a ratio of nothing": (
        {"thresholds": "[{measure: approval_rate_ratio, minimum: 0}]"},
        "every value of approval_rate_ratio keeps this limit, as it lies at 0 or above",
    ),
    "a difference beyond one": (
        {"thresholds": "[{measure: approval_rate_difference, minimum: -1.5}]"},
        "approval_rate_difference lies between -1 and 1, and -1.5 does not",
    ),
    "too few draws for the level": (
        {"bootstrap": "{draws: 1000, level: 0.999}"},
        "of 1,000 draws 1 lie outside level 0.999, and an interval needs 5; set draws to 5,000, or a lower level",
    ),
    "a negative seed": ({"seed": "-1"}, "seed: 0 at least"),
    "a billion permutations": ({"methods.cst.null_permutations": "1000000000"}, "less than or equal to 1000"),
    "a billion epochs": ({"methods.gcfn": "{epochs: 1000000000}"}, "less than or equal to 10000"),
    "keep of nothing": (
        {"source.keep": "{a: {minimum: 2, maximum: 1}}"},
        "minimum 2 is above maximum 1: no row would be",
    ),
    "a share that is to be nothing": (
        {"thresholds": "[{measure: infeasible_share, maximum: 0}]"},
        "thresholds.0: no interval keeps this limit, as each has width: infeasible_share lies between 0 and 1, and the "
        "limit leaves 0 alone; set one that can be kept",
    ),
    "a share that is to be everything": (
        {"thresholds": "[{measure: approval_rate, minimum: 1}]"},
        "and the limit leaves 1 alone; set one that can be kept",
    ),
    "a cost that is to be nothing": (
        {"thresholds": "[{measure: burden, maximum: 0}]"},
        "burden lies at 0 or above, and the limit leaves 0 alone; set one that can be kept",
    ),
    "a single value inside of the range": (
        {"thresholds": "[{measure: approval_rate_difference, minimum: 0, maximum: 0}]"},
        "approval_rate_difference lies between -1 and 1, and the limit leaves 0 alone",
    ),
    "a range of draws": (
        {"thresholds": "[{measure: infeasible_share_size_matched, maximum: 0.2}]"},
        "thresholds.0.measure: infeasible_share_size_matched is a range of draws and gives no verdict; "
        "set the limit on infeasible_share_size_matched_difference",
    ),
    "permuted labels": (
        {"thresholds": "[{measure: share_significant_null, maximum: 0.2}]"},
        "share_significant_null is a range of draws and gives no verdict; set the limit on "
        "share_significant_null_difference",
    ),
    "permuted labels that nothing is set against": (
        {"thresholds": "[{measure: share_significant_null, parameters: {variant: st}, maximum: 0.2}]"},
        "share_significant_null is a range of draws and gives no verdict; set the limit on share_significant",
    ),
    "draws of an aggregate": (
        {"thresholds": "[{measure: k0_size_matched_difference, maximum: 1}]"},
        "k0_size_matched_difference compares two groups, each as a whole, without an interval and gives no verdict; "
        "set the limit on k0",
    ),
    "a difference of aggregates": (
        {"thresholds": "[{measure: k0_difference, maximum: 1}]"},
        "k0_difference compares two groups, each as a whole, without an interval and gives no verdict; set the",
    ),
    "a ratio of aggregates": (
        {"thresholds": "[{measure: d0_ratio, maximum: 1.2}]"},
        "d0_ratio compares two groups, each as a whole, without an interval and gives no verdict; set the limit on d0",
    ),
    "an aggregate that is not resampled": (
        {"methods.fgce.resolves": "0", "thresholds": "[{measure: k0, maximum: 3}]"},
        "k0 has no interval while methods.fgce.resolves is 0 and gives no verdict; take the limit away",
    ),
    "an aggregate that is never resampled": (
        {"thresholds": "[{measure: components, maximum: 3}]"},
        "components has no interval and gives no verdict; take the limit away",
    ),
    "a bound": (
        {"thresholds": "[{measure: least_cost, maximum: 3}]"},
        "least_cost is no more than a bound while methods.fgce.exact is false and gives no verdict; take the limit",
    ),
    "ratios in blocks": (
        {
            "methods.raguel": "{}",
            "thresholds": "[{measure: ratio_of_costs, parameters: {over: mean_block}, minimum: 0.8}]",
        },
        "ratio_of_costs has no interval and gives no verdict; take the limit away",
    ),
    "what a year lacks, by a user": (
        {"source.lacking": "[x]"},
        "source.lacking: this is filled in by evenhand, of a year whose file lacks what the spec asks for; leave it",
    ),
    "a seed that is true": ({"seed": "true"}, "seed: expected a number, and true and false are none, got True"),
    "a year that is true": ({"year": "true"}, "year: expected a number, and true and false are none"),
    "a share that is true": ({"bootstrap.level": "true"}, "bootstrap.level: expected a number"),
    "a source's seed that is true": (
        {"source": "{kind: synthetic, synthetic: {generator: lending, seed: true}}"},
        "source.synthetic.seed: expected a number",
    ),
    "a source's year that is true": ({"source.year": "true"}, "source.year: expected a number"),
    "a number of a list that is true": ({"methods.cst.ks": "[true, 5]"}, "methods.cst.ks: expected a number"),
    "digits that are true": (
        {"causal_graph.mechanisms": "{income: {decimals: true}}"},
        "causal_graph.mechanisms.income.decimals: expected a number",
    ),
    "a parameter that is true": (
        {"thresholds": "[{measure: coverage_at_k, parameters: {k: true}, minimum: 0.8}]"},
        "thresholds.0.parameters: expected a number",
    ),
    "a delimiter beyond ASCII": ({"source.delimiter": "'§'"}, "source.delimiter: expected one ASCII character"),
    "a quote for a delimiter": ({"source.delimiter": "'\"'"}, "source.delimiter: expected one ASCII character"),
    "a line end for a delimiter": ({"source.delimiter": '"\\n"'}, "source.delimiter: expected one ASCII character"),
    "two delimiters": ({"source.delimiter": "'||'"}, "source.delimiter: expected one ASCII character"),
    "no delimiter": ({"source.delimiter": "''"}, "source.delimiter: expected one ASCII character"),
    "an infinite weight": ({"columns.income.recourse": "{weight: .inf}"}, "weight: .inf is no number to compute with"),
}


@pytest.mark.parametrize("case", [*MEASURED, *MORE])
def test_a_value_without_sense_is_refused_with_a_sentence(case: str) -> None:
    overrides, message = {**MEASURED, **MORE}[case]
    lines = told(**overrides)
    assert len(lines) == 1
    assert message in lines[0]
    assert lines[0].startswith("loans.yaml (--set): ")


def test_seventeen_values_were_measured() -> None:
    assert len(MEASURED) == 17


def test_a_comment_has_to_be_text_of_the_encoding() -> None:
    (line,) = told(source__comment="☃", source__encoding="latin-1")
    assert "source: latin-1 has no '☃', with which `comment` begins or goes on; give text of the file's own" in line
    assert read(source__comment="☃").spec.source.comment == "☃"
    assert read(source__comment="§", source__encoding="latin-1").spec.source.comment == "§"


@pytest.mark.parametrize("delimiter", [";", "|", "\\t", " ", "'"])
def test_ascii_parts_cells(delimiter: str) -> None:
    assert len(read(source__delimiter=f'"{delimiter}"').spec.source.delimiter) == 1


def test_flags_stay_flags_and_specs_of_a_year_load() -> None:
    spec = read(columns__income__bins="false", columns__amount__bins="9", methods__cst__sensitivity="true").spec
    assert (spec.columns["income"].bins, spec.columns["amount"].bins) == (False, 9)
    said = spec.model_dump(mode="json")
    said["source"]["lacking"] = ["history"]
    assert checked(said, "the parameter `spec`", (faults,)).source.lacking == ("history",)
    assert validated(AuditSpec, said).source.lacking == ("history",)


@pytest.mark.parametrize("draws", ["100", "100000"])
@pytest.mark.parametrize("limit", ["{measure: approval_rate_difference, minimum: -0.1}", "{measure: k0, maximum: 3}"])
def test_values_at_the_bounds_are_taken(draws: str, limit: str) -> None:
    read(bootstrap__draws=draws, thresholds=f"[{limit}]", year=str(latest_year()), seed="4294967295")


FIVE = """\
name: loans
year: 3000
source: {kind: csv, path: loans.csv}
decision: {column: approved, favourable: ['yes'], unfavourable: ['no']}
protected:
  - {name: race, columns: [race], reference: white}
columns:
  income: {type: continuous, constraint: up, bonds: [1, 9]}
  amount: {type: ordinal}
causal_graph: {edges: [[race, incom]]}
model: {threshold: 2}
seed: 1
seed: 5000000000
bootstrap: {draws: 1000000000}
thresholds:
  - {measure: approval_rate, maximum: .nan}
  - {measure: approval_rate, parameters: {k: 99}, maximum: 0.5}
  - {measure: burden, method: cst, maximum: 0.5}
"""


def test_all_faults_are_told_at_once_each_with_its_line() -> None:
    lines = told(FIVE, nonsense="1", methods__fgce__k__x="1")
    expected = {
        "line 2: year: expected a year": 1,
        "line 8: columns.income.bonds: unknown key; did you mean 'bounds'?": 1,
        "line 9: columns.amount: an ordinal column needs `order`": 1,
        "line 10: causal_graph.edges.0: unknown node 'incom'; did you mean 'income'?": 1,
        "line 11: model.threshold: a probability lies between 0 and 1": 1,
        "line 13: the key 'seed' stands there twice": 1,
        "line 13: seed: at most 4294967295": 1,
        "line 14: bootstrap.draws: 1,000,000,000 draws": 1,
        "line 16: thresholds.0.maximum: .nan is no number": 1,
        "line 17: thresholds.1: no measure approval_rate with k=99": 1,
        "line 18: thresholds.2.method: the method 'cst' does not run": 1,
        "(--set): nonsense: unknown key": 1,
    }
    assert {part: sum(part in line for line in lines) for part in expected} == expected
    assert len(lines) == len(expected) + 1  # and methods.fgce.k, which --set made a mapping of
    assert any("(--set): methods.fgce.k: expected a whole number" in line for line in lines)


def test_what_hangs_on_a_faulty_part_is_not_told_as_a_fault_of_its_own() -> None:
    text = SPEC.replace("[race, income]", "[race, x]").replace("k: 4", "k: -4")
    limit = "[{measure: coverage_at_k, parameters: {k: 20}, minimum: 0.1}]"
    lines = told(text, thresholds=limit, columns__amount__type="continous")
    assert sorted(line.partition(": ")[2].partition(":")[0] for line in lines) == [
        "causal_graph.edges.0",
        "columns.amount.type",
        "methods.fgce.k",
    ]


LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{after}: &{after} [{', '.join([f'*{before}'] * 10)}]\n"
    for before, after in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: x\nyear: &a [1, *a]\n", "line 2: the alias *a is inside what it names"),
        ("name: x\ny: " + "[" * 20_000, "line 2: more than 50 levels deep"),
        ("name: x\ny: " + "[" * 20_000 + "]" * 20_000, "line 2: more than 50 levels deep"),
        ("{" * 20_000, "line 1: more than 50 levels deep"),
        (LAUGHS, "line 5: more than 50,000 values, those that aliases repeat included"),
        ("x:\n" + "- 1\n" * 50_001, "more than 50,000 values"),
        ("x: " + "y" * 1_000_001, "longer than 1 MB"),
        ("x: " + "é" * 600_000, "longer than 1 MB"),
        ("name: x\nyear: !!python/object/apply:os.system [true]\n", "line 2: tags such as"),
        ("name: !!timestamp x\n", "line 1: tags such as"),
        ("name: 2024-13-45\n", "not YAML"),
        ("name: " + "9" * 5000, "line 1: a number of more than 1,000 digits"),
        ("? [1, 2]\n: 3\n", "not YAML"),
        ("1: 2\n", "loans.yaml"),
        ("name: x: y", "not YAML"),
    ],
    ids=range(15),
)
def test_yaml_beyond_its_limits_is_refused_soon_with_the_line(text: str, message: str) -> None:
    began = time.process_time()
    assert message in told(text)[0]
    assert time.process_time() - began < 10


def test_as_deep_as_may_be_and_no_deeper() -> None:
    def deep(levels: int) -> str:
        return SPEC + "odd: " + "[" * levels + "]" * levels

    assert "odd: unknown key" in told(deep(49))[0]
    assert "more than 50 levels" in told(deep(50))[0]


def test_an_alias_counts_with_the_levels_that_it_brings() -> None:
    text = "a: &a " + "[" * 30 + "]" * 30 + "\nb: " + "[" * 30 + "*a" + "]" * 30
    assert "line 2: more than 50 levels deep" in told(text)[0]
    shared = SPEC.replace("favourable: ['yes'], unf", "favourable: &yes ['yes'], unf").replace(
        "title: S", "title: &t S"
    )
    assert (
        read(shared + "outcome: {column: approved, favourable: *yes, unfavourable: ['no']}\n").spec.outcome is not None
    )
    assert read(shared).spec == read().spec


def test_values_of_set_have_the_same_limits() -> None:
    lines = told(seed="[" * 200)
    assert "--set seed: not a YAML value" in lines[0]
    assert len(lines[0]) < 300


OWN = """[
  {measure: approval_rate_ratio, decision_maker: lender, minimum: 0.9},
  {measure: infeasible_share_size_matched_difference, maximum: 0.05},
]"""


@pytest.mark.parametrize(("method", "left"), [("cst", ["infeasible_share_size_matched_difference"]), ("fgce", [])])
def test_a_method_alone_is_audited_with_its_own_limits(method: str, left: list[str]) -> None:
    read, left_out = only(load_spec(None, {"thresholds": OWN}), [method])
    assert left_out == left
    assert read.spec.methods.running() == (method,)
    assert "approval_rate_ratio" in [limit.measure for limit in read.spec.thresholds], "that of the decisions stays"


@pytest.mark.parametrize(("method", "step"), [("cts", "did you mean 'cst'"), ("nonsense", "known: ")])
def test_a_method_that_the_spec_does_not_run_is_an_error(method: str, step: str) -> None:
    with pytest.raises(SpecError, match=f"--method {method}: this spec runs no such method; {step}"):
        only(load_spec(None, {}), [method])
