"""Kernels of series, matrices, strings and graphs against other libraries.

They are in the extra ``bench``; without them these tests are skipped. `test_structured`
compares with plain loops.
"""

from __future__ import annotations

import numpy as np
import pytest

from kernlets import (
    DTW,
    GAK,
    AffineInvariant,
    Bures,
    LogEuclidean,
    Mismatch,
    Normalized,
    ShortestPath,
    SoftDTW,
    Spectrum,
    Stein,
    WeisfeilerLehman,
)
from tests.structures import samples

TOLERANCE = 1e-8


def peer(module):
    return pytest.importorskip(module, reason=f"{module} is not installed")


def compare(K, expected):
    np.testing.assert_allclose(K, expected, rtol=TOLERANCE, atol=TOLERANCE)


@pytest.fixture
def series(rng):
    return [rng.normal(size=(n, 2)).cumsum(axis=0) for n in (12, 30, 25, 1, 40)]


def each(function, X, **how):
    return np.array([[function(x, y, **how) for y in X] for x in X])


@pytest.mark.parametrize("sigma", [0.8, 5.0, 60.0])
def test_gak_of_tslearn(sigma, series):
    metrics = peer("tslearn.metrics")
    compare(GAK(sigma)(series), each(metrics.gak, series, sigma=sigma))


def test_dtw_of_tslearn(series, rng):
    metrics = peer("tslearn.metrics")
    compare(DTW(0.01)(series), np.exp(-0.01 * each(metrics.dtw, series) ** 2))
    X = rng.normal(size=(4, 20))
    band = {"global_constraint": "sakoe_chiba", "sakoe_chiba_radius": 3}
    expected = np.exp(-0.1 * each(metrics.dtw, X, **band) ** 2)
    compare(DTW(0.1, radius=3)(X), expected)


@pytest.mark.parametrize("beta", [0.1, 2.0])
def test_soft_dtw_of_tslearn(beta, series):
    metrics = peer("tslearn.metrics")
    cost = each(metrics.soft_dtw, series, gamma=beta)
    own = np.diagonal(cost) / 2
    expected = np.exp(-0.01 * (cost - own[:, None] - own))
    compare(SoftDTW(0.01, beta)(series), expected)


@pytest.mark.parametrize(
    ("metric", "kernel"),
    [
        ("logeuclid", LogEuclidean(0.3)),
        ("riemann", AffineInvariant(0.3)),
        ("wasserstein", Bures(0.3)),
        ("logdet", Stein(0.3)),
    ],
)
def test_matrices_of_pyriemann(metric, kernel):
    distance = peer("pyriemann.utils.distance")
    X, Y = np.stack(samples("matrices", 7)), np.stack(samples("matrices", 5, seed=1))
    found = distance.pairwise_distance(X, Y, metric=metric)
    compare(kernel(X, Y), np.exp(-0.3 * found**2))


@pytest.mark.parametrize(("k", "m"), [(3, 0), (3, 1), (4, 2)])
def test_mismatches_of_strkernel(k, m, rng):
    """It cuts strings to one length, and numbers the letters of each by themselves."""
    strkernel = peer("strkernel.mismatch_kernel")
    words = ["ACGT" + "".join(rng.choice(list("ACGT"), 16)) for _ in range(6)]
    codes = strkernel.preprocess(words)
    found = strkernel.MismatchKernel(l=4, k=k, m=m).get_kernel(codes, normalize=False)
    kernel = Mismatch(k, m, alphabet="ACGT")
    compare(kernel(words), found.kernel)
    if not m:
        compare(Spectrum(k)(words), found.kernel)


@pytest.mark.parametrize("normalize", [False, True])
def test_graphs_of_grakel(normalize):
    grakel = peer("grakel")
    graphs = samples("graphs", 10)
    theirs = [
        grakel.Graph(adjacency.astype(int), node_labels=dict(enumerate(labels)))
        for adjacency, labels in graphs
    ]
    pairs = {
        WeisfeilerLehman(3): grakel.WeisfeilerLehman(n_iter=3, normalize=normalize),
        ShortestPath(): grakel.ShortestPath(normalize=normalize),
        ShortestPath(with_labels=False): grakel.ShortestPath(
            normalize=normalize, with_labels=False
        ),
    }
    for kernel, other in pairs.items():
        ours = Normalized(kernel) if normalize else kernel
        with np.errstate(invalid="ignore"):  # 0/0 of graphs without paths, which is 0
            expected = np.nan_to_num(other.fit_transform(theirs))
        compare(ours(graphs), expected)
        compare(ours(theirs), expected)
