"""GCFN's section: whose decision would change, had its mediators been those of a member of another group.

Here belongs the order of the chapter: what would change first, with how much of that is identified; then what the
generators imagine and what speaks against them, which all else rests on; last the predictors that were trained to be
fair by them, where there are any. Each part is a module of its own.
"""

from collections.abc import Iterator, Mapping
from types import SimpleNamespace

from tasks.methods.gcfn.report import checks as mediated_checks
from tasks.methods.gcfn.report import decisions, densities, identification, mediators, people
from tasks.methods.gcfn.report import limits as mediated_limits
from tasks.methods.gcfn.report.lookups import METHOD, generators, mediated
from tasks.methods.gcfn.report.predictors import people as fair_who
from tasks.methods.gcfn.report.predictors import reading, tables
from tasks.methods.gcfn.report.predictors.lookups import fair
from tasks.reporting.chapters.builder import Modules, by_attribute, glossary, measures
from tasks.reporting.material import Material, anchor
from tasks.reporting.section import Section

__all__ = ["GLOSSARY", "MEASURES", "QUESTION", "chapter", "limits"]

QUESTION = "Would the model have decided otherwise, had what the protected attribute moves been as in another group?"
MEASURES = measures(decisions, people, identification, densities, tables, fair_who)
GLOSSARY = {
    "mediator": "a column that the protected attribute is assumed to move, such as income",
    "covariate": "a column that the protected attribute is assumed not to move",
    "generator": "what imagines mediators: adversarial networks, or the map of conditional quantiles",
    "people alike": "applicants with the same covariates",
    **glossary(people, identification, mediated_checks, reading),
}
_MODEL = {
    "Identification: how far the generators part": (identification,),
    "Who they are: by score and by mediator": (people,),
}
_GENERATORS = {
    "Mediators as they are and as imagined": (densities, mediators),
    "Checks: what the generators are worth": (mediated_checks,),
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
    audits = tuple(_by("model", m.view.attribute, (decisions,), _MODEL, m) for m in mediated(material))
    if audits:
        yield Section("What the audited model would decide", "gcfn-model", parts=audits)
    warned = (SimpleNamespace(notices=mediated_checks.warnings),)
    made = tuple(_by("generators", g.attribute.name, warned, _GENERATORS, g) for g in generators(material))
    if made:
        yield Section("What the generators imagine, and what speaks against them", "gcfn-generators", parts=made)
    trained = tuple(_by("fair", f.view.attribute, (reading, tables, fair_who), {}, f) for f in fair(material))
    if trained:
        yield Section("Predictors trained to be fair", "gcfn-fair", reading.WORDS, parts=trained)


def _by(of: str, attribute: str, first: Modules, below: Mapping[str, Modules], found: object) -> Section:
    return by_attribute(anchor(METHOD, of, attribute), attribute, first, below, found)
