"""What long runs of the fuzzer have found, each as a case of its own."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from kernlets import (
    DTW,
    KSVD,
    OMP,
    RBF,
    AffineInvariant,
    Anchors,
    AutoDictionaryClassifier,
    Budget,
    BudgetKernelDL,
    Bures,
    Clipped,
    DictionaryImputer,
    DictionaryOutlierDetector,
    DKSVDClassifier,
    FDDLClassifier,
    FourierMap,
    IKAMap,
    KernelKSVD,
    KernelMOD,
    KSADClassifier,
    Lasso,
    LCKSVDClassifier,
    LocalAlignment,
    LogEuclidean,
    MeanEmbedding,
    NystroemMap,
    OnlineDictionary,
    OrthogonalDictionary,
    PyramidMatch,
    ReducedKernelDL,
    ResidualClassifier,
    RLSDictionary,
    Schedule,
    Shifted,
    SoftDTW,
    Squared,
    SRCClassifier,
    Standardize,
    Stein,
    Threshold,
    UnitNorm,
    WeisfeilerLehman,
    options,
)
from kernlets.base.estimator import Estimator
from kernlets.base.pipelines import takes_missing
from kernlets.classifiers import OrthogonalAtoms
from kernlets.classifiers.ksad_atoms import count_votes
from kernlets.data.lazy_rows import LazyRows
from kernlets.data.rows import load_values
from kernlets.data.sparse_rows import _sparse_variance
from kernlets.dictionaries import GramDictionary
from kernlets.learners.initial_atoms import from_svd
from kernlets.learners.rls import Recursion
from kernlets.loops import table
from kernlets.loops.kernels.layout import GroupedSeries, Series
from kernlets.maps import ConvolutionMap
from kernlets.numerics.threads import parallel
from kernlets.preimage import over_landmarks


@pytest.mark.parametrize(
    "estimator",
    [
        KSVD(n_components=True),
        BudgetKernelDL("poly:2", n_components=True),
        FourierMap(n_components=True),
        IKAMap(n_components=2, n_samples=True),
        KSVD(4, max_iter=np.True_),
    ],
)
def test_a_flag_is_no_count(estimator, rng):
    with pytest.raises(ValueError, match="True"):
        estimator.fit(rng.standard_normal((30, 4)))


def test_a_frame_without_columns(rng):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    with pytest.raises(ValueError, match="no columns"):
        KSVD(2).fit(pandas.DataFrame(index=range(5)))
    with pytest.raises(ValueError, match="no columns"):
        KSVD(2).fit(pandas.DataFrame())


def test_atoms_that_are_no_rows_of_numbers(rng):
    with pytest.raises(TypeError, match="init must hold rows of numbers, not list"):
        KSVD(2, init=[{"a": 1}, {"a": 2}]).fit(rng.standard_normal((20, 3)))
    with pytest.raises(TypeError, match="init must be numbers"):
        model = BudgetKernelDL("poly:2", init=[{"a": 1}, {"a": 2}])
        model.fit(rng.standard_normal((20, 3)))


def test_the_variance_of_huge_sparse_rows_is_infinite_without_a_warning():
    X = sparse.csr_array(np.array([[1e308, 0.0], [0.0, 1e308]]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert _sparse_variance(X, None) == np.inf


@pytest.mark.parametrize("coder", [Lasso(0.01), Threshold(0.5, "hard")])
@pytest.mark.parametrize("loops", ["reference", "numba"])
def test_atoms_over_samples_on_a_line_keep_their_norm(rng, coder, loops):
    """Where others explain all, what is left for an atom is rounding."""
    x = rng.standard_normal((13, 1))
    with options(loops=loops):
        model = KernelKSVD("precomputed", 4, coder=coder, max_iter=3, random_state=31)
        gram = model.fit(x @ x.T).dictionary_
    atoms = gram.coefs @ (x @ x.T) @ gram.coefs.T
    np.testing.assert_allclose(np.diag(atoms), 1, atol=1e-6)


def test_atoms_on_a_budget_of_one_anchor_have_unit_norm(rng):
    model = BudgetKernelDL(
        "poly:2", 5, n_nonzero_coefs=1, budget=1, max_iter=2, random_state=39
    )
    model.fit(np.abs(rng.standard_normal((8, 3))))
    coefs, anchors = model.dictionary_.coefs, model.dictionary_.anchors
    squares = np.diag(coefs @ model.kernel_(anchors) @ coefs.T)
    np.testing.assert_allclose(squares, 1, atol=1e-3)


def test_numbers_of_numpy_keep_the_type_of_the_rows(rng):
    X = rng.standard_normal((13, 6)).astype(np.float32)
    for alpha in (np.int64(2), np.float64(0.1)):
        model = OrthogonalDictionary(5, alpha=alpha, max_iter=2, random_state=0)
        assert model.fit(X).transform(X).dtype == np.float32


def test_a_kernel_matrix_in_little_memory(rng, tmp_path):
    X = rng.standard_normal((12, 8)).astype(np.float32)
    np.save(tmp_path / "rows.npy", X)
    rows = np.load(tmp_path / "rows.npy", mmap_mode="r")
    model = KernelMOD("rbf:0.1", 2, n_nonzero_coefs=1, max_iter=2, random_state=0)
    wanted = model.fit(X).dictionary_.coefs
    with options(memory="1KB", block_rows=8):
        found = model.fit(rows).dictionary_.coefs
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_k_sad_with_a_huge_weight_and_with_equal_samples(rng):
    X, y = rng.random((33, 2)).astype(np.float32), np.arange(33) % 2
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        KSADClassifier(
            dictionary=OrthogonalAtoms(1e300, max_iter=2), random_state=0
        ).fit(X, y).predict(X)
    with pytest.raises(ValueError, match="means of all classes agree"):
        same = np.full((20, 3), 9.0, np.float32)
        KSADClassifier(dictionary="fisher", random_state=0).fit(same, y[:20])


def test_what_is_missing_is_filled_in_by_maps_and_imputers(rng, tmp_path):
    X, y = rng.standard_normal((40, 5)), np.arange(40) % 2
    gaps = X.copy()
    gaps[3, 2] = np.nan
    for model in (
        make_pipeline(NystroemMap(random_state=0), DKSVDClassifier(random_state=0)),
        make_pipeline(SimpleImputer(), DKSVDClassifier(random_state=0)),
        make_pipeline(UnitNorm(), ResidualClassifier(KSVD(5, 2, random_state=0))),
        KSADClassifier(random_state=0),
    ):
        assert takes_missing(model)
        assert np.isfinite(model.fit(gaps, y).predict(gaps)).all()
    assert not takes_missing(make_pipeline(UnitNorm(), FourierMap(), KSVD()))
    np.save(tmp_path / "rows.npy", gaps)
    rows = np.load(tmp_path / "rows.npy", mmap_mode="r")
    np.testing.assert_array_equal(model.predict(rows), model.predict(gaps))


def test_atoms_that_are_differences_of_near_equal_samples_have_unit_norm(rng):
    """In float32 their squared norms were off by up to 15 %."""
    coder = Threshold(alpha=1e-4)
    for _ in range(5):
        X = (1 + 1e-3 * rng.standard_normal((20, 2))).astype(np.float32)
        model = KernelKSVD("rbf:1", 2, coder=coder, max_iter=1, random_state=2).fit(X)
        squares = np.diag(model.dictionary_.gram())
        np.testing.assert_allclose(squares, 1, atol=3e-4)


def test_coefficients_over_dependent_anchors_stay_small():
    """With 20 anchors in three dimensions the norms were made of rounding errors."""
    budget = Budget(admission="cost", update="feature", pruning="error")
    for seed in (0, 5, 26):
        X = np.random.default_rng(seed).standard_normal((33, 3))
        model = BudgetKernelDL(
            "linear", 3, n_nonzero_coefs=1, max_iter=6, budget=budget, random_state=58
        )
        dictionary = model.fit(UnitNorm().fit_transform(X)).dictionary_
        assert len(dictionary.anchors) > 10
        assert np.abs(dictionary.coefs).sum(axis=1).max() < 1e6
        atoms = dictionary.coefs @ dictionary.anchors
        np.testing.assert_allclose((atoms**2).sum(axis=1), 1, atol=2e-4)


def test_a_matrix_that_is_no_kernel_matrix_is_refused(rng):
    X, y = rng.standard_normal((20, 5)), np.arange(20) % 2
    learner = BudgetKernelDL("precomputed", 2, n_nonzero_coefs=1, random_state=0)
    with pytest.raises(ValueError, match="not the square matrix"):
        ResidualClassifier(learner).fit(X, y)
    square = X @ X.T - 30 * np.eye(20)
    with pytest.raises(ValueError, match=r"κ\(x, x\) is negative"):
        NystroemMap("precomputed", landmarks="rpcholesky", n_landmarks=3).fit(square)


def test_reduced_dictionaries_in_little_memory(rng, tmp_path):
    np.save(tmp_path / "rows.npy", rng.standard_normal((20, 2)).astype(np.float32))
    rows = np.load(tmp_path / "rows.npy", mmap_mode="r")
    model = ReducedKernelDL(
        "rbf:1", 2, n_nonzero_coefs=2, anchors=Anchors(7, "samples"), init="anchors"
    )
    with options(memory="1KB"):
        found = model.set_params(max_iter=3, random_state=0).fit(rows).history_
    np.testing.assert_allclose(
        found["objective"], model.fit(np.array(rows)).history_["objective"], rtol=1e-4
    )


@pytest.mark.parametrize("init", [np.array(3), [-1], [[0]], [20], []])
def test_row_numbers_that_are_none(init, rng):
    X = rng.standard_normal((20, 3))
    for learner in (ReducedKernelDL("rbf:1", anchors=3), KernelKSVD("rbf:1")):
        with pytest.raises(ValueError, match="init must be"):
            learner.set_params(init=init, n_nonzero_coefs=1).fit(X)


def test_landmarks_do_not_change_with_the_rows(rng):
    X = rng.standard_normal((12, 3))
    model = NystroemMap("rbf:1", n_landmarks=12, landmarks="kmeans", random_state=0)
    before = model.fit(X).landmarks_.copy()
    X[:] = 0
    np.testing.assert_array_equal(model.landmarks_, before)


def test_column_norms_of_large_kernel_values_in_float32(rng):
    X = (20 * rng.standard_normal((20, 2))).astype(np.float32)
    model = NystroemMap("poly:8", n_landmarks=3, landmarks="column-norm")
    assert np.isfinite(model.set_params(random_state=0).fit_transform(X)).all()


def test_rows_too_large_for_any_score_are_the_most_abnormal(rng):
    X = rng.standard_normal((60, 16))
    X[0] = 1.7e308 * np.sign(X[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        model = DictionaryOutlierDetector(random_state=0).fit(X)
        assert model.decision_function(X).argmin() == 0
        odds = model.predict_proba(X)
        model.decision_function(np.flip(X))
    assert np.isfinite(odds).all() and odds[0, 1] == 1


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


def test_votes_of_rows_that_would_overflow(rng):
    points = rng.standard_normal((40, 3)).astype(np.float32)
    labels = (points[:, 0] > 0).astype(int)
    ray = 1e38 * np.array([[1, 0, 0], [-1, 0, 0]], np.float32)
    few = rng.standard_normal((20, 3)).astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        votes = count_votes(ray, 4 * points, labels, 5)
        near = count_votes(few, points, labels, 5)
    assert votes.argmax(axis=1).tolist() == [1, 0]
    order = np.linalg.norm(few[:, None] - points, axis=2).argsort(axis=1)[:, :5]
    np.testing.assert_array_equal(near[:, 1], labels[order].sum(axis=1))


def test_features_that_overflow_on_the_way_back_do_not_warn():
    X = 1e-9 * np.random.default_rng(0).standard_normal((60, 2)).astype(np.float32)
    model = IKAMap(n_components=4, n_samples=28, landmarks="diagonal", random_state=15)
    model.fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        over_landmarks(model, np.full((3, 4), 3e38, np.float32))


def test_huge_samples_start_from_singular_vectors_without_a_warning():
    X = np.array([[1e19, 0.0], [0.0, 1.0], [1.0, 1.0]], dtype=np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        atoms = from_svd(X * np.float32(1.5), 1, np.random.default_rng(0))
    np.testing.assert_allclose(np.abs(atoms), [[1, 0]], atol=1e-6)


def test_columns_too_large_for_squares_are_refused_without_a_warning():
    X = np.array([[1e200, 1.0], [-1e200, 2.0], [0.0, 3.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match="overflow in float64: divide X"):
            Standardize().fit(X)


def test_numbers_of_frequencies_may_be_those_of_numpy(rng):
    X = rng.standard_normal((20, 3))
    how = {"kernel": "laplacian:1", "sampling": "quasi", "random_state": 0}
    found = FourierMap(**how, n_components=np.int64(10)).fit_transform(X)
    np.testing.assert_array_equal(
        found, FourierMap(**how, n_components=10).fit_transform(X)
    )


def test_k_sad_where_most_virtual_samples_are_zero():
    """Atoms are as many as features, also if fewer samples can be atoms."""
    F = np.zeros((12, 3))
    F[::6, 0] = 1.0
    model = KSADClassifier("linear", n_components=3, random_state=0)
    rng = np.random.default_rng(0)
    learned = OrthogonalAtoms(max_iter=3).learn(F, np.arange(12) % 2, rng, model)
    atoms, codes = learned.atoms, learned.codes
    np.testing.assert_allclose(atoms @ atoms.T, np.eye(3), atol=1e-12)
    assert codes.shape == (12, 3)


def test_samples_that_are_all_zero_have_no_random_combination():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match="there are no"):
            KernelMOD("linear", 2, init="normal", random_state=0).fit(np.zeros((5, 3)))


def test_the_fourth_power_of_large_samples(rng):
    X = rng.standard_normal((30, 4)) * 1e90
    model = KSADClassifier(
        "linear", OrthogonalAtoms(max_iter=2, between="norm"), random_state=0
    )
    with pytest.raises(ValueError, match="UnitNorm"):
        model.fit(X, np.arange(30) % 2)


def test_mixtures_without_a_norm():
    zero = np.array([[1.0, -1.0], [-1.0, 1.0]])  # φ(x₁) = −φ(x₂)
    with pytest.raises(ValueError, match="init='samples'"):
        GramDictionary.of_coefs(zero, np.ones((1, 2)))


def test_recursion_after_a_huge_row(rng):
    X = rng.standard_normal((60, 16))
    X[7] *= 1e9
    for seed in range(8):
        model = RLSDictionary(
            8, max_iter=3, schedule="batch_size=1", random_state=seed
        ).fit(X)
        assert np.isfinite(model.components_).all()


def test_a_penalty_beyond_float32():
    gram, corr = np.eye(3, dtype="f4"), np.ones((1, 3), "f4")
    codes = Lasso(1e300).solve(gram, corr, np.full(1, 3, "f4"))
    assert codes.toarray().tolist() == [[0, 0, 0]]


def test_fewer_samples_near_the_anchors_than_atoms():
    far = np.array([[0.0, 0.0], [0.1, 0.0], [1e3, 0.0]])
    model = ReducedKernelDL("rbf:1", 3, anchors=far[:2], n_nonzero_coefs=1, max_iter=2)
    with pytest.warns(UserWarning, match="n_components=3 is more than the 2"):
        model.fit(far)
    assert model.dictionary_.n_atoms == 2


@pytest.mark.parametrize("kernel", [LogEuclidean, AffineInvariant, Bures])
def test_equal_matrices_have_no_distance(kernel, rng):
    roots = rng.standard_normal((6, 3, 9))
    matrices = roots @ roots.swapaxes(1, 2)
    matrices[5] = matrices[0]
    K = kernel(1e300)(matrices, matrices.copy())
    np.testing.assert_array_equal(np.diag(K), 1.0)
    assert K[0, 5] == K[5, 0] == 1.0 and K[0, 1] == 0.0
    assert kernel().bound(matrices[:1])(matrices[:1]) == 1.0  # also for the width


def test_bures_distances_of_tiny_matrices(rng):
    roots = rng.standard_normal((4, 3, 9))
    matrices, tiny = roots @ roots.swapaxes(1, 2), 2.0**-540
    ordinary = Bures(1.0)(matrices)
    scaled = Bures(1.0 / tiny)(matrices * tiny)
    np.testing.assert_allclose(scaled, ordinary, rtol=1e-12)


@pytest.mark.parametrize("remedy", [Clipped, Squared, Shifted])
def test_remedies_for_no_samples(remedy):
    assert remedy(LocalAlignment())([]).shape == (0, 0)


def test_no_bags_set_no_width():
    assert MeanEmbedding()([]).shape == (0, 0)
    assert MeanEmbedding().bound([])([]).shape == (0, 0)


def test_convolutions_that_overflow():
    series = [np.array([1.7e308, -1.7e308] * 8), np.ones(16)]
    with pytest.raises(ValueError, match="z_normalize"):
        ConvolutionMap(20, random_state=0).fit_transform(series)


def test_an_atom_that_the_samples_cancel_out():
    state = Recursion(np.array([[0.0], [2.0]]), np.eye(2))
    found = state.with_unit_atoms(np.array([[-1.0], [1.0]]))
    assert found.atoms.tolist() == [[-1.0], [1.0]]
    assert found.covariance.tolist() == [[1.0, 0.0], [0.0, 0.25]]


def test_a_weight_that_is_a_number_of_numpy(rng):
    model = FDDLClassifier(2, lambda1=np.float32(0.5), max_iter=1, random_state=0)
    X = rng.standard_normal((8, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(model.fit(X, np.arange(8) % 2).decision_function(X)).all()


def test_widths_that_overflow_the_distances_of_series():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        K = DTW(1e300)([np.array([0.0, 1e100]), np.zeros(2)])
    assert K.tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_thresholds_of_rows_with_missing_values_come_to_rest(rng):
    X = rng.standard_normal((20, 5)).astype("f4")
    model = SRCClassifier(coder=Threshold(0.006)).fit(X, np.arange(20) % 2)
    X[3, 2] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(model.decision_function(X)).all()


def test_bands_of_series_after_a_group_with_a_longer_one(rng):
    """Eight series are aligned at a time; the first eight need another band."""
    lengths = [7, 7, 30, *[7] * 17]
    series = [rng.standard_normal((n, 1)) for n in lengths]
    packed = Series.of(series)
    grouped = GroupedSeries.of(packed)
    found = table.dtw.loop("numba")(packed, grouped, 0, 20, 2)
    expected = table.dtw.loop("reference")(packed, grouped, 0, 20, 2)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("library", ["reference", "numba"])
@pytest.mark.parametrize("n", [60, 500])
def test_atoms_of_samples_that_are_alike(library, n):
    """What is left beside the atom of their mean is rounding, and no direction."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        K = 1 - 1e-7 * np.abs(rng.standard_normal((n, n)))
        K = np.minimum(K, K.T).astype("f4")
        np.fill_diagonal(K, 1)
        coefs = np.zeros((2, n), "f4")
        coefs[0], coefs[1, 0] = 1 / n, 1
        products = coefs @ K
        values = np.ones((n, 2), "f4")
        values[:, 1] = 1e-4 * (1 + 0.3 * rng.standard_normal(n))
        places, order = np.tile(np.arange(2, dtype=np.int32), (n, 1)), np.array([1])
        gram = products @ coefs.T
        sweep = table.gram_sweep.loop(library)
        sweep(K, coefs, products, gram, places, values, order, False)
        atom = coefs[1].astype(float)
        assert abs(atom @ K.astype(float) @ atom - 1) < 0.1


