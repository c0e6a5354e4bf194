"""Models build for features and for every kind of backbone, with the weights they claim."""

import http.server
import queue
import threading
from typing import Any

import numpy as np
import pytest
import timm
import torch

from balancemix.errors import InputError
from balancemix.models import backbones
from balancemix.models.backbones import fetchable, lite0_state, normalisation, reachable
from balancemix.models.classifier import (
    Classifier,
    Standardise,
    build_model,
    start_at_frequencies,
)
from balancemix.models.ml_decoder import MLDecoder
from tests.conftest import SHARED

LITE0 = "tf_efficientnet_lite0"


@pytest.fixture(autouse=True)
def _one_thread():
    # Networks this small lose more by waiting for each other's threads than they gain.
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


# A residual net, channels last inside, tokens, a wide map, channels last outside, and a family
# whose output is wider than its `num_features`.
BACKBONES = [
    ("resnet18", 512),
    ("convnext_atto", 320),
    ("vit_tiny_patch16_224", 192),
    ("tresnet_m", 2048),
    (LITE0, 1280),
    ("swin_tiny_patch4_window7_224", 768),
    ("mobilenetv3_small_050", 1024),
]


@pytest.mark.parametrize("head", ["linear", "ml-decoder"])
@pytest.mark.parametrize(("backbone", "width"), BACKBONES)
def test_every_kind_of_backbone_gives_logits(backbone, width, head):
    torch.manual_seed(0)
    model = build_model(
        classes=5, backbone=backbone, head=head, pretrained=False, image_size=64
    ).train()
    taken: Any = model.head.memory[0] if isinstance(model.head, MLDecoder) else model.head
    assert taken.in_features == width
    logits = model(torch.randn(2, 3, 64, 64))
    assert logits.shape == (2, 5)
    logits.square().sum().backward()
    # None without a gradient: two processes could not train it otherwise.
    assert [n for n, p in model.named_parameters() if p.grad is None] == []


def test_trying_a_blank_image_leaves_no_trace():
    model = build_model(classes=2, backbone="resnet18", pretrained=False, image_size=32)
    assert model.training
    assert model.backbone.training
    assert model.backbone.bn1.num_batches_tracked == 0


def test_mlp_on_pooled_images():
    model = build_model(classes=3, head="mlp", hidden=8, pretrained=False, image_size=32)
    assert model(torch.zeros(2, 3, 32, 32)).shape == (2, 3)


@pytest.mark.parametrize("head", [None, "linear", "mlp", "ml-decoder"])
def test_features_give_logits(head):
    model = build_model(classes=5, features=12, head=head, hidden=16)
    assert isinstance(model, Classifier)
    assert isinstance(model.backbone, Standardise)
    assert isinstance(model.head, MLDecoder) == (head == "ml-decoder")
    assert model(torch.randn(4, 12)).shape == (4, 5)


def test_features_default_to_the_mlp_and_images_to_the_linear_head():
    mlp = build_model(classes=5, features=12, hidden=16, dropout=0.25).head
    assert isinstance(mlp, torch.nn.Sequential)
    assert [type(layer).__name__ for layer in mlp] == ["Linear", "ReLU", "Dropout", "Linear"]
    assert mlp[0].out_features == 16
    assert mlp[2].p == 0.25
    assert isinstance(build_model(classes=5, pretrained=False).head, torch.nn.Linear)


def test_standardised_features():
    x = torch.randn(200, 3) * torch.tensor([2.0, 0.0, 5.0]) + torch.tensor([1.0, 4.0, -3.0])
    statistics = x.mean(0), x.std(0)
    model = build_model(classes=2, features=3, standardise=statistics).eval()
    scaled = model.backbone(x)
    torch.testing.assert_close(scaled.mean(0), torch.zeros(3), atol=1e-5, rtol=0)
    torch.testing.assert_close(scaled.std(0), torch.tensor([1.0, 0.0, 1.0]), atol=1e-5, rtol=0)
    # The statistics travel with the weights: the loading side needs none.
    other = build_model(classes=2, features=3).eval()
    other.load_state_dict(model.state_dict())
    torch.testing.assert_close(other(x), model(x))


