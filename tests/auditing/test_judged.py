"""Features are factored once, however many labels of the same rows are judged."""

import torch

from balancemix.auditing.judged import Factors, judge_features
from balancemix.judge.ridge import Ridge


def test_features_are_factored_once_for_two_judgements(monkeypatch):
    made, of = [], Ridge.of

    def counted(*arguments, **options):
        made.append(1)
        return of(*arguments, **options)

    monkeypatch.setattr(Ridge, "of", counted)
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(60, 4, generator=generator)
    given = (features[:, :2] > 0.5).to(torch.int8)
    other = given.clone()
    other[3] = 1 - other[3]
    factors = Factors()
    judge_features(given, features, factors=factors)
    again = judge_features(other, features.clone(), factors=factors)
    assert len(made) == 1
    assert torch.equal(again.doubt, judge_features(other, features).doubt)
    judge_features(given, features, groups=torch.arange(60) // 2, factors=factors)
    judge_features(given, features + 1, groups=torch.arange(60) // 2, factors=factors)
    assert len(made) == 4  # one of them without factors that are kept
