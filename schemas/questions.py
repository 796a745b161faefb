"""The one table of names: each question and each state of an answer, with the words that people read.

Pages, terminal, ``report.json``, server, workbook, alerts and docs take their words from here. Keys are those of
``schemas.terms``; sentence patterns and the glossary are in ``schemas.sentences``.
Scope: names, and words of the decision. How rows are judged: ``tasks.metrics``.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any, Final, TypeVar

from pydantic import Field

from schemas.bounds import Strict
from schemas.terms import State, Theory


@dataclass(frozen=True)
class Question:
    """A question of an audit."""

    words: str
    """The question, word for word."""
    short: str
    """Short name: in lists, messages and the navigation."""
    file: str
    """Name of its page, without the ending."""
    before: str
    """Key of this question in versions before 0.9."""


@dataclass(frozen=True)
class StateName:
    """A state of an answer."""

    words: str
    """As it is printed."""
    meaning: str
    """What it means."""
    before: str = ""
    """Key of this state in versions before 0.9, where it was another one."""


QUESTIONS: Final[Mapping[Theory, Question]] = MappingProxyType(
    {
        Theory.APPROVAL_RATES: Question("Are approval rates different?", "Approval rates", "approval-rates", "outcome"),
        Theory.SIMILAR_APPLICANTS: Question(
            "Were similar applicants approved equally often?", "Similar applicants", "similar-applicants", "direct"
        ),
        Theory.CAUSAL_MODEL: Question(
            "Would the decision change if the applicant belonged to another group?",
            "Causal model",
            "causal-model",
            "total",
        ),
        Theory.PATH_TO_APPROVAL: Question(
            "Is the path to approval longer for one group?", "Path to approval", "path-to-approval", "recourse"
        ),
        Theory.MODEL_REASONS: Question(
            "Does the model use different reasons for different groups?", "Model's reasons", "model-reasons", "reasons"
        ),
        Theory.OWN_LIMITS: Question("Are your own limits kept?", "Your limits", "own-limits", "own"),
    }
)
"""Questions in the order of the first page."""
STATES: Final[Mapping[State, StateName]] = MappingProxyType(
    {
        State.OUTSIDE: StateName("Outside the limit", "The whole interval lies beyond the limit.", "breach"),
        State.INCONCLUSIVE: StateName(
            "Inconclusive",
            "It may lie on either side of the limit.",
            "insufficient_evidence",
        ),
        State.UNRELIABLE: StateName("Not reliable", "These data contradict an assumption that the result rests on."),
        State.WITHIN: StateName("Within the limit", "The whole interval lies inside the limit."),
        State.NO_LIMIT: StateName("No limit set", "Measured; nobody said how much is too much."),
        State.INFORMATION: StateName(
            "For information", "Measured; without an interval that covers as it says.", "descriptive"
        ),
        State.NOT_RUN: StateName("Not run", "Not measured; the reason says why."),
    }
)
"""States with the gravest first. Only ``within`` reads as a pass."""
WITHHELD: Final = f"{State.INCONCLUSIVE} (withheld)"
"""State of a row that is withheld."""

QUESTIONS_BEFORE: Final[Mapping[str, str]] = MappingProxyType({q.before: str(key) for key, q in QUESTIONS.items()})
"""Key of a question in earlier versions -> its key."""
STATES_BEFORE: Final[Mapping[str, str]] = MappingProxyType(
    {state.before: str(key) for key, state in STATES.items() if state.before}
    | {"insufficient_evidence (withheld)": WITHHELD}
)
"""Key of a state in earlier versions -> its key."""
TABLES_BEFORE: Final = frozenset(
    f"{prefix}{name}"
    for name in ("verdicts", "agreement", "measures", "trend", "monitoring", "restatement")
    for prefix in ("", "published_")
)
"""Tables whose columns hold such keys."""
BEFORE: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {"theory": QUESTIONS_BEFORE, "state": STATES_BEFORE, "old_state": STATES_BEFORE, "new_state": STATES_BEFORE}
)
"""Column of a table of an earlier version -> values that have another name now."""


def state_now(state: str) -> str:
    """The key of a state that an earlier version may have recorded."""
    return STATES_BEFORE.get(state, state)


def state_words(state: str) -> str:
    """A state in words; one that this version does not know, by its key."""
    if state == WITHHELD:
        return f"{STATES[State.INCONCLUSIVE].words} (withheld)"
    return STATES[State(state)].words if state in STATES else state.replace("_", " ")


def refuse_before(keys: Iterable[str]) -> None:
    """Refuse keys of earlier versions in what a user writes.

    Raises:
        ValueError: one of them is such a key; the message has the new one.
    """
    renamed = [f"`{key}` is now `{QUESTIONS_BEFORE[key]}`" for key in keys if key in QUESTIONS_BEFORE]
    if renamed:
        raise ValueError("; ".join(renamed))


def row_now(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of an earlier version with the keys of this one."""
    return {
        name: BEFORE[name].get(value, value) if name in BEFORE and isinstance(value, str) else value
        for name, value in row.items()
    }


