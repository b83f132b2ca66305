"""Numbers at the ends of their range: a finite result or an error with the remedy.

Never NaN, never a warning of NumPy, never an error of linear algebra, and above all no
crash. What single operations do is in `contracts/test_operations.py`, that the unit of
the data plays no part in `contracts/test_scale.py`.
"""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_digits

from kernlets import (
    KSVD,
    MOD,
    Anchors,
    Budget,
    BudgetKernelDL,
    Callable,
    DictionaryOutlierDetector,
    DKSVDClassifier,
    FDDLClassifier,
    IKAMap,
    KernelKSVD,
    KernelMOD,
    KSADClassifier,
    Lasso,
    LCKSVDClassifier,
    NystroemMap,
    OnlineDictionary,
    OrthogonalDictionary,
    Precomputed,
    ReducedKernelDL,
    ResidualClassifier,
    RLSDictionary,
    Schedule,
    SRCClassifier,
    options,
    registry,
)
from kernlets.base.estimator import Estimator
from kernlets.classifiers import OrthogonalAtoms
from kernlets.data.sparse_rows import _sparse_variance
from kernlets.kernels import RBF, Polynomial, Sigmoid
from kernlets.landmarks import SAMPLERS
from kernlets.learners.loop import Monitor
from kernlets.learners.rls import Recursion
from kernlets.maps import ConvolutionMap
from kernlets.numerics.scaling import lengths, power_of_two, typical_length, unit_rows
from kernlets.numerics.threads import parallel

DTYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64])
LIBRARIES = pytest.mark.parametrize("library", ["numpy", "torch"])
REMEDY = re.compile(r"scale|lower|zero|check X", re.IGNORECASE)


def ordinary(rng: np.random.Generator) -> np.ndarray:
    return rng.random((24, 4)) * (rng.random((24, 4)) < 0.7)


def nasty(name: str, rng: np.random.Generator, dtype: Any) -> np.ndarray:
    X = ordinary(rng)
    if name == "one huge row":
        X[3] *= 1e30
    elif name == "one tiny row":
        X[3] *= 1e-30
    elif name == "constant":
        X[:] = 3.7
    elif name == "zeros":
        X[:] = 0
    elif name == "copies":
        X[:] = X[rng.integers(3, size=24)]
    elif name == "units":
        X *= [1e-9, 1e-3, 1e3, 1e9]
    elif name == "largest":
        X *= float(np.finfo(dtype).max) / 4
    elif name == "denormal":
        X *= float(np.finfo(dtype).tiny)
    else:
        X *= float(name)
    return X.astype(dtype)


VALUES = (
    *("1e-30", "1e-12", "1e-6", "1e6", "1e12", "1e30"),
    *("one huge row", "one tiny row", "constant", "zeros", "copies", "units"),
    *("largest", "denormal"),
)

KERNELS = [
    name
    for name, kind in registry.table("kernels").items()
    if name != "precomputed" and kind.takes == "rows"
]

LEARNERS = {
    "ksvd": lambda kernel: KernelKSVD(kernel, 5, n_nonzero_coefs=2, max_iter=2),
    "ksvd lasso": lambda kernel: KernelKSVD(kernel, 5, coder=Lasso(0.1), max_iter=2),
    "ksvd exact": lambda kernel: KernelKSVD(
        kernel, 5, n_nonzero_coefs=2, update="ksvd:exact=True", max_iter=2
    ),
    "ksvd parallel": lambda kernel: KernelKSVD(
        kernel, 5, n_nonzero_coefs=2, update="ksvd-parallel"
    ),
    "mod": lambda kernel: KernelMOD(kernel, 5, n_nonzero_coefs=2, max_iter=2),
    "reduced": lambda kernel: ReducedKernelDL(
        kernel, 5, n_nonzero_coefs=2, anchors=Anchors(8, descent=True), max_iter=2
    ),
    "budget": lambda kernel: BudgetKernelDL(kernel, 5, budget=8, max_iter=2),
    "budget feature": lambda kernel: BudgetKernelDL(
        kernel,
        5,
        n_nonzero_coefs=2,
        budget=Budget(8, update="feature", pruning="error"),
        max_iter=2,
    ),
    "nystroem": lambda kernel: NystroemMap(kernel, n_landmarks=8),
    "ika": lambda kernel: IKAMap(kernel, n_landmarks=8),
}

