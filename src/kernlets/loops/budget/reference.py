"""Training of a dictionary on a budget by a block of samples, in plain NumPy.

This is the specification of `budget_stream`. Only inner products enter: the caller
evaluates the kernel for the block, and `Stock.slots` says which of its samples have
become anchors.
"""

from __future__ import annotations

import numpy as np

from ..lasso.reference import descend
from ..omp.reference import omp
from ..updates.reference import densify
from .types import ERROR, MERGE, SPOILED, BudgetOutcome, BudgetPursuit, Rules, Stock


@np.errstate(all="ignore")
def budget_stream(
    stock: Stock,
    size: int,
    cross: np.ndarray,  # (n, size + n) kernel of the block with the anchors and itself
    energy: np.ndarray,  # (n,)
    rates: np.ndarray,  # (n,) ρ
    rules: Rules,
    pursuit: BudgetPursuit,
) -> BudgetOutcome:
    """Table I of "Online Kernel Dictionary Learning on a Budget", sample by sample."""
    used = _UsedStock(stock, size, rules)
    errors, costs, n_admitted = np.zeros_like(energy), np.zeros_like(energy), 0
    converged = np.zeros_like(energy)
    for i, k_xx in enumerate(energy):
        row = cross[i, stock.slots[: used.size]]
        coherence = used.largest_coherence(row, k_xx)
        is_new = k_xx > 0 and (rules.repeats or coherence < 1 - rules.tiny)
        is_first = is_new and used.size < len(stock.start)
        corr = row @ used.coefs
        codes, converged[i] = _code_sample(stock.gram, corr, k_xx, pursuit)
        errors[i] = max(k_xx - codes @ (2 * corr - stock.gram @ codes), 0)
        shrinkage = rules.penalty * np.trace(stock.gram)
        costs[i] = (errors[i] + shrinkage) / 2 + pursuit.alpha * np.abs(codes).sum()
        is_admitted = is_new and coherence < rules.coherence and errors[i] > rules.cost
        is_admitted = is_admitted and used.meets_further_criteria(row, k_xx)
        if is_first or is_admitted:
            used.append(row, k_xx, cross.shape[1] - len(cross) + i)
            row, n_admitted = np.append(row, k_xx), n_admitted + 1
        if is_first:
            used.start_anchor()
        elif is_admitted or rules.learn_rejected:
            used.step(row, corr, codes, is_admitted, rates[i])
        stock.idle[:] = np.where(codes == 0, stock.idle + 1, 0)
        if is_admitted and not is_first and used.has_idle_atom():
            used.revive(int(np.argmax(stock.idle)))
        if used.size > rules.budget:
            used.repair_inverse()
            used.prune(*used.choose_removal())
        if rules.unit:
            used.normalize()
    return BudgetOutcome(
        used.size, n_admitted, used.n_unstable, errors, costs, converged
    )


def _code_sample(
    gram: np.ndarray, corr: np.ndarray, k_xx: float, pursuit: BudgetPursuit
) -> tuple[np.ndarray, bool]:
    """Code a sample; return the code and whether it has converged."""
    if pursuit.width == 0:
        codes, converged = descend(
            gram,
            corr[None],
            pursuit.alpha,
            pursuit.positive,
            pursuit.max_iter,
            pursuit.tol,
        )
        return codes[0], bool(converged[0])
    energy = np.full(1, k_xx)
    indices, values, _ = omp(gram, corr[None], energy, pursuit.width, pursuit.tol)
    return densify(indices, values, len(gram))[0], True


