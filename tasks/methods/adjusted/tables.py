"""Tables of adjusted disparities: the ladder, what it rests on, and what an unseen column could do to it."""

from dataclasses import replace

from schemas.table import Column, Table
from schemas.tables.applications import DECISION_MAKER, GROUP, PROTECTED_ATTRIBUTE, ROW_ID

RUNG = Column("rung", "int32", "number of the rung; rung 0 adjusts for nothing", minimum=0)
BLOCKS = Column("blocks", "string", "blocks of control columns that the rung adjusts for, joined by +")
ESTIMATOR = Column(
    "estimator", "string", "how the difference is estimated", codes=("logit", "lpm", "overlap", "aipw", "expected")
)
REASON = Column("reason", "string", "why there is no value, or what qualifies it; empty for a plain one")
RUNG_OF_GROUP = (RUNG, BLOCKS, DECISION_MAKER, PROTECTED_ATTRIBUTE, GROUP)
"""Leading columns: a rung, and the group that it is about."""

ADJUSTED = Table(
    "adjusted",
    "The denial ladder: the difference of denial between a group and the reference group among similar applicants.",
    (
        *RUNG_OF_GROUP,
        ESTIMATOR,
        Column(
            "average_over",
            "string",
            "over whose rows it is averaged: the group's own, all, or those where both groups are (overlap)",
            codes=("own", "all", "overlap"),
        ),
        Column("form", "string", "whether numbers enter with their squares", codes=("squared", "linear")),
        Column("primary", "bool", "whether it is judged: the primary rung, over the group's own rows"),
        Column("value", "double", "difference of the probability of denial, group minus reference", nullable=True),
        Column("low", "double", "lower end of its interval", nullable=True),
        Column("high", "double", "upper end of it", nullable=True),
        Column("se", "double", "its standard error", True, 0.0),
        Column("df", "double", "degrees of freedom of the interval, clusters less one; null for the normal", True, 0.0),
        Column(
            "unseen", "double", "of lpm: se sqrt(df), how far an unseen column of unit strength moves it", True, 0.0
        ),
        Column("odds_ratio", "double", "odds of denial, group over reference; of the logit", True, 0.0),
        Column("n", "int64", "rows of the group, the same on every rung", minimum=0),
        Column("events", "int64", "denials among them", minimum=0),
        Column(
            "support",
            "double",
            "share of the group's rows with a propensity from 0.05 to 0.95 at equal sizes of both groups",
            True,
            0.0,
            1.0,
        ),
        Column("rv", "double", "robustness value: what an unseen column has to explain of both", True, 0.0, 1.0),
        Column("rv_alpha", "double", "the same for the end of the interval nearest to zero", True, 0.0, 1.0),
        Column("e_value", "double", "risk ratio that an unseen column needs with group and denial", True, 1.0),
        Column("e_value_near", "double", "the same for the end of the interval nearest to zero", True, 1.0),
        Column("strongest", "string", "the control that explains most of what is left of denial", nullable=True),
        Column("adjusted_by_strongest", "double", "the effect if one as strong were unseen", nullable=True),
        Column(
            "method",
            "string",
            "how the fit was made; limit: columns tell some decisions by themselves; firth: penalised, without a limit",
            nullable=True,
            codes=("newton", "limit", "firth", "cells", "streamed"),
        ),
        REASON,
    ),
    key=("rung", "decision_maker", "protected_attribute", "group", "estimator", "average_over"),
    restricted=True,
)

ADJUSTED_SUPPORT = Table(
    "adjusted_support",
    "How far the reference group has applicants like those of a group, by rung.",
    (
        *RUNG_OF_GROUP,
        Column("n", "int64", "rows of the group", minimum=0),
        Column("inside", "double", "share of them with a propensity from 0.05 to 0.95", True, 0.0, 1.0),
        Column("comparable", "double", "the same at equal sizes of both groups; what is judged", True, 0.0, 1.0),
        Column("difference_raw", "double", "largest standardised difference of a control", True, 0.0),
        Column("column_raw", "string", "the control", nullable=True),
        Column("difference_weighted", "double", "the same after overlap weights", True, 0.0),
        Column("column_weighted", "string", "the control", nullable=True),
        Column("unmatched", "double", "share of rows without a reference applicant of like propensity", True, 0.0, 1.0),
        REASON,
    ),
    key=("rung", "decision_maker", "protected_attribute", "group"),
    restricted=True,
)