LINEAR = {
    "ksvd": KSVD(5, 2),
    "ksvd svd": KSVD(5, 2, init="svd", update="ksvd:exact=True"),
    "ksvd lasso": KSVD(5, coder=Lasso(0.1), init="kmeans"),
    "mod": MOD(5, 2, init="normal"),
    "online": OnlineDictionary(5, 2, schedule="batch_size=5,forgetting=0.5"),
    "rls": RLSDictionary(5, 2, schedule="batch_size=5,forgetting=0.9"),
    "orthogonal": OrthogonalDictionary(3),
}

CLASSIFIERS = {
    "residual": ResidualClassifier(KSVD(3, 2)),
    "src": SRCClassifier(n_nonzero_coefs=3),
    "src rbf": SRCClassifier("rbf", n_nonzero_coefs=3),
    "ksad": KSADClassifier("poly:2", n_landmarks=8),
    "ksad fisher": KSADClassifier("poly:2", dictionary="fisher", n_landmarks=8),
    "lc-ksvd": LCKSVDClassifier(3, 2, max_iter=2),
    "lc-ksvd 1": LCKSVDClassifier(3, 2, variant=1, max_iter=2),
    "d-ksvd": DKSVDClassifier(3, 2, max_iter=2),
    "fddl": FDDLClassifier(3, max_iter=2),
    "fddl simplified": FDDLClassifier(3, simplified=True, scheme="global", max_iter=2),
}


def in_library(X: np.ndarray, library: str) -> Any:
    if library == "numpy":
        return X
    torch = pytest.importorskip("torch", reason="torch is not installed")
    return torch.as_tensor(X)


def assert_finite_or_refused(model: Any, X: Any, y: Any = None) -> None:
    """Fit and use the model: all results are finite, or an error says what to do."""
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("error", RuntimeWarning)
        try:
            model.fit(X, y)
            found = [
                getattr(model, name)(X)
                for name in ("transform", "decision_function", "reconstruction_error")
                if hasattr(model, name)
            ]
        except ValueError as error:
            assert REMEDY.search(str(error)), error
            return
    for part in found:
        assert np.isfinite(np.asarray(part)).all()


@DTYPES
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", LEARNERS)
def test_kernels_in_learners(name, kernel, dtype, rng):
    for value in VALUES:
        assert_finite_or_refused(LEARNERS[name](kernel), nasty(value, rng, dtype))


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels_in_learners_of_tensors(kernel, rng):
    """There are no flags of NumPy there: the results themselves are looked at."""
    for value in ("1e-30", "1e12", "1e30", "one huge row", "zeros", "largest"):
        X = in_library(nasty(value, rng, np.float32), "torch")
        for name in ("ksvd", "mod", "nystroem"):
            assert_finite_or_refused(LEARNERS[name](kernel), X)


@DTYPES
@pytest.mark.parametrize("name", LINEAR)
def test_linear_learners(name, dtype, rng):
    for value in VALUES:
        assert_finite_or_refused(LINEAR[name], nasty(value, rng, dtype))
    assert_finite_or_refused(LINEAR[name], nasty("1e200", rng, np.float64))


@pytest.mark.parametrize("name", LINEAR)
def test_linear_learners_of_tensors(name, rng):
    for value in ("1e-30", "1e12", "1e30", "one huge row", "copies", "denormal"):
        X = in_library(nasty(value, rng, np.float32), "torch")
        assert_finite_or_refused(LINEAR[name], X)


@DTYPES
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers(name, dtype, rng):
    for value in VALUES:
        X, y = nasty(value, rng, dtype), np.arange(24) % 3
        assert_finite_or_refused(CLASSIFIERS[name], X, y)


@DTYPES
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_landmarks(sampler, dtype, rng):
    for kernel in ("poly:2", "cosine", "rbf", "sigmoid"):
        for value in VALUES:
            model = NystroemMap(kernel, sampler, n_landmarks=5, n_components=2)
            assert_finite_or_refused(model, nasty(value, rng, dtype))


def test_data_on_which_the_interpreter_crashed(rng):
    """NaN met compiled loops that were promised there was none."""
    X, y = load_breast_cancer(return_X_y=True)
    learner = KernelKSVD("poly:3", 20, n_nonzero_coefs=4, max_iter=3, random_state=0)
    model = ResidualClassifier(learner).fit(X.astype(np.float32), y)
    assert np.isfinite(model.decision_function(X.astype(np.float32))).all()
    digits = load_digits().data.astype(np.float32)[:300]
    learner = KernelKSVD("poly:6", 20, n_nonzero_coefs=4, random_state=0).fit(digits)
    error = learner.history_["objective"]
    assert error[-1] < 0.9 * error[0]
    with pytest.raises(ValueError, match="not positive semi-definite"):
        KernelKSVD("sigmoid", coder=Lasso()).fit(rng.standard_normal((60, 8)))


