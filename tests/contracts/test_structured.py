"""What every kernel of samples that are not rows promises, and who takes them."""

from __future__ import annotations

import pickle
from threading import Thread

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from kernlets import (
    DTW,
    GAK,
    KSVD,
    AffineInvariant,
    Clipped,
    DictionaryOutlierDetector,
    KernelKSVD,
    KernelMOD,
    KSADClassifier,
    Linear,
    MeanEmbedding,
    Normalized,
    NystroemMap,
    ResidualClassifier,
    Shifted,
    Spectrum,
    Squared,
    SRCClassifier,
    Stein,
    load,
    options,
    save,
)
from kernlets.kernels import KERNELS
from kernlets.kernels.indefinite import rounding
from kernlets.landmarks.choose import NEED_VECTORS, SAMPLERS
from tests.structures import samples

REGISTERED = [kind() for kind in KERNELS.values() if kind.takes not in ("rows", "any")]
MORE = [
    GAK(2.0, triangular=6),
    DTW(0.1, radius=2),
    Stein(3.5),
    MeanEmbedding(Linear()),
    Normalized(Spectrum(2)) + 1.0,
    2.0 * GAK(1.0) * DTW(0.2),
    Clipped(DTW(0.3)),
    Squared(AffineInvariant()),
    Shifted(DTW(0.3)),
]
N, M = 14, 9


def _kernels(kinds):
    return pytest.mark.parametrize("kernel", list(kinds), ids=lambda k: repr(k)[:60])


every_kernel = _kernels([*REGISTERED, *MORE])
registered = _kernels(REGISTERED)


@pytest.fixture
def X(kernel):
    return samples(kernel.takes, N)


@pytest.fixture
def known(kernel, X):
    """The kernel with its open parameters set."""
    return kernel.bound(X)


def numbers(kernel, X, dtype):
    """Samples in another floating-point type, where they have one."""
    arrays = kernel.takes in ("series", "bags", "matrices")
    return [x.astype(dtype) for x in X] if arrays else X