def test_statistics_of_other_sizes_are_refused():
    with pytest.raises(InputError, match=r"standardise: give 3 means"):
        build_model(classes=2, features=3, standardise=(torch.zeros(4), torch.ones(4)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"backbone": "resnet5O"}, r"unknown backbone 'resnet5O': did you mean resnet50"),
        ({"backbone": "resnet50.a1_in1"}, r"did you mean resnet50\.a1_in1k"),
        ({"backbone": "###"}, r"unknown backbone '###': timm\.list_models\(\)"),
        ({"head": "mpl"}, r"unknown head 'mpl': did you mean 'mlp'"),
        ({"classes": 0}, r"classes=0"),
        ({"features": 0}, r"features=0"),
        ({"features": 3, "hidden": -1}, r"hidden=-1: must be at least 1"),
        ({"features": 3, "hidden": 0, "head": "query2label"}, r"hidden=0: must be at least 1"),
        ({"features": 3, "dropout": 1.5}, r"dropout=1\.5: must be between 0 and 1"),
        ({"features": 3, "dropout": float("nan")}, r"dropout=nan"),
        ({"image_size": 0, "pretrained": False}, r"image_size=0: must be at least 1"),
    ],
)
def test_what_cannot_be_built_is_said_in_one_line(options, message):
    with pytest.raises(InputError, match=message) as caught:
        build_model(**{"classes": 2, **options})
    assert "\n" not in str(caught.value)


def test_a_backbone_that_has_no_weights_is_said_in_one_line(monkeypatch):
    config = timm.models.PretrainedCfg()  # without an address to fetch any from
    monkeypatch.setattr(timm, "get_pretrained_cfg", lambda name: config)
    with pytest.raises(InputError) as caught:
        build_model(classes=2, backbone="resnet18")
    assert str(caught.value) == "timm has no weights for resnet18: pass --no-pretrained"


class Gives(torch.nn.Module):
    """A backbone that gives zeros of some shape, or of none at all."""

    def __init__(self, *shape):
        super().__init__()
        self.shape = shape

    def forward(self, x):
        return torch.zeros(len(x), *self.shape) if self.shape else [x]


@pytest.mark.parametrize(
    ("gives", "head", "kind"),
    [
        (Gives(8), "ml-decoder", "a map or tokens"),
        (Gives(), "ml-decoder", "a map or tokens"),
        (Gives(8, 2, 2), "linear", "pooled features"),
        (AssertionError("window\nof 8"), "linear", "pooled features"),
        (RuntimeError("shapes"), "linear", "pooled features"),
        (ValueError("patch"), "query2label", "a map or tokens"),
    ],
    ids=repr,
)
def test_a_backbone_that_does_not_fit_is_said_in_one_line(monkeypatch, gives, head, kind):
    # Which of timm's do not is for its next release to change, so none of them is asked.
    def create(name, **options):
        if isinstance(gives, Exception):
            raise gives
        return gives

    monkeypatch.setattr(timm, "create_model", create)
    with pytest.raises(InputError) as caught:
        build_model(classes=2, backbone="resnet18", head=head, pretrained=False, image_size=50)
    assert str(caught.value) == (
        f"resnet18 does not give {kind} at 50 × 50 pixels: choose another "
        "--backbone, --image-size or --head"
    )


def test_normalisation():
    assert normalisation(LITE0) == ((127 / 255,) * 3, (128 / 255,) * 3)
    assert normalisation("resnet50") == ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
    assert normalisation("tresnet_m") == ((0.0,) * 3, (1.0,) * 3)
    with pytest.raises(InputError, match="unknown backbone"):
        normalisation("resnet5O")


def test_lite0_weights_map_one_to_one_onto_timm():
    # The names are rewritten by rule; here they must agree with the order of both files.
    state = lite0_state()
    wanted = timm.create_model(LITE0, pretrained=False, num_classes=0).state_dict()
    assert list(state) == list(wanted)
    assert [v.shape for v in state.values()] == [v.shape for v in wanted.values()]