ADJUSTED_INTERACTIONS = Table(
    "adjusted_interactions",
    "Whether the adjusted difference of the primary rung depends on a control: a joint test, and the effect at three "
    "percentiles of the control, or at each category where they have no order.",
    (
        DECISION_MAKER,
        PROTECTED_ATTRIBUTE,
        GROUP,
        Column("block", "string", "block of the control"),
        Column("column", "string", "the control"),
        Column("statistic", "double", "Wald statistic of group x control", True, 0.0),
        Column("terms", "int32", "its degrees of freedom", minimum=0),
        Column("p", "double", "p-value", True, 0.0, 1.0),
        Column("p_holm", "double", "p after Holm over the controls of the group", True, 0.0, 1.0),
        Column("percentile", "int32", "percentile of the control; null for a category without order", True, 0, 100),
        Column("at", "string", "value of the control there in its own units, or its category", nullable=True),
        Column("value", "double", "adjusted difference there", nullable=True),
        Column("low", "double", "lower end of its interval", nullable=True),
        Column("high", "double", "upper end of it", nullable=True),
        REASON,
    ),
    key=("decision_maker", "protected_attribute", "group", "column", "percentile", "at"),
    restricted=True,
)

ADJUSTED_BENCHMARKS = Table(
    "adjusted_benchmarks",
    "The linear effect on the primary rung if a column were unseen, one to three times as strong as a control.",
    (
        *RUNG_OF_GROUP,
        Column("column", "string", "the control"),
        Column("times", "int32", "how many times as strong", minimum=1),
        Column("column_of_denial", "double", "share of what is left of denial that it explains", True, 0.0, 1.0),
        Column("column_of_group", "double", "share of what is left of group membership", True, 0.0, 1.0),
        Column("of_denial", "double", "bound on what a column so strong explains of denial", True, 0.0, 1.0),
        Column("of_group", "double", "the same of group membership", True, 0.0, 1.0),
        Column("value", "double", "the effect; null where no column can be so strong", nullable=True),
        Column("low", "double", "lower end of its interval", nullable=True),
        Column("high", "double", "upper end of it", nullable=True),
    ),
    key=("rung", "decision_maker", "protected_attribute", "group", "column", "times"),
    restricted=True,
)

ADJUSTED_ROWS = Table(
    "adjusted_rows",
    "The rows on every rung, the rows left out with the reason, and the columns that the decision sets.",
    (
        DECISION_MAKER,
        PROTECTED_ATTRIBUTE,
        Column("group", "string", "group of the rows; null for a column", nullable=True),
        Column("used", "bool", "whether they are on every rung"),
        Column("reason", "string", "why they, or a column, are left out; empty for rows used"),
        Column("rows", "int64", "rows; 0 for a column", minimum=0),
        Column("denied", "int64", "denials among them", minimum=0),
    ),
    restricted=True,
)

ADJUSTED_EXCHANGED = Table(
    "adjusted_exchanged",
    "What a model from a file, or a rule, does to a group by its own answer: decided as they are, and with the "
    "protected attribute exchanged to the reference group. No row where the model does not take the attribute.",
    (
        DECISION_MAKER,
        PROTECTED_ATTRIBUTE,
        GROUP,
        Column("column", "string", "the input that is exchanged; null where none is", nullable=True),
        Column("value", "string", "its value in the reference group", nullable=True),
        Column("n", "int64", "complete applications of the group", minimum=0),
        Column("events", "int64", "denials among them", minimum=0),
        Column("raised", "int64", "those denied as they are, and approved with the attribute exchanged", True, 0),
        Column("lowered", "int64", "those approved as they are, and denied with it exchanged", True, 0),
        Column("effect", "double", "share of the first less share of the second", True, -1.0, 1.0),
        Column("low", "double", "lower end of its interval", True, -1.0, 1.0),
        Column("high", "double", "upper end of it", True, -1.0, 1.0),
        Column("reason", "string", "why the attribute is not exchanged; empty where it is"),
    ),
    key=("decision_maker", "protected_attribute", "group"),
    restricted=True,
)

