"""Make complete truth tables of our own: the published kinds of workflow on other data.

    python benchmarks/own_tables.py OUT.json [--per-family 12] [--seed 1]

The data ship with scikit-learn and Python or are generated, so nothing is downloaded, and none of
them is a data set of WhatWorkedBench. The default of `outlay ablate` was chosen on such tables.
"""

from __future__ import annotations

import argparse
import inspect
import itertools
import json
import warnings

import numpy as np
from scipy import ndimage, signal
from sklearn import datasets
from sklearn.cluster import KMeans
from sklearn.compose import TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.feature_selection import SelectPercentile, f_classif
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import balanced_accuracy_score, normalized_mutual_info_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)


def signed_log(x):
    return np.sign(x) * np.log1p(np.abs(x))


def distort(x, rng):
    """Give some columns other scales and heavy tails, as real tables have."""
    x = x * np.exp(rng.normal(0, rng.uniform(0, 3), x.shape[1]))
    heavy = rng.random(x.shape[1]) < rng.uniform(0, 0.6)
    x[:, heavy] = np.sinh(np.clip(x[:, heavy] / (x[:, heavy].std(axis=0) + 1e-9), -6, 6))
    return x


def labelled(rng, k):
    """Return features and classes: shipped data on even `k`, generated on odd."""
    if k % 2 == 0:
        loader = [datasets.load_iris, datasets.load_digits][k // 2 % 2]
        x, y = loader(return_X_y=True)
        columns = rng.permutation(x.shape[1])[: max(3, int(rng.uniform(0.3, 1) * x.shape[1]))]
        rows = rng.permutation(len(x))[:500]
        return distort(x[rows][:, columns], rng), y[rows]
    classes = int(rng.integers(2, 5))
    first = float(rng.uniform(1 / classes, 0.8))
    x, y = datasets.make_classification(
        n_samples=int(rng.integers(150, 500)),
        n_features=int(rng.integers(6, 40)),
        n_informative=5,
        n_classes=classes,
        weights=[first] + [(1 - first) / (classes - 1)] * (classes - 1),
        class_sep=float(rng.uniform(0.5, 1.5)),
        flip_y=float(rng.uniform(0, 0.1)),
        random_state=int(rng.integers(2**31)),
    )
    return distort(x, rng), y


def classification(rng, k):
    x, y = labelled(rng, k)
    cut = int(0.7 * len(y))
    order = rng.permutation(len(y))
    train, test = order[:cut], order[cut:]

    def value(a, b, c, d, e, f):
        steps = [FunctionTransformer(signed_log)] * a + [StandardScaler()] * b
        steps += [SelectPercentile(f_classif, percentile=50)] * e
        steps += [PCA(n_components=0.95, svd_solver="full")] * f
        model = LogisticRegression(
            max_iter=1000, class_weight="balanced" if c else None, C=0.05 if d else 1.0
        )
        fitted = make_pipeline(*steps, model).fit(x[train], y[train])
        return balanced_accuracy_score(y[test], fitted.predict(x[test]))

    return value


def numeric(rng, k):
    if k % 4 == 0:
        x, y = datasets.load_diabetes(return_X_y=True)
        columns = rng.permutation(10)[: int(rng.integers(4, 11))]
        x = distort(x[:, columns] * 20, rng)
    else:
        make = [datasets.make_friedman1, datasets.make_friedman2, datasets.make_friedman3][k % 3]
        x, y = make(
            n_samples=int(rng.integers(120, 500)),
            noise=float(rng.uniform(0, 1)),
            random_state=int(rng.integers(2**31)),
        )
        x = distort(x, rng) if rng.random() < 0.5 else x
    y = y - y.min()
    return x, np.expm1(3 * y / y.max()) if rng.random() < 0.5 else y


def inverse_error(error, scale):
    return 1 / (1 + error / scale) if np.isfinite(error) else 0.0


def regression(rng, k):
    x, y = numeric(rng, k)
    order = rng.permutation(len(y))
    cut = int(0.7 * len(y))
    train, test = order[:cut], order[cut:]
    scale = np.subtract(*np.quantile(y[train], [0.75, 0.25]))

    def value(a, b, c, d, e, f):
        steps = [RobustScaler() if f else StandardScaler()] * b
        steps += [PolynomialFeatures(2, include_bias=False, interaction_only=bool(e))] * c
        model = make_pipeline(*steps, Ridge(alpha=10.0 if d else 1.0, solver="svd"))
        if a:
            model = TransformedTargetRegressor(model, func=np.log1p, inverse_func=np.expm1)
        predicted = model.fit(x[train], y[train]).predict(x[test])
        return inverse_error(np.abs(predicted - y[test]).mean(), scale)

    return value


def clustering(rng, k):
    x, y = labelled(rng, k)

    def value(a, b, c, d, e, f):
        steps = [FunctionTransformer(signed_log)] * a + [StandardScaler()] * b
        steps += [PCA(n_components=0.95, svd_solver="full", whiten=bool(e))] * c
        means = KMeans(
            n_clusters=len(set(y)),
            n_init=10 if d else 1,
            init="random" if f else "k-means++",
            random_state=17,
        )
        return normalized_mutual_info_score(y, make_pipeline(*steps, means).fit_predict(x))

    return value


def forecasting(rng, k):
    n = int(rng.integers(120, 700))
    t = np.arange(n)
    steps = signal.lfilter([1.0], [1.0, -rng.uniform(0.2, 0.99)], rng.normal(size=n))
    season = rng.uniform(0, 4) * np.sin(2 * np.pi * t / rng.choice([6, 12, 24, 11]))
    series = 5 + steps + season + rng.uniform(-1, 3) * t / n * 4
    if k % 2:
        series = np.exp(series / series.std())
    series = series - min(series.min(), 0)
    cut = int(0.75 * n)
    scale = np.subtract(*np.quantile(series[:cut], [0.75, 0.25]))

    def value(a, b, c, d, e, f):
        levels = np.log1p(series) if c else series
        values = np.diff(levels, prepend=levels[0]) if f else levels
        rows = np.arange(12, n)
        x = np.stack([values[rows - lag] for lag in range(1, 13 if b else 2)], axis=1)
        if a:
            x = np.column_stack([x, rows / cut])
        seen = rows < cut
        model = make_pipeline(
            RobustScaler() if e else StandardScaler(),
            Ridge(alpha=10.0 if d else 1.0, solver="svd"),
        ).fit(x[seen], values[rows][seen])
        predicted = model.predict(x[~seen]) + (levels[rows[~seen] - 1] if f else 0)
        predicted = np.expm1(np.minimum(predicted, 50)) if c else predicted
        return inverse_error(np.abs(predicted - series[cut:]).mean(), scale)

    return value


def image(rng, k):
    if k % 2 == 0:
        picture = datasets.load_sample_images().images[k // 2 % 2].mean(axis=2) / 255
        top, left = int(rng.integers(0, 300)), int(rng.integers(0, 500))
        return picture[top : top + 120, left : left + 120]
    rough = ndimage.gaussian_filter(rng.normal(size=(120, 120)), rng.uniform(1, 6))
    rough = (rough - rough.min()) / np.ptp(rough)
    return np.where(rough > 0.5, 0.9, rough) if rng.random() < 0.5 else rough


def image_restoration(rng, k):
    clean = image(rng, k)
    noisy = clean + rng.normal(0, rng.uniform(0.04, 0.2), clean.shape)
    hit = rng.random(clean.shape) < rng.choice([0, 0, 0.03])
    noisy = np.clip(np.where(hit, rng.random(clean.shape), noisy), 0, 1)

    def value(a, b, c, d, e, f):
        x = ndimage.median_filter(noisy, 5 if f else 3) if a else noisy
        x = ndimage.gaussian_filter(x, 1.6 if e else 0.8) if b else x
        x = signal.wiener(x, (5, 5)) if c else x
        x = x + 0.5 * (x - ndimage.gaussian_filter(x, 1.0)) if d else x
        return inverse_error(np.sqrt(np.mean((np.clip(x, 0, 1) - clean) ** 2)), 0.1)

    return value


def docstrings():
    """Return (first sentence, rest) of the longer docstrings of some shipped modules."""
    modules = [np, np.linalg, np.random, ndimage, signal, itertools, inspect, argparse, json]
    found = {}
    for module in modules:
        for name in dir(module):
            text = inspect.getdoc(getattr(module, name)) or ""
            head, _, rest = text.partition("\n\n")
            if len(rest) > 200:
                found[head.replace("\n", " ")] = rest[:3000]
    return sorted(found.items())


def retrieval(rng, k):
    pairs = docstrings()
    keep = rng.permutation(len(pairs))[: int(rng.integers(150, 400))]
    queries = [pairs[i][0] for i in keep[:50]]
    corpus = [pairs[i][1] for i in keep]

    def value(a, b, c, d, e, f):
        vectors = TfidfVectorizer(
            ngram_range=(1, 2) if a else (1, 1),
            stop_words="english" if b else None,
            sublinear_tf=bool(c),
            use_idf=bool(d),
            binary=bool(e),
            norm=None if f else "l2",
        )
        documents = vectors.fit_transform(corpus)
        similar = (vectors.transform(queries) @ documents.T).toarray()
        rank = (np.argsort(-similar, axis=1, kind="stable") == np.arange(50)[:, None]).argmax(1)
        return np.where(rank < 10, 1 / np.log2(rank + 2), 0).mean()

    return value


def heartbeat(rng):
    """Return a generated ECG at 360 Hz and the samples of its beats."""
    n, fs = 360 * 60, 360
    gaps = np.clip(rng.normal(0.8, rng.uniform(0.02, 0.2), 200), 0.35, 2) * fs
    beats = np.cumsum(gaps).astype(int)
    beats = beats[beats < n - fs]
    x = np.zeros(n)
    waves = [(-70, rng.uniform(0, 0.25), 18), (0, rng.uniform(0.5, 1.2), rng.uniform(3, 9))]
    waves += [(9, -rng.uniform(0, 0.5), 4), (100, rng.uniform(0, 0.9), 30)]
    for shift, height, width in waves:
        train = np.zeros(n)
        at = np.clip(beats + shift, 0, n - 1)
        train[at] = height * rng.uniform(0.6, 1.2, len(at))
        x += ndimage.gaussian_filter1d(train, width) * width * np.sqrt(2 * np.pi)
    drift = rng.uniform(0, 0.8) * np.sin(2 * np.pi * np.arange(n) / fs * 0.2)
    return np.round(x + drift + rng.normal(0, rng.uniform(0.01, 0.15), n), 3), beats


def matched(found, true, tolerance):
    i = j = hits = 0
    while i < len(found) and j < len(true):
        if abs(found[i] - true[j]) <= tolerance:
            hits, i, j = hits + 1, i + 1, j + 1
        elif found[i] < true[j]:
            i += 1
        else:
            j += 1
    return hits


def beat_detection(rng, k):
    raw, beats = heartbeat(rng)
    raw = raw - np.median(raw)
    n, fs = len(raw), 360
    true = beats[(beats >= fs) & (beats < n - fs)]

    def value(a, b, c, d, e, f):
        x = raw
        if a:
            x = signal.sosfiltfilt(signal.butter(2, 0.5, "high", fs=fs, output="sos"), x)
        if b:
            x = signal.sosfiltfilt(signal.butter(2, 35, "low", fs=fs, output="sos"), x)
        envelope = np.diff(x, prepend=x[0]) ** 2 if c else np.abs(x)
        envelope = ndimage.uniform_filter1d(envelope, 43, mode="nearest") if d else envelope
        middle = np.median(envelope)
        spread = np.median(np.abs(envelope - middle))
        height = middle + 3 * 1.4826 * spread if e else envelope.mean() + envelope.std()
        peaks, _ = signal.find_peaks(envelope, height=height, distance=108 if f else 72)
        windows = [(max(p - 27, 0), np.abs(x[max(p - 27, 0) : p + 28])) for p in peaks]
        found = np.unique([start + int(np.argmax(part)) for start, part in windows])
        found = found[(found >= fs) & (found < n - fs)] if len(found) else found
        total = len(found) + len(true)
        return 2 * matched(found, true, 36) / total if total else 1.0

    return value


def graph(rng, k):
    """Return a random symmetric adjacency matrix: communities, closed triangles, or hubs."""
    n = int(rng.integers(40, 110))
    place = rng.random((n, 2))
    group = rng.integers(0, int(rng.integers(2, 9)), n)
    weight = rng.pareto(rng.uniform(1.5, 4), n) + 0.3
    near = np.exp(-((place[:, None] - place[None]) ** 2).sum(-1) / rng.uniform(0.01, 0.1))
    same = (group[:, None] == group[None]) * 1.0
    chance = [0.9 * near, 0.03 + 0.4 * same, weight[:, None] * weight[None] * (0.2 + near)][k % 3]
    upper = np.triu(rng.random((n, n)) < np.minimum(chance * rng.uniform(0.3, 0.8), 0.95), 1)
    return upper | upper.T


def graph_link_prediction(rng, k):
    adjacency = graph(rng, k)
    n = len(adjacency)
    pairs = np.array(list(itertools.combinations(range(n), 2)))
    linked = adjacency[pairs[:, 0], pairs[:, 1]]
    positive, negative = rng.permutation(pairs[linked]), rng.permutation(pairs[~linked])
    m = max(10, round(0.2 * len(positive)))
    kept = np.zeros((n, n))
    for u, v in positive[: -2 * m]:
        kept[u, v] = kept[v, u] = 1
    degree = kept.sum(axis=1)
    common = kept @ kept
    union = degree[:, None] + degree[None] - common
    adamic = kept @ np.diag(np.where(degree > 1, 1 / np.log(np.maximum(degree, 2)), 0)) @ kept
    resource = kept @ np.diag(1 / np.maximum(degree, 1)) @ kept
    scores = [common, common / np.maximum(union, 1), adamic, resource, np.outer(degree, degree)]
    fit = np.vstack([positive[-2 * m : -m], negative[:m]])
    test = np.vstack([positive[-m:], negative[m : 2 * m]])
    y = np.repeat([1, 0], m)[: len(fit)]

    def value(a, b, c, d, e, f):
        chosen = [s for s, on in zip(scores, (a, b, c, d, e), strict=True) if on]
        chosen = chosen or [np.zeros((n, n))]
        x, z = (
            np.ascontiguousarray(np.stack([s[p[:, 0], p[:, 1]] for s in chosen], axis=1))
            for p in (fit, test)
        )
        if f:
            scaler = StandardScaler().fit(x)
            x, z = scaler.transform(x), scaler.transform(z)
        model = LogisticRegression(max_iter=2000).fit(x, y)
        return roc_auc_score(np.repeat([1, 0], m), model.predict_proba(z)[:, 1])

    return value


FAMILIES = (
    classification,
    regression,
    clustering,
    forecasting,
    image_restoration,
    retrieval,
    beat_detection,
    graph_link_prediction,
)


def tables(family, k, seed):
    """Return the six-factor table of one generated source and, in it, its four-factor table."""
    rng = np.random.default_rng([seed, k, FAMILIES.index(family)])
    value = family(rng, k)
    masks = ["".join(bits) for bits in itertools.product("01", repeat=6)]
    truth = {mask: float(np.clip(value(*map(int, mask)), 0, 1)) for mask in masks}
    entry = {"family": family.__name__, "metric": "own"}
    name = f"own_{family.__name__}_{k}"
    small = {mask[:4]: u for mask, u in truth.items() if mask.endswith("00")}
    yield f"{name}__d6", entry | {"instance": f"{name}__d6", "truth": truth}
    yield name, entry | {"instance": name, "truth": small}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out")
    parser.add_argument("--per-family", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    found = {}
    for k in range(arguments.per_family):
        for family in FAMILIES:
            found |= dict(tables(family, k, arguments.seed))
        with open(arguments.out, "w") as file:
            json.dump(found, file)
        print(k, len(found), flush=True)


if __name__ == "__main__":
    main()
