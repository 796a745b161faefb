"""The files of a report: which there are, and what each is made of.

One of many lenders gets a short report: its first page and ``report.json``. All other files are made on demand.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from tasks.pipeline.registry import NAMES, OUTCOMES_METHOD
from tasks.reporting.chapters.decide.figures import forest
from tasks.reporting.chapters.decide.page import decide
from tasks.reporting.chapters.decide.reading import decisions_of, run_of
from tasks.reporting.chapters.decide.result import Decision, Line
from tasks.reporting.chapters.method import definitions
from tasks.reporting.chapters.quality import quality
from tasks.reporting.chapters.questions.pages import question_pages
from tasks.reporting.declared import declared
from tasks.reporting.evidence.page import evidence
from tasks.reporting.exports.document import document
from tasks.reporting.exports.workbook import workbook
from tasks.reporting.material import Material
from tasks.reporting.numbers import count
from tasks.reporting.pages.frame import Frame, page
from tasks.reporting.section import Section

FIRST, METHOD, DOCUMENT, WORKBOOK = "report.html", "method.html", "report.json", "measures.xlsx"
WORDS = {
    "gap": "Approvals",
    "similar": "Similar records",
    "otherwise": "Assumed graph",
    "routes": "Way to approval",
    "reasons": "Reasons",
    "quality": "Data quality",
}
"""Pages of a report in words of the navigation, in the order of their links."""
NOTHING = (Line("none", "Nothing that this page looks for."),)
DIGESTS = "Digests: report.json."
UNMADE = "The questions at length, evidence, definitions and workbook are made by `evenhand report {run}`."


def files(material: Material) -> dict[str, bytes]:
    """Path below the folder of the run -> content, in the order in which a reader meets them."""
    decision = decide(run_of(material))
    made = sections(material, decision)
    frame = _frame(material, links(made))
    pages = {path: page("page.html.j2", path, frame=frame, section=section) for path, section in made.items()}
    return {
        FIRST: first_page(material, decision, frame),
        **pages,
        METHOD: method_page(material.settings.version),
        DOCUMENT: document(material, decision, (FIRST, *pages, METHOD, WORKBOOK)),
        WORKBOOK: workbook(material, decision),
    }


def sections(material: Material, decision: Decision) -> dict[str, Section]:
    """Path -> what stands on each page but the first and the definitions: questions, data, evidence."""
    asked = {**question_pages(material, decision), "quality": quality(material)}
    behind = {evidence_path(name): evidence(material, name) for name in measured(material)}
    return {f"pages/{name}.html": section for name, section in asked.items()} | behind


def short(material: Material) -> dict[str, bytes]:
    """The files of a short report, as ``files``: its first page says how to make what it leaves out."""
    decision, run = decide(run_of(material)), material.settings.run
    frame = replace(_frame(material, [(FIRST, "First page"), (DOCUMENT, DOCUMENT)]), unmade=UNMADE.format(run=run))
    return {FIRST: first_page(material, decision, frame), DOCUMENT: document(material, decision, (FIRST,))}


def _frame(material: Material, linked: Iterable[tuple[str, str]]) -> Frame:
    """What stands around every page of the run."""
    s = material.settings
    return Frame(material.title, s.run, tuple(linked), DIGESTS, restricted=material.restricted)


def measured(material: Material) -> tuple[str, ...]:
    """The approvals themselves and the methods of which the run has measures."""
    found = {m.method for m in material.measures}
    return tuple(name for name in (OUTCOMES_METHOD, *NAMES) if name in found)


def evidence_path(name: str) -> str:
    """Where the evidence of a method is."""
    return f"evidence/{name}.html"


def links(paths: Collection[str]) -> Iterator[tuple[str, str]]:
    """Every file that a reader opens, with its words in the navigation."""
    yield FIRST, "First page"
    yield from ((path, words) for name, words in WORDS.items() if (path := f"pages/{name}.html") in paths)
    yield from ((path, declared(n).short) for n in (OUTCOMES_METHOD, *NAMES) if (path := evidence_path(n)) in paths)
    yield from ((METHOD, "Definitions"), (WORKBOOK, WORKBOOK), (DOCUMENT, DOCUMENT))


def first_page(material: Material, decision: Decision, frame: Frame) -> bytes:
    """Decide: one screen, one sheet. It names no method, and so links to no evidence."""
    frame = replace(frame, links=tuple(each for each in frame.links if not each[0].startswith("evidence/")))
    return page("decide.html.j2", FIRST, frame=frame, **shown_first(material, decision))


def shown_first(material: Material, decision: Decision) -> dict[str, object]:
    """What the template of the first page shows beside its frame."""
    n = decisions_of(material)
    guesses = len(material.settings.unconfirmed)
    open_ = (f"{guesses} {'guess' if guesses == 1 else 'guesses'} of the spec not confirmed",) if guesses else ()
    decisions = () if n is None else (f"{count(n)} decisions",)
    return {
        "kicker": (material.title, *decisions, material.signed.short, *open_),
        "decision": decision,
        "forest": forest(decision.figures),
        "nothing": NOTHING,
        "signed": material.signed.words,
    }


def method_page(version: str) -> bytes:
    """Definitions: the same bytes for every run of one version."""
    frame = Frame("", links=((FIRST, "First page"), (METHOD, "Definitions")), note=f"Evenhand {version}.")
    section = Section("Definitions", "definitions", parts=definitions())
    return page("page.html.j2", METHOD, frame=frame, section=section)
