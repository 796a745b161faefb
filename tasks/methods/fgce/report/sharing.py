"""What it costs a group to share a few counterfactuals, against everyone having their own (FACE).

Here belongs what the selected candidates cost, as it is and against each factual's own optimum.
"""

from tasks.reporting.comparison import BRACKETS, beside_words, dots, dots_legend, ends, headline, numbers, settings
from tasks.reporting.material import Shown, View, undrawn
from tasks.reporting.section import Figure, Panel, TableView

MEASURES = {
    "burden_at_k": Shown("burden with k counterfactuals", "number"),
    "cost_over_face": Shown("FACE ratio", "number"),
}
GLOSSARY = {
    "FACE ratio": "what the nearest of k shared candidates costs a factual, divided by the cost of the factual's own "
    "cheapest candidate, averaged over those served: 1 means that nobody pays for sharing",
}


def figures(view: View) -> tuple[Figure, ...]:
    """The ratio at the smallest and at the largest k, for each cost."""
    costs = sorted({str(m.said["cost"]) for m in view.all("cost_over_face")}, reverse=True)
    shown, panels = MEASURES["cost_over_face"], list[Panel]()
    for cost in costs:
        for k in ends(view, "cost_over_face", "k"):
            title = f"k = {k:g}" + f", {cost} cost" * (len(costs) > 1)
            panels += dots(view, title, "cost_over_face", shown, {"cost": cost, "k": k})
    caption = (
        "Mean ratio of what the nearest of k shared candidates costs to what the factual's own cheapest one would. It "
        "is 1 where nobody pays for sharing. Only factuals who are served count, and whom more candidates serve may be "
        f"among the dearer ones. {beside_words(view)}"
    )
    drawn = {m.group for m in view.all("cost_over_face") if m.value is not None}
    title = f"What sharing costs, by {view.attribute}"
    return (Figure(title, tuple(panels), caption + undrawn(view.groups, drawn), dots_legend(view)),)


def tables(view: View) -> tuple[TableView, ...]:
    """Burden at the largest k beside the size-matched reference, and the numbers of the figure."""
    most = settings(view, "burden_at_k", "k")[-1:]
    made = [headline(view, "burden_at_k", MEASURES["burden_at_k"], {"k": k}, BRACKETS) for k in most]
    title = f"FACE ratio at each k, by {view.attribute}: the numbers of the figure"
    made.append(numbers(view, title, "cost_over_face", MEASURES["cost_over_face"], {"cost": "Cost", "k": "k"}))
    return tuple(made)
