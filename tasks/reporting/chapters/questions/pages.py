"""The pages of a run's questions: those whose theory or measures it has."""

from tasks.reporting.chapters.decide.groups import Groups
from tasks.reporting.chapters.decide.reading import run_of
from tasks.reporting.chapters.decide.result import Decision
from tasks.reporting.chapters.questions.declaration import Question, declaration
from tasks.reporting.chapters.questions.matter import Matter
from tasks.reporting.chapters.questions.page import page
from tasks.reporting.material import Material
from tasks.reporting.section import Section


def question_pages(material: Material, decision: Decision) -> dict[str, Section]:
    """Name of the page -> its section, in the order of the questions."""
    return pages_of(Matter(material, Groups(run_of(material)), decision))


def pages_of(matter: Matter) -> dict[str, Section]:
    """The same of what was read before."""
    asked = declaration().questions
    return {name: page(matter, name, question) for name, question in asked.items() if _is_there(matter, question)}


def _is_there(matter: Matter, question: Question) -> bool:
    """Whether the run has a verdict on the question, or measures of its methods."""
    if matter.groups.standings(question.theory):
        return True
    return any(m.method in question.methods for m in matter.material.measures)
