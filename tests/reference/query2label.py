"""Query2Label's forward pass, one row, one position, one query and one head at a time."""

import math

import numpy as np

from tests.reference.ml_decoder import layer_norm, softmax


def logits(image, weights, heads, layers):
    """Take maps (B, D, H, W), the module's own weights by name and (encoders, decoders)."""
    B, _, H, W = image.shape
    K, width = weights["queries"].shape
    encoders, decoders = layers
    result = np.zeros((B, K))
    for b in range(B):
        memory, places = [], []
        for h in range(H):
            for w in range(W):
                token = image[b, :, h, w]
                if "project.weight" in weights:
                    token = weights["project.weight"] @ token + weights["project.bias"]
                memory.append(token)
                places.append(position(h, w, H, W, width))
        for i in range(encoders):
            part = below(weights, f"encoder.{i}.")
            memory = [
                layer(memory[t], places[t], memory, places, part, heads) for t in range(len(memory))
            ]
        targets = [np.zeros(width) for _ in range(K)]
        for i in range(decoders):
            part = below(weights, f"decoder.{i}.")
            targets = [
                layer(targets[k], weights["queries"][k], memory, places, part, heads)
                for k in range(K)
            ]
        for k in range(K):
            target = layer_norm(targets[k], weights["norm.weight"], weights["norm.bias"])
            result[b, k] = target @ weights["weight"][k] + weights["bias"][k]
    return result


def position(h, w, H, W, width):
    """DETR's sine encoding: half of the width for y, half for x, each normalised to 2 pi."""
    half = width // 2
    found = []
    for place, count in ((h + 1, H), (w + 1, W)):
        turned = place / (count + 1e-6) * 2 * math.pi
        for i in range(half):
            angle = turned / 10000 ** (2 * (i // 2) / half)
            found.append(math.sin(angle) if i % 2 == 0 else math.cos(angle))
    return np.array(found)


def layer(x, place, memory, places, weights, heads):
    """x <- LN(x + MHA(x + place, memory + places, memory)); x <- LN(x + FFN(x)); no dropout."""
    keys = [token + other for token, other in zip(memory, places, strict=True)]
    found = attend(x + place, keys, memory, below(weights, "attention."), heads)
    x = layer_norm(x + found, weights["norms.0.weight"], weights["norms.0.bias"])
    grown = weights["feedforward.0.weight"] @ x + weights["feedforward.0.bias"]
    shrunk = weights["feedforward.3.weight"] @ np.maximum(grown, 0) + weights["feedforward.3.bias"]
    return layer_norm(x + shrunk, weights["norms.1.weight"], weights["norms.1.bias"])


def attend(q, keys, values, weights, heads):
    width = len(q)
    Wq, Wk, Wv = np.split(weights["in_proj_weight"], 3)
    bq, bk, bv = np.split(weights["in_proj_bias"], 3)
    size = width // heads
    found = np.zeros(width)
    for head in range(heads):
        part = slice(head * size, (head + 1) * size)
        query = (Wq @ q + bq)[part]
        scores = np.array([query @ (Wk @ key + bk)[part] for key in keys]) / math.sqrt(size)
        for share, value in zip(softmax(scores), values, strict=True):
            found[part] += share * (Wv @ value + bv)[part]
    return weights["out_proj.weight"] @ found + weights["out_proj.bias"]


def below(weights, prefix):
    return {n.removeprefix(prefix): value for n, value in weights.items() if n.startswith(prefix)}
