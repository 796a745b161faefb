"""Closed sets of terms: kinds of columns, reasons for refusals, states of checks.

Scope: enumerations. docs/glossary.md explains them in sentences.
"""

from enum import IntEnum, StrEnum
from typing import Final

EVERYBODY = "All"
"""What stands for a group in rows about everybody."""
NO_FEATURE = "the spec has no feature"
"""Why a method, a model or a comparison does not run on a spec whose columns are all excluded."""


class Role(StrEnum):
    """What a column of the source is for."""

    FEATURE = "feature"
    MEDIATOR = "mediator"
    COVARIATE = "covariate"
    FINANCIAL = "financial"
    EXCLUDED = "excluded"


class Kind(StrEnum):
    """What values a column holds, and so how it is encoded."""

    CONTINUOUS = "continuous"
    ORDINAL = "ordinal"
    BINARY = "binary"
    NOMINAL = "nominal"


class Constraint(StrEnum):
    """How an applicant may change a feature on the way to a favourable decision."""

    FREE = "free"
    UP = "up"
    DOWN = "down"
    IMMUTABLE = "immutable"


class DecisionMaker(StrEnum):
    """The decision maker that is audited: the lender itself, or a model of its decisions."""

    MODEL = "model"
    LENDER = "lender"


class Refusal(StrEnum):
    """Why a row, or a search for it, went no further. Always a row with its reason, never a dropped one."""

    DUPLICATE_ROW_ID = "duplicate_row_id"
    MISSING_ROW_ID = "missing_row_id"
    DECISION_NOT_AUDITED = "decision_not_audited"
    MISSING_DECISION = "missing_decision"
    NOT_A_NUMBER = "not_a_number"
    NOT_FINITE = "not_finite"
    UNKNOWN_CATEGORY = "unknown_category"
    MALFORMED_LINE = "malformed_line"
    MISSING_COLUMN = "missing_column"
    UNKNOWN_COLUMN = "unknown_column"
    UNKNOWN_CODE = "unknown_code"
    FILTERED = "filtered"
    FOOTER = "footer"
    DUPLICATE = "duplicate"
    OUTSIDE_JOIN = "outside_join"
    NOT_A_DECISION = "not_a_decision"
    FAILED_EXPECTATION = "failed_expectation"
    MISSING_COVARIATE = "missing_covariate"
    EXEMPT_COVARIATE = "exempt_covariate"
    NO_FEASIBLE_PATH = "no_feasible_path"
    NO_CANDIDATE = "no_candidate"
    TOO_FEW_NEIGHBOURS = "too_few_neighbours"
    NO_COUNTERFACTUAL = "no_counterfactual"
    MISSING_VALUE = "missing_value"
    NOT_A_COUNT = "not_a_count"
    UNSEEN_CATEGORY = "unseen_category"
    IMPROBABLE_VALUE = "improbable_value"
    TOO_FAR = "too_far"
    CANDIDATES_TAKEN = "candidates_taken"
    NO_MODEL = "no_model"
    NO_BASELINE = "no_baseline"
    NO_DIRECTION = "no_direction"
    TOO_FEW_IN_CATEGORY = "too_few_in_category"
    CONSTANT_MEDIATOR = "constant_mediator"
    OUT_OF_REACH = "out_of_reach"
    COPIED_ROW = "copied_row"


class State(StrEnum):
    """How the check of a measure against its limit ended. Only WITHIN reads as a pass."""

    WITHIN = "within"
    OUTSIDE = "outside"
    """The whole interval lies beyond the limit."""
    INCONCLUSIVE = "inconclusive"
    """The interval crosses the limit, or there are too few people: the reason says which."""
    UNRELIABLE = "unreliable"
    """These data contradict an assumption that the result rests on."""
    NO_LIMIT = "no_limit"
    """Computed, with an interval that covers as it says, and nobody said what is too much."""
    INFORMATION = "information"
    """Computed, without an interval that covers as it says: no verdict can rest on it."""
    NOT_RUN = "not_run"
    """Not computed."""


class Theory(StrEnum):
    """Which question a verdict answers (schemas.questions has the words; docs/verdicts.md explains them)."""

    SIMILAR_APPLICANTS = "similar_applicants"
    CAUSAL_MODEL = "causal_model"
    APPROVAL_RATES = "approval_rates"
    PATH_TO_APPROVAL = "path_to_approval"
    MODEL_REASONS = "model_reasons"
    OWN_LIMITS = "own_limits"


class ExitCode(IntEnum):
    """What the ``evenhand`` command returns to the shell."""

    WITHIN = 0
    OUTSIDE = 1
    USAGE = 2
    INCONCLUSIVE = 3
    DATA_QUALITY = 4
    INFRASTRUCTURE = 5
    INTEGRITY = 6


class Note(StrEnum):
    """Why a measure has no interval, or an incomplete one. Part of its note."""

    RANGE = "range"
    """The ends are the range of what was drawn."""
    NO_SPREAD = "no spread"
    """No interval: resamples do not differ, so that nothing is known of sampling error."""
    POOR_SUPPORT = "poor support"
    """An adjusted comparison of a group, too few of whose members have comparable members of the reference group."""
    FEW_CLUSTERS = "few clusters"
    """A clustered standard error of so few clusters that it is too small."""
    ROWS_INDEPENDENT = "rows taken as independent"
    """An interval of a penalised fit, which leaves out the clusters that the rows are in."""
    TELLS_DECISION = "a control tells the decision"
    """An adjusted comparison beside a control that leaves nothing to compare."""
    FEW = "few people"
    """A rate of fewer than ten people, of which the reason has the counts: ``3 of 7``."""
    NO_UPPER_END = "no upper end"
    """A ratio to a share of 0: the interval reaches from the lower end to infinity."""


class ChangeState(StrEnum):
    """Change of a year against the comparable years before it."""

    CHANGED = "changed"
    """Outside what four or more years before it let expect."""
    UNCHANGED = "unchanged"
    """The whole interval of the change is smaller than half the limit."""
    UNCLEAR = "unclear"
    NOT_COMPARABLE = "not_comparable"
    """The year before was measured otherwise; the reason names the difference."""
    NONE = "none"
    """No state: fewer than four comparable years before it, or no estimate."""


SMALLEST: Final = {"internal": 0, "published": 0, "public": 5, "strict": 8, "official": 11}
"""Fewest people that a profile of disclosure reports on; 0 where it withholds none."""
