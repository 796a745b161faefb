"""More runs of ``first_page_cases``: approvals, ways, reasons, limits of a spec, and lines of advice."""

import json
from dataclasses import replace

from decide_runs import (
    INSIDE,
    LITTLE,
    NO_LIMIT,
    NOT_RUN,
    OUTSIDE,
    boston,
    effect,
    gap,
    of_states,
    row,
    texas,
    white,
    whole,
)
from first_page_cases import (
    DECISION,
    HMDA,
    LONG,
    POINTS,
    adding,
    alone,
    benchmarks,
    by_model,
    missingness,
    page,
    ranged,
    strong,
    waterfall,
)
from first_page_lines_again import WHY_NOT
from report_tables import built, measures

from schemas.tables.verdicts import PUBLISHED_MEASURES, REPORTED
from schemas.terms import State, Theory
from tasks.reporting.first_page.facts import Group, Run


def approvals():
    """Rates of all, of a model, of ranges, withheld, and of many groups."""
    yield "of a model", page(*by_model(boston()))
    run = replace(boston(), groups=(*boston().groups, Group("race", "Asian", None, None)))
    yield "one withheld", page(run)
    for end in ("more than 95 % denied", "below 8 % denied"):
        yield end, page(run, ranged(run, f"withheld: a small cell; {end}"))
    hidden = tuple(replace(group, approval=None, n=None) for group in boston().groups)
    yield "all withheld", page(replace(boston(), groups=hidden))
    many = tuple(Group("race", f"group {n}", 100, (40 + n) / 100) for n in range(20))
    outcome = (whole(Theory.OUTCOME, LITTLE),)
    yield "many", page(Run(outcome, (white(), *many, Group("race", "Asian", None, None))))
    unknown = replace(white(), approval=None, n=None)
    yield "many without a reference", page(Run(outcome, (unknown, *many)))
    reference = replace(white(), name=f"White and not {LONG}"[: len("White and not Native Hawaiian and")])
    yield "one other", page(Run(outcome, (replace(reference, name=LONG + "s"), Group("race", LONG, 100, 0.7))))
    alone_shown = (replace(unknown, name=LONG + "s"), Group("race", LONG, 100, 0.7))
    yield "one shown", page(Run(outcome, alone_shown))


def theories():
    """Ways, reasons, the assumed graph, what did not run, and limits of the spec."""
    ways = (row(Theory.RECOURSE, "A", OUTSIDE, value=0.61), row(Theory.RECOURSE, "B", LITTLE, value=0.871))
    yield "costs", page(alone(Theory.RECOURSE, OUTSIDE, *ways))
    denied = (row(Theory.RECOURSE, "A", LITTLE, events=64), row(Theory.RECOURSE, "B", LITTLE, events=26))
    yield "denials", page(alone(Theory.RECOURSE, LITTLE, *denied))
    scored = tuple(replace(each, decision_maker="model") for each in denied)
    yield "denials of the model", page(alone(Theory.RECOURSE, LITTLE, *scored))
    added = row(Theory.RECOURSE, "A", OUTSIDE, role="adds", measure="infeasible_share_relabelled", value=0.1)
    yield "no way", page(alone(Theory.RECOURSE, OUTSIDE, replace(ways[0], state=LITTLE), added, ways[1]))
    for values in ((-0.1, 0.0), (-0.1, 0.04), (-0.1, None)):
        for state in (NO_LIMIT, LITTLE, OUTSIDE):
            if state is OUTSIDE and values[1] != 0.04:
                continue
            states = (LITTLE, state) if state is OUTSIDE else (state, state)
            rows = [row(Theory.REASONS, name, s, value=v) for name, s, v in zip("AB", states, values, strict=True)]
            yield f"reasons {values} {state}", page(alone(Theory.REASONS, state, *rows))
    for reason in (*WHY_NOT, "something else"):
        yield reason, page(alone(Theory.TOTAL, NOT_RUN, reason=reason))
    total = effect("A", OUTSIDE, (-0.6, -3, -0.1), limit=-0.1, theory=Theory.TOTAL)
    yield "one point", page(alone(Theory.TOTAL, OUTSIDE, total))
    own = [row(Theory.OWN, str(n), state) for n, state in enumerate(tuple(State) * 2)]
    yield "one limit", page(alone(Theory.OWN, own[0].state, own[0]))
    yield "limits", page(alone(Theory.OWN, OUTSIDE, *own[:3]))
    yield "many limits", page(alone(Theory.OWN, OUTSIDE, *own))


