"""Kernels of series, matrices, strings, graphs and bags against plain loops."""

from __future__ import annotations

import itertools
import warnings
from collections import Counter
from math import exp, log

import numpy as np
import pytest
from scipy import linalg, sparse

from kernlets import (
    DTW,
    GAK,
    RBF,
    AdditiveChi2,
    AffineInvariant,
    Bures,
    CrossCorrelation,
    Gappy,
    Intersection,
    KernelKSVD,
    Linear,
    LocalAlignment,
    LogEuclidean,
    MeanEmbedding,
    Mismatch,
    NystroemMap,
    PyramidMatch,
    RandomWalk,
    ShortestPath,
    SoftDTW,
    Spectrum,
    SRCClassifier,
    Stein,
    WeisfeilerLehman,
    datasets,
    load,
    options,
    save,
)
from kernlets.dictionaries import GramDictionary
from kernlets.kernels import Kernel, strings, structured
from kernlets.kernels import graphs as graph_kernels
from kernlets.loops import table
from kernlets.loops.kernels.layout import GroupedSeries, Series
from kernlets.maps import AdditiveMap, ConvolutionMap, CountMap
from tests.structures import samples


def naive(function, X, Y):
    return np.array([[function(x, y) for y in Y] for x in X])


# series


def alignments(n, m):
    """All alignments of n steps with m: sequences of pairs of steps."""
    if n == 1 and m == 1:
        return [[(0, 0)]]
    found = []
    for a, b in ((n - 1, m - 1), (n - 1, m), (n, m - 1)):
        if a >= 1 and b >= 1:
            found += [[*path, (n - 1, m - 1)] for path in alignments(a, b)]
    return found


def all_paths_gak(x, y, sigma, band):
    def total(u, v):
        paths = alignments(len(u), len(v))
        return sum(np.prod([local(u, v, i, j) for i, j in path]) for path in paths)

    def local(u, v, i, j):
        e = exp(-((u[i] - v[j]) ** 2).sum() / (2 * sigma**2))
        e *= max(0.0, 1 - abs(i - j) / band) if band else 1.0
        return e / (2 - e)

    return total(x, y) / (total(x, x) * total(y, y)) ** 0.5


@pytest.mark.parametrize(("sigma", "band"), [(0.7, 0), (3.0, 0), (1.5, 3)])
def test_gak_is_the_sum_over_all_alignments(sigma, band, rng):
    X = [rng.normal(size=(n, 2)) for n in (1, 3, 5, 4)]
    Y = [rng.normal(size=(n, 2)) for n in (2, 5)]
    expected = naive(lambda x, y: all_paths_gak(x, y, sigma, band), X, Y)
    np.testing.assert_allclose(GAK(sigma, band)(X, Y), expected, rtol=1e-12)


@pytest.mark.parametrize("loops", ["numba", "reference"])
@pytest.mark.parametrize("sigma", [0.01, 0.05, 1.0, 100.0])
def test_gak_of_long_series_neither_under_nor_overflows(loops, sigma, rng):
    X = [rng.normal(size=(n, 1)) for n in (60, 75)]
    with options(loops=loops):
        K = GAK(sigma)(X)
    assert np.isfinite(K).all()
    np.testing.assert_allclose(np.diagonal(K), 1.0)
    with options(loops="reference"):
        np.testing.assert_allclose(K, GAK(sigma)(X), rtol=1e-9)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("apart", [0.0, 2.0, 5.0, 30.0, 1e4, 1e100])
@pytest.mark.parametrize("sigma", [0.5, 8.0, 1e200])
@pytest.mark.parametrize("band", [0, 4])
def test_logarithms_of_series_that_are_far_apart(channels, apart, sigma, band, rng):
    """Sums from 1 down to where no float holds them: all as plain loops have them."""
    X, Y = ([rng.normal(size=(n, channels)) for n in (1, 20, 33, 35)] for _ in "XY")
    far = [y + apart for y in Y]
    rate, geometric = 0.5 / sigma / sigma, band == 0
    rows, columns = Series.of(X), GroupedSeries.of(Series.of(far))
    found = table.log_gak(rows, columns, 0, 4, rate, band, geometric)
    with options(loops="reference"), np.errstate(over="ignore"):
        expected = table.log_gak(rows, columns, 0, 4, rate, band, geometric)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


def test_gak_of_very_long_series(rng):
    X = rng.normal(size=(3, 1500)).cumsum(axis=1)
    K = GAK()(datasets.z_normalize(X))
    assert np.isfinite(K).all() and (np.diagonal(K) == 1).all()
    assert GAK(1.0)(X, X[:1] + 1e-9)[0, 0] == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("width", [1, 2, 5, 40])
def test_bands_of_series_of_many_lengths(width, rng):
    X = [rng.normal(size=(n, 1)) for n in (1, 2, 30, 3, 17, 18, 9, 9, 25, 31, 4)]
    for kernel in (GAK(2.0, triangular=width), DTW(0.1, radius=width)):
        with options(loops="reference"):
            expected = kernel(X)
        np.testing.assert_allclose(kernel(X), expected, rtol=1e-10, atol=1e-14)


