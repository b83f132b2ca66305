"""Runs behind LKDL's Fig. 4: Nyström's features beside random ones."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from sklearn.pipeline import make_pipeline

from kernlets.datasets import remove_mean_and_normalize
from kernlets.kernels import RBF
from kernlets.landmarks import kmeans
from kernlets.maps import FastfoodMap, FourierMap, NystroemMap
from kernlets.numerics.arrays import to_numpy

from ..data import Images, unit_digits
from ..spec import Case, Sizes, Study, Values
from .common import percent_correct
from .lkdl_studies import MNIST, USPS, exact, per_class, usps

THREE = "K-SVD, 3 non-zeros"  # as in the authors' program
MORE_LANDMARKS = "LKDL, 2048 landmarks"  # as in the authors' program


class Maps(Study):
    """Accuracy against the number of features of three maps, Gaussian kernel σ = 1."""

    maps: ClassVar[tuple[str, ...]] = (
        "LKDL",
        "random Fourier",
        "Fastfood",
        "Fastfood, signs",
    )
    constant: ClassVar[tuple[str, ...]] = ("K-SVD", "KKSVD")
    q: ClassVar[int]
    share: ClassVar[float]  # of the samples that are landmarks

    def cases(self, scale: str) -> list[Case]:
        constant = [{"method": m, "features": None} for m in self.constant]
        return super().cases(scale) + constant

    def images(self, sizes: Sizes) -> Images:
        raise NotImplementedError

    def measure(self, case: Case, seed: int, sizes: Sizes) -> Values:
        data = self.images(sizes)
        model = self._model(case, seed, sizes).fit(data.X, data.y)
        return {"accuracy": percent_correct(model, data.X_test, data.y_test)}

    def _model(self, case: Case, seed: int, sizes: Sizes) -> Any:
        if case["method"] == "KKSVD":
            return exact(sizes, seed, self.q, RBF(sigma=1.0))
        if case["method"] in ("K-SVD", THREE):
            q = 3 if case["method"] == THREE else self.linear_q
            return per_class(sizes, seed, q)
        return make_pipeline(
            self._map(case, seed, sizes), per_class(sizes, seed, self.q)
        )

    @property
    def linear_q(self) -> int:
        return self.q

    def _map(self, case: Case, seed: int, sizes: Sizes) -> Any:
        k, kernel = case["features"], RBF(sigma=1.0)
        if case["method"] in ("LKDL", MORE_LANDMARKS):
            n = len(self.images(sizes).X)
            c = min(n, k) if case["method"] == MORE_LANDMARKS else round(self.share * n)
            centres = _centres(self, seed, c, tuple(sizes.items()))
            k = min(k, len(centres))
            return NystroemMap(kernel, centres, n_components=k, random_state=seed)
        if case["method"] == "random Fourier":
            return FourierMap(kernel, k, random_state=seed)
        if case["method"].endswith("signs"):
            return FastfoodMap(kernel, k, gains="signs", random_state=seed)
        return FastfoodMap(kernel, k, gains="normal", random_state=seed)


@lru_cache(maxsize=1)
def _centres(
    study: Maps, seed: int, c: int, sizes: tuple[tuple[str, Any], ...]
) -> np.ndarray:  # (c, p)
    """Centres of clusters, which serve all numbers of features of a seed."""
    X, rng = study.images(dict(sizes)).X, np.random.default_rng(seed)
    return to_numpy(kmeans(RBF(sigma=1.0), X, c, rng))


class UspsMaps(Maps):
    name = "lkdl.usps-maps"
    grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "method": Maps.maps,
        "features": (64, 128, 256, 512, 1024),
    }
    fewer: ClassVar[Any] = {
        "smoke": {"features": (16, 64)},
        "small": {"features": (64, 256)},
    }
    sizes = USPS
    seeds: ClassVar[Mapping[str, int]] = {"smoke": 1, "small": 2, "full": 20}
    q, share, linear_q = 5, 0.2, 3

    def images(self, sizes: Sizes) -> Images:
        data = usps(sizes)
        return data._replace(X_test=remove_mean_and_normalize(data.X_test))


class MnistMaps(Maps):
    name = "lkdl.mnist-maps"
    grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "method": Maps.maps,
        "features": (64, 128, 256, 512, 1024, 2048),
    }
    fewer: ClassVar[Any] = {
        "smoke": {"features": (16, 64)},
        "small": {"features": (64, 256)},
    }
    sizes = MNIST
    seeds: ClassVar[Mapping[str, int]] = {"smoke": 1, "small": 1, "full": 20}
    constant = ("K-SVD", THREE, "KKSVD")
    q, share = 11, 0.03

    def cases(self, scale: str) -> list[Case]:
        last = {**self.grid, **self.fewer.get(scale, {})}["features"][-1]
        return [*super().cases(scale), {"method": MORE_LANDMARKS, "features": last}]

    def repeats(self, case: Case, scale: str) -> int:
        """Four seeds of a point of its own, which takes minutes."""
        count = super().repeats(case, scale)
        return min(4, count) if case["method"] == MORE_LANDMARKS else count

    def cost(self, case: Case) -> float:
        if case["features"] is None:
            return 70.0 if case["method"] == "KKSVD" else 8.0
        if case["method"] == MORE_LANDMARKS:
            return 55.0
        if case["method"] == "LKDL":
            return 50.0  # the same for all, so that runs of one seed follow each other
        return 5 + case["features"] / 200

    def images(self, sizes: Sizes) -> Images:
        return unit_digits("mnist", sizes)
