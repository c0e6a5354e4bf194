"""How wrong are the labels? Asked of something that did not learn them."""

from balancemix.judge.opinion import Opinion, judge

__all__ = ["Opinion", "judge"]
