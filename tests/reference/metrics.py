"""The metrics as their definitions read, entry by entry; slow on purpose."""

import math

import numpy as np


def ap_sklearn(scores, truth):
    """Sum over thresholds, from high to low, of precision times the gain in recall."""
    scores, truth = known(scores, truth)
    P = sum(truth)
    if P == 0:
        return math.nan
    total, recall_before = 0.0, 0.0
    for threshold in sorted(set(scores), reverse=True):
        taken = [y for s, y in zip(scores, truth, strict=True) if s >= threshold]
        precision, recall = sum(taken) / len(taken), sum(taken) / P
        total += (recall - recall_before) * precision
        recall_before = recall
    return total


def ap_raw(scores, truth):
    """Average over positives of (positives up to its rank) / rank; equal scores in row order."""
    scores, truth = known(scores, truth)
    order = sorted(range(len(scores)), key=lambda i: -scores[i])
    found, total = 0, 0.0
    for rank, i in enumerate(order, start=1):
        if truth[i] == 1:
            found += 1
            total += found / rank
    return total / found if found else math.nan


def ap_voc(scores, truth):
    """Integrate, over recall, the best precision at that recall or beyond."""
    scores, truth = known(scores, truth)
    P = sum(truth)
    if P == 0:
        return math.nan
    points = []
    for threshold in sorted(set(scores), reverse=True):
        taken = [y for s, y in zip(scores, truth, strict=True) if s >= threshold]
        points.append((sum(taken) / P, sum(taken) / len(taken)))
    total, recall_before = 0.0, 0.0
    for recall, _ in points:
        total += (recall - recall_before) * max(p for r, p in points if r >= recall)
        recall_before = recall
    return total


def known(scores, truth):
    """Leave out the entries whose truth is −1."""
    kept = [i for i in range(len(truth)) if truth[i] != -1]
    return [float(scores[i]) for i in kept], [int(truth[i]) for i in kept]


def f1(confidence, truth, threshold):
    """Both CF1 conventions and OF1, in percent."""
    N, K = truth.shape
    TP, PRED, POS = [0] * K, [0] * K, [0] * K
    for i in range(N):
        for k in range(K):
            if truth[i, k] == -1:
                continue
            predicted = confidence[i, k] >= threshold
            TP[k] += int(predicted and truth[i, k] == 1)
            PRED[k] += int(predicted)
            POS[k] += int(truth[i, k] == 1)
    f1_of_class = []
    for k in range(K):
        if TP[k] == 0:
            f1_of_class.append(0.0)
        else:
            p, r = TP[k] / PRED[k], TP[k] / POS[k]
            f1_of_class.append(2 * p * r / (p + r))
    CP = sum(TP[k] / (PRED[k] or 1) for k in range(K)) / K
    CR = sum(TP[k] / (POS[k] or 1) for k in range(K)) / K
    OP, OR = sum(TP) / (sum(PRED) or 1), sum(TP) / (sum(POS) or 1)
    result = {
        "CF1_mean": sum(f1_of_class) / K,
        "CF1_harmonic": 2 * CP * CR / (CP + CR) if CP + CR else 0.0,
        "OF1": 2 * OP * OR / (OP + OR) if OP + OR else 0.0,
        "CP": CP,
        "CR": CR,
        "OP": OP,
        "OR": OR,
    }
    return {name: 100 * value for name, value in result.items()}


def selection(given, truth, target, status, clean, inside):
    """The selection metrics of the entries for which `inside(i, k)` holds, NaN where undefined."""
    N, K = given.shape
    D = [(i, k) for i in range(N) for k in range(K) if truth[i, k] != -1 and inside(i, k)]
    C = {e for e in D if status[e] == 0}
    R = {e for e in D if status[e] == 1}
    U = {e for e in D if status[e] == 2}
    L = {e for e in D if given[e] == truth[e]}
    right = {e for e in D if target[e] == truth[e]}
    flips = {e for e in R if target[e] != given[e]}

    def over(part, whole):
        return len(part) / len(whole) if whole else math.nan

    def mean(entries):
        return float(np.mean([clean[e] for e in entries])) if entries else math.nan

    return {
        "clean_precision": over(C & L, C),
        "clean_recall": over(C & L, L),
        "relabel_proportion": over(R, D),
        "relabel_accuracy": over(R & right, R),
        "flip_proportion": over(flips, D),
        "flip_accuracy": over(flips & right, flips),
        "confirm_accuracy": over((R - flips) & right, R - flips),
        "ambiguous_proportion": over(U, D),
        "target_accuracy": over(right, D),
        "clean_probability_right": mean(L),
        "clean_probability_wrong": mean(set(D) - L),
    }
