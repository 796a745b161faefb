"""What adjusted disparities declare of themselves: the registry reads nothing else of them."""

from tasks.methods.adjusted.tables import ADJUSTED, TABLES
from tasks.pipeline.method import Method

METHOD = Method(
    "adjusted",
    "Adjusted disparities (denial ladder)",
    (ADJUSTED,),
    ("adjusted_effect",),
    {"adjusted_effect": "adjusted difference of denial"},
    of_reference=False,
    shows=TABLES,
)
