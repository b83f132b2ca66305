"""Cases of kernels of samples that are not rows, and of models that take these."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline

import kernlets
from kernlets import registry
from kernlets.maps import ConvolutionMap, CountMap

from . import oracle
from .containers import as_array
from .draw import Draw, text_of
from .objects import Objects, draw_objects
from .oracle import Wrong

Note = Callable[[str], Any]
KERNELS = {
    name: kind
    for name, kind in registry.table("kernels").items()
    if kind.takes not in ("rows", "any")
}
REMEDIES = (kernlets.Clipped, kernlets.Squared, kernlets.Shifted, kernlets.Normalized)
ANSWERS = ("transform", "predict", "residuals", "score_samples")


def run(draw: Draw, note: Note, folder: Path) -> None:
    """One case; returns when all that was tried gave sound results."""
    kernel = _kernel(draw)
    given = draw_objects(draw, kernel.takes)
    note(f"kernel: {text_of(kernel)}")
    note(f"samples: {given.text}")
    threads = {"n_threads": draw.pick([1, 2]), "block_rows": draw.pick([None, 3])}
    with kernlets.options(**threads):
        if draw.chance(0.4):
            _use_kernel(kernel, given, draw, note)
        else:
            _use_model(_model(draw, kernel), given, draw, note, folder)


def _kernel(draw: Draw) -> Any:
    kernel = KERNELS[draw.pick(sorted(KERNELS))]()
    names = sorted(kernel.get_params(deep=False))
    if names and draw.chance(0.4):
        value = draw.pick([None, 0, 1, 2, 3, -1, 0.3, 1e-6, 1e6, 1e300, "x"])
        kernel.set_params(**{draw.pick(names): value})
    return draw.pick(REMEDIES)(kernel) if draw.chance(0.2) else kernel


def _model(draw: Draw, kernel: Any) -> Any:
    few = {"n_nonzero_coefs": 2, "max_iter": 2, "random_state": 0}
    sampler = draw.pick(sorted(registry.table("landmarks")))
    features = kernlets.NystroemMap(kernel, sampler, n_landmarks=5, random_state=0)
    exact = kernlets.KernelKSVD(kernel, 3, **few)
    models = [
        *[features, exact, kernlets.KernelMOD(kernel, 3, **few)],
        kernlets.SRCClassifier(kernel, 3),
        kernlets.ResidualClassifier(exact),
        make_pipeline(features, kernlets.ResidualClassifier(kernlets.KSVD(3, **few))),
        kernlets.KSADClassifier(kernel, landmarks="uniform", random_state=0),
        kernlets.DictionaryOutlierDetector(exact),
        CountMap(kernel),
        ConvolutionMap(20, random_state=0),
    ]
    return draw.pick(models)


def _use_kernel(kernel: Any, given: Objects, draw: Draw, note: Note) -> None:
    """A matrix that is finite, symmetric, definite if that is claimed; its diagonal."""
    bound = _refusing("bound", given, kernel, lambda: kernel.bound(given.samples))
    K = _refusing("call", given, kernel, lambda: bound(given.samples))
    call = type(kernel).__name__
    oracle.check_finite(K, call)
    oracle.check_shape(K, (given.n, given.n), call)
    size = float(np.abs(K).max(initial=0))
    oracle.check_close(K, K.T, 1e-12 * size, call, "not symmetric")
    diagonal = as_array(bound.diag(given.samples))
    oracle.check_close(np.diagonal(K), diagonal, 1e-6 * size, call, "diagonal")
    again = bound(given.samples, draw_same(given.samples))
    oracle.check_close(K, again, 1e-6 * size, call, "with a copy")
    narrow = K.dtype.itemsize == 4
    if getattr(bound, "psd", False) and given.n:
        lowest = float(np.linalg.eigvalsh((K + K.T).astype(float) / 2)[0])
        if lowest < -(1e-4 if narrow else 1e-7) * size * given.n:
            raise Wrong("not definite", call, f"eigenvalue {lowest} of {size}")


def draw_same(samples: Any) -> Any:
    """The same samples as another object."""
    return samples.copy() if hasattr(samples, "copy") else type(samples)(list(samples))


def _use_model(
    model: Any, given: Objects, draw: Draw, note: Note, folder: Path
) -> None:
    note(f"model: {text_of(model, 300)}")
    y = np.arange(given.n) % 2
    _refusing("fit", given, model, lambda: model.fit(given.samples, y))
    oracle.check_numbers(model)
    kernel = getattr(model, "kernel", None) or kernlets.GAK()
    other = given if draw.chance(0.5) else draw_objects(draw, kernel.takes)
    for name in ANSWERS:
        if hasattr(model, name):
            note(f"{name} of {other.text}")
            _use_method(model, name, other, folder)


def _use_method(model: Any, name: str, other: Objects, folder: Path) -> None:
    call = f"{type(model).__name__}.{name}"
    found = as_array(getattr(model, name)(other.samples))
    oracle.check_finite(found, call)
    oracle.check_shape(found, (other.n, *[None] * (found.ndim - 1)), call)
    kernlets.save(model, folder / "a.model")
    for again in (kernlets.load(folder / "a.model"), pickle.loads(pickle.dumps(model))):
        second = as_array(getattr(again, name)(other.samples))
        oracle.check_equal(found, second, f"{call}, saved")


def _refusing(step: str, given: Objects, what: Any, work: Callable[[], Any]) -> Any:
    """What `work` gives; ordinary samples under ordinary settings are not refused."""
    try:
        return work()
    except oracle.DOCUMENTED as error:
        plain = given.is_plain and type(what) in KERNELS.values()
        plain = plain and repr(what) == repr(type(what)())
        if plain and oracle.judge(error) is None:
            place = f"{type(what).__name__}, {step}"
            raise Wrong("ordinary samples refused", place, str(error)) from error
        raise