def test_singular_vectors_have_the_same_signs_everywhere(rng):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    X = rng.standard_normal((40, 6))
    draw = np.random.default_rng(0)
    first = from_svd(X, 4, draw)
    assert (first.max(axis=1) >= -first.min(axis=1)).all()
    np.testing.assert_allclose(from_svd(torch.as_tensor(X), 4, draw), first, atol=1e-9)


def test_families_that_are_no_list():
    model = AutoDictionaryClassifier(families=np.array(3))
    with pytest.raises(ValueError, match="families has 3"):
        model.fit(np.eye(6), np.arange(6) % 2)


def test_weights_beyond_the_numbers_of_the_samples(rng):
    X = rng.standard_normal((12, 3)).astype("f4")
    with pytest.raises(ValueError, match="lambda2=1e\\+300"):
        FDDLClassifier(2, lambda2=1e300, random_state=0).fit(X, np.arange(12) % 2)


def test_soft_alignments_of_huge_series_with_a_huge_width():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        K = SoftDTW(1e300, 1e240)([np.array([0.0, 1e123]), np.zeros(2)])
    assert K.tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_edges_of_graphs_are_real_numbers():
    with pytest.raises(ValueError, match="cannot be read"):
        WeisfeilerLehman()([np.array([[0, 1j], [-1j, 0]])])


