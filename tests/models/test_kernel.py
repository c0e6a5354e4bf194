import torch
from safetensors.torch import load, save

from balancemix.models.kernel import KernelMachine, MeanOfLogOdds, log_odds, squared_exponential


def machine(landmarks: int = 5, features: int = 3, classes: int = 2) -> KernelMachine:
    generator = torch.Generator().manual_seed(0)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator)

    width = landmarks or features
    return KernelMachine(
        draw(features), draw(features).abs() + 0.5, draw(landmarks, features),
        draw(width, classes), draw(classes),
    )  # fmt: skip


def test_similarity_by_the_formula_pair_by_pair():
    a, b = torch.randn(4, 6), torch.randn(3, 6)
    slow = [[float(torch.exp(-((p - q) ** 2).sum() / 12)) for q in b] for p in a]
    torch.testing.assert_close(squared_exponential(a, b), torch.tensor(slow))


def test_log_odds_is_the_logit_inside_and_keeps_the_order_outside():
    inside = torch.linspace(0.01, 0.99, 50)
    torch.testing.assert_close(log_odds(inside), torch.logit(inside))
    wide = torch.linspace(-0.5, 1.5, 400).double()
    assert bool((log_odds(wide).diff() > 0).all())


def test_a_machine_scores_by_its_landmarks():
    m = machine()
    x = torch.randn(7, 3)
    z = (x - m.mean) / m.scale
    by_hand = torch.zeros(7, 2)
    for i, row in enumerate(z):
        for landmark, coefficient in zip(m.landmarks, m.coefficients, strict=True):
            by_hand[i] += torch.exp(-((row - landmark) ** 2).sum() / 6) * coefficient
    torch.testing.assert_close(m.scores(x), by_hand + m.intercept)
    torch.testing.assert_close(m(x), log_odds(m.scores(x)))


def test_a_machine_without_landmarks_is_linear():
    m = machine(landmarks=0)
    x = torch.randn(7, 3)
    torch.testing.assert_close(m.scores(x), ((x - m.mean) / m.scale) @ m.coefficients + m.intercept)


def test_maps_are_averaged():
    m = machine()
    maps = torch.randn(2, 3, 4, 5)
    torch.testing.assert_close(m(maps), m(maps.mean((2, 3))))


def test_a_machine_takes_the_size_of_what_is_loaded():
    m = machine(landmarks=9, classes=4)
    other = KernelMachine.empty()
    other.load_state_dict(load(save(m.state_dict())))
    x = torch.randn(5, 3)
    torch.testing.assert_close(m(x), other(x))


def test_the_mean_of_log_odds_is_loaded_with_its_machine():
    m, head = machine(), torch.nn.Linear(3, 2)
    both = MeanOfLogOdds(head, m)
    other = MeanOfLogOdds(torch.nn.Linear(3, 2), KernelMachine.empty())
    other.load_state_dict(both.state_dict())
    x = torch.randn(5, 3)
    torch.testing.assert_close(other(x), (head(x) + m(x)) / 2)
