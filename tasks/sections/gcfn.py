"""GCFN's section: whose decision would change, had its mediators been those of a member of another group.

Here belongs the order of the chapter: what would change first, with how much of that is identified; then what the
generators imagine and what speaks against them, which all else rests on; last the predictors that were trained to be
fair by them, where there are any. Each part is a module of its own.
"""

from collections.abc import Iterator

from tasks.sections import (
    _fair_found,
    _fair_read,
    _fair_who,
    _mediated_checks,
    _mediated_density,
    _mediated_found,
    _mediated_limits,
    _mediated_shift,
    _mediated_spread,
    _mediated_who,
)
from tasks.sections._fair import Fair, fair
from tasks.sections._material import Material, anchor
from tasks.sections._mediated import METHOD, Generators, Mediated, generators, mediated
from tasks.sections._section import Section

__all__ = ["GLOSSARY", "MEASURES", "QUESTION", "chapter", "limits"]

QUESTION = "Would the model have decided otherwise, had what the protected attribute moves been as in another group?"
MEASURES = {
    **_mediated_found.MEASURES,
    **_mediated_who.MEASURES,
    **_mediated_spread.MEASURES,
    **_mediated_density.MEASURES,
    **_fair_found.MEASURES,
    **_fair_who.MEASURES,
}
GLOSSARY = {
    "mediator": "a column that the protected attribute is assumed to move, such as income",
    "covariate": "a column that the protected attribute is assumed not to move",
    "generator": "what imagines mediators: adversarial networks, or the map of conditional quantiles",
    "people alike": "applicants with the same covariates",
    **_mediated_who.GLOSSARY,
    **_mediated_spread.GLOSSARY,
    **_mediated_checks.GLOSSARY,
    **_fair_read.GLOSSARY,
}


def limits(material: Material) -> tuple[str, ...]:
    """What counterfactual mediators cannot show."""
    return (*_mediated_limits.limits(material), *_fair_read.limits(material))


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
    yield _mediated_limits.LENDER if any(mediated(material)) else _mediated_limits.NO_MODEL


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
        yield Section("Predictors trained to be fair", "gcfn-fair", _fair_read.WORDS, parts=trained)


def _audit(material: Material, m: Mediated, g: Generators | None) -> Section:
    name = anchor("gcfn", m.view.maker, m.view.attribute)
    spread = Section(
        "Identification: how far the generators part",
        f"{name}-1",
        _mediated_spread.words(g) if g else (),
        figures=_mediated_spread.figures(m),
        tables=_mediated_spread.tables(m),
    )
    who = Section(
        "Who they are: by score and by mediator",
        f"{name}-2",
        _mediated_who.words(m),
        points=_mediated_who.readings(material, m),
        figures=_mediated_who.figures(material, m),
        tables=_mediated_who.tables(material, m),
    )
    return Section(
        f"By {m.view.attribute}",
        name,
        points=_mediated_found.readings(m),
        figures=_mediated_found.figures(m),
        tables=_mediated_found.tables(material, m),
        parts=(spread, *((who,) if who.tables else ())),
    )


def _generators(material: Material, g: Generators) -> Section:
    name = anchor("gcfn", "generators", g.attribute.name)
    shift = Section(
        "Mediators as they are and as imagined",
        f"{name}-1",
        figures=(*_mediated_density.figures(material, g), *_mediated_shift.figures(material, g)),
        tables=(*_mediated_density.tables(material, g), *_mediated_shift.tables(material, g)),
    )
    checks = Section(
        "Checks: what the generators are worth",
        f"{name}-2",
        points=_mediated_checks.readings(material, g),
        figures=_mediated_checks.figures(g),
        tables=_mediated_checks.tables(material, g),
    )
    parts = tuple(part for part in (shift, checks) if part.figures or part.tables)
    return Section(f"By {g.attribute.name}", name, notices=_mediated_checks.notices(material, g), parts=parts)


def _fair(material: Material, f: Fair) -> Section:
    return Section(
        f"By {f.view.attribute}",
        anchor("gcfn", "fair", f.view.attribute),
        points=_fair_read.readings(f),
        figures=(*_fair_found.figures(f), *_fair_who.figures(material, f)),
        tables=(*_fair_found.tables(f), *_fair_who.tables(material, f)),
    )