def test_cells_that_overflow():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match="widen the cells"):
            PyramidMatch(width=0.3)([np.full((2, 1), 1.7e308), np.ones((2, 1))])


@pytest.mark.parametrize("learner", [KSVD(), OrthogonalDictionary(), RLSDictionary()])
@pytest.mark.parametrize("init", [np.array(3), [[1.0], [1.0, 2.0]], []])
def test_first_atoms_that_are_no_rows(learner, init, rng):
    with pytest.raises(ValueError, match=r"array|inhomogeneous"):
        clone(learner).set_params(init=init).fit(rng.standard_normal((20, 3)))


def test_coefficients_of_first_anchors_that_are_no_rows(rng):
    for init in (np.array(3), np.empty((0, 4))):
        with pytest.raises(ValueError, match="a row for each of the first anchors"):
            BudgetKernelDL("rbf:1", init=init).fit(rng.standard_normal((20, 3)))


def test_row_numbers_in_a_tensor_or_in_lists_of_unequal_length(rng):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    X, whole = rng.standard_normal((20, 3)), torch.tensor([2, 5])
    for learner in (ReducedKernelDL("rbf:1", anchors=3), KernelKSVD("rbf:1")):
        learner.set_params(n_nonzero_coefs=1, max_iter=1, random_state=0)
        assert clone(learner).set_params(init=whole).fit(X).dictionary_.n_atoms == 2
        for init in (torch.tensor(3), [[1], [1, 2]]):
            with pytest.raises(ValueError, match="init must be"):
                clone(learner).set_params(init=init).fit(X)