class _UsedStock:
    """The used rows of the arrays in a stock; changes are written to the stock."""

    def __init__(self, stock: Stock, size: int, rules: Rules) -> None:
        self.stock, self.rules, self.n_unstable = stock, rules, 0
        self._resize(size)

    def _resize(self, size: int) -> None:
        self.size = size
        self.matrix = self.stock.matrix[:size, :size]
        self.coefs = self.stock.coefs[:size]
        self.products = self.stock.products[:size]
        self.inverse = self.stock.inverse[:size, :size]

    def largest_coherence(self, row: np.ndarray, k_xx: float) -> float:
        """The largest coherence with an anchor, eq. (21)."""
        coherences = np.abs(row) / np.sqrt(np.diagonal(self.matrix)) / np.sqrt(k_xx)
        return coherences.max(initial=0)

    def meets_further_criteria(self, row: np.ndarray, k_xx: float) -> bool:
        """Whether the further criteria of section III-A admit a sample."""
        norms = np.diagonal(self.matrix)
        babel = (np.abs(row) / np.sqrt(norms) / np.sqrt(k_xx)).sum()
        distance = (k_xx + norms - 2 * row).min(initial=np.inf)
        if not (babel < self.rules.babel and distance > self.rules.distance):
            return False
        threshold = self.rules.dependence
        return threshold < 0 or k_xx - row @ self._project(row) > threshold

    def append(self, row: np.ndarray, k_xx: float, slot: int) -> None:
        """Append an anchor with coefficients 0 and its row of the kernel matrix."""
        new, stock = self.size, self.stock
        needs_repair = len(stock.inverse) > 0
        if needs_repair:
            needs_repair = self._grow_inverse(row.astype(np.float64), k_xx)
        stock.matrix[new, :new] = stock.matrix[:new, new] = row
        stock.matrix[new, new] = k_xx
        stock.products[new] = row @ self.coefs
        stock.slots[new] = slot
        self._resize(new + 1)
        if needs_repair:
            self.repair_inverse()

    def start_anchor(self) -> None:
        """Set the coefficients of the newest anchor, one of the first anchors."""
        self.coefs[-1] = self.stock.start[self.size - 1]
        self.products[:] = self.matrix @ self.coefs
        self.stock.gram[:] = self.coefs.T @ self.products

    def step(
        self,
        row: np.ndarray,  # (r,) κ(anchors, x)
        corr: np.ndarray,  # (m,) Dᵀφ(x)
        codes: np.ndarray,  # (m,) α
        is_admitted: bool,
        rate: float,
    ) -> None:
        """One gradient step on the cost of the sample at a fixed code."""
        if not self.rules.feature_space:
            self._parameter_step(row, codes, rate)
            return
        coords = np.eye(self.size)[-1] if is_admitted else self._project(row)
        self._feature_step(row, corr, codes, coords.astype(row.dtype), rate)

    def _guarded_rate(self, rate: float, G2: float, curvature: float) -> float:
        """ρ, at most reach · ‖G‖² / cost″(G)."""
        bound = self.rules.reach * G2
        if rate * curvature <= bound:
            return rate
        self.n_unstable += 1
        return bound / curvature if self.rules.guard else rate

    def _parameter_step(self, row: np.ndarray, codes: np.ndarray, rate: float) -> None:
        """Ω ← Ω − ρG, G = (KΩα − κ)αᵀ + μKΩ, eqs. (19) and (20)."""
        mu, error = self.rules.penalty, self.products @ codes - row
        G = np.outer(error, codes) + mu * self.products
        KG = self.matrix @ G
        curvature = (G @ codes) @ (KG @ codes) + mu * np.sum(G * KG)
        rate = self._guarded_rate(rate, np.sum(G**2), curvature)
        self.coefs -= rate * G
        self.products -= rate * KG
        self.stock.gram[:] = self.coefs.T @ self.products

    def _feature_step(
        self,
        row: np.ndarray,
        corr: np.ndarray,
        codes: np.ndarray,
        coords: np.ndarray,  # (r,) φ(x) over the anchors
        rate: float,
    ) -> None:
        """D ← D − ρG, G = (Dα − φ(x))αᵀ + μD, eq. (15), for Ω, KΩ and DᵀD."""
        gram, mu, alpha2 = self.stock.gram, self.rules.penalty, codes @ codes
        explained = gram @ codes
        corr_residual = corr - explained  # Dᵀ(φ(x) − Dα)
        error2 = coords @ row - codes @ (corr + corr_residual)  # ‖φ(x) − Dα‖²
        cross_term = 2 * mu * codes @ corr_residual
        G2 = error2 * alpha2 - cross_term + mu**2 * np.trace(gram)
        curvature = alpha2 * (error2 * alpha2 - cross_term) + mu**2 * codes @ explained
        rate = self._guarded_rate(rate, G2, curvature + mu * G2)
        decay = 1 - mu * rate
        error = coords - self.coefs @ codes
        self.coefs[:] = decay * self.coefs + rate * np.outer(error, codes)
        error = row - self.products @ codes
        self.products[:] = decay * self.products + rate * np.outer(error, codes)
        change = decay * rate * np.outer(corr_residual, codes)
        gram[:] = decay**2 * gram + change + change.T
        gram += rate**2 * error2 * np.outer(codes, codes)

    def has_idle_atom(self) -> bool:
        """Whether an atom has been idle for longer than `patience`."""
        return 0 <= self.rules.patience < self.stock.idle.max()

    def revive(self, atom: int) -> None:
        """Set the atom to the newest anchor, with the mean norm of atoms in use."""
        gram, last = self.stock.gram, self.size - 1
        k_zz, norms = self.matrix[last, last], np.diagonal(gram)
        is_in_use = self.stock.idle <= self.rules.patience
        scale = np.sqrt(norms[is_in_use].mean() / k_zz) if is_in_use.any() else 1.0
        self.coefs[:, atom] = 0
        self.coefs[last, atom] = scale
        self.products[:, atom] = scale * self.matrix[:, last]
        gram[atom] = gram[:, atom] = scale * self.products[last]
        self.stock.idle[atom] = 0

    def _project(self, row: np.ndarray) -> np.ndarray:
        """K⁺κ: φ(x) projected on the span of the anchors."""
        coords = self.inverse @ row
        # a second step corrects for the jitter
        return coords + self.inverse @ (row - self.matrix @ coords)

    def choose_removal(self) -> tuple[int, np.ndarray]:
        """Choose an anchor to remove, and the weights of the others that replace it."""
        row_norms2, weights = (self.coefs**2).sum(axis=1), np.zeros(self.size)
        if self.rules.pruning == ERROR:
            inverse_diagonal = np.diagonal(self.inverse)
            removed = int(np.argmin(row_norms2 / inverse_diagonal))
            weights = -self.inverse[removed] / inverse_diagonal[removed]
            weights[removed] = 0
        elif self.rules.pruning == MERGE:
            energies = np.diagonal(self.matrix)
            distances2 = energies[:, None] - self.matrix**2 / energies
            np.fill_diagonal(distances2, np.inf)
            losses = np.maximum(distances2, 0) * row_norms2[:, None]
            removed, other = np.unravel_index(np.argmin(losses), losses.shape)
            weights[other] = self.matrix[removed, other] / energies[other]
        else:
            removed = int(np.argmin(row_norms2))  # eq. (23)
        return int(removed), weights.astype(row_norms2.dtype)

    def prune(self, removed: int, weights: np.ndarray) -> None:
        """Replace φ of one anchor by a combination of the others, or by 0."""
        omega = self.coefs[removed].copy()
        residual = self.matrix[removed] - self.matrix @ weights
        change = np.outer(omega, self.products[removed] - weights @ self.products)
        error2 = residual[removed] - weights @ residual
        self.coefs += np.outer(weights, omega)
        self.products -= np.outer(residual, omega)
        self.stock.gram[:] -= change + change.T - error2 * np.outer(omega, omega)
        if len(self.inverse):
            row = self.inverse[removed].copy()
            self.inverse -= np.outer(row, row) / row[removed]
        self._drop(removed)

    def _drop(self, removed: int) -> None:
        """Move the last anchor to the row of the removed one."""
        stock, last = self.stock, self.size - 1
        for rows in (stock.coefs, stock.products, stock.slots):
            rows[removed], rows[last] = rows[last], 0
        for square in (stock.matrix, stock.inverse)[: 1 + bool(len(stock.inverse))]:
            square[removed] = square[last]
            square[:, removed] = square[:, last]
            square[last], square[:, last] = 0, 0
        self._resize(last)

    def normalize(self) -> None:
        """Scale atoms to unit norm."""
        norms = np.sqrt(np.diagonal(self.stock.gram))
        scale = 1 / np.where(norms > 0, norms, 1)
        self.coefs *= scale
        self.products *= scale
        self.stock.gram[:] *= np.outer(scale, scale)

    def repair_inverse(self) -> None:
        """Invert again if updates spoiled the inverse, as for a low-rank matrix."""
        jittered = self.matrix.astype(np.float64)
        energies = np.diagonal(jittered).copy()
        jittered[np.diag_indices(self.size)] += self.rules.jitter * energies
        if not len(self.inverse) or not np.isfinite(jittered).all():
            return
        residual = jittered @ (self.inverse @ energies) - energies
        if not np.abs(residual).max() <= SPOILED * energies.max():
            scale = 1 / np.sqrt(energies)
            inverse = np.linalg.inv(jittered * scale * scale[:, None])
            self.inverse[:] = inverse * scale * scale[:, None]

    def _grow_inverse(self, row: np.ndarray, k_xx: float) -> bool:
        """Append a row and a column to the inverse, by the Schur complement.

        With an exact inverse it is at least the jitter; return whether it is not.
        """
        inverse, new = self.stock.inverse, self.size
        coords = self.inverse @ row
        schur = k_xx * (1 + self.rules.jitter) - coords @ row
        is_spoiled = not schur >= k_xx * self.rules.jitter
        schur = max(schur, k_xx * self.rules.jitter)
        self.inverse += np.outer(coords, coords) / schur
        inverse[new, :new] = inverse[:new, new] = -coords / schur
        inverse[new, new] = 1 / schur
        return is_spoiled