@LIBRARIES
def test_kernels_say_which_parameter_to_change(library, rng):
    X = in_library(rng.standard_normal((20, 5)).astype(np.float32), library)
    kernel = Polynomial(6).bound(X)
    for f in (lambda: kernel(X * 1e7, X), lambda: kernel.diag(X * 1e7)):
        with pytest.raises(ValueError, match=r"Polynomial\(degree=6\).*lower degree"):
            f()
    for product in (Polynomial(3) * Polynomial(3), Polynomial(6) + 1.0):
        with pytest.raises(ValueError, match=r"overflows.*float64"):
            product(X * 1e7)
    with pytest.raises(ValueError, match=r"Polynomial.*vanishes.*scale"):
        Polynomial(3).bound(X * 1e-14)
    assert np.isfinite(np.asarray(Sigmoid(1.0)(X * 1e15))).all()


@LIBRARIES
def test_given_kernels_are_finite_or_named(library, rng):
    K = in_library(np.eye(4), library)
    K[2, 1] = np.inf
    with pytest.raises(ValueError, match=r"Precomputed: X contains NaN or infinity"):
        Precomputed()(K)
    X = in_library(rng.random((4, 2)).astype(np.float32), library)
    with pytest.raises(ValueError, match=r"Callable: function=.*beyond .*float32"):
        Callable(lambda X, Y: X @ Y.T + np.inf)(X)


def test_overflow_of_new_samples_is_refused_by_what_was_fitted(rng):
    X = rng.standard_normal((60, 6)).astype(np.float32)
    large = X * np.float32(1e25)
    learner = KSVD(8, 2, random_state=0).fit(X)
    for method in (learner.transform, learner.reconstruction_error):
        with pytest.raises(ValueError, match="codes are not finite in float32"):
            method(large)
    model = ResidualClassifier(KSVD(8, 2), random_state=0).fit(X, np.arange(60) % 2)
    with pytest.raises(ValueError, match="Scale the samples"):
        model.predict(large)
    virtual = NystroemMap("poly:2", n_landmarks=10, random_state=0).fit(X)
    with pytest.raises(ValueError, match="scale them"):
        virtual.transform(large)


@LIBRARIES
def test_one_huge_row_is_represented_and_leaves_no_atom_at_zero(library, rng):
    X = rng.standard_normal((300, 8)).astype(np.float32)
    X[3] *= np.float32(1e10)
    learner = KSVD(10, 3, random_state=0).fit(in_library(X, library))
    atoms = np.asarray(learner.components_)
    np.testing.assert_allclose(np.linalg.norm(atoms, axis=1), 1, rtol=1e-5)
    energy = float((X[3].astype(float) ** 2).sum())
    assert learner.history_["objective"][-1] * len(X) < 1e-10 * energy


@pytest.mark.parametrize("factor", [0.9, 0.5, 0.1])
def test_what_is_forgotten_leaves_atoms_at_unit_norm(factor, rng):
    X = rng.standard_normal((400, 8)).astype(np.float32)
    X[200:, 4:] = 0  # atoms in that direction are no longer used
    schedule = Schedule(batch_size=20, forgetting=factor)
    learner = OnlineDictionary(10, 2, schedule=schedule, random_state=0)
    atoms = learner.fit(X).components_
    np.testing.assert_allclose(np.linalg.norm(atoms, axis=1), 1, rtol=1e-5)


def test_sums_that_have_faded_move_no_atom(rng):
    """What is left of an atom's sums has few digits: its direction would be random."""
    from kernlets.updates.coordinate import coordinate_sweep

    atoms = unit_rows(rng.standard_normal((3, 8)).astype(np.float32))
    codes_gram = np.diag(np.array([3, 1e-42, 0], np.float32))
    cross = codes_gram @ unit_rows(rng.standard_normal((3, 8)).astype(np.float32))
    moved, gain = coordinate_sweep(codes_gram, cross, atoms)
    np.testing.assert_array_equal(moved[1:], atoms[1:])
    np.testing.assert_allclose(moved[0], unit_rows(cross)[0], rtol=1e-6)
    assert gain > 0


# ------------------------------------------------------------- recursive least squares