def test_a_kernel_matrix_on_disk_is_looked_at(rng, tmp_path):
    K = np.eye(300)
    K[7, 11] = K[11, 7] = np.nan  # not among the samples whose eigenvalues are found
    np.save(tmp_path / "matrix.npy", K)
    matrix = np.load(tmp_path / "matrix.npy", mmap_mode="r")
    for model in (SRCClassifier("precomputed"), KernelKSVD("precomputed", 3)):
        with pytest.raises(ValueError, match="NaN or infinity"):
            model.fit(matrix, np.arange(300) % 2)


def test_sums_of_a_stream_that_overflow_are_refused_and_not_kept(rng, tmp_path):
    rows = rng.standard_normal((40, 5)).astype(np.float32) * np.float32(6e17)
    np.save(tmp_path / "rows.npy", rows)
    X = np.load(tmp_path / "rows.npy", mmap_mode="r")
    model = OnlineDictionary(3, n_nonzero_coefs=1, random_state=0).partial_fit(X)
    before = model.statistics_
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        with pytest.raises(ValueError, match="sums over the samples overflow"):
            for _ in range(40):
                before = model.statistics_
                model.partial_fit(X)
    assert model.statistics_ is before and np.isfinite(before.codes_gram).all()


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


@pytest.mark.parametrize("loops", ["reference", "numba"])
@pytest.mark.parametrize("scale", [1e-164, 1e90])
def test_stein_divergences_of_tiny_and_huge_matrices(loops, scale, rng):
    factors = rng.standard_normal((9, 6, 4))
    matrices = factors.swapaxes(1, 2) @ factors
    with options(loops=loops):
        found = Stein(0.5)(list(matrices * scale))
        np.testing.assert_allclose(found, Stein(0.5)(list(matrices)), rtol=1e-9)
        np.testing.assert_array_equal(np.diag(Stein(1e6)(list(matrices * scale))), 1)