COMPARED_FILES = Table(
    "compared_files",
    "How many denied applicants have an approved comparator: of each group among the reference group, and as a control "
    "comparison the same of denied reference applicants. No verdict rests on it.",
    (
        PROTECTED_ATTRIBUTE,
        GROUP,
        Column("to_group", "string", "group of the approved applicants"),
        Column("columns", "string", "directed columns in which a comparator is no better, joined by +"),
        Column("n", "int64", "denied applicants of the group who were searched for", minimum=0),
        Column("events", "int64", "those with a comparator", minimum=0),
        Column("matched", "double", "their share", True, 0.0, 1.0),
        Column(
            "pairs",
            "int64",
            "members, denied or not, who have a reference applicant of their own who is no better; null in other rows",
            True,
            0,
        ),
        Column("member_denied", "int64", "pairs of which the member alone was denied", True, 0),
        Column("other_denied", "int64", "pairs of which the reference applicant alone was denied", True, 0),
        Column("p", "double", "one-sided p of McNemar's test of these pairs", True, 0.0, 1.0),
        Column(
            "gamma",
            "double",
            "Rosenbaum's gamma: p stays at most 0.05 while no hidden column multiplies the odds within a pair by more; "
            "null where p is above 0.05",
            True,
            1.0,
        ),
        REASON,
    ),
    key=("protected_attribute", "group", "to_group"),
    restricted=True,
    of_counts=("matched", "p", "gamma"),
)

COMPARATORS = Table(
    "comparators",
    "Pairs of files to read next to each other: a denied applicant, and an approved one who is no better in any "
    "directed column, the nearest first. Personal rows, never in a report.",
    (
        ROW_ID,
        PROTECTED_ATTRIBUTE,
        GROUP,
        Column("to_group", "string", "group of the comparator"),
        Column("rank", "int32", "place of the comparator, from the nearest", minimum=1),
        Column("other_row_id", "string", "the comparator"),
        Column(
            "distance", "double", "mean over the directed columns of the difference in standard deviations", False, 0.0
        ),
    ),
    key=("row_id", "protected_attribute", "to_group", "rank"),
    restricted=True,
)

_LADDER = (
    *(ADJUSTED, ADJUSTED_SUPPORT, ADJUSTED_INTERACTIONS, ADJUSTED_BENCHMARKS, ADJUSTED_ROWS, ADJUSTED_EXCHANGED),
    COMPARED_FILES,
)
TABLES = (*_LADDER, COMPARATORS)

FLOW_OUTCOMES = (
    *("originated", "not_accepted", "denied", "withdrawn", "incomplete", "preapproval_denied"),
    *("preapproval_not_accepted", "approved", "undecided", "fallout", "purchased", "left_out", "copied"),
)
"""Ends of an application: the first nine add up to the applications, ``fallout`` is those that fell out of them, the
last three are rows of the file that are no application, were not read or kept, and are copies."""
_LOANS = ("originated", "approved")
FELL_OUT = ("not_accepted", "withdrawn", "incomplete", "preapproval_not_accepted")
_OF_GROUP = (DECISION_MAKER, PROTECTED_ATTRIBUTE, GROUP)
_ENDS = (
    Column("low", "double", "lower end of its interval", nullable=True),
    Column("high", "double", "upper end of it", nullable=True),
)
_SIDES = (
    Column("n_reference", "int64", "the same of the reference group", minimum=0),
    Column("events_reference", "int64", "the same of the reference group", True, 0),
)

FLOW = Table(
    "flow",
    "What became of the applications of each group; the counts of all outcomes but fallout add up to the file.",
    (
        *_OF_GROUP,
        Column("outcome", "string", "how it ended", codes=FLOW_OUTCOMES),
        Column("n", "int64", "applications of the group; rows of the last three outcomes are none", minimum=0),
        Column("events", "int64", "rows that ended so", minimum=0),
        Column("value", "double", "share of the applications; null for rows that are none", True, 0.0, 1.0),
        *_ENDS,
        Column("difference", "double", "its share less that of the reference group", True, -1.0, 1.0),
        Column("difference_low", "double", "lower end of its interval", nullable=True),
        Column("difference_high", "double", "upper end of it", nullable=True),
    ),
    key=("decision_maker", "protected_attribute", "group", "outcome"),
    restricted=True,
    parts=("outcome",),
    of_counts=("value", "low", "high", "difference", "difference_low", "difference_high"),
)