def lines():
    """What would change the findings, what to do next, what the page cannot tell."""
    outside = strong(of_states((OUTSIDE, OUTSIDE)))
    columns = {"income": {"type": "continuous"}, "public_record": {"type": "binary", "order": ["no", "yes"]}}
    for column in ("income", "debt"):
        tables = benchmarks(column)
        more = {} if column == "income" else {"debt": {"type": "continuous"}}
        yield f"strongest of {column}", page(outside, tables, columns={**columns, **more}, methods={"adjusted": {}})
    for name, complete in (("score", None), ("credit_score", None), ("income", True), ("income", False)):
        own = {"columns": {name: {"type": "continuous"}}, "methods": {"adjusted": {}}}
        yield f"{name} {complete}", page(outside, **own, verdicts={"columns_complete": complete})
    file = {"kind": "csv", "path": "a.csv"}
    for lacking in (("history", "credit_score"), ("a", "b", "c", "d")):
        yield f"lacks {lacking}", page(of_states((INSIDE, INSIDE)), source={**file, "lacking": lacking})
    for share in (0.4, None):
        for missing in (100, 40):
            tables = {"missingness": missingness(missing, share, 0.8)}
            tables["waterfall"] = waterfall(white=(900, {}), A=(100, {"income": missing}))
            yield f"left out {missing} {share}", page(of_states((INSIDE, INSIDE)), tables)
    groups = [Group("race", name, n, 0.7) for name, n in (("A", 100), ("B", 60), ("C", 50), ("D", 40))]
    halves = {each.name: (each.n, {"income": each.n // 2, "dti": each.n // 4}) for each in groups}
    for number in (1, 2, 3, 4):
        run = Run((), (white(), *groups[:number]))
        named = {name: halves[name] for name in "ABCD"[:number]}
        yield f"lost {number}", page(run, {"waterfall": waterfall(white=(900, {}), **named)})
    long = [Group("race", f"{LONG}{name}", 100, 0.7) for name in "AB"]
    wide = {group.name: (100, {"income": 60, "amount of the loan": 20}) for group in long}
    yield "lost, long", page(Run((), (white(), *long)), {"waterfall": waterfall(white=(900, {}), **wide)})
    for theory in (Theory.OUTCOME, Theory.DIRECT, Theory.TOTAL):
        for size, needed in ((0.087, 9000.0), (0.004, 1.9e5), (0.3, None)):
            of = {"n": 100, "n_reference": 1681, "needed": needed}
            if theory is Theory.OUTCOME:
                open_row = gap("A", LITTLE, POINTS, detectable=1 - size, **of)
            else:
                open_row = effect("A", LITTLE, POINTS, theory=theory, detectable=size, **of)
            yield f"open {theory} {size}", page(alone(theory, LITTLE, open_row))
    yield "reported", page(adding(outside, gap("Z", State.DESCRIPTIVE, POINTS, reason=REPORTED, withheld=True)))
    small = (white(), Group("race", "A", 11, 0.7))
    yield "few", page(Run((), small))
    yield (
        "no limit",
        page(adding(outside, whole(Theory.RECOURSE, NO_LIMIT), row(Theory.RECOURSE, "A", NO_LIMIT, value=0.7))),
    )
    yield (
        "files",
        page(adding(outside, replace(effect("A", OUTSIDE, POINTS), role="beside", measure="st_effect", events=30))),
    )
    for state in ((OUTSIDE, OUTSIDE), (INSIDE, INSIDE)):
        yield f"hmda {state}", page(of_states(state), source=HMDA, decision=DECISION)
        yield (
            f"a file of hmda {state}",
            page(of_states(state), source={"kind": "hmda", "path": "lar.csv"}, decision=DECISION),
        )
    yield "sample", page(texas(), source={**file, "path": "applications_sample.csv"})
    yield "old", page(boston(), year=1990)
    rows = measures(boston()).to_pylist()
    drawn = {
        **rows[1],
        "method": "cst",
        "measure": "st_effect",
        "parameters": json.dumps({"sampled": "2000 of 155123"}),
    }
    yield "asked", page(boston(), {"measures": built(PUBLISHED_MEASURES, [*rows, drawn])})
