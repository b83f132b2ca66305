"""A dictionary on a budget learns from a block of samples: the plain NumPy lines.

This is the specification of the operation `budget_stream`; the fast twin is in
`numba_budget`. Only inner products enter: the caller evaluates the kernel for the
block and is told which of its samples have become anchors.
"""

from __future__ import annotations

import numpy as np

from . import reference
from .budget import ERROR, MERGE, SPOILED, Outcome, Pursuit, Rules, Stock


@np.errstate(all="ignore")
def budget_stream(
    stock: Stock,
    size: int,
    cross: np.ndarray,  # (n, size + n) kernel of the block with the anchors and itself
    energy: np.ndarray,  # (n,)
    rates: np.ndarray,  # (n,) ρ
    rules: Rules,
    pursuit: Pursuit,
) -> Outcome:
    """Table I of "Online Kernel Dictionary Learning on a Budget", sample by sample."""
    used = _UsedPart(stock, size, rules)
    errors, costs, n_admitted = np.zeros_like(energy), np.zeros_like(energy), 0
    converged = np.zeros_like(energy)
    for i, own in enumerate(energy):
        row = cross[i, stock.slots[: used.size]]
        near = used.nearness(row, own)
        is_new = own > 0 and (rules.repeats or near < 1 - rules.tiny)
        starting = is_new and used.size < len(stock.start)
        corr = row @ used.coefs
        codes, converged[i] = _coded(stock.gram, corr, own, pursuit)
        errors[i] = max(own - codes @ (2 * corr - stock.gram @ codes), 0)
        shrinkage = rules.penalty * np.trace(stock.gram)
        costs[i] = (errors[i] + shrinkage) / 2 + pursuit.alpha * np.abs(codes).sum()
        admitted = is_new and near < rules.coherence and errors[i] > rules.cost
        admitted = admitted and used.differs(row, own)
        if starting or admitted:
            used.append(row, own, cross.shape[1] - len(cross) + i)
            row, n_admitted = np.append(row, own), n_admitted + 1
        if starting:
            used.begin()
        elif admitted or rules.learn_rejected:
            used.step(row, corr, codes, admitted, rates[i])
        stock.idle[:] = np.where(codes == 0, stock.idle + 1, 0)
        if admitted and not starting and used.waits():
            used.revive(int(np.argmax(stock.idle)))
        if used.size > rules.budget:
            used.settle_inverse()
            used.prune(*used.least())
        if rules.unit:
            used.normalize()
    counts = used.size, n_admitted, used.n_unstable
    return Outcome(*counts, errors, costs, converged)


def _coded(
    gram: np.ndarray, corr: np.ndarray, own: float, how: Pursuit
) -> tuple[np.ndarray, bool]:
    """The code of a sample, and whether it has converged."""
    if how.width == 0:
        options = how.alpha, how.positive, how.max_iter, how.tol
        codes, converged = reference.lasso(gram, corr[None], *options)
        return codes[0], bool(converged[0])
    energy = np.full(1, own)
    indices, values, _ = reference.omp(gram, corr[None], energy, how.width, how.tol)
    return reference.spread(indices, values, len(gram))[0], True


