"""The part that is common to all learners whose atoms are sums over φ(anchors)."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from ..core import Array
from ..dictionaries import KernelDictionary
from ..preimage import preimages
from .base import dense_codes


class KernelAtoms:
    """Anchors and coefficients of the fitted dictionary, and `inverse_transform`."""

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
        weights = dense_codes(codes, self.coefs_) @ self.coefs_
        return preimages(self.dictionary_.kernel, self.anchors_, weights).points