@LIBRARIES
def test_rls_of_codes_however_large_is_least_squares(library, rng):
    """Woodbury's identity adds 1 to 1e24 there; roots of C subtract nothing."""
    n, m = 40, 6
    codes = rng.standard_normal((n, m)) * 10.0 ** rng.integers(4, 12, size=(n, 1))
    X, D = rng.standard_normal((n, 9)), unit_rows(rng.standard_normal((m, 9)))
    from kernlets.contracts import SparseCodes

    slots = np.tile(np.arange(m), (n, 1))
    moved = [in_library(part, library) for part in (D, X, slots, codes)]
    state = Recursion.start(moved[0])
    end = state.update(moved[1], SparseCodes(moved[2], moved[3], m), np.ones(n))
    # as one least-squares problem, by QR: no squares are formed
    rows, right = np.vstack([np.eye(m), codes]), np.vstack([D, X])
    expected = np.linalg.lstsq(rows, right, rcond=None)[0]
    np.testing.assert_allclose(np.asarray(end.atoms), expected, atol=1e-6)
    assert np.linalg.eigvalsh(np.asarray(end.covariance)).min() >= 0


@DTYPES
@pytest.mark.parametrize("scale", [1e-9, 1e6, 1e12])
def test_rls_learns_from_data_of_any_unit(scale, dtype, rng):
    truth = unit_rows(rng.standard_normal((8, 12)))
    codes = rng.standard_normal((800, 8)) * (rng.random((800, 8)) < 0.25)
    X = (scale * codes @ truth).astype(dtype)
    learner = RLSDictionary(
        8, 2, schedule="batch_size=50", max_iter=3, random_state=0
    ).fit(X)
    first, *_, last = learner.history_["objective"]
    assert last < 0.6 * first


def test_rls_after_a_burst_of_large_rows(rng):
    X = rng.standard_normal((600, 12))
    learner = RLSDictionary(
        10, 2, schedule="batch_size=50", random_state=0
    ).partial_fit(X[:300])
    learner.partial_fit(1e9 * X[300:350]).partial_fit(X[350:])
    assert np.isfinite(learner.components_).all()
    np.testing.assert_allclose(np.linalg.norm(learner.components_, axis=1), 1)
    assert np.linalg.eigvalsh(learner.covariance_).min() >= -1e-12


# ---------------------------------------------------------------- streams on a budget


def low_rank(rng: np.random.Generator, n: int) -> np.ndarray:
    """Unit rows near the planes of pairs of six directions, in ten dimensions."""
    directions = np.random.default_rng(5).standard_normal((6, 10))
    codes = np.zeros((n, 6))
    for code in codes:
        code[rng.choice(6, 2, replace=False)] = rng.standard_normal(2)
    return unit_rows(codes @ directions)


@pytest.mark.parametrize("pruning", ["row-norm", "error", "merge"])
@pytest.mark.parametrize("space", ["parameter", "feature"])
@pytest.mark.parametrize("kernel", ["linear", "poly:2", "poly:3,coef0=1"])
def test_budget_goes_on_learning_after_giants(kernel, space, pruning, rng):
    learner = BudgetKernelDL(
        kernel,
        12,
        n_nonzero_coefs=2,
        budget=Budget(30, update=space, pruning=pruning),
        random_state=0,
    )
    test, warned = low_rank(rng, 200), r"60 samples were not learned from.*UnitNorm"
    for _ in range(4):
        learner.partial_fit(low_rank(rng, 300))
    before, coefs = learner.reconstruction_error(test), learner.coefs_
    with pytest.warns(UserWarning, match=warned):
        learner.partial_fit(1e4 * low_rank(rng, 60))
    np.testing.assert_array_equal(learner.coefs_, coefs)
    for _ in range(4):
        learner.partial_fit(low_rank(rng, 300))
    assert learner.reconstruction_error(test) < 1.5 * before


def test_budget_is_as_it_was_when_samples_are_refused(rng):
    learner = BudgetKernelDL("poly:3", 12, budget=30, random_state=0)
    learner.partial_fit(low_rank(rng, 300).astype(np.float32))
    coefs, n_seen = learner.coefs_, learner.n_samples_seen_
    with pytest.raises(ValueError, match="overflows"):
        learner.partial_fit((1e12 * low_rank(rng, 100)).astype(np.float32))
    assert learner.n_samples_seen_ == n_seen
    np.testing.assert_array_equal(learner.coefs_, coefs)
    learner.partial_fit(low_rank(rng, 300).astype(np.float32))
    assert np.isfinite(learner.coefs_).all()