DENIAL_REASONS = Table(
    "denial_reasons",
    "The first reason for denial that the lender gave, by group among its denied applications.",
    (
        *_OF_GROUP,
        Column("reason_code", "string", "code of the reason as filed; none: no reason was given"),
        Column("words", "string", "the reason in words"),
        Column("n", "int64", "denied applications of the group", minimum=0),
        Column("events", "int64", "those with this first reason", minimum=0),
        Column("named", "int64", "those that name it at all", minimum=0),
        Column("value", "double", "share with this first reason", True, 0.0, 1.0),
        *_ENDS,
        Column("difference", "double", "its share less that of the reference group", True, -1.0, 1.0),
        Column("p", "double", "p of one mix of first reasons in both groups; one for all rows of a group", True, 0, 1),
        Column("p_holm", "double", "the same after Holm over the groups of the attribute", True, 0.0, 1.0),
        Column("reason", "string", "why there is no p; empty where there is"),
    ),
    key=("decision_maker", "protected_attribute", "group", "reason_code"),
    restricted=True,
    parts=("reason_code",),
    inside=(("flow", ("denied",)),),
    of_counts=("value", "low", "high", "difference"),
)

PRICES = ("rate_spread", "discount_points", "origination_charges", "lender_credits", "total_loan_costs")
"""Prices that are numbers: points above the benchmark rate, and costs in percent of the loan."""
PRICE_FLAGS = ("higher_priced", "high_cost")
PRICE_UNITS = ("percentage points", "percent of the loan", "share of loans")
"""Of the rate spread, of other prices, and of flags."""
PRICING = Table(
    "pricing",
    "What borrowers of a group pay beyond similar borrowers of the reference group, among loans that were made.",
    (
        *_OF_GROUP,
        Column("outcome", "string", "the price", codes=(*PRICES, *PRICE_FLAGS)),
        Column("unit", "string", "what its numbers are", codes=PRICE_UNITS),
        Column("product", "string", "the product that it is inside of; empty: all, with indicators of products"),
        RUNG,
        BLOCKS,
        Column("estimator", "string", "how it is estimated", codes=("ols", "median", "q90", "logit")),
        Column("primary", "bool", "whether it is judged: rate spread, all products, the last rung before discretion"),
        Column("value", "double", "what the group pays beyond reference borrowers", nullable=True),
        *_ENDS,
        Column("se", "double", "its standard error", True, 0.0),
        Column("df", "double", "degrees of freedom of its interval; null for the normal", True, 0.0),
        Column("unseen", "double", "how far an unseen column of unit strength moves it", True, 0.0),
        Column("rv", "double", "robustness value: what an unseen column has to explain of both", True, 0.0, 1.0),
        Column("n", "int64", "loans of the group with price and controls", minimum=0),
        Column("n_reference", "int64", "the same of the reference group", minimum=0),
        Column("filled", "double", "share of the group's loans with this price", True, 0.0, 1.0),
        Column("filled_reference", "double", "the same of the reference group", True, 0.0, 1.0),
        REASON,
    ),
    key=("decision_maker", "protected_attribute", "group", "outcome", "product", "rung", "estimator"),
    restricted=True,
    parts=("product",),
    inside=(("flow", _LOANS),),
)

DISPARITIES = Table(
    "disparities",
    "Plain comparisons of groups without adjustment, for information: standardised differences, ratios and odds.",
    (
        *_OF_GROUP,
        Column(
            "measure",
            "string",
            "the comparison",
            codes=("smd", "adverse_impact_ratio", "odds_ratio"),
        ),
        Column("of", "string", "the number, or the event, that is compared"),
        Column("higher", "string", "what more of it is for an applicant", codes=("better", "worse")),
        Column("share", "double", "of a ratio by score: share of all who would be approved", True, 0.0, 1.0),
        Column("value", "double", "the comparison, group to reference group", nullable=True),
        *_ENDS,
        Column("n", "int64", "members with a value", minimum=0),
        Column("events", "int64", "those with the event; null of a mean", True, 0),
        *_SIDES,
        REASON,
    ),
    key=("decision_maker", "protected_attribute", "group", "measure", "of", "share"),
    restricted=True,
    inside=(("disparities", ()), ("flow", _LOANS)),
    of_counts=("value", "low", "high"),
)

