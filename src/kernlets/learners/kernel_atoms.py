"""`KernelAtoms` is the base class of learners whose atoms are sums over φ(anchors)."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

from sklearn.utils.validation import check_is_fitted

from ..contracts import Array
from ..data.samples import is_objects
from ..dictionaries import KernelDictionary
from ..kernels import Kernel
from ..loops.codes import decode
from ..preimage import preimages
from ..schema import Conditions, Declared, Part
from .base import map_codes


class KernelAtoms:
    """Has the anchors and coefficients of the dictionary, and `inverse_transform`."""

    _declared: ClassVar[Declared] = {
        "kernel_": Part(Kernel),
        "dictionary_": Part(KernelDictionary, m="m", p="p"),
    }
    _conditions: ClassVar[Conditions] = {
        "anchors_ are row numbers beyond the training samples": lambda self: (
            _are_inside(self.dictionary_.anchors, self.n_features_in_)
        ),
    }

    dictionary_: KernelDictionary

    @property
    def anchors_(self) -> Array:  # (r, p)
        """The points zᵢ whose φ(zᵢ) the atoms combine."""
        check_is_fitted(self)
        return self.dictionary_.anchors

    @property
    def coefs_(self) -> Array:  # (m, r)
        """Atom j is Σᵢ coefs_[j, i] φ(anchors_[i])."""
        check_is_fitted(self)
        return self.dictionary_.coefs

    def inverse_transform(self, codes: Any) -> Array:  # (n, p)
        """Points whose φ is near the element Σⱼ codes[·, j] · atomⱼ of feature space.

        Pre-images are approximate; `preimage.preimages` reports their distances.
        """
        points = partial(_find_preimages, self.dictionary_.kernel, self.anchors_)
        return map_codes(points, codes, self.coefs_)


def _find_preimages(kernel: Kernel, anchors: Array, coefs: Array, codes: Any) -> Array:
    return preimages(kernel, anchors, decode(coefs, codes)).points


def _are_inside(anchors: Array, n_samples: int) -> bool:
    """Whether anchors of a precomputed kernel, which are row numbers, exist."""
    if anchors.ndim > 1 or is_objects(anchors):
        return True
    return int(anchors.max()) < n_samples