@pytest.mark.parametrize("space", ["parameter", "feature"])
def test_budget_above_the_rank_of_the_kernel_matrix(space, rng):
    """Thirty anchors in six dimensions: the inverse is spoiled, and made anew."""
    learner = BudgetKernelDL(
        "linear",
        12,
        n_nonzero_coefs=2,
        budget=Budget(30, update=space, pruning="error"),
        random_state=0,
    )
    errors = []
    for _ in range(5):
        learner.partial_fit(low_rank(rng, 300))
        errors += learner.history_["objective"]
    assert errors[-1] < 0.5 * errors[0]


# ------------------------------------------------------------------------ small parts


def test_fisher_directions_of_classes_that_agree_are_refused():
    X, y = np.ones((20, 3)), np.arange(20) % 2
    with pytest.raises(ValueError, match=r"means of all classes agree.*orthogonal"):
        KSADClassifier(dictionary="fisher").fit(X, y)


@pytest.mark.parametrize("anchors", ["samples", "kmeans", "dictionary"])
def test_anchors_from_zero_rows_are_refused(anchors):
    with pytest.raises(ValueError, match="no non-zero row to take anchors from"):
        ReducedKernelDL("rbf", 3, n_nonzero_coefs=1, anchors=anchors).fit(
            np.zeros((20, 4))
        )


