"""GCFN's section: whose decision would change, had its mediators been those of a member of another group.

Here belongs the order of the chapter: what would change first, with how much of that is identified; then what the
generators imagine and what speaks against them, which all else rests on; last the predictors that were trained to be
fair by them, where there are any. Each part is a module of its own.
"""

from collections.abc import Iterator

from tasks.methods.gcfn.report import checks as mediated_checks
from tasks.methods.gcfn.report import decisions, densities, identification, mediators, people
from tasks.methods.gcfn.report import limits as mediated_limits
from tasks.methods.gcfn.report.lookups import METHOD, Generators, Mediated, generators, mediated
from tasks.methods.gcfn.report.predictors import people as fair_who
from tasks.methods.gcfn.report.predictors import reading, tables
from tasks.methods.gcfn.report.predictors.lookups import Fair, fair
from tasks.reporting.material import Material, anchor
from tasks.reporting.section import Section

__all__ = ["GLOSSARY", "MEASURES", "QUESTION", "chapter", "limits"]

QUESTION = "Would the model have decided otherwise, had what the protected attribute moves been as in another group?"
MEASURES = {
    **decisions.MEASURES,
    **people.MEASURES,
    **identification.MEASURES,
    **densities.MEASURES,
    **tables.MEASURES,
    **fair_who.MEASURES,
}
GLOSSARY = {
    "mediator": "a column that the protected attribute is assumed to move, such as income",
    "covariate": "a column that the protected attribute is assumed not to move",
    "generator": "what imagines mediators: adversarial networks, or the map of conditional quantiles",
    "people alike": "applicants with the same covariates",
    **people.GLOSSARY,
    **identification.GLOSSARY,
    **mediated_checks.GLOSSARY,
    **reading.GLOSSARY,
}


def limits(material: Material) -> tuple[str, ...]:
    """What counterfactual mediators cannot show."""
    return (*mediated_limits.limits(material), *reading.limits(material))


def chapter(material: Material) -> Section:
    """The question, the audit of the model, the generators, and the fair predictors."""
    title = "Mediators: generative counterfactual fairness network (GCFN)"
    return Section(title, METHOD, tuple(_question(material)), parts=tuple(_parts(material)))


def _question(material: Material) -> Iterator[str]:
    yield (
        f"{QUESTION} Generators learnt what the mediators of people alike are in each group. For every applicant they "
        "imagine what its own would have been in another group: covariates are kept, and so is whatever tells the "
        "applicant from people alike, as far as the generators can know it. Then the audited model decides again; if "
        "it sees the attribute itself, that is set to what is commonest in the other group."
    )
    yield (
        "The share decided otherwise is not read alone. Beside it stand how many applicants are not identified, since "
        "generators part about them, and the checks of the generators: a generator that imagines the mean of people "
        "alike for everybody makes flips that are nobody's own."
    )
    yield mediated_limits.LENDER if any(mediated(material)) else mediated_limits.NO_MODEL


def _parts(material: Material) -> Iterator[Section]:
    made = {g.attribute.name: g for g in generators(material)}
    audits = tuple(_audit(material, m, made.get(m.view.attribute)) for m in mediated(material))
    if audits:
        yield Section("What the audited model would decide", "gcfn-model", parts=audits)
    if made:
        parts = tuple(_generators(material, g) for g in made.values())
        yield Section("What the generators imagine, and what speaks against them", "gcfn-generators", parts=parts)
    trained = tuple(_fair(material, f) for f in fair(material))
    if trained:
        yield Section("Predictors trained to be fair", "gcfn-fair", reading.WORDS, parts=trained)


def _audit(material: Material, m: Mediated, g: Generators | None) -> Section:
    name = anchor("gcfn", m.view.maker, m.view.attribute)
    spread = Section(
        "Identification: how far the generators part",
        f"{name}-1",
        identification.words(g) if g else (),
        figures=identification.figures(m),
        tables=identification.tables(m),
    )
    who = Section(
        "Who they are: by score and by mediator",
        f"{name}-2",
        people.words(m),
        points=people.readings(material, m),
        figures=people.figures(material, m),
        tables=people.tables(material, m),
    )
    return Section(
        f"By {m.view.attribute}",
        name,
        points=decisions.readings(m),
        figures=decisions.figures(m),
        tables=decisions.tables(material, m),
        parts=(spread, *((who,) if who.tables else ())),
    )


def _generators(material: Material, g: Generators) -> Section:
    name = anchor("gcfn", "generators", g.attribute.name)
    shift = Section(
        "Mediators as they are and as imagined",
        f"{name}-1",
        figures=(*densities.figures(material, g), *mediators.figures(material, g)),
        tables=(*densities.tables(material, g), *mediators.tables(material, g)),
    )
    checks = Section(
        "Checks: what the generators are worth",
        f"{name}-2",
        points=mediated_checks.readings(material, g),
        figures=mediated_checks.figures(g),
        tables=mediated_checks.tables(material, g),
    )
    parts = tuple(part for part in (shift, checks) if part.figures or part.tables)
    return Section(f"By {g.attribute.name}", name, notices=mediated_checks.notices(material, g), parts=parts)


def _fair(material: Material, f: Fair) -> Section:
    return Section(
        f"By {f.view.attribute}",
        anchor("gcfn", "fair", f.view.attribute),
        points=reading.readings(f),
        figures=(*tables.figures(f), *fair_who.figures(material, f)),
        tables=(*tables.tables(f), *fair_who.tables(material, f)),
    )
