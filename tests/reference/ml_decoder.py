"""ML-Decoder's forward pass, one row, one query and one head at a time."""

import numpy as np


def softmax(scores):
    grown = np.exp(scores - scores.max())
    return grown / grown.sum()


def layer_norm(vector, scale, shift):
    return (vector - vector.mean()) / np.sqrt(vector.var() + 1e-5) * scale + shift


def logits(tokens, weights, heads):
    """Take tokens (B, T, D) and the module's own weights by name; return logits (B, K)."""
    K = len(weights["bias"])
    Q, width, G = weights["weight"].shape
    result = np.zeros((len(tokens), K))
    for b, row in enumerate(tokens):
        memory = [
            np.maximum(weights["memory.0.weight"] @ token + weights["memory.0.bias"], 0)
            for token in row
        ]
        outputs = []
        for i in range(Q):
            q = block(weights["queries"][i], memory, weights, heads)
            for g in range(G):
                outputs.append(sum(q[d] * weights["weight"][i, d, g] for d in range(width)))
        for k in range(K):
            result[b, k] = outputs[k] + weights["bias"][k]
    return result


def block(q, memory, weights, heads):
    """q <- LN(q + q); q <- LN(q + MHA(q, memory)); q <- LN(q + FFN(q)); dropout is off."""
    norms = [(weights[f"norms.{i}.weight"], weights[f"norms.{i}.bias"]) for i in range(3)]
    q = layer_norm(q + q, *norms[0])
    q = layer_norm(q + attend(q, memory, weights, heads), *norms[1])
    grown = weights["feedforward.0.weight"] @ q + weights["feedforward.0.bias"]
    shrunk = weights["feedforward.3.weight"] @ np.maximum(grown, 0) + weights["feedforward.3.bias"]
    return layer_norm(q + shrunk, *norms[2])


def attend(q, memory, weights, heads):
    width = len(q)
    Wq, Wk, Wv = np.split(weights["attention.in_proj_weight"], 3)
    bq, bk, bv = np.split(weights["attention.in_proj_bias"], 3)
    size = width // heads
    found = np.zeros(width)
    for head in range(heads):
        part = slice(head * size, (head + 1) * size)
        query = (Wq @ q + bq)[part]
        keys = [(Wk @ token + bk)[part] for token in memory]
        values = [(Wv @ token + bv)[part] for token in memory]
        shares = softmax(np.array([query @ key for key in keys]) / np.sqrt(size))
        found[part] = sum(share * value for share, value in zip(shares, values, strict=True))
    return weights["attention.out_proj.weight"] @ found + weights["attention.out_proj.bias"]
