"""IKA beside Nyström on patches of STL-10: the numbers of the IKA paper, section 4.

The published figures are means over an unknown range of filter numbers n; the table
below was re-measured with n = 16 to 256, grey patches, 80 % / 20 % split.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.cluster import MiniBatchKMeans

from kernlets import RBF, IKAMap, NystroemMap
from kernlets.datasets import distance_percentile, unit_norm, whitened_patches
from kernlets.landmarks import uniform
from papers.data import photographs

pytestmark = pytest.mark.slow

SIZES = (16, 32, 64, 128, 256)
SEEDS = (0, 1)
# mean |K − ψψᵀ| over held-out pairs at S = 10000: n -> (Nyström, IKA)
TABLE = {
    "random": {
        16: (0.0345, 0.0302),
        32: (0.0254, 0.0218),
        64: (0.0149, 0.0076),
        128: (0.0071, 0.0033),
        256: (0.0031, 0.0021),
    },
    "kmeans": {
        16: (0.0260, 0.0254),
        32: (0.0208, 0.0195),
        64: (0.0125, 0.0086),
        128: (0.0045, 0.0026),
        256: (0.0021, 0.0018),
    },
}


class Patches:
    """Training and test patches, and the kernel of the paper."""

    def __init__(self) -> None:
        X = whitened_patches(photographs(colour=False), 100_000, random_state=0)
        self.train, self.test = X[:80_000], X[80_000:83_000]
        variance = distance_percentile(self.train, 10, random_state=0)
        self.kernel = RBF(sigma=float(np.sqrt(variance)))
        self.K = self.kernel(self.test, self.test)

    def error(self, feature_map) -> float:
        F = feature_map.transform(self.test)
        return float(np.abs(self.K - F @ F.T).mean())

    def filters(self, kind: str, n: int, seed: int) -> np.ndarray:
        rng = np.random.default_rng(seed)
        if kind == "random":
            return self.train[uniform(self.kernel, self.train, n, rng)]
        clusters = MiniBatchKMeans(n, n_init=1, random_state=seed).fit(self.train)
        return unit_norm(clusters.cluster_centers_)

    def ika(self, filters: np.ndarray, n_samples: int, **options) -> IKAMap:
        fitted = IKAMap(self.kernel, n_samples=n_samples, landmarks=filters, **options)
        return fitted.set_params(random_state=0).fit(self.train)


@pytest.fixture(scope="module")
def patches(shared_data) -> Patches:
    return Patches()


@pytest.fixture(scope="module", params=["random", "kmeans"])
def errors(request, patches) -> tuple[str, np.ndarray]:
    """Kind of filters, and errors (sizes, Nyström and IKA), means over the seeds."""
    found = np.zeros((len(SIZES), 2))
    for i, n in enumerate(SIZES):
        for seed in SEEDS:
            filters = patches.filters(request.param, n, seed)
            nystroem = NystroemMap(patches.kernel, landmarks=filters).fit(patches.train)
            found[i, 0] += patches.error(nystroem) / len(SEEDS)
            found[i, 1] += patches.error(patches.ika(filters, 10_000)) / len(SEEDS)
    for n, (before, after) in zip(SIZES, found, strict=True):
        print(f"{request.param} n={n}: Nyström {before:.4f} -> IKA {after:.4f}")
    return request.param, found


def test_errors_are_those_of_the_table(errors):
    kind, found = errors
    expected = np.array([TABLE[kind][n] for n in SIZES])
    np.testing.assert_allclose(found, expected, rtol=0.1)


def test_mean_reduction_of_the_error(errors):
    """The published reductions are means over an unknown range of n."""
    kind, found = errors
    reduction = float((1 - found[:, 1] / found[:, 0]).mean())
    print(f"{kind}: mean reduction {100 * reduction:.1f} %")
    assert reduction >= {"random": 0.25, "kmeans": 0.15}[kind]


def test_larger_samples_help(patches):
    """S from 1000 to 5000 at n = 128: re-measured −10.3 %."""
    changes = []
    for seed in range(3):
        filters = patches.filters("random", 128, seed)
        small, large = (patches.error(patches.ika(filters, S)) for S in (1000, 5000))
        changes.append(large / small - 1)
    print(f"S 1000 -> 5000: {100 * np.mean(changes):.1f} %")
    assert np.mean(changes) == pytest.approx(-0.10, abs=0.03)


def test_error_is_flat_once_the_linear_functions_are_in(patches):
    """Effect of m at n = 128: flat after the constant and the 49 linear functions.

    Re-measured elsewhere as flat after 50; here one more function matters.
    """
    filters = patches.filters("random", 128, seed=0)
    by_m = {
        m: patches.error(patches.ika(filters, 5000, n_components=m))
        for m in (10, 30, 45, 51, 64, 128)
    }
    print({m: round(error, 5) for m, error in by_m.items()})
    assert by_m[10] > by_m[30] > by_m[45] > 2 * by_m[51]
    assert by_m[128] == pytest.approx(by_m[51], rel=0.06)