def test_lazy_rows_are_collected(rng, tmp_path):
    np.save(tmp_path / "rows.npy", rng.standard_normal((50, 4)))
    rows = LazyRows(np.load(tmp_path / "rows.npy", mmap_mode="r"), sparse.csr_array)
    assert load_values(rows).toarray().shape == (50, 4)


@pytest.mark.parametrize("loops", ["reference", "numba"])
def test_the_inverse_over_dependent_anchors_stays_finite(loops, rng):
    line = 500 * rng.standard_normal((60, 1)) * rng.standard_normal(5)
    budget = Budget(update="feature", pruning="merge")
    model = BudgetKernelDL("rbf:1000", 3, budget=budget)
    with options(loops=loops):
        model.set_params(max_iter=1, random_state=0).fit(line)
    stock = model.stock_
    jittered = stock.matrix + 1.5e-8 * np.eye(len(stock))
    error = jittered @ stock.inverse @ np.ones(len(stock)) - 1
    assert len(stock) > 15 and np.abs(error).max() < 0.01


@pytest.mark.parametrize(
    "estimator",
    [
        KSVD(10**30),
        FourierMap(n_components=10**30),
        DKSVDClassifier(10**30),
        BudgetKernelDL(budget=10**30),
        KSVD(3, schedule=Schedule(n_init=10**30)),
    ],
)
def test_counts_beyond_all_arrays(estimator, rng):
    with pytest.raises(ValueError, match=r"up to 2\^40"):
        estimator.fit(rng.standard_normal((30, 4)), np.arange(30) % 2)