PLACES = Table(
    "places",
    "The lender's applications by minority share of the census tract, beside those of its peers.",
    (
        Column("of", "string", "what is counted", codes=("applications", "originations")),
        Column("band", "string", "minority share of the tract"),
        Column("n", "int64", "of the lender, in tracts with a known share", minimum=0),
        Column("events", "int64", "those in the band", minimum=0),
        Column("share", "double", "the share of these", True, 0.0, 1.0),
        Column(
            "peers",
            "int64",
            "lenders with 0.5 to 2 times as many applications in the same places and products",
            minimum=0,
        ),
        Column("peers_n", "int64", "of the peers together", minimum=0),
        Column("peers_events", "int64", "those in the band", minimum=0),
        Column("peers_share", "double", "the share of these", True, 0.0, 1.0),
        Column("ratio", "double", "share of the lender over that of its peers", True, 0.0),
        Column("low", "double", "lower end of its score interval", True, 0.0),
        Column("high", "double", "upper end of it; null where it has none", True, 0.0),
        Column("difference", "double", "share of the lender less that of its peers", True, -1.0, 1.0),
        Column("difference_low", "double", "lower end of its interval", True, -1.0, 1.0),
        Column("difference_high", "double", "upper end of it", True, -1.0, 1.0),
        Column("expected", "double", "those in the band if its share were that of its peers", True, 0.0),
        Column("shortfall", "double", "expected less made", nullable=True),
        Column("shortfall_low", "double", "lower end of its interval over resampled tracts", nullable=True),
        Column("shortfall_high", "double", "upper end of it", nullable=True),
        Column("per_home", "double", "of the lender, for 1,000 homes of one to four units", True, 0.0),
        Column("peers_per_home", "double", "the same of its peers together", True, 0.0),
        Column(
            "state",
            "string",
            "of the ratio in majority-minority tracts against 0.5, for information; empty elsewhere",
            codes=("", "within", "outside", "inconclusive"),
        ),
        REASON,
    ),
    key=("of", "band"),
    restricted=True,
    parts=("band",),
    covered=(
        ("above 80 %", ("75 to 100 %",)),
        ("75 to 100 %", ("above 50 %",)),
        ("above 50 %", ("50 to 75 %", "75 to 100 %")),
    ),
    of_counts=(
        *(
            "share",
            "peers_share",
            "ratio",
            "low",
            "high",
            "difference",
            "difference_low",
            "difference_high",
            "expected",
        ),
        *("shortfall", "shortfall_low", "shortfall_high", "per_home", "peers_per_home"),
    ),
)

FOLLOWED = (FLOW, DENIAL_REASONS, PRICING, DISPARITIES, PLACES)
"""Of the stage ``follow``."""
"""Of the stage ``adjust``."""

_PROXY = Column(
    "proxy",
    "string",
    "what race is guessed from: surname and ZIP code (bisg), with the first name (bifsg), or by tract (`_tract`)",
    False,
)
_PROXIES = ("bisg", "bifsg", "bisg_tract", "bifsg_tract")
_RACES = ("white", "black", "api", "native", "multiple", "hispanic")
_OUTCOME = Column(
    "outcome",
    "string",
    "probable; or why there are no probabilities; impossible: no race has such people in the tables",
    codes=("probable", "missing_surname", "missing_place", "unknown_surname", "unknown_place", "impossible"),
)
_SPELLING = Column(
    "spelling",
    "string",
    "how the surname was found: as it is written, without its accents, or by its first or last part",
    codes=("as_written", "without_accents", "first_part", "last_part", "none"),
)

PROXIES = Table(
    "proxies",
    "Probabilities of race by surname and place, where `source.proxy` requests them. Personal rows, never in a report; "
    "the names themselves are in no table.",
    (
        ROW_ID,
        replace(_PROXY, codes=(*_PROXIES, "none")),
        _OUTCOME,
        _SPELLING,
        *(
            Column(race, "double", f"probability of {race}; null where there is none", True, 0.0, 1.0)
            for race in _RACES
        ),
    ),
    key=("row_id",),
    restricted=True,
)

PROXY_OUTCOMES = Table(
    "proxy_outcomes",
    "How many applications have probabilities of race, and why others have none.",
    (
        _OUTCOME,
        _SPELLING,
        replace(_PROXY, codes=(*_PROXIES, "none")),
        Column("rows", "int64", "applications", minimum=0),
    ),
    key=("outcome", "spelling", "proxy"),
    restricted=True,
    parts=("outcome", "spelling", "proxy"),
)

PROXY_MEASURES = Table(
    "proxy_measures",
    "Difference of denial between a race and the reference race by probabilities of race. Each estimator has a bias of "
    "its own, of either sign: no verdict rests on any of them.",
    (
        replace(_PROXY, codes=_PROXIES),
        Column("race", "string", "the race, non-Hispanic but for hispanic; other: races of too few", False),
        Column("reference", "string", "the reference race", codes=_RACES),
        Column(
            "estimator",
            "string",
            "regression on the probabilities, means weighted by them, or a cut at 0.8",
            codes=("regression", "weighted", "threshold"),
        ),
        Column("value", "double", "difference of the share denied, race minus reference", True),
        Column("low", "double", "lower end of its interval, which holds that race is drawn by its probability", True),
        Column("high", "double", "upper end of it", True),
        Column("se", "double", "its standard error", True, 0.0),
        Column("bound_low", "double", "least difference that the probabilities allow", True, -1.0, 1.0),
        Column("bound_high", "double", "largest one", True, -1.0, 1.0),
        Column("n", "int64", "applications with probabilities", minimum=0),
        Column("expected", "double", "expected members of the race, or those above the cut", False, 0.0),
        REASON,
    ),
    key=("race", "estimator"),
    restricted=True,
    goes_with=PROXY_OUTCOMES.name,
)

