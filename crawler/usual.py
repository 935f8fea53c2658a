"""What the settings say where neither plan nor rules do, as the store wants it."""

from crawler.settings import Settings
from crawler.store.claim.budgets import Together
from crawler.store.hand_out.scoring import Usual


def usual_of(settings: Settings) -> Usual:
    """What holds for pages where neither plan nor rules say otherwise."""
    return Usual(
        price=settings.price,
        least=settings.least_interval,
        most=settings.most_interval,
        discovery_share=settings.discovery_share,
        refresh_share=settings.refresh_share,
        budget_per_day=settings.budget_per_day,
        bytes_per_day=settings.bytes_per_day,
    )


def together_of(settings: Settings) -> Together:
    """What all domains together may spend on a day."""
    return Together(settings.budget_per_day, settings.bytes_per_day)