@every_kernel
def test_shapes_symmetry_and_diagonal(kernel, known, X):
    Y = samples(kernel.takes, M, seed=1)
    K = known(X)
    assert K.shape == (N, N) and known(X, Y).shape == (N, M)
    np.testing.assert_allclose(K, K.T, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(known(X, Y), known(Y, X).T, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(known.diag(X), np.diagonal(K), rtol=1e-11)
    np.testing.assert_allclose(known(X, list(X)), K, rtol=1e-10, atol=1e-13)


@every_kernel
def test_positive_semi_definite_where_claimed(kernel):
    X = samples(kernel.takes, 60, seed=2)
    X[30:35] = X[:5]
    known = kernel.bound(X)
    values = np.linalg.eigvalsh(known(X))
    if getattr(known, "psd", True):
        assert values[0] >= -1e-11 * values[-1]


@every_kernel
@pytest.mark.rounding
def test_threads_and_blocks_change_nothing(kernel, known):
    X = samples(kernel.takes, 50, seed=3)
    with options(n_threads=1):
        one = known(X)
    with options(n_threads=3):
        three = known(X)
    np.testing.assert_array_equal(one, three)
    parts = np.concatenate([known(X[i : i + 7], X) for i in range(0, 50, 7)])
    np.testing.assert_allclose(parts, one, rtol=1e-10, atol=1e-13)


@every_kernel
def test_float32_is_kept_and_close(kernel, known, X):
    narrow = numbers(kernel, X, np.float32)
    K, diagonal = known(narrow), known.diag(narrow)
    wanted = np.float32 if narrow is not X else np.float64
    assert K.dtype == diagonal.dtype == wanted
    np.testing.assert_allclose(K, known(X), rtol=1e-3, atol=1e-5 * np.abs(K).max())


@every_kernel
def test_params_clone_and_pickle(kernel, known, X):
    K = known(X)
    for twin in (clone(known), pickle.loads(pickle.dumps(known))):
        assert twin is not known
        assert twin.get_params().keys() == known.get_params().keys()
        np.testing.assert_array_equal(twin(X), K)
    assert known.bound(X[:3]) is known


@every_kernel
def test_arguments_are_left_alone_and_copies_do_not_matter(kernel, known, X):
    before = pickle.dumps(X)
    K = known(X)
    known.diag(X)
    assert pickle.dumps(X) == before
    np.testing.assert_allclose(known(tuple(X)), K, rtol=1e-12, atol=1e-14)


@registered
def test_no_samples_give_no_rows(kernel, known, X):
    assert known([], X).shape == (0, N)
    assert known.diag([]).shape == (0,)


@registered
@pytest.mark.parametrize("X_", ["text", 3, {"a": 1}], ids=repr)
def test_what_is_no_list_of_samples_is_refused(kernel, X_):
    with pytest.raises(TypeError, match=f"kernel of {kernel.takes}"):
        kernel(X_)


@registered
def test_samples_of_another_kind_are_refused(kernel, known):
    others = {"strings": "series", "graphs": "strings"}
    with pytest.raises(ValueError, match=r"\d"):
        known(samples(others.get(kernel.takes, "graphs"), 3))


# who takes them


def models(kernel):
    few = {"n_nonzero_coefs": 2, "max_iter": 2, "random_state": 0}
    feature_map = NystroemMap(kernel, n_landmarks=8, random_state=0)
    return {
        "map": feature_map,
        "ksvd": KernelKSVD(kernel, 4, **few),
        "mod": KernelMOD(kernel, 4, **few),
        "src": SRCClassifier(kernel, 3),
        "residual": ResidualClassifier(KernelKSVD(kernel, 3, **few)),
        "pipeline": make_pipeline(feature_map, ResidualClassifier(KSVD(3, **few))),
        "ksad": KSADClassifier(kernel, landmarks="uniform", random_state=0),
        "outliers": DictionaryOutlierDetector(KernelKSVD(kernel, 4, **few)),
        "outliers of a map": DictionaryOutlierDetector(
            make_pipeline(feature_map, KSVD(3, **few)), random_state=0
        ),
    }


def answer(model, X):
    names = ("transform", "predict_proba", "residuals", "score_samples")
    return next(getattr(model, name) for name in names if hasattr(model, name))(X)


@every_kernel
def test_models_learn_and_are_saved(kernel, tmp_path):
    X, new = samples(kernel.takes, 24), samples(kernel.takes, 9, seed=5)
    y = np.array(["even", "odd"])[np.arange(24) % 2]
    for name, model in models(kernel).items():
        found = answer(model.fit(X, y), new)
        assert np.isfinite(found).all() and len(found) == 9, name
        save(model, tmp_path / "a.model")
        again = answer(load(tmp_path / "a.model"), new)
        np.testing.assert_array_equal(again, found, err_msg=name)
        if hasattr(model, "predict"):
            assert len(model.predict(new[:2])) == 2


@pytest.mark.parametrize("kind", ["series", "strings"])
def test_a_model_is_as_wide_as_its_samples(kind):
    kernel = {"series": GAK(2.0), "strings": Spectrum(2)}[kind]
    X = samples(kind, 12)
    for model in (NystroemMap(kernel), KernelKSVD(kernel, 3, random_state=0)):
        narrow = numbers(kernel, X, np.float32)
        wanted = np.float32 if kind == "series" else np.float64
        assert model.fit(narrow).transform(X).dtype == wanted


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_landmarks_of_samples_without_vectors(sampler):
    X = samples("series", 30)
    model = NystroemMap(GAK(), sampler, n_landmarks=6, random_state=0)
    if SAMPLERS[sampler] in NEED_VECTORS:
        with pytest.raises(ValueError, match="samples of this kind are not: use 'uni"):
            model.fit(X)
    else:
        assert model.fit(X).landmarks_.shape == (6,)
        assert model.transform(X).shape[0] == 30


def test_landmarks_by_number():
    X = samples("series", 20)
    model = NystroemMap(GAK(2.0), landmarks=[3, 5, 7]).fit(X)
    assert [len(z) for z in model.landmarks_] == [len(X[i]) for i in (3, 5, 7)]


@pytest.mark.parametrize("kind", ["series", "graphs"])
def test_scikit_learns_tools(kind):
    kernel = {"series": GAK(), "graphs": Normalized(KERNELS["weisfeiler_lehman"]())}
    X, y = samples(kind, 24), np.arange(24) % 2
    model = SRCClassifier(kernel[kind], 3)
    assert cross_val_score(model, X, y, cv=2).shape == (2,)
    grid = {"series": {"kernel__sigma": [1.0, 5.0]}, "graphs": {"n_nonzero_coefs": [2]}}
    assert GridSearchCV(model, grid[kind], cv=2).fit(X, y).best_score_ > 0.5


def test_little_memory_gives_the_same():
    X = samples("series", 60)
    model = NystroemMap(GAK(3.0), n_landmarks=10, random_state=0).fit(X)
    whole = model.transform(X)
    with options(memory="2KB"):
        np.testing.assert_allclose(model.transform(X), whole, rtol=1e-10, atol=1e-12)
    with options(memory="10KB"), pytest.raises(MemoryError, match="matrix of 60"):
        KernelKSVD(GAK(3.0), 3).fit(X)


@pytest.mark.parametrize("make", [Clipped, Shifted, Squared])
def test_remedies_on_training_samples_and_new_ones(make):
    X, new = samples("series", 50, seed=7), samples("series", 30, seed=8)
    kernel = make(DTW(0.3)).bound(X)
    K = DTW(0.3)(X)
    values, vectors = np.linalg.eigh(K)
    assert values[0] < -1e-3 * values[-1]
    expected = {
        Clipped: (vectors * np.maximum(values, 0)) @ vectors.T,
        Squared: K @ K,
        Shifted: K - values[0] * np.eye(50),
    }[make]
    np.testing.assert_allclose(kernel(X), expected, atol=1e-8 * values[-1])
    # a new sample that equals a training sample is treated like it
    np.testing.assert_allclose(kernel(X[:5], X), expected[:5], atol=1e-8 * values[-1])
    both = np.linalg.eigvalsh(kernel([*X[:20], *new]))
    if make is not Shifted:
        assert both[0] > -rounding(K) * both[-1] * 10
    np.testing.assert_allclose(kernel(new, X), kernel(X, new).T, atol=1e-12 * both[-1])


def test_a_remedy_of_a_remedy_does_not_wait_for_itself():
    X = samples("series", 50, seed=7)
    values, vectors = np.linalg.eigh(DTW(0.3)(X))
    expected = (vectors * np.maximum(values, 0) ** 2) @ vectors.T
    results = []
    twice = Squared(Clipped(DTW(0.3)))
    thread = Thread(target=lambda: results.append(twice.bound(X)(X)), daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()
    np.testing.assert_allclose(results[0], expected, atol=1e-8 * values[-1] ** 2)