ALTERNATIVES = Table(
    "alternatives",
    "Register of the search for less discriminatory alternatives: every candidate with each group, as it did on the "
    "choosing part. The figures of the best are too good there: alternative_gains has those of other rows.",
    (
        Column("candidate", "int32", "its number in the order in which they were tried; 0 is the base", minimum=0),
        Column(
            "kind",
            "string",
            "the base; a refit on some features; one cut a segment of a score; or one cut that approves more",
            codes=("base", "refit", "segments", "threshold"),
        ),
        Column(
            "family", "string", "kind of the model", codes=("logistic_regression", "gradient_boosting", "random_forest")
        ),
        Column("features", "strings", "features that it takes"),
        Column("penalty", "double", "C, weight of the squares of leaves, or fewest rows of a leaf", minimum=0.0),
        Column("segment", "string", "feature whose values have cuts of their own", nullable=True),
        Column("cuts", "string", "JSON object: segment, or nothing -> the score from which is approved"),
        Column("seed", "int64", "seed of the parts and of the fit", minimum=0),
        PROTECTED_ATTRIBUTE,
        GROUP,
        Column("auc", "double", "area under the curve on the choosing part", True, 0.0, 1.0),
        Column("ratio", "double", "approval of the group over that of the reference group there", True, 0.0),
        Column("gain", "double", "that ratio less the base's", True),
        Column("eligible", "bool", "whether the AUC is within the loss of the base's"),
        Column("chosen", "bool", "whether it is the best for this group, whose gain is in alternative_gains"),
        Column("reason", "string", "why it was chosen, or was not"),
    ),
    key=("candidate", "protected_attribute", "group"),
    restricted=True,
)

ALTERNATIVE_GAINS = Table(
    "alternative_gains",
    "Less discriminatory alternatives: for each group the gain of the best eligible candidate, on other rows.",
    (
        PROTECTED_ATTRIBUTE,
        GROUP,
        Column("candidates", "int32", "candidates that were tried", minimum=0),
        Column("eligible", "int32", "those with an AUC within the loss of the base's", minimum=0),
        Column("loss", "double", "most that the AUC may fall, declared beforehand", minimum=0.0),
        Column("base_auc", "double", "of the base on the choosing part", True, 0.0, 1.0),
        Column(
            "base_ratio",
            "double",
            "approval of the group over that of the reference group by the base, there",
            True,
            0.0,
        ),
        Column("chosen", "int32", "number of the best candidate on the choosing part; null without one", True, 0),
        Column("gain_choosing", "double", "its gain of the ratio there, which is too good", True),
        Column("auc_difference", "double", "its AUC less the base's on the telling part", True, -1.0, 1.0),
        Column("approvals", "double", "its approvals there over the base's, less 1", True, -1.0),
        Column(
            "losses", "double", "its expected losses there, by the base's score, over the base's, less 1", True, -1.0
        ),
        Column("ratio", "double", "its ratio on the telling part; null unless the gain is above zero", True, 0.0),
        Column("gain", "double", "its gain of the ratio there; null unless its whole interval is above zero", True),
        Column("low", "double", "lower end of the gain's interval, by resampling the telling part", True),
        Column("high", "double", "upper end of it", True),
        Column("n", "int64", "members of the group in the telling part", minimum=0),
        Column("above_zero", "bool", "whether the whole interval is above zero: only then there is a gain"),
        Column("splits", "int32", "splits of the rows in which the whole search was made", minimum=1),
        Column("splits_above", "int32", "those with a gain whose whole interval is above zero", minimum=0),
        REASON,
    ),
    key=("protected_attribute", "group"),
    restricted=True,
)

SHOWN = (*_LADDER, PROXY_OUTCOMES, PROXY_MEASURES, ALTERNATIVE_GAINS, *FOLLOWED)
"""Tables that are published, after the disclosure pass."""
