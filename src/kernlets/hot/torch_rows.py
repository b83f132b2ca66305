"""torch twin of `rows_omp`; see there for what is computed and why.

On a GPU the correlations that select an atom come from a product in half precision,
which is several times faster. Its error is bounded, so every atom that could be the
best one is compared in float32: the atoms are those of a product in float32.
"""

from __future__ import annotations

from types import ModuleType

import torch
from torch import Tensor

from .positive import TRIES
from .reference import UNUSED, least_independent
from .torch_ import _finite, _fused
from .torch_positive import Local, largest


def rows_omp(
    atoms: Tensor,  # (m, p)
    X: Tensor,  # (n, p)
    energy: Tensor,  # (n,)
    width: int,
    tol: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """All samples in step; one that has stopped leaves."""
    pursuit = Pursuit(atoms, X, energy, width, tol)
    for t in range(width):
        if not pursuit.take(t):
            break
    return pursuit.codes()


class State:
    """What every pursuit keeps of all samples; `rows` are those that go on."""

    def __init__(
        self, atoms: Tensor, X: Tensor, energy: Tensor, width: int, tol: float
    ) -> None:
        self.eps = torch.finfo(X.dtype).eps
        self.atoms, self.residual, self.error = atoms, X.clone(), energy.clone()
        self.stop = (4 * self.eps * energy).clamp(min=tol)
        self.indices = torch.full((len(X), width), UNUSED, device=X.device)
        going = (self.error > self.stop) & self.error.isfinite()
        self.rows = going.nonzero()[:, 0]
        fused = fused_steps(atoms, X, width)
        self.fused = fused and fused.Steps(atoms, self)


class Pursuit(State):
    """The state of all samples, in plain torch."""

    def __init__(
        self, atoms: Tensor, X: Tensor, energy: Tensor, width: int, tol: float
    ) -> None:
        super().__init__(atoms, X, energy, width, tol)
        self.inverse = X.new_zeros((len(X), width, width))
        self.parts = X.new_zeros((len(X), width))

    def take(self, t: int) -> bool:
        """Every sample that goes on takes an atom; whether there was one."""
        rows = self.rows
        if len(rows) and self.fused:
            self.fused.take(self, t)
        elif len(rows):
            self._take(t)
        going = self.indices[rows, t] >= 0
        self.rows = rows[going & (self.error[rows] > self.stop[rows])]
        return len(self.rows) > 0

    def _take(self, t: int) -> None:
        atoms, rows = self.atoms, self.rows
        support = self.indices[rows, :t]
        left = self.residual[rows] @ atoms.T
        left.scatter_(1, support, 0)
        k = left.abs().argmax(dim=1)
        value = left.gather(1, k[:, None])[:, 0]
        inner = torch.einsum("ntp,np->nt", atoms[support], atoms[k])
        seen = torch.einsum("nst,nt->ns", self.inverse[rows, :t, :t], inner)
        own = atoms[k].square().sum(dim=1)
        norm = own - seen.square().sum(dim=1)
        going = ~(norm <= least_independent(self.eps) * own) & (value != 0)
        rows, k, seen = rows[going], k[going], seen[going]
        scale = norm[going].rsqrt()
        before = torch.einsum("ns,nst->nt", seen, self.inverse[rows, :t, :t])
        self.inverse[rows, t, :t] = -scale[:, None] * before
        self.inverse[rows, t, t] = scale
        self.indices[rows, t], self.parts[rows, t] = k, value[going] * scale
        shift = self.parts[rows, t, None] * self.inverse[rows, t, : t + 1]
        taken = atoms[self.indices[rows, : t + 1]]
        self.residual[rows] -= torch.einsum("nt,ntp->np", shift, taken)
        gain = self.parts[rows, t] ** 2
        self.error[rows] = (self.error[rows] - gain).clamp(min=0)

    def codes(self) -> tuple[Tensor, Tensor, Tensor]:
        values = torch.einsum("ns,nst->nt", self.parts, self.inverse)
        return _finite(self.indices, values, self.error)


def positive_rows_omp(
    atoms: Tensor,  # (m, p)
    X: Tensor,  # (n, p)
    energy: Tensor,  # (n,)
    width: int,
    tol: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """All samples in step; one that has ended leaves."""
    pursuit = PositivePursuit(atoms, X, energy, width, tol)
    for _ in range(TRIES * width):
        if not pursuit.step():
            break
    return pursuit.codes()


class PositivePursuit(State):
    """The state of all samples of a non-negative pursuit."""

    def __init__(
        self, atoms: Tensor, X: Tensor, energy: Tensor, width: int, tol: float
    ) -> None:
        super().__init__(atoms, X, energy, width, tol)
        self.X, self.energy = X, energy
        self.values = X.new_zeros((len(X), width))
        self.systems = X.new_zeros((len(X), width, width))
        self.right = X.new_zeros((len(X), width))

    def step(self) -> bool:
        """Every sample that goes on takes an atom; whether one can go on."""
        if len(self.rows) == 0:
            return False
        rows = self.rows
        most, best = self._best()
        local = Local(*(each[rows] for each in self._local()))
        atom = self.atoms[best]
        inner = torch.einsum("nwp,np->nw", self._taken(local.support), atom)
        inner = torch.where(local.support >= 0, inner, 0)
        own, right = atom.square().sum(1), (atom * self.X[rows]).sum(1)
        going, local = local.joined(best, most, inner, own, right)
        state = local.support, local.coefs, local.systems, local.right
        for each, fresh in zip(self._local(), state, strict=True):
            each[rows] = fresh
        fit = (local.coefs * local.right).sum(1)
        error = torch.where(fit < torch.inf, self.energy[rows] - fit, torch.nan)
        self.error[rows] = torch.where(going, error.clamp(min=0), self.error[rows])
        taken = self._taken(local.support)
        left = self.X[rows] - torch.einsum("nw,nwp->np", local.coefs, taken)
        self.residual[rows] = left
        if self.fused:
            self.fused.half[rows] = self.fused.as_half(left)
        full = (local.support >= 0).all(dim=1)
        self.rows = rows[going & ~full & (self.error[rows] > self.stop[rows])]
        return len(self.rows) > 0

    def _local(self) -> tuple[Tensor, ...]:
        return self.indices, self.values, self.systems, self.right

    def _taken(self, support: Tensor) -> Tensor:  # (rows, width, p)
        return self.atoms[support.clamp(min=0)]

    def _best(self) -> tuple[Tensor, Tensor]:
        """The largest correlations of the samples that go on, and their atoms."""
        rows = self.rows
        if not self.fused:
            return largest(self.residual[rows] @ self.atoms.T, self.indices[rows])
        best = self.fused.winners(self, self.indices[rows], signed=True)
        return (self.residual[rows] * self.atoms[best]).sum(1), best

    def codes(self) -> tuple[Tensor, Tensor, Tensor]:
        return _finite(self.indices, self.values, self.error)


def fused_steps(atoms: Tensor, X: Tensor, width: int) -> ModuleType | None:
    """The Triton twin of a step, where it can be used."""
    fused = _fused() if X.is_cuda and X.dtype == torch.float32 else None
    if fused is None or not fused.triton_rows.fits(width):
        return None
    finite = bool(atoms.isfinite().all())  # else no bound holds
    return fused.triton_rows if finite else None