def test_cuturis_rule(rng):
    X = [rng.normal(size=(n, 2)) for n in (6, 8, 10)]
    steps = np.concatenate(X)
    apart = [np.linalg.norm(a - b) for a, b in itertools.combinations(steps, 2)]
    assert GAK().bound(X).sigma == pytest.approx(np.median(apart) * 8**0.5)


def test_a_band_that_no_alignment_fits_into():
    K = GAK(1.0, triangular=3)([[0.0, 1.0]], [[0.0] * 5, [0.0] * 4])
    assert K[0, 0] == 0 and K[0, 1] > 0


def naive_dtw(x, y, radius):
    best = np.inf
    for path in alignments(len(x), len(y)):
        allowed = np.inf if radius is None else max(radius, abs(len(x) - len(y)))
        if all(abs(i - j) <= allowed for i, j in path):
            best = min(best, sum(((x[i] - y[j]) ** 2).sum() for i, j in path))
    return best


@pytest.mark.parametrize("radius", [None, 0, 1])
def test_dtw_is_the_best_alignment(radius, rng):
    X = [rng.normal(size=(n, 2)) for n in (1, 4, 5, 5)]
    expected = naive(lambda x, y: exp(-0.3 * naive_dtw(x, y, radius)), X, X)
    np.testing.assert_allclose(DTW(0.3, radius)(X), expected, rtol=1e-12)


def test_dtw_says_that_it_is_not_definite():
    assert not DTW.psd and not (DTW() + 1.0).psd and GAK().psd


def naive_divergence(x, y, beta):
    def cost(u, v):
        paths = alignments(len(u), len(v))
        costs = [sum(((u[i] - v[j]) ** 2).sum() for i, j in path) for path in paths]
        return -beta * log(sum(exp(-c / beta) for c in costs))

    return cost(x, y) - (cost(x, x) + cost(y, y)) / 2


def test_soft_dtw_is_the_smoothed_cost_of_all_alignments(rng):
    X = [rng.normal(size=(n, 2)) for n in (1, 3, 5, 4)]
    expected = naive(lambda x, y: exp(-0.3 * naive_divergence(x, y, 0.7)), X, X)
    np.testing.assert_allclose(SoftDTW(0.3, 0.7)(X), expected, rtol=1e-12)


def test_soft_dtw_becomes_dtw(rng):
    X = rng.normal(size=(5, 20))
    np.testing.assert_allclose(SoftDTW(0.1, 1e-4)(X), DTW(0.1)(X), rtol=1e-3)
    known = SoftDTW().bound(X)
    D = -np.log(known(X)[np.triu_indices(5, 1)]) / known.gamma
    assert known.gamma == pytest.approx(1 / np.median(D))


@pytest.mark.parametrize("smoothing", [1e-3, 1.0, 1e3])
def test_soft_dtw_of_long_series(smoothing, rng):
    X = rng.normal(size=(3, 80))
    with options(loops="reference"):
        expected = SoftDTW(0.01, smoothing)(X)
    assert np.isfinite(expected).all()
    np.testing.assert_allclose(SoftDTW(0.01, smoothing)(X), expected, rtol=1e-9)


def naive_correlation(x, y, gamma):
    def total(u, v):
        u, v = u / np.linalg.norm(u), v / np.linalg.norm(v)
        found = 0.0
        for s in range(-len(v) + 1, len(u)):
            pairs = [(i, i - s) for i in range(len(u)) if 0 <= i - s < len(v)]
            found += exp(gamma * sum(u[i] @ v[j] for i, j in pairs)) - 1
        return found

    return total(x, y) / (total(x, x) * total(y, y)) ** 0.5


def test_cross_correlation_sums_over_shifts(rng):
    X = [rng.normal(size=(n, 2)) for n in (1, 4, 7, 9)]
    expected = naive(lambda x, y: naive_correlation(x, y, 3.0), X, X)
    np.testing.assert_allclose(CrossCorrelation(3.0)(X), expected, rtol=1e-10)


def test_cross_correlation_does_not_see_shifts_and_scales(rng):
    x = np.concatenate([rng.normal(size=6), np.zeros(6)])
    K = CrossCorrelation()([x, 3 * np.roll(x, 5), np.zeros(4)])
    np.testing.assert_allclose(K, [[1, 1, 0], [1, 1, 0], [0, 0, 0]], atol=1e-10)


def test_padding_lists_and_arrays_are_the_same(rng):
    ragged = [rng.normal(size=n) for n in (3, 5, 4)]
    padded = np.full((3, 6), np.nan)
    for row, x in zip(padded, ragged, strict=True):
        row[: len(x)] = x
    for form in (padded, padded[:, :, None], [x[:, None] for x in ragged]):
        np.testing.assert_array_equal(GAK(1.0)(form), GAK(1.0)(ragged))


def test_tensors_are_read(rng):
    torch = pytest.importorskip("torch")
    X = rng.normal(size=(4, 6))
    np.testing.assert_array_equal(DTW(1.0)(torch.asarray(X)), DTW(1.0)(X))


