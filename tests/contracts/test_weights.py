"""Weights 0, 1, 2 are leaving out, keeping, repeating, for everything that learns."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from kernlets import (
    DTW,
    KSVD,
    MOD,
    OMP,
    RBF,
    Anchors,
    BudgetKernelDL,
    Clipped,
    DKSVDClassifier,
    FDDLClassifier,
    Forgetting,
    KernelKSVD,
    KSADClassifier,
    Laplacian,
    LCKSVDClassifier,
    Normalized,
    OnlineDictionary,
    OrthogonalDictionary,
    PyramidMatch,
    ReducedKernelDL,
    ResidualClassifier,
    RLSDictionary,
    Schedule,
    Shifted,
    Squared,
    SRCClassifier,
    UnitNorm,
    options,
    registry,
)
from kernlets.coders import encode
from kernlets.coders.encoding import statistics
from kernlets.contracts import Coded
from kernlets.data.weights import row_numbers_by_weight
from kernlets.dictionaries import ExplicitDictionary
from kernlets.kernels import KERNELS
from kernlets.learners import LEARNERS
from kernlets.updates import UPDATES, resolve_update
from tests.structures import samples

KERNEL = RBF(sigma=6.0)
SHORT = {"n_components": 6, "n_nonzero_coefs": 2, "max_iter": 3, "random_state": 0}
ALL_ROWS = 500  # a batch that holds all rows, repeated or not
BATCH = {**SHORT, "schedule": Schedule(batch_size=ALL_ROWS)}
FADING = {**SHORT, "schedule": Schedule(batch_size=ALL_ROWS, forgetting=0.99)}
#: every learner, and what reads weights in its own way
MODELS = {
    **{name: None for name in LEARNERS},
    "exact": KSVD(**SHORT, update="ksvd:exact=True"),
    "parallel": KSVD(
        **SHORT, update="ksvd-parallel", init="kmeans", schedule="exchange=1"
    ),
    "positive": KSVD(6, coder=OMP(2, positive=True), max_iter=3, random_state=0),
    "svd": MOD(**SHORT, init="svd"),
    "defaults": KSVD(random_state=0, max_iter=2),
    "orthogonal": OrthogonalDictionary(4, 2, max_iter=3, random_state=0),
    "online": OnlineDictionary(**FADING),
    "rls": RLSDictionary(**FADING),
    "kernel exact": KernelKSVD(KERNEL, **SHORT, update="ksvd:exact=True"),
    "kernel parallel": KernelKSVD(KERNEL, **SHORT, update="ksvd-parallel"),
    "anchors": ReducedKernelDL(KERNEL, **SHORT, anchors=Anchors(10, "kmeans")),
    "moving": ReducedKernelDL(
        KERNEL, **SHORT, anchors=Anchors(8, descent=True, linear_weight=0.1)
    ),
    "residual": ResidualClassifier(KSVD(**SHORT)),
    "residual kernel": ResidualClassifier(KernelKSVD(KERNEL, **SHORT)),
    "LC-KSVD": LCKSVDClassifier(4, 2, max_iter=2, random_state=0),
    "LC-KSVD1": LCKSVDClassifier(4, 2, variant=1, max_iter=2, random_state=0),
    "D-KSVD": DKSVDClassifier(4, 2, max_iter=2, random_state=0),
    "FDDL": FDDLClassifier(3, simplified=True, max_iter=1, random_state=0),
    "K-SAD": KSADClassifier(
        KERNEL, "orthogonal:max_iter=2", n_landmarks=12, random_state=0
    ),
    "SRC": SRCClassifier(KERNEL, 3),
}


def model_of(name):
    if MODELS[name] is not None:
        return clone(MODELS[name])
    Class = LEARNERS[name]
    names = inspect.signature(Class).parameters
    params = {key: value for key, value in _given(Class).items() if key in names}
    return Class(KERNEL, **params) if "kernel" in names else Class(**params)


def _given(Class):
    """Parameters of a learner, with a batch of all rows if it learns from batches."""
    has_batches = "batch_size" in getattr(Class, "_follows", ())
    return BATCH if has_batches else SHORT


def data(n=70, p=12, seed=3):
    rng = np.random.default_rng(seed)
    atoms, y = rng.standard_normal((9, p)), np.arange(n) % 3
    codes = np.where(rng.random((n, 9)) < 0.3, 2 * rng.standard_normal((n, 9)), 0)
    X = codes @ atoms + 0.3 * rng.standard_normal((n, p)) + 3 * np.eye(3, p)[y]
    return X, y, rng.integers(0, 3, n).astype(float)


def says(model, new):
    """What a fitted model says of new rows."""
    if hasattr(model, "learners_"):
        return np.column_stack([model.residuals(new), model.predict_proba(new)])
    if hasattr(model, "decision_function"):
        return model.decision_function(new)
    if is_classifier(model):
        return model.predict_proba(new)
    return np.column_stack(
        [model.transform(new), model.reconstruction_error(new, per_sample=True)]
    )


def labelled(model, y):
    return y if is_classifier(model) else None


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", [name for name in MODELS if name not in LEARNERS])
def test_weights_repeat_and_leave_out(name):
    """Variants; the relation "weights repeat" has what is registered."""
    X, y, weights = data()
    new, often = data(seed=4)[0], weights.astype(int)
    model = model_of(name)
    weighted = clone(model).fit(X, labelled(model, y), sample_weight=weights)
    y_often = labelled(model, np.repeat(y, often))
    expected = clone(model).fit(np.repeat(X, often, axis=0), y_often)
    np.testing.assert_allclose(says(weighted, new), says(expected, new), atol=1e-5)
    if hasattr(expected, "history_"):
        found, wanted = (each.history_["objective"] for each in (weighted, expected))
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


def open_models(**few):
    """All estimators that take weights, with the width of their kernel left open."""
    given = {"kernel": "rbf", "n_landmarks": 15, "anchors": 6}
    given = {**given, "n_atoms_per_class": 3, **few}

    def with_given(Estimator, **others):
        names = inspect.signature(Estimator).parameters
        known = {**_given(Estimator), **given, **others}
        if "n_atoms_per_class" in names:  # n_components is a former name of it
            known.pop("n_components")
        return Estimator(**{name: known[name] for name in names if name in known})

    for Estimator in registry.estimators():
        if "sample_weight" in inspect.signature(Estimator.fit).parameters:
            yield with_given(Estimator)
    for Learner in LEARNERS.values():
        more = {} if few else {"n_components": None}
        if Learner is OrthogonalDictionary:  # repeated rows span no more atoms
            more = {"n_components": 4}
        yield ResidualClassifier(with_given(Learner, **more))


def assert_weights_repeat(model, X, y, weights, new):
    often = weights.astype(int)
    weighted = clone(model).fit(X, labelled(model, y), sample_weight=weights)
    y_often = labelled(model, np.repeat(y, often))
    expected = clone(model).fit(np.repeat(X, often, axis=0), y_often)
    np.testing.assert_allclose(says(weighted, new), says(expected, new), atol=1e-5)
    if hasattr(expected, "kernel_"):
        gammas = [np.array(each.kernel_.gamma) for each in (weighted, expected)]
        np.testing.assert_allclose(*gammas, rtol=1e-10)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("model", list(open_models()), ids=repr)
def test_weights_repeat_rows_for_what_is_set_from_the_data(model):
    """Widths of kernels, numbers of atoms and temperatures."""
    X, y, weights = data()
    X[::4] *= 10  # rows that set the width of a kernel
    weights[::4] = weights[::4] > 1
    assert_weights_repeat(model, X, y, weights, data(seed=4)[0])


# Values that are filled in differ by rounding, which many iterations amplify.
FEW = {
    "n_components": 3,
    "n_nonzero_coefs": 1,
    "max_iter": 2,
    "anchors": "kmeans:6",  # without a K-SVD of their own
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("model", list(open_models(**FEW)), ids=repr)
def test_weights_repeat_rows_with_missing_values(model):
    X, y, weights = data()
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    assert_weights_repeat(model, X, y, weights, data(seed=4)[0])


def test_temperature_of_a_stream_counts_rows_by_their_weights():
    X, y, weights = data(90)
    often = weights.astype(int)
    kernels = BudgetKernelDL("rbf", 6, n_nonzero_coefs=2, random_state=0)
    for learner in (OnlineDictionary(**BATCH), kernels):
        weighted, expected = (ResidualClassifier(clone(learner)) for _ in range(2))
        for rows in (slice(0, 50), slice(50, 90)):
            given = X[rows], y[rows], np.arange(3)
            weighted.partial_fit(*given, sample_weight=weights[rows])
            repeated = (np.repeat(each, often[rows], axis=0) for each in given[:2])
            expected.partial_fit(*repeated, np.arange(3))
        found, wanted = (says(model, X) for model in (weighted, expected))
        np.testing.assert_allclose(found, wanted, atol=1e-5)


@pytest.mark.parametrize(
    "kernel",
    [
        *(kind() for kind in KERNELS.values() if kind.takes != "any"),
        Clipped(DTW()),
        Shifted(DTW()),
        Squared(DTW()),
        RBF() + Laplacian(),
        Normalized(PyramidMatch()),
    ],
    ids=repr,
)
def test_open_parameters_of_every_kernel_count_samples_by_weights(kernel):
    rng = np.random.default_rng(1)
    weights = rng.integers(0, 4, 12).astype(float)
    if kernel.takes == "rows":
        X = rng.random((12, 4)) * np.arange(1, 13)[:, None]
        repeated = np.repeat(X, weights.astype(int), axis=0)
    else:
        X = samples(kernel.takes, 12)
        rows = np.repeat(np.arange(12), weights.astype(int))
        repeated = [X[i] for i in rows]
    found, wanted = kernel.bound(X, weights), kernel.bound(repeated)
    np.testing.assert_allclose(found(X), wanted(X), rtol=1e-9, atol=1e-12)


def test_widths_of_rows_of_every_kind_count_rows_by_weights(xp, tmp_path):
    X, _, weights = data()
    wanted = RBF().bound(np.repeat(X, weights.astype(int), axis=0)).gamma
    np.save(tmp_path / "rows.npy", X)
    stored = np.load(tmp_path / "rows.npy", mmap_mode="r")
    for rows in (X, stored, sparse.csr_array(X), xp.asarray(X)):
        assert RBF().bound(rows, weights).gamma == pytest.approx(wanted, rel=1e-10)
    X[np.abs(X) < 1] = 0
    wanted = RBF().bound(np.repeat(X, weights.astype(int), axis=0)).gamma
    found = RBF().bound(sparse.csr_matrix(X), weights).gamma
    assert found == pytest.approx(wanted, rel=1e-10)


def test_row_numbers_by_weights_that_are_not_whole():
    """Each row stands as often as its share of the sum, up to one time."""
    weights = np.array([0.5, 0.0, 2.25, 1e-9, 1.25])
    numbers = row_numbers_by_weight(5, weights)
    shares = np.bincount(numbers, minlength=5) / len(numbers)
    np.testing.assert_allclose(shares, weights / 4, atol=2 / len(numbers))
    large = np.array([3e9, 1e9, 0.0])
    assert np.bincount(row_numbers_by_weight(3, large)).argmax() == 0
    assert len(row_numbers_by_weight(3, large)) < 10**5


def test_small_weights_are_shares_for_a_classifier():
    X, y, weights = data(120)
    model = ResidualClassifier(KSVD(**SHORT))
    large, small = (
        clone(model).fit(X, y, sample_weight=unit * (weights + 0.5)).residuals(X)
        for unit in (1 / (weights + 0.5).mean(), 1e-4)
    )
    np.testing.assert_allclose(large, small, atol=1e-7)


@pytest.mark.rounding
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", MODELS)
def test_ones_change_no_bit_and_zeros_leave_out(name):
    X, y, _ = data()
    model, live = model_of(name), np.arange(len(X)) % 5 > 0
    plain = clone(model).fit(X[live], labelled(model, y[live]))
    zeros = clone(model).fit(X, labelled(model, y), sample_weight=live)
    np.testing.assert_array_equal(says(plain, X), says(zeros, X))
    ones = clone(model)
    ones.fit(X[live], labelled(model, y[live]), sample_weight=np.ones(live.sum()))
    np.testing.assert_array_equal(says(plain, X), says(ones, X))


def test_every_estimator_that_learns_takes_weights():
    # a choice by rows that are left out would see copies of these among the others
    without = {"AutoDictionaryClassifier", "ImageClassifier", "KernelRidgeClassifier"}
    for Estimator in registry.estimators():
        learns = is_classifier(Estimator()) or Estimator in LEARNERS.values()
        takes = "sample_weight" in inspect.signature(Estimator.fit).parameters
        assert takes == (learns and Estimator.__name__ not in without), Estimator
        if takes and hasattr(Estimator, "partial_fit"):
            names = inspect.signature(Estimator.partial_fit).parameters
            assert "sample_weight" in names


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("name", [*UPDATES, "ksvd:exact=True"])
def test_updates_weigh_samples(name, gaps, xp, rng):
    """One step from given codes, and atoms that nobody uses are replaced alike."""
    X, _, weights = data(60)
    if gaps and name == "ksvd-jacobi":
        return  # it refuses missing values
    if gaps:
        X[rng.random(X.shape) < 0.1] = np.nan
    atoms = np.linalg.qr(rng.standard_normal((12, 12)))[0][:8]
    dictionary, often = ExplicitDictionary(xp.asarray(atoms)), weights.astype(int)
    update, found = resolve_update(name), []
    for rows, own in ((X, weights), (np.repeat(X, often, axis=0), None)):
        rows = xp.asarray(rows)
        codes = encode(dictionary, OMP(2), rows)
        coded = Coded(rows, codes, own)
        if update.needs == "statistics":
            if gaps:
                return
            coded = statistics(dictionary, rows, codes, own)
        found.append(update.step(dictionary, coded, np.random.default_rng(0)))
    first, second = (xp.to_numpy(step.dictionary.weights) for step in found)
    np.testing.assert_allclose(first, second, atol=1e-9)
    assert found[0].error == pytest.approx(found[1].error)


@pytest.mark.parametrize("name", ["KSVD", "KernelKSVD", "ReducedKernelDL"])
def test_array_libraries_agree(name, xp):
    X, _, weights = data()
    model = KSVD(**SHORT) if name == "KSVD" else globals()[name](KERNEL, **SHORT)
    with options(loops="reference"):
        expected = clone(model).fit(X, sample_weight=weights + 0.25)
    found = clone(model).fit(xp.asarray(X), sample_weight=xp.asarray(weights + 0.25))
    gram = xp.to_numpy(found.dictionary_.gram())
    np.testing.assert_allclose(gram, expected.dictionary_.gram(), atol=1e-6)


@pytest.mark.parametrize("Learner", [OnlineDictionary, RLSDictionary])
@pytest.mark.parametrize("forgetting", [1.0, 0.97, Forgetting(0.9, "hyperbolic", 50)])
def test_streams_weigh_rows(Learner, forgetting):
    X, _, weights = data(90)
    often = weights.astype(int)
    schedule = Schedule(batch_size=ALL_ROWS, forgetting=forgetting)
    models = [Learner(**SHORT, schedule=schedule) for _ in range(2)]
    for rows in (slice(0, 3), slice(3, 50), slice(50, 90)):  # the first must wait
        models[0].partial_fit(X[rows], sample_weight=weights[rows])
        models[1].partial_fit(np.repeat(X[rows], often[rows], axis=0))
    seen = [model.n_samples_seen_ for model in models]
    assert seen[0] == seen[1] == often.sum()
    # a curve goes on within a sample of weight 2, which only repeated rows follow
    close = 1e-6 if np.isscalar(forgetting) else 0.05
    np.testing.assert_allclose(*(m.components_ for m in models), atol=close)


def test_small_weights_are_shares(rng):
    """Weights that sum to 1 are no counts of uses, which would replace all atoms."""
    X, _, weights = data()
    large, small = (
        KSVD(**SHORT).fit(X, sample_weight=unit * (weights + 0.5) / 1.5)
        for unit in (1 / np.mean((weights + 0.5) / 1.5), 1e-3)
    )
    np.testing.assert_allclose(large.components_, small.components_, atol=1e-7)


def test_memory_maps_and_precomputed_kernels(tmp_path):
    X, _, weights = data()
    np.save(tmp_path / "rows.npy", X)
    stored = np.load(tmp_path / "rows.npy", mmap_mode="r")
    learner = MOD(**SHORT)
    expected = clone(learner).fit(X, sample_weight=weights).components_
    found = clone(learner).fit(stored, sample_weight=weights).components_
    np.testing.assert_allclose(found, expected, atol=1e-7)
    direct = KernelKSVD(KERNEL, **SHORT).fit(X, sample_weight=weights)
    matrix = KernelKSVD("precomputed", **SHORT).fit(KERNEL(X), sample_weight=weights)
    grams = (each.dictionary_.gram() for each in (direct, matrix))
    np.testing.assert_allclose(*grams, atol=1e-7)


def test_scikit_learn_routes_weights():
    X, y, weights = data()
    with sklearn.config_context(enable_metadata_routing=True):
        learner = KSVD(**SHORT).set_fit_request(sample_weight=True)
        classifier = ResidualClassifier(KSVD(**SHORT))
        classifier.set_fit_request(sample_weight=True)
        classifier.set_score_request(sample_weight=False)
        search = GridSearchCV(classifier, {"learner__n_components": [4, 6]}, cv=2)
        search.fit(X, y, sample_weight=weights)
        pipeline = make_pipeline(UnitNorm(), learner).fit(X, sample_weight=weights)
    best = search.best_params_["learner__n_components"]
    alone = ResidualClassifier(KSVD(**{**SHORT, "n_components": best}))
    alone.fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(search.predict(X), alone.predict(X))
    direct = KSVD(**SHORT).fit(UnitNorm().fit_transform(X), sample_weight=weights)
    np.testing.assert_array_equal(pipeline[-1].components_, direct.components_)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones((70, 1)), "1D array or scalar"),
        (np.ones(69), "expected"),
        (np.full(70, np.nan), "finite and not negative"),
        (-np.ones(70), "finite and not negative"),
        (np.zeros(70), "zero for all samples"),
    ],
)
def test_bad_weights_are_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        KSVD(**SHORT).fit(data()[0], sample_weight=weights)


def test_what_cannot_be_weighted_says_so():
    X, y, weights = data()
    with pytest.raises(ValueError, match="whole numbers for BudgetKernelDL"):
        BudgetKernelDL(KERNEL, 4).fit(X, sample_weight=weights + 0.5)
    with pytest.raises(ValueError, match="rows in one array or memory map"):
        MOD(**SHORT).fit([X, X], sample_weight=weights)
    with pytest.raises(ValueError, match="precomputed"):
        SRCClassifier("precomputed").fit(KERNEL(X), y, sample_weight=weights)


@pytest.mark.parametrize("Learner", [KSVD, MOD, OnlineDictionary, KernelKSVD])
def test_weights_beyond_the_largest_count_are_refused(Learner, rng):
    X, weights = rng.standard_normal((16, 3)), rng.integers(1, 9, 16) / 8.0
    model = Learner(n_components=3, max_iter=2, random_state=0)
    codes = model.fit(X, sample_weight=2.0**49 * weights).transform(X)
    assert np.isfinite(codes).all() and (codes != 0).any()
    for large in (1e17, 1e300, 1e308):
        with pytest.raises(ValueError, match="divide the weights"):
            model.fit(X, sample_weight=large * weights)


def test_weights_beyond_the_numbers_of_the_samples(rng):
    X = rng.standard_normal((12, 3)).astype("f4")
    with pytest.raises(ValueError, match="lambda2=1e\\+300"):
        FDDLClassifier(2, lambda2=1e300, random_state=0).fit(X, np.arange(12) % 2)
