"""How many labels are wrong, estimated from the few that a person has looked at.

    estimate      a number with its 95 % interval; unsure answers counted both ways
    few           few errors seen: gamma interval of a total, exact interval of a count
    regression    many errors seen: the judge's sums of all pictures sharpen the mean
    pictures      whole pictures drawn at random: few or many, as it turns out
    strata        single labels drawn by rank, in two phases
    classes       the same by class, where enough labels were looked at
    rates         shares of the given and of the true positives
    shares        how many of the answers went one way
    left          what the questions drawn at random say of the rest of a list
    agreement     whether two people answer alike: Cohen's kappa
    top           how many of the first m of a list are errors
    calibration   probabilities that fit what people said

Nothing here assumes that the judge is right: what it thinks makes intervals shorter, not wrong.
docs/estimates.md has the formulae, and measures how often the intervals hold the truth.
"""

from balancemix.estimates.calibration import Calibration, calibrate, lower
from balancemix.estimates.classes import by_class
from balancemix.estimates.estimate import Estimate, both_ways
from balancemix.estimates.pictures import from_pictures, pictures_with_errors
from balancemix.estimates.rates import Side, missing_rate, wrong_rate
from balancemix.estimates.strata import draw_strata, first_phase, from_strata, second_phase
from balancemix.estimates.top import among_top

__all__ = [
    "Calibration",
    "Estimate",
    "Side",
    "among_top",
    "both_ways",
    "by_class",
    "calibrate",
    "draw_strata",
    "first_phase",
    "from_pictures",
    "from_strata",
    "lower",
    "missing_rate",
    "pictures_with_errors",
    "second_phase",
    "wrong_rate",
]
