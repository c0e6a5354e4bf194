"""The demo's page: curves of two methods, and rows with labels that are wrong."""

from collections.abc import Mapping, Sequence

from balancemix.evaluation.scoring import headline
from balancemix.report.cards import Cards
from balancemix.report.figures.curves import learning
from balancemix.report.page import Drawing, Page
from balancemix.report.summary import Summary


def make_page(
    summaries: Mapping[str, Summary], cards: Cards, review: str, commands: Sequence[str]
) -> Page:
    """Compare methods by their runs, and show the findings that both have."""
    last = list(summaries.values())[-1]
    curves = {name: [line["mAP"] for line in each.log] for name, each in summaries.items()}
    why = (
        "Plain training learns the right labels first and then the wrong ones: its score falls. "
        "BalanceMix doubts labels with a loss that stays high, and keeps what it has learned."
    )
    last_map = [summary.metrics["last"]["mAP"] for summary in summaries.values()]
    facts = {
        "rows": len(last.given),
        "results": [{"method": name, **headline(each.metrics)} for name, each in summaries.items()],
        "best": last_map.index(max(last_map)),
        "quality": last.quality,
        "cards": cards,
        "review": review,
        "calls": commands,
    }
    drawings = [Drawing("learning", learning(curves), why)]
    return Page("demo", "BalanceMix on noisy digits", drawings, facts)