def test_lasso_of_tensors_is_as_quick_as_of_arrays(rng):
    """It took a hundred thousand small calls of torch: a minute on a busy machine."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from torch.utils._python_dispatch import TorchDispatchMode

    class Count(TorchDispatchMode):
        calls = 0

        def __torch_dispatch__(self, f, types, args=(), kwargs=None):
            Count.calls += 1
            return f(*args, **(kwargs or {}))

    X = torch.as_tensor(rng.standard_normal((60, 8)))
    with Count():
        KSVD(15, coder=Lasso(), max_iter=3, random_state=0).fit(X)
    assert Count.calls < 5000


@DTYPES
def test_features_that_hardly_vary_are_only_shifted(dtype, rng):
    X = rng.standard_normal((40, 4)).astype(dtype)
    X[:, 1] = dtype(0.1)  # its mean is rounded
    X[:, 2] *= np.finfo(dtype).tiny / 16
    detector = DictionaryOutlierDetector(random_state=0).fit(X)
    assert np.isfinite(detector.decision_scores_).all()
    assert (np.abs((X - detector.mean_) / detector.scale_)[:, 1] < 1e-5).all()


@DTYPES
def test_errors_that_are_not_finite_end_a_fit(dtype):
    match = r"KSVD: the mean .* is not finite.*Scale"
    with pytest.raises(ValueError, match=match) as told:
        Monitor(3, title="KSVD")(0, lambda: np.eye(2, dtype=dtype), float("nan"))
    assert ("pass float64" in str(told.value)) == (dtype == np.float32)


@LIBRARIES
@DTYPES
def test_lengths_of_rows_at_the_ends_of_the_range(dtype, library):
    info = np.finfo(dtype)
    largest, smallest = float(info.max), float(info.tiny)
    rows = [[3, 4], [3e-9, 4e-9], [0.3 * largest, 0.4 * largest], [0, 0]]
    rows += [[3 * smallest, 4 * smallest]]
    X = in_library(np.array(rows, dtype), library)
    expected = [5, 5e-9, 0.5 * largest, 0, 5 * smallest]
    np.testing.assert_allclose(np.asarray(lengths(X)), expected, rtol=1e-6)
    units = [[0.6, 0.8]] * 5
    units[3] = [0, 0]
    np.testing.assert_allclose(np.asarray(unit_rows(X)), units, rtol=1e-6)
    assert typical_length(X[:2]) == pytest.approx(5 / 2**0.5)


@LIBRARIES
@DTYPES
def test_powers_of_two_change_no_digit(dtype, library, rng):
    X = rng.standard_normal(100) * 10.0 ** rng.integers(-30, 30, size=100)
    X = in_library(np.abs(X).astype(dtype), library)
    unit = np.asarray(power_of_two(X))
    assert (unit <= np.asarray(X)).all() and (2 * unit > np.asarray(X)).all()
    assert (np.frexp(unit)[0] == 0.5).all()
    odd = in_library(np.array([0, np.inf, np.nan], dtype), library)
    assert (np.asarray(power_of_two(odd)) == 1).all()


def _too_many_anchors(dtype):
    rows = np.random.default_rng(0).standard_normal((60, 2)).astype(dtype)
    learner = ReducedKernelDL("poly:2", 4, n_nonzero_coefs=1, anchors=30)
    with pytest.warns(UserWarning, match="lower n_anchors") as told:
        learner.fit(rows)
    return str(told[0].message)


def _refusal(refused, *args):
    with pytest.raises(ValueError) as told:
        refused(*args)
    return str(told.value)


def _huge(dtype):
    return np.full((9, 2), float(np.finfo(dtype).max) / 2, dtype)


@DTYPES
@pytest.mark.parametrize(
    "said",
    [
        _too_many_anchors,
        lambda dtype: _refusal(Polynomial(2), _huge(dtype)),
        lambda dtype: _refusal(Polynomial(2).bound, _huge(dtype) / 8),
        lambda dtype: _refusal(RBF(1.0), _huge(dtype)),
        lambda dtype: _refusal(KSVD(2, 1).fit, _huge(dtype)),
    ],
    ids=["anchors", "kernel", "bound kernel", "distances", "learner"],
)
def test_float64_is_advised_to_those_who_do_not_use_it(said, dtype):
    assert ("pass float64" in said(dtype)) == (dtype == np.float32)


def test_the_variance_of_huge_sparse_rows_is_infinite_without_a_warning():
    X = sparse.csr_array(np.array([[1e308, 0.0], [0.0, 1e308]]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert _sparse_variance(X, None) == np.inf


def test_numbers_of_numpy_keep_the_type_of_the_rows(rng):
    X = rng.standard_normal((13, 6)).astype(np.float32)
    for alpha in (np.int64(2), np.float64(0.1)):
        model = OrthogonalDictionary(5, alpha=alpha, max_iter=2, random_state=0)
        assert model.fit(X).transform(X).dtype == np.float32


def test_what_ends_in_a_refusal_does_not_warn_before(rng):
    X, y = rng.standard_normal((60, 16)), np.arange(60) % 2
    huge = np.array([[1e30, 0, 0]] + [[1, 2, 3]] * 5, dtype=np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        with pytest.raises(ValueError, match="not finite"):
            KSADClassifier(
                dictionary=OrthogonalAtoms(beta2=1e300, max_iter=2), random_state=0
            ).fit(X, y)
        with pytest.raises(ValueError, match="overflow"):
            NystroemMap("poly:2", n_landmarks=4, random_state=0).fit(huge)


def test_the_fourth_power_of_large_samples(rng):
    X = rng.standard_normal((30, 4)) * 1e90
    model = KSADClassifier(
        "linear", OrthogonalAtoms(max_iter=2, between="norm"), random_state=0
    )
    with pytest.raises(ValueError, match="UnitNorm"):
        model.fit(X, np.arange(30) % 2)


def test_a_penalty_beyond_float32():
    gram, corr = np.eye(3, dtype="f4"), np.ones((1, 3), "f4")
    codes = Lasso(1e300).solve(gram, corr, np.full(1, 3, "f4"))
    assert codes.toarray().tolist() == [[0, 0, 0]]


def test_convolutions_that_overflow():
    series = [np.array([1.7e308, -1.7e308] * 8), np.ones(16)]
    with pytest.raises(ValueError, match="z_normalize"):
        ConvolutionMap(20, random_state=0).fit_transform(series)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_estimators_are_silent_where_numbers_overflow(n_threads):
    class Overflowing(Estimator):
        def fit(self, X, y=None):
            parts = [np.float32(1e30), X, -X]
            with np.errstate():  # threads have settings of their own
                return parallel(np.square, parts), np.square(X), X / (X - X)

    X = np.full((2, 2), 1e30, np.float32)
    with options(n_threads=n_threads), warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        Overflowing().fit(X)
        with np.errstate(all="raise"):
            Overflowing().fit(X)
            with pytest.raises(FloatingPointError):
                np.square(X)


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_a_matrix_that_lapack_gives_up_is_refused_with_advice(library):
    linalg = pytest.importorskip(library, reason=f"{library} is not installed").linalg
    singular = pytest.importorskip(library).zeros((2, 2))

    class Singular(Estimator):
        def fit(self, X, y=None):
            return linalg.inv(singular)

    with pytest.raises(ValueError, match=r"cannot be factored .*ingular"):
        Singular().fit(None)
