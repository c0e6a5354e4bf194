"""What an audit believes of labels by their features."""

import torch

from balancemix.auditing.data import judge_data, judge_run, labels_of_run
from balancemix.auditing.judged import Factors, judge_confidence, judge_features, smoothed, weigh
from balancemix.auditing.ranking import SMOOTHER
from balancemix.cli import main
from balancemix.data import read
from balancemix.judge import judge
from balancemix.judge.noise_model import fit_noise_model
from balancemix.judge.ridge import Ridge
from balancemix.run import Run


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


def decide(path, label=(0, 0)):
    """Let a person say the opposite of a given label."""
    source = read(path)
    row, column = label
    verdict = "absent" if source.given[row, column] else "present"
    beside = path.with_name(f"{path.name}.balancemix")
    beside.mkdir(exist_ok=True)
    line = f"{source.names[row]},{source.classes[column]},{verdict}"
    (beside / "decisions.csv").write_text(f"image,class,verdict\n{line}\n")
    return source


def test_an_audit_knows_the_labels_before_people_decided(tiny):
    file = decide(tiny)
    source, features = read(tiny), read(tiny).features.float()
    known = {"verified": source.verified, "before": file.given}
    found = judge_data(str(tiny))
    expected = judge_features(source.given, features, **known)
    assert torch.equal(found.probability, expected.probability)
    assert torch.equal(found.doubt, expected.doubt)
    unaware = judge_features(source.given, features, verified=source.verified)
    assert not torch.equal(found.probability, unaware.probability)


def test_a_model_s_confidence_is_weighed_by_the_labels_before(tiny):
    file = decide(tiny)
    source = read(tiny)
    confidence = torch.rand(file.given.shape, generator=torch.Generator().manual_seed(0))
    known = {"verified": source.verified, "before": file.given}
    aware = judge_confidence(source.given, confidence, **known)
    model = fit_noise_model(file.given, confidence.clamp(1e-4, 1 - 1e-4).logit())
    assert torch.equal(aware.confidence, model.confidence(confidence.clamp(1e-4, 1 - 1e-4).logit()))


def test_a_run_with_noise_knows_its_labels_before_people_decided(tiny, tmp_path):
    out = tmp_path / "run"
    call = ["train", str(tiny), "--noise", "mislabel:0.3+keep:0.1", "--epochs", "1"]
    assert main([*call, "--set", "model.hidden=8", "--out", str(out)]) == 0
    run = Run.open(out)
    trained = run.table.given
    _, (_, kept, nothing, _) = labels_of_run(run)
    assert nothing is None
    row, column = (~kept[: len(trained)]).nonzero()[0].tolist()
    decide(tiny, (row, column))
    _, (given, verified, before, _) = labels_of_run(run)
    assert bool(verified[row, column])
    assert not bool(kept[row, column])
    rows = slice(len(trained))
    assert torch.equal(before[rows], trained.masked_fill(kept[rows], -1))
    doubtful = ~verified[rows]
    assert torch.equal(given[rows][doubtful], trained[doubtful])
    assert judge_run(run).probability.shape == given.shape
