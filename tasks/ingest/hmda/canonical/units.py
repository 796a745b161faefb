"""Flags numbers that a lender filed in a wrong unit, by rule. No value is corrected.

Errors of whole lenders are known from the public files of 2018 to 2022: income in dollars instead of thousands or by
the month, ratios and rates as fractions, amounts in cents, terms of one month, codes in place of amounts. Each rule
looks at one row, so that a file can be streamed; a flag is a reason to look, and no proof.
"""

from schemas.tables.hmda import UNIT_FLAGS
from tasks.ingest.hmda.canonical.cells import joined

_MOST_INCOME = 10_000_000
"""Dollars a year: filed in dollars instead of thousands, an income of 10,000 comes to this."""
_MOST_LOAN = 100_000_000
"""Dollars, of a home of one to four units."""
_MOST_INCOMES = 25
"""A granted first-lien loan to live in is a few yearly incomes; of an income by the month, twelve times as many."""

_GRANTED = "action_taken IN ('1', '2') AND lien_status = '1' AND occupancy = '1'"
_PERSONAL = "coalesce(business_or_commercial_purpose, '2') = '2'"
_SHARE = "loan_amount_usd / nullif(property_value_usd, 0)"

_RULES = {
    "income_not_positive": "income_usd <= 0",
    "income_in_dollars": f"income_usd >= {_MOST_INCOME}",
    "income_by_month": (
        f"income_usd > 0 AND loan_amount_usd > {_MOST_INCOMES} * income_usd AND {_GRANTED} AND {_PERSONAL}"
    ),
    "loan_amount_too_large": (
        f"{_SHARE} >= 10 OR (loan_amount_usd >= {_MOST_LOAN} AND coalesce(property_type, '3') <> '3')"
    ),
    # percent of a loan that is a tenth of the home or more cannot be 2 or less
    "ltv_as_fraction": f"ltv_ratio > 0 AND ltv_ratio <= 2 AND coalesce({_SHARE} >= 0.1, true)",
    "ltv_too_large": "ltv_ratio >= 1000",
    "interest_rate_as_fraction": "interest_rate > 0 AND interest_rate < 0.25",
    "loan_term_one_month": "loan_term = 1",
    "code_as_discount_points": "discount_points IN (1111, 8888, 9999)",
}


def unit_flag() -> str:
    """SQL of the flags of a row, joined by commas; null where nothing is amiss. Over canonical columns."""
    return joined((name, _RULES[name]) for name in UNIT_FLAGS)