BAD_SERIES = {
    "empty": ([[1.0], []], "series 1 is empty"),
    "all padding": ([[1.0], [np.nan, np.nan]], "series 1 is empty"),
    "gap": ([[1.0, np.nan, 2.0]], "series 0 has NaN or infinity inside: fill it in"),
    "infinite": ([[1.0, np.inf]], "series 0 has NaN or infinity"),
    "channels": ([np.ones((3, 2)), np.ones((3, 1))], "series 1 has 1 channels, but"),
    "text": (["abc"], "series 0 is a str, not an array of real numbers"),
    "complex": ([np.array([1j])], "series 0 is a ndarray, not an array of real"),
    "cubes": ([np.ones((2, 2, 2))], r"series 0 has shape \(2, 2, 2\)"),
}


@pytest.mark.parametrize(("X", "message"), BAD_SERIES.values(), ids=list(BAD_SERIES))
def test_bad_series_are_refused(X, message):
    for kernel in (GAK(1.0), DTW(1.0), CrossCorrelation(), SoftDTW(1.0, 1.0)):
        with pytest.raises(ValueError, match=message):
            kernel(X)
    with pytest.raises(ValueError, match=message):
        ConvolutionMap(3).fit(X)


def test_channels_of_the_model_and_of_new_series():
    for kernel in (GAK(1.0), DTW(1.0), CrossCorrelation(), SoftDTW()):
        model = NystroemMap(kernel, n_landmarks=3).fit(samples("series", 5))
        with pytest.raises(ValueError, match="some series have 1 channels and"):
            model.transform([[1.0, 2.0]])


WRONG = [
    *(GAK(-1.0), DTW(0.0), CrossCorrelation(0), Stein(-1), SoftDTW(-1), SoftDTW(1, 0)),
    *(RandomWalk(decay=0), PyramidMatch(width=-1), LocalAlignment(0)),
]


@pytest.mark.parametrize("kernel", WRONG, ids=repr)
def test_parameters_are_checked(kernel):
    with pytest.raises(ValueError, match="must be a float in the range"):
        kernel(samples(kernel.takes, 3))


def test_parameters_of_another_type_are_refused():
    for kernel in (DTW(1.0, radius="x"), RandomWalk(None), MeanEmbedding(2)):
        with pytest.raises(ValueError, match="parameter of"):
            kernel.bound(samples(kernel.takes, 3))
    with pytest.raises(ValueError, match="decay\\^n_steps overflows"):
        RandomWalk(2, decay=1e300)(samples("graphs", 3))
    with pytest.raises(ValueError, match="lower gamma"):
        CrossCorrelation(1e300)(samples("series", 3))


def test_no_samples_to_set_a_width_from():
    with pytest.raises(ValueError, match="set from samples, and X has none"):
        GAK().bound([])


def test_samples_too_large_for_the_model():
    narrow = [x.astype(np.float32) for x in samples("series", 9)]
    model = NystroemMap(GAK(1.0), n_landmarks=3).fit(narrow)
    with pytest.raises(ValueError, match="sample 1 is too large for float32"):
        model.transform([narrow[0], narrow[1].astype(float) * 1e60])


def test_one_step_series():
    assert GAK(1.0)([[0.0]], [[1.0]])[0, 0] == pytest.approx(
        exp(-0.5) / (2 - exp(-0.5))
    )