@pytest.mark.parametrize("head", ["linear", "ml-decoder"])
def test_the_default_backbone_is_pretrained_without_a_network(head, monkeypatch):
    monkeypatch.setattr(backbones, "reachable", lambda url: pytest.fail("asked the network"))
    model = build_model(classes=2, head=head)
    loaded = model.backbone.state_dict()
    assert all(torch.equal(loaded[name], value) for name, value in lite0_state().items())


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.exists(), reason="needs the COCO images of ../shared/data")
def test_lite0_reproduces_stored_features_of_real_images():
    from PIL import Image

    stored = np.load(SHARED / "coco160-features.npz")
    rows = range(0, 7000, 500)
    pixels = np.stack(
        [np.asarray(Image.open(SHARED / "coco160/images" / stored["images"][i])) for i in rows]
    )
    x = torch.from_numpy(pixels).permute(0, 3, 1, 2) / 255
    mean, std = (torch.tensor(part).view(3, 1, 1) for part in normalisation(LITE0))
    backbone = build_model(classes=2).eval().backbone
    with torch.no_grad():
        found = backbone((x - mean) / std)
    wanted = stored["features"][list(rows)].astype(np.float32)
    np.testing.assert_allclose(found.numpy(), wanted, atol=0.005)  # stored with 16 bits


def test_no_network_is_one_line(monkeypatch):
    monkeypatch.setattr("balancemix.models.backbones.fetchable", lambda hub_id, url: False)
    with pytest.raises(InputError) as caught:
        build_model(classes=2, backbone="resnet18")
    assert str(caught.value) == (
        "the weights of resnet18 could not be fetched (no network?): pass --no-pretrained, "
        "or use tf_efficientnet_lite0, whose weights are installed"
    )


def test_a_download_that_breaks_off_is_the_same_line(monkeypatch):
    def broken(*args, **options):
        raise ConnectionResetError("peer went away")

    monkeypatch.setattr("balancemix.models.backbones.fetchable", lambda hub_id, url: True)
    monkeypatch.setattr(timm, "create_model", broken)
    with pytest.raises(InputError, match="resnet18 could not be fetched"):
        build_model(classes=2, backbone="resnet18")


def test_cached_weights_need_no_network(monkeypatch, tmp_path):
    monkeypatch.setattr(backbones, "reachable", lambda url: False)
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path))
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "net.pth").touch()
    assert fetchable(None, "https://example.org/weights/net.pth")
    assert not fetchable(None, "https://example.org/weights/other.pth")
    assert not fetchable(None, None)
    assert not fetchable("nobody/nothing", None)
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda hub_id, **_: str(tmp_path))
    assert fetchable("nobody/nothing", None)


def test_reachable_waits_no_longer_than_told(monkeypatch):
    told: queue.SimpleQueue[float] = queue.SimpleQueue()
    end = threading.Event()

    class Stuck:
        """A session that does not answer before the test has ended."""

        def head(self, url, timeout):
            told.put(timeout)
            end.wait()

    monkeypatch.setattr("huggingface_hub.get_session", Stuck)
    try:
        # Were the thread waited for, this would never return.
        assert not reachable("http://example.org", seconds=0.01)
        assert told.get(timeout=60) == 0.01
    finally:
        end.set()


def test_reachable_is_any_answer():
    with http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        assert reachable(f"http://127.0.0.1:{server.server_port}", seconds=60)  # it answers 501
        port = server.server_port
    assert not reachable(f"http://127.0.0.1:{port}", seconds=1)


@pytest.mark.parametrize("head", ["linear", "mlp", "ml-decoder", "query2label"])
def test_a_head_can_begin_at_the_frequencies_of_the_classes(head):
    model = build_model(classes=3, features=8, head=head, hidden=16).eval()
    share = torch.tensor([0.5, 0.02, 0.0])
    start_at_frequencies(model, share)
    said = model(torch.randn(4, 8)).sigmoid()
    torch.testing.assert_close(said, share.expand(4, 3), atol=1e-5, rtol=0)
    said.log().sum().backward()
    last = model.head[-1] if isinstance(model.head, torch.nn.Sequential) else model.head
    assert last.get_parameter("weight").grad.abs().sum() > 0  # and it goes on from there