@pytest.mark.parametrize("part", [RBF(), OMP(1), KSVD, SVC(), StandardScaler()])
def test_learners_that_are_none(part, rng):
    X, y = rng.standard_normal((30, 4)), np.arange(30) % 2
    for model in (ResidualClassifier, DictionaryOutlierDetector, DictionaryImputer):
        with pytest.raises(ValueError, match="'learner' parameter"):
            model(part).fit(X, y)
    with pytest.raises(ValueError, match=r"anchors"):
        ReducedKernelDL("rbf:1", 3, anchors=part).fit(X)


def test_landmarks_that_are_none(rng):
    X = rng.standard_normal((30, 4))
    with pytest.raises(ValueError, match="is a kernel, not a sampler"):
        NystroemMap("rbf:1", landmarks=RBF()).fit(X)
    with pytest.raises(ValueError, match="points of equal length"):
        NystroemMap("rbf:1", landmarks=[[1.0], [1.0, 2.0]]).fit(X)
    with pytest.raises(TypeError, match="returned a int"):
        NystroemMap("rbf:1", landmarks=lambda *_: 3).fit(X)


def test_weights_and_rates_at_the_ends_of_their_range(rng):
    X, y = rng.standard_normal((30, 4)), np.arange(30) % 2
    model = LCKSVDClassifier(9, alpha=10**30, max_iter=1, random_state=0).fit(X, y)
    assert np.isfinite(model.components_).all()
    with pytest.raises(ValueError, match="needs at least inf calibration rows"):
        DictionaryOutlierDetector(alpha=1e-320).fit(X)