def spec_now(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The spec that a run of an earlier version recorded, with the keys of this one."""
    verdicts = spec.get("verdicts")
    if not isinstance(verdicts, Mapping):
        return dict(spec)
    renamed = dict(verdicts)
    if isinstance(limits := verdicts.get("limits"), Mapping):
        renamed["limits"] = {QUESTIONS_BEFORE.get(key, key): limit for key, limit in limits.items()}
    if isinstance(gate := verdicts.get("gate"), list | tuple):
        renamed["gate"] = [QUESTIONS_BEFORE.get(key, key) for key in gate]
    return {**spec, "verdicts": renamed}


# --------------------------------------------------------------------------------------------------------------------
# Words of the decision: sentences are written about applicants who are approved or denied, and say of other decisions
# what those are called.


T = TypeVar("T")
_APART = r"(?<![\w/-])(?:{})(?![\w/-])"
"""Whole words, and no part of an address, an option or a key."""


class DecisionWords(Strict):
    """What the two sides of a decision and the people are called."""

    favourable: str = Field("approved", min_length=1, max_length=30, description="past participle: hired, released")
    unfavourable: str = Field("denied", min_length=1, max_length=30, description="past participle: rejected, detained")
    unit: str = Field("applicants", min_length=1, max_length=30, description="the people, in the plural: candidates")

    def rephrase(self, text: str, names: Collection[str] = ()) -> str:
        """A sentence about applicants in the words of this decision.

        Args:
            text: the sentence.
            names: groups and columns, which stay as the spec writes them.
        """
        if self == LENDING:
            return text
        single = {"applicant": self.unit.removesuffix("s"), "applicants": self.unit}
        words = {"approved": self.favourable, "denied": self.unfavourable, **single}
        fixed = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True) if name)
        pattern = _APART.format("|".join(words))
        phrases = rf"(?P<fixed>{fixed})|(?P<word>{pattern})" if fixed else rf"(?P<fixed>(?!))|(?P<word>{pattern})"

        def in_words(match: re.Match[str]) -> str:
            if match["fixed"] is not None:
                return match[0]
            word = words[match["word"].lower()]
            return word[:1].upper() + word[1:] if match["word"][:1].isupper() else word

        return re.sub(phrases, in_words, text, flags=re.IGNORECASE)

    def rephrase_all(self, content: T, names: Collection[str] = ()) -> T:
        """The same of every text of a dataclass, mapping or tuple: a page, or the results of a first page."""
        if self == LENDING:
            return content
        rephrased: T = self._rephrased(content, frozenset(names))
        return rephrased

    def _rephrased(self, content: Any, names: Collection[str]) -> Any:
        if type(content) is str:  # no key: those are members of enumerations
            return self.rephrase(content, names)
        if isinstance(content, tuple) and not hasattr(content, "_fields"):
            return tuple(self._rephrased(part, names) for part in content)
        if isinstance(content, Mapping):
            return {key: self._rephrased(part, names) for key, part in content.items()}
        if is_dataclass(content) and not isinstance(content, type):
            changed = {f.name: self._rephrased(getattr(content, f.name), names) for f in fields(content) if f.init}
            return replace(content, **changed)
        return content


LENDING: Final = DecisionWords()
_DOMAINS: Final = (
    (
        r"hir(?:e|ed|ing)|recruit\w*|shortlist\w*",
        DecisionWords(favourable="hired", unfavourable="rejected", unit="candidates"),
    ),
    (
        r"releas\w*|detain\w*|detention|bail|parole\w*",
        DecisionWords(favourable="released", unfavourable="detained", unit="defendants"),
    ),
    (
        r"admit\w*|admission\w*|enrol\w*",
        DecisionWords(favourable="admitted", unfavourable="rejected", unit="applicants"),
    ),
)


def words_by_domain(*names: str) -> DecisionWords:
    """The words of a decision by names that a spec gives it: its column, its values, the title."""
    text = " ".join(names).replace("_", " ")
    return next(
        (words for pattern, words in _DOMAINS if re.search(rf"\b(?:{pattern})\b", text, re.IGNORECASE)), LENDING
    )


def rephrase_of(spec: Mapping[str, Any]) -> Callable[[str], str]:
    """How a sentence about the run of a recorded spec is rephrased; groups, columns and the title stay as written."""
    decision, protected = spec.get("decision") or {}, spec.get("protected") or ()
    if own := decision.get("words"):
        words = DecisionWords.model_validate(own)
    else:
        names = [decision.get("column") or "", *map(str, decision.get("favourable") or ())]
        words = words_by_domain(*names, *map(str, decision.get("unfavourable") or ()))
    fixed = {name for of in protected for name in (of["name"], of["reference"], *of["columns"], *(of["groups"] or ()))}
    fixed |= {*(spec.get("columns") or ()), spec.get("title") or ""}
    return partial(words.rephrase, names=frozenset(map(str, fixed)))


SENTENCES_OF_ROWS: Final = ("reason", "sentence", "next")
"""Columns of verdicts and findings that hold sentences."""


def rephrase_rows(rows: Iterable[Mapping[str, Any]], rephrase: Callable[[str], str]) -> list[dict[str, Any]]:
    """Rows of verdicts or findings with their sentences in the words of the decision."""
    return [{**row, **{name: rephrase(row[name]) for name in SENTENCES_OF_ROWS if row.get(name)}} for row in rows]
