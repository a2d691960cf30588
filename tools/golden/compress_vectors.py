#!/usr/bin/env python3
"""Golden vectors of the compressors, from the papers' formulas in numpy.

    python3 -m venv VENV && VENV/bin/pip install numpy==2.4.6
    VENV/bin/python tools/golden/compress_vectors.py > tests/golden/compress_kept.txt

Written apart from the engine: no code or helper of it is used. Tests read the committed file and
need neither this script nor numpy. Keys, values and queries are random multiples of 1/64, exact in
F32. The choice of seeds makes every case decisive: the last score kept is at least MARGIN above
the first one dropped, relative to it, so that the rounding of stored codes cannot change it.

Lines: `tokens N heads H group G dim D window W`; then `k`, `v` (head, token) and `q` (token, query
head) with a vector in 64ths each; then `method SPEC HEAD` and `kept POSITIONS` per method and head.
"""

import sys

import numpy as np

PINNED = "2.4.6"
N, HEADS, GROUP, DIM, WINDOW, SINKS = 48, 2, 2, 16, 12, 4
MARGIN = 4e-3
COSINE_MARGIN = 2e-4
KEEP = 0.5


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def attention(q, k):
    """[window, query heads, tokens] causal probabilities of the newest queries."""
    p = np.zeros((WINDOW, HEADS * GROUP, N))
    for i in range(WINDOW):
        seen = N - WINDOW + i + 1
        for h in range(HEADS * GROUP):
            p[i, h, :seen] = softmax(k[h // GROUP, :seen] @ q[i, h] / np.sqrt(DIM))
    return p


def of_group(p, head):
    return p[:, head * GROUP:(head + 1) * GROUP]


def snapkv(q, k, v, head):
    s = of_group(attention(q, k), head).sum(axis=(0, 1))[: N - WINDOW]
    return np.convolve(s, np.ones(5) / 5, mode="same"), 0, WINDOW


def h2o(q, k, v, head):
    n_seeing = np.minimum(WINDOW, N - np.arange(N))
    return of_group(attention(q, k), head).sum(axis=(0, 1)) / n_seeing, 0, int(KEEP * N) // 2


def tova(q, k, v, head):
    return attention(q, k)[-1].sum(axis=0), 0, 1


def expected(q, k, v, head):
    scores = np.zeros(N)
    for h in range(head * GROUP, (head + 1) * GROUP):
        mu, cov = q[:, h].mean(axis=0), np.cov(q[:, h].T, bias=True)
        variance = np.einsum("ti,ij,tj->t", k[head], cov, k[head])
        z = k[head] @ mu / np.sqrt(DIM) + variance / (2 * DIM)
        scores[SINKS:] += softmax(z[SINKS:])
    return scores * np.linalg.norm(v[head], axis=1), SINKS, 0


def knorm(q, k, v, head):
    return -np.linalg.norm(k[head], axis=1), SINKS, 0


def keydiff(q, k, v, head):
    unit = k[head] / np.linalg.norm(k[head], axis=1, keepdims=True)
    mean = unit.mean(axis=0)
    return -(unit @ mean) / np.linalg.norm(mean), SINKS, 0


METHODS = {
    f"snapkv:keep=0.5,window={WINDOW},kernel=5": snapkv,
    f"h2o:keep=0.5,window={WINDOW},recent=0.5": h2o,
    "tova:keep=0.5": tova,
    f"expected:keep=0.5,window={WINDOW}": expected,
    "knorm:keep=0.5": knorm,
    "keydiff:keep=0.5": keydiff,
}


def nearest(k, kept, evicted):
    """[evicted] which kept key is most like each evicted one, how much, and how decisively."""
    unit = k / np.linalg.norm(k, axis=1, keepdims=True)
    cosines = unit[evicted] @ unit[kept].T
    two_best = np.sort(cosines, axis=1)[:, -2:]
    return cosines.argmax(axis=1), cosines.max(axis=1), (two_best[:, 1] - two_best[:, 0]).min()


def merge(k, v, kept, evicted):
    """Keys and values kept, and how decisively: values blended by similarity and relative norm."""
    target, cosine, margin = nearest(k, kept, evicted)
    norms = np.linalg.norm(v, axis=1)
    into = norms[np.array(kept)[target]]
    weights = np.maximum(cosine, 0) * norms[evicted] / (norms[evicted] + into)
    sums, total = v[kept].copy(), np.ones(len(kept))
    np.add.at(sums, target, weights[:, None] * v[evicted])
    np.add.at(total, target, weights)
    return k[kept], sums / total[:, None], min(margin, np.abs(cosine).min())


def d2o(k, v, kept, evicted):
    """The same: keys and values blended by exp(similarity), where it is above its mean."""
    target, cosine, margin = nearest(k, kept, evicted)
    weights = np.where(cosine >= cosine.mean(), np.exp(cosine), 0.0)
    total = np.full(len(kept), np.e)
    np.add.at(total, target, weights)
    blended = []
    for x in (k, v):
        sums = np.e * x[kept]
        np.add.at(sums, target, weights[:, None] * x[evicted])
        blended.append(sums / total[:, None])
    return *blended, min(margin, np.abs(cosine - cosine.mean()).min())


BLENDS = {
    f"merge:keep=0.5,base=knorm,reach={N}": (knorm, merge),
    f"d2o:keep=0.5,window={WINDOW},recent=0.5,reach={N}": (h2o, d2o),
}


def choose(scores, n_sinks, n_recent):
    """Kept positions, and how decisively."""
    middle = np.arange(n_sinks, N - n_recent)
    order = middle[np.argsort(-scores[middle])]
    n_best = int(KEEP * N) - n_sinks - n_recent
    last, first_dropped = scores[order[n_best - 1]], scores[order[n_best]]
    kept = [*range(n_sinks), *order[:n_best], *range(N - n_recent, N)]
    return sorted(kept), (last - first_dropped) / abs(last)


def streams(seed):
    rng = np.random.default_rng(seed)
    grid = lambda *shape: np.round(rng.normal(size=shape) * 64) / 64
    return grid(WINDOW, HEADS * GROUP, DIM), grid(HEADS, N, DIM), grid(HEADS, N, DIM)


def lines_of(seed):
    """The file of a seed, or None if a choice is too close."""
    q, k, v = streams(seed)
    lines = [f"tokens {N} heads {HEADS} group {GROUP} dim {DIM} window {WINDOW}"]
    row = lambda letter, x: letter + " " + " ".join(str(int(c)) for c in x * 64)
    lines += [row("k", x) for x in k.reshape(-1, DIM)]
    lines += [row("v", x) for x in v.reshape(-1, DIM)]
    lines += [row("q", x) for x in q.reshape(-1, DIM)]
    for spec, method in METHODS.items():
        for head in range(HEADS):
            kept, margin = choose(*method(q, k, v, head))
            if margin < MARGIN:
                return None
            lines.append(f"method {spec} {head}")
            lines.append("kept " + " ".join(str(p) for p in kept))
    for spec, (method, blend) in BLENDS.items():
        for head in range(HEADS):
            kept, margin = choose(*method(q, k, v, head))
            evicted = [t for t in range(N) if t not in kept]
            keys, values, cosine_margin = blend(k[head], v[head], kept, evicted)
            if margin < MARGIN or cosine_margin < COSINE_MARGIN:
                return None
            lines.append(f"method {spec} {head}")
            lines.append("kept " + " ".join(str(p) for p in kept))
            for letters, blended in (("bk", keys), ("bv", values)):
                lines += [f"{letters} " + " ".join(str(round(x * 1000)) for x in vector)
                          for vector in blended]
    return lines


def main():
    if np.__version__ != PINNED:
        sys.exit(f"numpy {PINNED} is pinned, this is {np.__version__}")
    lines = next(filter(None, map(lines_of, range(10000))))
    print("# From tools/golden/compress_vectors.py, numpy " + PINNED)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
