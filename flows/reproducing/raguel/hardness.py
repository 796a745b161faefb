"""How hard each attribute is to change, and in which steps: our own choice, for the paper publishes none.

Weights are relative: 1 is the hardest. What somebody decides alone and at once is easy (to borrow less, to pay more),
what takes years or another's consent is hard (a degree, a house, a position). Steps are what people would name: whole
months, hundreds of marks, thousands of dollars, one class of a category. What the spec calls immutable has no row.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple


class Hardness(NamedTuple):
    """Of one attribute."""

    weight: float
    step: float
    """In the units of the column; of a category, how many places in its order."""


DEFAULT_CREDIT: Final[Mapping[str, Hardness]] = {
    "LIMIT_BAL": Hardness(0.8, 10_000),
    "Education": Hardness(1.0, 1),
    "PAY_0": Hardness(0.5, 1),
    "PAY_2": Hardness(0.6, 1),
    "PAY_3": Hardness(0.7, 1),
    "BILL_AMT1": Hardness(0.4, 1_000),
    "BILL_AMT2": Hardness(0.5, 1_000),
    "PAY_AMT1": Hardness(0.2, 500),
    "PAY_AMT2": Hardness(0.3, 500),
}
"""Older months are harder: to have paid then takes as many months of paying from now on."""

GERMAN: Final[Mapping[str, Hardness]] = {
    "Month-Duration": Hardness(0.1, 1),
    "Credit-Amount": Hardness(0.2, 100),
    "Telephone": Hardness(0.1, 1),
    "Instalment-Rate": Hardness(0.3, 1),
    "Installment": Hardness(0.4, 1),
    "Existing-Account-Status": Hardness(0.4, 1),
    "Guarantors": Hardness(0.5, 1),
    "Existing-Credits": Hardness(0.5, 1),
    "Savings-Account": Hardness(0.6, 1),
    "Residence": Hardness(0.8, 1),
    "Property": Hardness(0.9, 1),
    "Housing": Hardness(0.9, 1),
    "Present-Employment": Hardness(1.0, 1),
    "Job": Hardness(1.0, 1),
}