def test_z_normalize(rng):
    long, flat = datasets.z_normalize([rng.normal(3, 2, (9, 2)), np.full((4, 2), 7.0)])
    np.testing.assert_allclose(long.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(long.std(axis=0), 1)
    assert not flat.any()
    assert datasets.z_normalize(np.ones((1, 3), np.float32))[0].dtype == np.float32


def naive_features(x, wave):
    """By NumPy's correlation with weights that have zeros between them."""
    weights, length, gap, padded, bias = wave
    span = (length - 1) * gap
    margin = span // 2 if padded or len(x) <= span else 0
    sums = bias
    for channel, row in zip(x.T, weights, strict=True):
        spaced = np.zeros(span + 1)
        spaced[::gap] = row[:length]
        sums = sums + np.correlate(np.pad(channel, margin), spaced, "valid")
    return [(sums > 0).mean(), sums.max()]


@pytest.mark.parametrize("loops", ["numba", "reference"])
def test_convolutions(loops, rng):
    X = [rng.normal(size=(n, 3)) for n in (1, 8, 40, 25)]
    model = ConvolutionMap(60, random_state=0).fit(X)
    assert set(model.lengths_) == {7, 9, 11} and model.gaps_.max() > 2
    assert ((model.gaps_ * (model.lengths_ - 1)) <= 39).all()
    columns = (
        model.weights_,
        model.lengths_,
        model.gaps_,
        model.padded_,
        model.biases_,
    )
    waves = list(zip(*columns, strict=True))
    expected = [np.concatenate([naive_features(x, w) for w in waves]) for x in X]
    with options(loops=loops):
        np.testing.assert_allclose(model.transform(X), expected, rtol=1e-9, atol=1e-12)


def test_convolutions_are_saved_and_keep_their_type(tmp_path):
    X = samples("series", 20)
    model = ConvolutionMap(30, random_state=0).fit(X)
    save(model, tmp_path / "a.model")
    again = load(tmp_path / "a.model")
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    narrow = model.transform([x.astype(np.float32) for x in X])
    assert narrow.dtype == np.float32 and len(model.get_feature_names_out()) == 60
    with options(n_threads=1):
        np.testing.assert_array_equal(again.transform(X), model.transform(X))
    with pytest.raises(ValueError, match="series have 1 channels, but 2 in the fit"):
        model.transform([[1.0, 2.0]])


# matrices


def spd_distance(name, A, B):
    if name == "log":
        return ((linalg.logm(A) - linalg.logm(B)) ** 2).sum()
    if name == "stein":
        half = log(linalg.det((A + B) / 2))
        return half - (log(linalg.det(A)) + log(linalg.det(B))) / 2
    if name == "affine":
        return (np.log(linalg.eigvalsh(A, B)) ** 2).sum()
    root = linalg.sqrtm(A)
    return np.trace(A) + np.trace(B) - 2 * np.trace(linalg.sqrtm(root @ B @ root)).real


@pytest.mark.parametrize(
    ("name", "kernel"),
    [
        ("log", LogEuclidean(0.4)),
        ("stein", Stein(0.4)),
        ("affine", AffineInvariant(0.4)),
        ("bures", Bures(0.4)),
    ],
)
def test_distances_of_matrices(name, kernel):
    X, Y = samples("matrices", 11), samples("matrices", 9, seed=1)
    expected = naive(lambda A, B: exp(-0.4 * spd_distance(name, A, B)), X, Y)
    np.testing.assert_allclose(kernel(X, Y), expected, rtol=1e-9)
    np.testing.assert_allclose(kernel(np.stack(X), np.stack(Y)), expected, rtol=1e-9)


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_stein_of_large_and_of_small_matrices(scale, rng):
    factors = rng.normal(size=(9, 30, 40))
    X = factors @ factors.swapaxes(1, 2) * scale
    with options(loops="reference"):
        expected = Stein(0.5)(X)
    np.testing.assert_allclose(Stein(0.5)(X), expected, rtol=1e-9)
    np.testing.assert_allclose(Stein(0.5)(X / scale), expected, rtol=1e-9)


def test_equal_matrices_are_equal_for_any_theta(rng):
    factors = rng.normal(size=(40, 6, 8))
    X = factors @ factors.swapaxes(1, 2)
    np.testing.assert_array_equal(Stein(1e300)(X, X.copy()), np.eye(40))


def test_where_stein_is_definite(rng):
    assert all(Stein(theta).psd for theta in (None, 0.5, 1, 9.5))
    assert not Stein(0.3).psd
    assert (2 * Stein().bound(samples("matrices", 20)).theta).is_integer()
    factors = rng.normal(size=(80, 5, 6)) * rng.lognormal(sigma=2, size=(80, 5, 1))
    X = factors @ factors.swapaxes(1, 2)
    for theta in (0.5, 1, 1.5, 2.1, 7.3):  # half numbers, or more than (5 - 1)/2
        assert np.linalg.eigvalsh(Stein(theta)(X))[0] > -1e-11 * len(X)


BAD_MATRICES = {
    "singular": ([np.eye(2), np.ones((2, 2))], "matrix 1 is not positive definite"),
    "indefinite": ([-np.eye(3)], "matrix 0 is not positive definite"),
    "lopsided": ([np.array([[1.0, 2.0], [0.0, 1.0]])], "matrix 0 is not symmetric"),
    "oblong": ([np.ones((2, 3))], r"matrix 0 has shape \(2, 3\), it must be square"),
    "sizes": ([np.eye(2), np.eye(3)], "matrix 1 has shape"),
    "nan": ([np.full((2, 2), np.nan)], "matrix 0 has NaN"),
}


@pytest.mark.parametrize(
    ("X", "message"), BAD_MATRICES.values(), ids=list(BAD_MATRICES)
)
def test_bad_matrices_are_refused(X, message):
    for kernel in (LogEuclidean(1.0), Stein(0.5), AffineInvariant(1.0)):
        with pytest.raises(ValueError, match=message):
            kernel(X)


def test_large_matrices():
    with pytest.raises(ValueError, match="matrix 1 has entries up to"):
        Stein()([np.eye(2), np.eye(2) * 1e200])
    large = [x * 1e40 for x in samples("matrices", 4)]
    np.testing.assert_array_equal(np.diagonal(Bures(0.3)(large)), 1.0)


def test_bures_takes_singular_matrices_and_refuses_negative_ones():
    assert Bures(1.0)([np.zeros((2, 2))], [np.eye(2)])[0, 0] == pytest.approx(exp(-2))
    with pytest.raises(ValueError, match="matrix 0 is not positive definite"):
        Bures(1.0)([np.diag([1.0, -1.0])])


def test_covariances(rng):
    signals = [rng.normal(size=(n, 3)) for n in (5, 9)]
    found = datasets.covariances(signals)
    expected = [np.cov(signal.T) for signal in signals]
    np.testing.assert_allclose(found, expected)
    shrunk = datasets.covariances([np.ones((4, 3)) * rng.normal(size=(4, 1))], 0.1)
    assert np.linalg.eigvalsh(shrunk[0])[0] > 0
    with pytest.raises(ValueError, match="series 0 has one step"):
        datasets.covariances([np.ones((1, 2))])
    with pytest.raises(ValueError, match=r"shrinkage=2 must be from 0 to 1"):
        datasets.covariances(signals, 2)


def test_region_covariances(rng):
    found = datasets.region_covariances(rng.random((3, 12, 10)))
    assert found.shape == (3, 5, 5) and np.linalg.eigvalsh(found).min() > 0
    with pytest.raises(ValueError, match="at least 3 × 3"):
        datasets.region_covariances(rng.random((3, 2, 10)))


# strings


def kmers(text, k):
    return Counter(text[i : i + k] for i in range(len(text) - k + 1))


def shared(a, b):
    return sum(count * b[part] for part, count in a.items())


def mismatched(text, k, m, alphabet):
    found = Counter()
    for kmer, count in kmers(text, k).items():
        for other in map("".join, itertools.product(alphabet, repeat=k)):
            if sum(p != q for p, q in zip(kmer, other, strict=True)) <= m:
                found[other] += count
    return found


def gapped(text, k, g):
    found = Counter()
    for window, count in kmers(text, g).items():
        for part in {"".join(p) for p in itertools.combinations(window, k)}:
            found[part] += count
    return found


WORDS = ["acgtacg", "aacc", "ac", "", "gggtga", "tac"]


@pytest.mark.parametrize(
    ("kernel", "features"),
    [
        (Spectrum(3), lambda s: kmers(s, 3)),
        (Spectrum(1), lambda s: kmers(s, 1)),
        (Mismatch(3, 1, alphabet="acgt"), lambda s: mismatched(s, 3, 1, "acgt")),
        (Mismatch(2, 2, alphabet="acgt"), lambda s: mismatched(s, 2, 2, "acgt")),
        (Mismatch(3, 0), lambda s: kmers(s, 3)),
        (Gappy(2, 4), lambda s: gapped(s, 2, 4)),
        (Gappy(3, 3), lambda s: kmers(s, 3)),
    ],
    ids=lambda part: repr(part) if isinstance(part, Kernel) else "naive",
)
def test_strings_by_what_they_share(kernel, features, rng):
    words = [*WORDS, *samples("strings", 6)]
    expected = naive(lambda x, y: shared(features(x), features(y)), words, words)
    np.testing.assert_array_equal(kernel(words), expected)
    np.testing.assert_array_equal(kernel.diag(words), np.diagonal(expected))


def naive_alignments(x, y, beta):
    """1 + Σ exp(β score) over rising sequences of pairs of places."""

    def gap(a, b):
        skipped = b - a - 1
        return 3.0 + (skipped - 1) if skipped else 0.0

    total = 1.0
    for k in range(1, min(len(x), len(y)) + 1):
        for i in itertools.combinations(range(len(x)), k):
            for j in itertools.combinations(range(len(y)), k):
                pairs = zip(i, j, strict=True)
                score = sum(2.0 if x[a] == y[b] else -1.0 for a, b in pairs)
                gaps = itertools.chain(itertools.pairwise(i), itertools.pairwise(j))
                total += exp(beta * (score - sum(gap(a, b) for a, b in gaps)))
    return total


@pytest.mark.parametrize("loops", ["numba", "reference"])
def test_local_alignments_are_all_counted(loops):
    words = ["acgta", "aacc", "ac", "", "gtga", "tac"]
    K = naive(lambda x, y: naive_alignments(x, y, 0.5), words, words)
    expected = K / np.sqrt(np.outer(np.diagonal(K), np.diagonal(K)))
    with options(loops=loops):
        np.testing.assert_allclose(LocalAlignment(0.5)(words), expected, rtol=1e-12)
        np.testing.assert_allclose(
            LocalAlignment(0.5)(words[:2], words), expected[:2], rtol=1e-12
        )


def test_local_alignments_of_long_strings():
    words = ["ab" * 300, "abc" * 250, "b" * 200]
    for beta in (0.01, 3.0):
        kernel = LocalAlignment(beta)
        with options(loops="reference"):
            expected = kernel([word[:60] for word in words])
        found = kernel([word[:60] for word in words])
        np.testing.assert_allclose(found, expected, rtol=1e-9)
        K = kernel(words)
        assert np.isfinite(K).all() and (np.diagonal(K) == 1).all()
    with pytest.raises(ValueError, match="mismatch=3 must be at most match=2"):
        LocalAlignment(mismatch=3, match=2)(words)
    with pytest.raises(ValueError, match="lower beta"):
        LocalAlignment(1e3)(words)


def test_other_sequences_are_strings_too():
    expected = Spectrum(2)(["aba", "bab"])
    for form in ([list("aba"), list("bab")], [[0, 1, 0], [1, 0, 1]], [b"aba", b"bab"]):
        np.testing.assert_array_equal(Spectrum(2)(form), expected)
    assert Spectrum(1)(["žluťoučký"], ["ž"]).tolist() == [[1.0]]
    with pytest.raises(ValueError, match="string 0 is a list: pass text"):
        Spectrum(2)([[0.5, 1.0]])


def test_string_parameters_are_checked():
    with pytest.raises(ValueError, match="'k' parameter of Spectrum must be an int"):
        Spectrum(0)(["a"])
    with pytest.raises(ValueError, match="g=2 must be at least k=3"):
        Gappy(3, 2)(["aaaa"])
    with pytest.raises(ValueError, match="lower m or k, or use Gappy"):
        Mismatch(9, 4, alphabet="abcdefghijkl")(["abcabcabcabc"])


def test_strings_without_parts():
    with pytest.raises(ValueError, match="no sample other than zero"):
        SRCClassifier(Spectrum(5)).fit(["ab", "ba"], [0, 1])


def test_counts_are_the_features_of_the_kernel():
    words, new = samples("strings", 12), samples("strings", 5, seed=1)
    for kernel in (Spectrum(2), Mismatch(2, 1, alphabet="acgt"), Gappy(2, 3)):
        model = CountMap(kernel).fit(words)
        F = model.transform(words)
        assert sparse.issparse(F) and F.shape == (12, len(model.vocabulary_))
        np.testing.assert_array_equal((F @ F.T).toarray(), kernel(words))
        K = (model.transform(new) @ F.T).toarray()
        np.testing.assert_array_equal(K, kernel(new, words))
    assert CountMap("spectrum:2", min_samples=6).fit(words).transform(new).shape[1] < 12
    assert KernelKSVD("linear", 3, random_state=0).fit(F).transform(F).shape == (12, 3)


def test_a_map_of_counts_wants_a_kernel_that_counts():
    with pytest.raises(ValueError, match="has no sparse features: use Spectrum"):
        CountMap("gak").fit([[1.0]])
    with pytest.raises(ValueError, match="no part is in 3 samples"):
        CountMap(min_samples=3).fit(["abc", "abd"])


# graphs


def naive_wl(graph, rounds):
    adjacency, labels = graph
    names = [repr(label) for label in labels]
    found = Counter(names)
    for _ in range(rounds):
        around = [sorted(names[j] for j in np.flatnonzero(row)) for row in adjacency]
        names = [f"({a}|{','.join(b)})" for a, b in zip(names, around, strict=True)]
        found.update(names)
    return found


def naive_paths(graph, with_labels):
    adjacency, labels = graph
    n = len(labels)
    length = np.where(adjacency > 0, adjacency, np.inf)
    for k, i, j in itertools.product(range(n), repeat=3):
        length[i, j] = min(length[i, j], length[i, k] + length[k, j])
    ends = [(i, j) for i in range(n) for j in range(n) if i != j]
    return Counter(
        (labels[i], labels[j], length[i, j]) if with_labels else length[i, j]
        for i, j in ends
        if np.isfinite(length[i, j])
    )


def test_weisfeiler_lehman_counts_neighbourhoods():
    graphs = samples("graphs", 12)
    features = [naive_wl(graph, 3) for graph in graphs]
    expected = naive(shared, features, features)
    np.testing.assert_array_equal(WeisfeilerLehman(3)(graphs), expected)


@pytest.mark.parametrize("with_labels", [True, False])
def test_shortest_paths_are_counted(with_labels):
    graphs = samples("graphs", 10)

    def pair(a, b):
        return shared(naive_paths(a, with_labels), naive_paths(b, with_labels))

    expected = naive(pair, graphs, graphs)
    np.testing.assert_array_equal(ShortestPath(with_labels)(graphs), expected)


def product_walks(a, b, n_steps, decay):
    """Σ λᵏ 1ᵀAᵏ1 of the direct product of two graphs."""
    same = np.equal.outer(a[1], b[1]).ravel()
    A = np.kron(a[0], b[0])[np.ix_(same, same)]
    ends, total = np.ones(len(A)), 0.0
    for k in range(n_steps + 1):
        total += decay**k * ends.sum()
        ends = A @ ends
    return total


@pytest.mark.parametrize(("n_steps", "decay"), [(0, 1.0), (2, 0.5), (5, 0.2)])
def test_random_walks_of_the_product_graph(n_steps, decay):
    graphs = samples("graphs", 10)
    expected = naive(lambda a, b: product_walks(a, b, n_steps, decay), graphs, graphs)
    K = RandomWalk(n_steps, decay)(graphs)
    np.testing.assert_allclose(K, expected, rtol=1e-12)


def test_too_many_walks_are_refused():
    n = 60
    with pytest.raises(ValueError, match="lower n_steps"):
        RandomWalk(4)([(1 - np.eye(n), list(range(n)))])


def test_forms_of_one_graph():
    networkx = pytest.importorskip("networkx")
    adjacency, labels = samples("graphs", 1)[0]
    ends = np.argwhere(adjacency)
    graph = networkx.from_numpy_array(adjacency)
    networkx.set_node_attributes(graph, dict(enumerate(labels)), "label")
    edges = {(int(a), int(b)): 1 for a, b in ends}
    forms = [
        (sparse.csr_array(adjacency), labels),
        (adjacency.tolist(), np.array(labels)),
        graph,
        [edges, dict(enumerate(labels))],
        [set(edges), dict(enumerate(labels)), {}],
        [
            {int(a): adjacency[a].nonzero()[0].tolist() for a in range(len(labels))},
            dict(enumerate(labels)),
        ],
    ]
    for kernel in (WeisfeilerLehman(2), ShortestPath()):
        expected = kernel([(adjacency, labels)])
        for form in forms:
            np.testing.assert_array_equal(kernel([form]), expected)


def test_graphs_without_labels_have_one_for_all():
    adjacency = samples("graphs", 1)[0][0]
    ones = [0] * len(adjacency)
    K = WeisfeilerLehman(2)([adjacency, (adjacency, None), (adjacency, ones)])
    assert (K == K[0, 0]).all()


def test_labels_may_be_text_and_are_the_same_in_every_process():
    path = np.eye(3, k=1) + np.eye(3, k=-1)
    graph = WeisfeilerLehman(0).samples([(path, ["C", "N", ("a", 1)])])[0]
    assert graph.labels.tolist() == [279667425126831, 96306877673337, 14889112467468]


BAD_GRAPHS = {
    "directed": (np.array([[0, 1], [0, 0]]), "is not symmetric"),
    "negative": (np.array([[0, -1], [-1, 0]]), "not a positive number"),
    "labels": ((np.zeros((2, 2)), [1]), "has 2 nodes, but 1 labels"),
    "some labels": ([{(0, 1): 1}, {0: "a"}], "no label for node 1"),
    "vector": ((np.zeros((1, 1)), [[1.0, 2.0]]), "labels are numbers, text or"),
    "oblong": (np.zeros((2, 3)), "cannot be read: pass an adjacency matrix"),
    "text": ("abc", "cannot be read"),
    "empty": (np.zeros((0, 0)), "has no nodes"),
    "edges": ([{(0, 1, 2)}, None], "edges that are no pairs"),
}


@pytest.mark.parametrize(
    ("graph", "message"), BAD_GRAPHS.values(), ids=list(BAD_GRAPHS)
)
def test_bad_graphs_are_refused(graph, message):
    with pytest.raises(ValueError, match=f"graph 0 .*{message}"):
        WeisfeilerLehman()([graph])


# bags


@pytest.mark.parametrize("inner", [RBF(sigma=1.0), Linear()], ids=repr)
def test_bags_by_the_mean_over_pairs(inner):
    X, Y = samples("bags", 7), samples("bags", 40, seed=1)
    expected = naive(lambda a, b: inner(a, b).mean(), X, Y)
    np.testing.assert_allclose(MeanEmbedding(inner)(X, Y), expected, rtol=1e-10)
    model = MeanEmbedding().bound(X)
    assert model.kernel.gamma == RBF().bound(np.concatenate(X)).gamma


def naive_pyramid(a, b, n_levels, width):
    total, before = 0.0, 0
    for level in range(n_levels):
        side = width * 2**level
        cells = [Counter(map(tuple, np.floor(bag / side))) for bag in (a, b)]
        matches = sum((cells[0] & cells[1]).values())
        total += (matches - before) / 2**level
        before = matches
    return total


def test_pyramids_of_matches(rng):
    bags = [*samples("bags", 12), rng.integers(-3, 3, (9, 3)).astype(float)]
    expected = naive(lambda a, b: naive_pyramid(a, b, 5, 0.25), bags, bags)
    np.testing.assert_allclose(PyramidMatch(5, 0.25)(bags), expected, rtol=1e-12)
    features = CountMap(PyramidMatch(5, 0.25)).fit_transform(bags)
    np.testing.assert_allclose((features @ features.T).toarray(), expected, rtol=1e-12)
    known = PyramidMatch(5).bound(bags)
    assert known.width == np.ptp(np.concatenate(bags), axis=0).max() / 16
    with pytest.raises(ValueError, match="width=1e-30 is too small"):
        PyramidMatch(width=1e-30)(bags)


# histograms


def test_additive_chi2_is_a_sum_over_features(rng):
    X, Y = rng.poisson(1.0, (6, 5)).astype(float), rng.random((4, 5))
    expected = naive(
        lambda x, y: sum(2 * a * b / (a + b) for a, b in zip(x, y, strict=True) if a),
        X,
        Y,
    )
    np.testing.assert_allclose(AdditiveChi2()(X, Y), expected, rtol=1e-12)


@pytest.mark.parametrize("kernel", [Intersection(), AdditiveChi2()], ids=repr)
def test_additive_features_are_exact_with_training_rows(kernel, rng):
    X = rng.gamma(0.5, size=(40, 6)) * (rng.random((40, 6)) < 0.7)
    new = rng.gamma(0.5, size=(30, 6))
    X[:, 5] = 0.0  # a column without knots
    model = AdditiveMap(kernel, n_knots=40).fit(X)
    F, G = model.transform(X), model.transform(new)
    np.testing.assert_allclose(F @ F.T, kernel(X), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(G @ F.T, kernel(new, X), rtol=1e-8, atol=1e-8)
    few = AdditiveMap(kernel, n_knots=12).fit(X).transform(X)
    assert np.abs(few @ few.T - kernel(X)).max() < 0.1 * kernel(X).max()
    assert model.transform(X.astype(np.float32)).dtype == X.dtype
    assert AdditiveMap(kernel).fit_transform(X.astype(np.float32)).dtype == np.float32


def test_additive_features_of_bad_rows():
    with pytest.raises(ValueError, match="is no sum over features"):
        AdditiveMap("chi2").fit([[1.0]])
    with pytest.raises(ValueError, match="negative values"):
        AdditiveMap().fit([[1.0], [-1.0]])
    model = AdditiveMap().fit([[1.0], [2.0]])
    with pytest.raises(ValueError, match="negative values"):
        model.transform([[-1.0]])


@pytest.mark.parametrize("band", [1, 2, 3, 8])
@pytest.mark.parametrize("kind", ["GAK", "DTW"])
def test_narrow_bands_and_series_of_very_different_lengths(rng, kind, band):
    lengths = [1, 2, 3, 7, 8, 9, 30, 31, 64, 5]
    series = [rng.standard_normal((n, 2)) for n in lengths]
    kernel = GAK(2.0, triangular=band) if kind == "GAK" else DTW(1.0, radius=band)
    found = kernel(series)
    with options(loops="reference"):
        expected = kernel(series)
    np.testing.assert_allclose(found, expected, atol=1e-10)


def count_calls(monkeypatch, module, name, most):
    """Let a function be called so often at most: time is no part of a test."""
    function, calls = getattr(module, name), []

    def counted(*args):
        calls.append(1)
        assert len(calls) <= most, f"{name} is called more than {most} times"
        return function(*args)

    monkeypatch.setattr(module, name, counted)


LONG = 10**5


@pytest.mark.parametrize(
    "kernel",
    [Spectrum(LONG), Mismatch(LONG, 1), Mismatch(LONG, LONG), Gappy(LONG // 2, LONG)],
    ids=repr,
)
def test_substrings_longer_than_all_strings_cost_nothing(kernel, monkeypatch):
    count_calls(monkeypatch, strings, "digest_sequences", 10)
    count_calls(monkeypatch, structured, "digest_numbers", 10)
    texts = ["abab", "", "ba" * 50]
    np.testing.assert_array_equal(kernel(texts), np.zeros((3, 3)))
    np.testing.assert_array_equal(kernel.diag(texts), np.zeros(3))


def test_too_many_neighbours_are_refused_before_they_are_counted(monkeypatch):
    count_calls(monkeypatch, strings, "comb", 20)
    text = "ab" * LONG
    for kernel, word in [
        (Mismatch(LONG, LONG), "Mismatch"),
        (Gappy(LONG // 2, LONG), "Gappy"),
        (Gappy(10, 60), "Gappy"),
    ]:
        with pytest.raises(ValueError, match=f"{word}: .* has more than"):
            kernel([text])
    assert Mismatch(2, 10**9)(["ab", "aa"]).shape == (2, 2)


NO_EDGES, PATH = np.zeros((3, 3)), np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])


def test_steps_and_rounds_beyond_all_sense(monkeypatch):
    count_calls(monkeypatch, graph_kernels, "_extend_walks", 1500)
    far, near = RandomWalk(10**9, 0.1), RandomWalk(2, 0.1)
    np.testing.assert_allclose(far([NO_EDGES]), near([NO_EDGES]))
    with pytest.raises(ValueError, match="lower n_steps"):
        far([PATH])
    count_calls(monkeypatch, graph_kernels, "_relabel", 100)
    with pytest.raises(ValueError, match="lower n_iter"):
        WeisfeilerLehman(10**9)([PATH])


@pytest.mark.parametrize("width", [None, 1.0])
def test_levels_of_a_pyramid_have_a_limit(width):
    bags = [[[0.2, 1.0], [3.5, 2.0]], [[0.4, 5.0]]]
    assert np.isfinite(PyramidMatch(40, width=width).bound(bags)(bags)).all()
    with pytest.raises(ValueError, match="n_levels"):
        PyramidMatch(10**5, width=width).bound(bags)(bags)


def test_mixtures_without_a_norm():
    zero = np.array([[1.0, -1.0], [-1.0, 1.0]])  # φ(x₁) = −φ(x₂)
    with pytest.raises(ValueError, match="init='samples'"):
        GramDictionary.of_coefs(zero, np.ones((1, 2)))


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


def test_no_bags_set_no_width():
    assert MeanEmbedding()([]).shape == (0, 0)
    assert MeanEmbedding().bound([])([]).shape == (0, 0)


def test_widths_that_overflow_the_distances_of_series():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        K = DTW(1e300)([np.array([0.0, 1e100]), np.zeros(2)])
    assert K.tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_bands_of_series_after_a_group_with_a_longer_one(rng):
    """Eight series are aligned at a time; the first eight need another band."""
    lengths = [7, 7, 30, *[7] * 17]
    series = [rng.standard_normal((n, 1)) for n in lengths]
    packed = Series.of(series)
    grouped = GroupedSeries.of(packed)
    found = table.dtw.loop("numba")(packed, grouped, 0, 20, 2)
    expected = table.dtw.loop("reference")(packed, grouped, 0, 20, 2)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


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


@pytest.mark.parametrize("loops", ["reference", "numba"])
@pytest.mark.parametrize("scale", [1e-164, 1e90])
def test_stein_divergences_of_tiny_and_huge_matrices(loops, scale, rng):
    factors = rng.standard_normal((9, 6, 4))
    matrices = factors.swapaxes(1, 2) @ factors
    with options(loops=loops):
        found = Stein(0.5)(list(matrices * scale))
        np.testing.assert_allclose(found, Stein(0.5)(list(matrices)), rtol=1e-9)
        np.testing.assert_array_equal(np.diag(Stein(1e6)(list(matrices * scale))), 1)