class _UsedPart:
    """The used part of the arrays in the stock, changed in place."""

    def __init__(self, stock: Stock, size: int, rules: Rules) -> None:
        self.stock, self.rules, self.n_unstable = stock, rules, 0
        self._resize(size)

    def _resize(self, size: int) -> None:
        self.size = size
        self.matrix = self.stock.matrix[:size, :size]
        self.coefs = self.stock.coefs[:size]
        self.products = self.stock.products[:size]
        self.inverse = self.stock.inverse[:size, :size]

    def nearness(self, row: np.ndarray, own: float) -> float:
        """The largest coherence with an anchor, eq. (21)."""
        shared = np.abs(row) / np.sqrt(np.diagonal(self.matrix)) / np.sqrt(own)
        return shared.max(initial=0)

    def differs(self, row: np.ndarray, own: float) -> bool:
        """Whether the further criteria of section III-A admit a sample."""
        norms = np.diagonal(self.matrix)
        total = (np.abs(row) / np.sqrt(norms) / np.sqrt(own)).sum()
        gap = (own + norms - 2 * row).min(initial=np.inf)
        if not (total < self.rules.babel and gap > self.rules.distance):
            return False
        left = self.rules.dependence
        return left < 0 or own - row @ self._projected(row) > left

    def append(self, row: np.ndarray, own: float, slot: int) -> None:
        """One more anchor with coefficients 0: one row of the kernel matrix."""
        new, stock = self.size, self.stock
        spoiled = len(stock.inverse) > 0
        if spoiled:
            spoiled = self._grow_inverse(row.astype(np.float64), own)
        stock.matrix[new, :new] = stock.matrix[:new, new] = row
        stock.matrix[new, new] = own
        stock.products[new] = row @ self.coefs
        stock.slots[new] = slot
        self._resize(new + 1)
        if spoiled:
            self.settle_inverse()

    def begin(self) -> None:
        """The newest of the first anchors gets its coefficients."""
        self.coefs[-1] = self.stock.start[self.size - 1]
        self.products[:] = self.matrix @ self.coefs
        self.stock.gram[:] = self.coefs.T @ self.products

    def step(
        self,
        row: np.ndarray,  # (r,) κ(anchors, x)
        corr: np.ndarray,  # (m,) Dᵀφ(x)
        codes: np.ndarray,  # (m,) α
        admitted: bool,
        rate: float,
    ) -> None:
        """One gradient step on the cost of the sample, its code kept."""
        if not self.rules.feature_space:
            self._parameter_step(row, codes, rate)
            return
        inside = np.eye(self.size)[-1] if admitted else self._projected(row)
        self._feature_step(row, corr, codes, inside.astype(row.dtype), rate)

    def _guarded(self, rate: float, square: float, bend: float) -> float:
        """ρ, at most reach · ‖G‖² / cost″(G)."""
        longest = self.rules.reach * square
        if rate * bend <= longest:
            return rate
        self.n_unstable += 1
        return longest / bend if self.rules.guard else rate

    def _parameter_step(self, row: np.ndarray, codes: np.ndarray, rate: float) -> None:
        """Ω ← Ω − ρG, G = (KΩα − κ)αᵀ + μKΩ, eqs. (19) and (20)."""
        penalty, error = self.rules.penalty, self.products @ codes - row
        slope = np.outer(error, codes) + penalty * self.products
        lifted = self.matrix @ slope
        bend = (slope @ codes) @ (lifted @ codes) + penalty * np.sum(slope * lifted)
        rate = self._guarded(rate, np.sum(slope**2), bend)
        self.coefs -= rate * slope
        self.products -= rate * lifted
        self.stock.gram[:] = self.coefs.T @ self.products

    def _feature_step(
        self,
        row: np.ndarray,
        corr: np.ndarray,
        codes: np.ndarray,
        inside: np.ndarray,  # (r,) φ(x) over the anchors
        rate: float,
    ) -> None:
        """D ← D − ρG, G = (Dα − φ(x))αᵀ + μD, eq. (15), in all that is known of D."""
        gram, penalty, spent = self.stock.gram, self.rules.penalty, codes @ codes
        explained = gram @ codes
        turn = corr - explained  # Dᵀ(φ(x) − Dα)
        length = inside @ row - codes @ (corr + turn)  # ‖φ(x) − Dα‖²
        shared = 2 * penalty * codes @ turn
        square = length * spent - shared + penalty**2 * np.trace(gram)
        bend = spent * (length * spent - shared) + penalty**2 * codes @ explained
        rate = self._guarded(rate, square, bend + penalty * square)
        keep = 1 - penalty * rate
        error = inside - self.coefs @ codes
        self.coefs[:] = keep * self.coefs + rate * np.outer(error, codes)
        error = row - self.products @ codes
        self.products[:] = keep * self.products + rate * np.outer(error, codes)
        both = keep * rate * np.outer(turn, codes)
        gram[:] = keep**2 * gram + both + both.T
        gram += rate**2 * length * np.outer(codes, codes)

    def waits(self) -> bool:
        """Whether an atom has been idle for too long."""
        return 0 <= self.rules.patience < self.stock.idle.max()

    def revive(self, atom: int) -> None:
        """The atom becomes the newest anchor, as long as atoms in use are."""
        gram, last = self.stock.gram, self.size - 1
        own, norms = self.matrix[last, last], np.diagonal(gram)
        used = self.stock.idle <= self.rules.patience
        scale = np.sqrt(norms[used].mean() / own) if used.any() else 1.0
        self.coefs[:, atom] = 0
        self.coefs[last, atom] = scale
        self.products[:, atom] = scale * self.matrix[:, last]
        gram[atom] = gram[:, atom] = scale * self.products[last]
        self.stock.idle[atom] = 0

    def _projected(self, row: np.ndarray) -> np.ndarray:
        """K⁺κ: φ(x) projected on the span of the anchors."""
        found = self.inverse @ row
        # once more for what the jitter has taken
        return found + self.inverse @ (row - self.matrix @ found)

    def least(self) -> tuple[int, np.ndarray]:
        """Which anchor to remove, and how to write it over the others instead."""
        sizes, share = (self.coefs**2).sum(axis=1), np.zeros(self.size)
        if self.rules.pruning == ERROR:
            kept = np.diagonal(self.inverse)
            worst = int(np.argmin(sizes / kept))
            share = -self.inverse[worst] / kept[worst]
            share[worst] = 0
        elif self.rules.pruning == MERGE:
            own = np.diagonal(self.matrix)
            apart = own[:, None] - self.matrix**2 / own
            np.fill_diagonal(apart, np.inf)
            losses = np.maximum(apart, 0) * sizes[:, None]
            worst, other = np.unravel_index(np.argmin(losses), losses.shape)
            share[other] = self.matrix[worst, other] / own[other]
        else:
            worst = int(np.argmin(sizes))  # eq. (23)
        return int(worst), share.astype(sizes.dtype)

    def prune(self, worst: int, share: np.ndarray) -> None:
        """φ of one anchor becomes a combination of the others, or nothing."""
        part = self.coefs[worst].copy()
        lost = self.matrix[worst] - self.matrix @ share
        turn = np.outer(part, self.products[worst] - share @ self.products)
        length = lost[worst] - share @ lost
        self.coefs += np.outer(share, part)
        self.products -= np.outer(lost, part)
        self.stock.gram[:] -= turn + turn.T - length * np.outer(part, part)
        if len(self.inverse):
            row = self.inverse[worst].copy()
            self.inverse -= np.outer(row, row) / row[worst]
        self._drop(worst)

    def _drop(self, worst: int) -> None:
        """The last anchor takes the place of the one that goes."""
        stock, last = self.stock, self.size - 1
        for rows in (stock.coefs, stock.products, stock.slots):
            rows[worst], rows[last] = rows[last], 0
        for square in (stock.matrix, stock.inverse)[: 1 + bool(len(stock.inverse))]:
            square[worst] = square[last]
            square[:, worst] = square[:, last]
            square[last], square[:, last] = 0, 0
        self._resize(last)

    def normalize(self) -> None:
        """Atoms of unit norm."""
        norms = np.sqrt(np.diagonal(self.stock.gram))
        scale = 1 / np.where(norms > 0, norms, 1)
        self.coefs *= scale
        self.products *= scale
        self.stock.gram[:] *= np.outer(scale, scale)

    def settle_inverse(self) -> None:
        """Invert anew if updates have spoiled the inverse, as for a low-rank matrix."""
        jittered = self.matrix.astype(np.float64)
        own = np.diagonal(jittered).copy()
        jittered[np.diag_indices(self.size)] += self.rules.jitter * own
        if not len(self.inverse) or not np.isfinite(jittered).all():
            return
        gap = jittered @ (self.inverse @ own) - own
        if not np.abs(gap).max() <= SPOILED * own.max():
            unit = 1 / np.sqrt(own)
            inverted = np.linalg.inv(jittered * unit * unit[:, None])
            self.inverse[:] = inverted * unit * unit[:, None]

    def _grow_inverse(self, row: np.ndarray, own: float) -> bool:
        """The inverse with one more row and column, by the Schur complement.

        That of an exact inverse is at least the jitter; whether this one is not.
        """
        inverse, new = self.stock.inverse, self.size
        reached = self.inverse @ row
        left = own * (1 + self.rules.jitter) - reached @ row
        is_spoiled = not left >= own * self.rules.jitter
        left = max(left, own * self.rules.jitter)
        self.inverse += np.outer(reached, reached) / left
        inverse[new, :new] = inverse[:new, new] = -reached / left
        inverse[new, new] = 1 / left
        return is_spoiled
