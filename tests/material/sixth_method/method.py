"""What NEARBY declares of itself."""

from tasks.pipeline.method import Method

METHOD = Method(
    "nearby",
    "Approved neighbours (NEARBY)",
    (),
    ("nearby_share",),
    {"nearby_share": "denied beside an approved neighbour"},
)
