"""What an audit believes of labels by their features."""

import torch

from balancemix.auditing.judged import Factors, judge_features, smoothed, weigh
from balancemix.auditing.ranking import SMOOTHER
from balancemix.judge import judge
from balancemix.judge.noise_model import fit_noise_model
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


def test_wrong_labels_are_ranked_by_a_score_with_a_larger_penalty():
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(200, 4, generator=generator)
    given = (features[:, :3] + torch.randn(200, 3, generator=generator) > 0.5).to(torch.int8)
    given[::9, 1] = -1
    ridge = Ridge.of(features)
    opinion = judge(given, ridge)
    beliefs = opinion.score, opinion.confidence, opinion.posterior, opinion.judged
    plain = weigh(given, *beliefs)
    target, known = (given > 0).float(), given >= 0
    score = ridge.leave_one_out(target, SMOOTHER * opinion.penalty.best, known)
    model = fit_noise_model(given, score)
    smooth = score, model.posterior(given, model.confidence(score))
    found = judge_features(given, features)
    assert torch.equal(found.doubt, weigh(given, *beliefs, smooth=smooth).doubt)
    wrong = given > 0
    assert torch.equal(found.doubt[~wrong], plain.doubt[~wrong])
    assert torch.equal(found.probability[~wrong], plain.probability[~wrong])
    assert not torch.allclose(found.doubt[wrong], plain.doubt[wrong])


def test_verified_labels_say_nothing_of_how_often_others_are_wrong():
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(200, 4, generator=generator)
    given = (features[:, :3] + torch.randn(200, 3, generator=generator) > 0.5).to(torch.int8)
    verified = torch.zeros(given.shape, dtype=torch.bool).index_fill_(0, torch.arange(80), True)
    score, posterior = smoothed(given, Ridge.of(features), 8.0, verified)
    model = fit_noise_model(given.masked_fill(verified, -1), score)
    assert torch.equal(posterior, model.posterior(given, model.confidence(score)))