@pytest.mark.parametrize("dictionary", ["orthogonal", "fisher"])
def test_virtual_samples_of_k_sad_that_do_not_fit_into_memory(
    dictionary, rng, tmp_path
):
    X, y = rng.standard_normal((600, 3)), np.arange(600) % 3
    X += 3 * y[:, None]
    np.save(tmp_path / "X.npy", X)
    stored = np.load(tmp_path / "X.npy", mmap_mode="r")
    model = KSADClassifier("rbf:2", dictionary, n_components=40, random_state=0)
    expected = model.fit(X, y).predict_proba(X)
    with options(memory="60KB"):  # and 192 kB of virtual samples
        assert isinstance(model.map_.transform(stored), LazyRows)
        found = clone(model).fit(stored, y)
        shares, codes = found.predict_proba(stored), found.encode(stored)
    atoms = found.dictionary_.atoms, model.dictionary_.atoms
    np.testing.assert_allclose(*atoms, atol=1e-9)
    np.testing.assert_allclose(shares, expected, atol=1e-12)
    np.testing.assert_allclose(codes.toarray(), model.encode(X).toarray(), atol=1e-9)


def on_a_cluster(codes):
    da = pytest.importorskip("dask.array", reason="Dask is not installed")
    return da.from_array(codes, chunks=(10, -1))


@pytest.mark.parametrize("held", [np.asarray, sparse.csr_array, on_a_cluster])
@pytest.mark.parametrize("model", [KSVD(3), KernelKSVD("rbf:1", 3)], ids=repr)
def test_codes_that_nothing_can_be_made_of(model, held, rng):
    fitted = clone(model).fit(rng.standard_normal((30, 4)).astype(np.float32))
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for value in (np.nan, np.inf, np.finfo(float).max):
            with pytest.raises(ValueError, match=r"contains? NaN or infinity"):
                np.asarray(fitted.inverse_transform(held(np.full((20, 3), value))))
        with pytest.raises(ValueError, match="each of the 3 atoms"):
            np.asarray(fitted.inverse_transform(held(np.ones((20, 4)))))


def test_numbers_on_a_cluster_that_are_too_large_for_the_model(rng):
    fitted = KSVD(3).fit(rng.standard_normal((30, 4)).astype(np.float32))
    rows = on_a_cluster(np.full((20, 4), np.finfo(float).max))
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        with pytest.raises(ValueError, match="too large for float32"):
            fitted.transform(rows).compute()
