"""Tables of RAGUEL: ranks of applicants in lists by recourse cost, and the offers to them."""

from schemas.table import Column, Table
from schemas.tables.applications import DECISION_MAKER, GROUP, PROTECTED_ATTRIBUTE, ROW_ID
from schemas.terms import Refusal

WHOLE = ("list", "fair_star", "foeir")
"""Orders of the whole list at once; a spec has one of them."""

ORDER = Column(
    "order",
    "string",
    "what made the order: the whole list at once (Algorithm 1, FA*IR, FoEiR), or blocks with the next or any later one",
    codes=(*WHOLE, "blocks", "any"),
)

RERANKED = Table(
    "reranked",
    "Every applicant to be ranked by recourse cost: the way to a favourable decision, and its place before and after.",
    (
        ROW_ID,
        DECISION_MAKER,
        PROTECTED_ATTRIBUTE,
        GROUP,
        ORDER,
        Column(
            "found_by",
            "string",
            "where the counterfactual point is: a linear boundary, in whole steps, by AR or MACE, another applicant, "
            "or the top of the ranking",
            codes=("boundary", "steps", "ar", "mace", "nearest", "top"),
        ),
        Column("cost", "double", "recourse cost before: weighted distance, standard deviations", True, 0.0),
        Column("point", "string", "JSON object: column that differs -> its value at the counterfactual point", True),
        Column("confirmed", "bool", "whether the model itself favours that point; null for a lender", True),
        Column("candidate", "string", "the applicant whose place the point is", True),
        Column("rank", "int64", "place in the list before, from 1", True, 1),
        Column("block", "int64", "block before, from 1", True, 1),
        Column("cost_after", "double", "recourse cost after the offer", True, 0.0),
        Column("rank_after", "int64", "place in the list after, from 1", True, 1),
        Column("block_after", "int64", "block after, from 1", True, 1),
        Column(
            "attained",
            "string",
            "of an offer: whether the ratio of costs there is 1 - delta (strict), or no lower than without it",
            True,
            codes=("strict", "improve"),
        ),
        Column("offer_confirmed", "bool", "whether the model's score rises as the offer counts on", True),
        Column("refusal", "string", "why the applicant is not ranked", True, codes=tuple(Refusal)),
    ),
    key=("row_id", "decision_maker", "protected_attribute", "order"),
    restricted=True,
)

OFFERS = Table(
    "offers",
    "The recourse on offer: one row for each column that an applicant is to change.",
    (
        ROW_ID,
        DECISION_MAKER,
        PROTECTED_ATTRIBUTE,
        ORDER,
        Column("attribute", "string", "the column"),
        Column("from_value", "string", "its value now"),
        Column("to_value", "string", "its value then: the nearest one that the model takes as it is meant"),
        Column("change", "double", "size of the change in the column's units; of ordered categories, their number"),
    ),
    key=("row_id", "decision_maker", "protected_attribute", "order", "attribute"),
    restricted=True,
)
