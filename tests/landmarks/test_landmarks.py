"""Landmark samplers: their laws, against stated probabilities and naive versions."""

from __future__ import annotations

from collections import Counter
from functools import partial
from itertools import combinations, permutations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import chisquare

from kernlets import (
    RBF,
    Linear,
    NystroemMap,
    Polynomial,
    Precomputed,
    datasets,
    options,
)
from kernlets.data.rows import evenly_spaced_rows
from kernlets.landmarks import (
    SAMPLERS,
    choose,
    column_norm,
    coreset,
    diagonal,
    kmeans,
    leverage,
    leverage_scores,
    rpcholesky,
    samplers,
    uniform,
)
from kernlets.landmarks.choose import default_count
from kernlets.landmarks.samplers import (
    ColumnNorms,
    coreset_weights,
    draw,
    mean_and_energy,
)

SURE = 1e-4  # p-value below which a law is not the stated one; seeds are fixed


def assert_law(outcomes, probabilities):
    """Chi-squared test of hashable outcomes against {outcome: probability}."""
    counts = Counter(outcomes)
    assert set(counts) <= set(probabilities)
    keys = sorted(probabilities)
    expected = np.array([probabilities[key] for key in keys]) * len(outcomes)
    assert chisquare([counts[key] for key in keys], expected).pvalue > SURE


def sets_without_replacement(weights, m):
    """{set of m indices: probability} of draws one by one, by enumeration."""
    law = Counter()
    for order in permutations(range(len(weights)), m):
        left, chance = float(sum(weights)), 1.0
        for i in order:
            chance *= weights[i] / left
            left -= weights[i]
        law[tuple(sorted(order))] += chance
    return {key: chance for key, chance in law.items() if chance > 0}


def rpcholesky_law(K, m):
    """{set of m pivots: probability} of randomly pivoted Cholesky, by enumeration."""
    law = Counter()
    for order in permutations(range(len(K)), m):
        left, chance = K.copy(), 1.0
        for i in order:
            chance *= left[i, i] / np.trace(left)
            left = left - np.outer(left[:, i], left[:, i]) / left[i, i]
        law[tuple(sorted(order))] += chance
    return dict(law)


def drawn_sets(sampler, kernel, X, m, rng, repeats=3000):
    return [tuple(sorted(sampler(kernel, X, m, rng))) for _ in range(repeats)]


@pytest.fixture
def X(rng):
    return rng.standard_normal((6, 3)) * np.array([0.5, 1, 1, 1.5, 2, 0.2])[:, None]


KERNEL = Polynomial(2, coef0=1.0)
STATED = {
    "uniform": (uniform, lambda K, X: np.ones(len(K))),
    "diagonal": (diagonal, lambda K, X: np.diag(K) ** 2),
    "column-norm": (column_norm, lambda K, X: np.linalg.norm(K, axis=0)),
    "column-norm squared": (
        partial(column_norm, squared=True),
        lambda K, X: np.linalg.norm(K, axis=0) ** 2,
    ),
    "coreset": (
        coreset,
        lambda K, X: [
            minimize_scalar(lambda g, x=x: ((x - g * X.mean(0)) ** 2).sum()).fun
            for x in X
        ],
    ),
    "coreset, own mean": (
        partial(coreset, own_mean=True),
        lambda K, X: [sum((value - sum(x) / len(x)) ** 2 for value in x) for x in X],
    ),
}


@pytest.mark.parametrize("name", STATED)
@pytest.mark.parametrize("m", [1, 3])
def test_sets_are_drawn_with_the_stated_probabilities(name, m, X, rng):
    sampler, weights = STATED[name]
    law = sets_without_replacement(weights(KERNEL(X), X), m)
    assert_law(drawn_sets(sampler, KERNEL, X, m, rng), law)


@pytest.mark.parametrize(
    "name", ["uniform", "diagonal", "column-norm", "coreset", "coreset, own mean"]
)
def test_with_replacement_repeats_are_removed(name, X, rng):
    sampler, weights = STATED[name]
    p = np.array(weights(KERNEL(X), X))
    p = p / p.sum()
    sets = drawn_sets(partial(sampler, replace=True), KERNEL, X, 4, rng, 2000)
    assert all(len(set(drawn)) == len(drawn) for drawn in sets)
    share = np.array([np.mean([i in drawn for drawn in sets]) for i in range(len(X))])
    np.testing.assert_allclose(share, 1 - (1 - p) ** 4, atol=4 * 0.5 / 2000**0.5)


def test_zero_weights_are_drawn_last_and_uniformly(rng):
    weights = np.array([0.0, 3.0, 0.0, 1.0, 0.0])
    sets = [tuple(sorted(draw(weights, 3, rng))) for _ in range(2000)]
    assert_law(sets, {(0, 1, 3): 1 / 3, (1, 2, 3): 1 / 3, (1, 3, 4): 1 / 3})
    assert sorted(draw(np.zeros(4), 4, rng)) == [0, 1, 2, 3]
    assert len(draw(np.zeros(4), 2, rng, replace=True)) in (1, 2)


def test_coreset_weight_is_the_minimum_over_gamma(rng):
    X = rng.standard_normal((40, 5)) + 1.0
    expected = STATED["coreset"][1](None, X)
    np.testing.assert_allclose(
        coreset_weights(*mean_and_energy(X), X), expected, rtol=1e-6
    )
    np.testing.assert_allclose(
        coreset_weights(*mean_and_energy(X - X.mean(0)), X - X.mean(0)),
        ((X - X.mean(0)) ** 2).sum(1),
    )


def few_columns(monkeypatch, exact, columns):
    monkeypatch.setattr(samplers, "MAX_EXACT", exact)
    monkeypatch.setattr(samplers, "N_COLUMNS", columns)


@pytest.mark.parametrize("kernel", [RBF(0.2), RBF(2.0), KERNEL], ids=repr)
@pytest.mark.parametrize("columns", [2, 4])
def test_column_norms_of_many_samples_are_right_in_the_mean(
    kernel, columns, X, rng, monkeypatch
):
    """Over all choices of columns, with those of the sample itself among them."""
    few_columns(monkeypatch, 5, columns)
    exact = (kernel(X) ** 2).sum(axis=1)
    choices = [np.array(chosen) for chosen in combinations(range(len(X)), columns)]
    found = []
    for chosen in choices:
        # two blocks, as rows on disk come
        weigh = ColumnNorms(kernel, X[chosen], chosen, len(X), squared=True)
        found.append(np.append(weigh(X[:2], 0), weigh(X[2:], 2)))
    # given whether it is a column itself, a sample sees all others equally often
    inside = np.array([np.isin(np.arange(len(X)), chosen) for chosen in choices])
    for now in (inside, ~inside):
        mean = np.average(found, axis=0, weights=now)
        np.testing.assert_allclose(mean, exact, rtol=1e-12)


class Counting(RBF):
    """Counts the pairs on which it was evaluated."""

    def __call__(self, X, Y=None):
        counted.append(X.shape[0] * (X if Y is None else Y).shape[0])
        return super().__call__(X, Y)


counted: list[int] = []


def test_column_norms_cost_no_square_of_many_samples(rng, monkeypatch):
    few_columns(monkeypatch, 100, 20)
    X = rng.standard_normal((400, 3))
    for n, evaluations in ((100, 100 * 100), (400, 400 * 20)):
        counted.clear()
        assert len(column_norm(Counting(1.0), X[:n], 9, rng)) == 9
        assert sum(counted) == evaluations
    K = RBF(1.0)(X)  # costs nothing: all of it counts
    assert ColumnNorms.of(Precomputed(), K, rng, True).numbers.shape == (400,)


def test_column_norms_of_many_samples_on_disk_and_on_a_cluster(
    rng, monkeypatch, tmp_path
):
    da = pytest.importorskip("dask.array", reason="Dask is not installed")
    few_columns(monkeypatch, 100, 20)
    X = rng.standard_normal((400, 3))
    np.save(tmp_path / "X.npy", X)
    disk = np.load(tmp_path / "X.npy", mmap_mode="r")
    for sampler in (column_norm, partial(column_norm, squared=True, replace=True)):
        wanted = sampler(RBF(0.5), X, 30, np.random.default_rng(3))
        for rows in (disk, da.from_array(X, chunks=(90, 3))):
            with options(block_rows=64):
                found = sampler(RBF(0.5), rows, 30, np.random.default_rng(3))
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("block", [1, 2, 7])
def test_rpcholesky_has_the_law_of_one_pivot_at_a_time(block, X, rng):
    kernel = RBF(sigma=1.0)
    law = rpcholesky_law(kernel(X), 3)
    sampler = partial(rpcholesky, block=block)
    assert_law(drawn_sets(sampler, kernel, X, 3, rng, 2000), law)


def test_rpcholesky_in_order_of_drawing(X, rng):
    K = KERNEL(X)
    first = [int(rpcholesky(KERNEL, X, 2, rng, block=5)[0]) for _ in range(2000)]
    assert_law(first, dict(enumerate(np.diag(K) / np.trace(K))))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rpcholesky_stops_when_all_is_explained(dtype, rng):
    X = rng.standard_normal((60, 3)).astype(dtype)
    X[30:] = X[:30]  # every sample twice
    X[5] = X[35] = 0.0
    pivots = rpcholesky(Linear(), X, 20, rng)
    assert len(pivots) == 3 and np.linalg.matrix_rank(X[pivots]) == 3
    assert len(rpcholesky(Linear(), np.zeros((4, 2)), 2, rng)) == 0


def test_rpcholesky_says_when_memory_does_not_suffice(rng):
    with options(memory=10_000), pytest.raises(MemoryError, match=r"40 kB.* 10 kB"):
        rpcholesky(Linear(), np.ones((100, 2)), 50, rng)


def test_leverage_scores_by_definition(rng):
    X = rng.standard_normal((50, 4))
    kernel = RBF(sigma=1.5)
    K = kernel(X)
    exact = np.diag(K @ np.linalg.inv(K + 0.3 * np.eye(50)))
    everything = rng.permutation(50)
    scores = leverage_scores(kernel, X, everything, 10, regularization=0.3)
    np.testing.assert_allclose(scores, exact, atol=1e-10)
    ridge = np.sort(np.linalg.eigvalsh(K))[:-5].sum() / 5  # the tail beyond m/2
    by_default = leverage_scores(kernel, X, everything, 10)
    np.testing.assert_allclose(
        by_default, np.diag(K @ np.linalg.inv(K + ridge * np.eye(50))), atol=1e-10
    )
    assert by_default.sum() <= 10


def test_leverage_scores_improve_with_the_pilot(rng):
    X = np.vstack([rng.standard_normal((180, 2)) * 0.1, rng.uniform(-4, 4, (20, 2))])
    kernel = RBF(sigma=0.7)
    K = kernel(X)
    exact = np.diag(K @ np.linalg.inv(K + np.eye(200)))

    def error(size):
        pilots = [rng.choice(200, size, replace=False) for _ in range(10)]
        scores = [leverage_scores(kernel, X, p, 20, regularization=1.0) for p in pilots]
        return np.abs(scores - exact).mean()

    assert error(200) < 1e-10 < error(120) < error(40) < exact.mean()


def test_leverage_prefers_samples_off_the_crowd(rng):
    X = np.vstack([rng.standard_normal((180, 2)) * 0.1, rng.uniform(-4, 4, (20, 2))])
    drawn = [leverage(RBF(sigma=0.7), X, 20, rng) for _ in range(20)]
    share = np.mean([(indices >= 180).mean() for indices in drawn])
    assert share > 3 * 20 / 200  # three times their share of the samples


def test_kmeans_finds_the_means_of_clusters(rng):
    centres = np.array([[0.0, 0], [10, 0], [0, 10]])
    X = (centres[np.arange(90) % 3] + 0.1 * rng.standard_normal((90, 2))).astype("f4")
    found = kmeans(Linear(), X, 3, np.random.default_rng(5), init="k-means++")
    assert found.dtype == np.float32
    means = [X[i::3].mean(0) for i in range(3)]
    np.testing.assert_allclose(
        sorted(found.tolist()), sorted(np.array(means).tolist()), atol=1e-5
    )


def test_kmeans_with_as_many_centres_as_samples_returns_them(rng):
    X = rng.standard_normal((20, 3))
    assert np.array_equal(kmeans(Linear(), X, 20, rng), X)
    repeated = np.repeat(X[:4], 5, axis=0)
    assert np.isfinite(kmeans(Linear(), repeated, 8, rng)).all()


def test_kmeans_represents_samples_better_than_samples_do(rng):
    X = rng.standard_normal((300, 4))

    def cost(points):
        return ((X[:, None] - points[None]) ** 2).sum(2).min(1).mean()

    assert cost(kmeans(Linear(), X, 30, rng)) < 0.8 * cost(X[uniform(None, X, 30, rng)])


# What users ask for


def test_counts_fractions_and_default(rng):
    X = rng.standard_normal((400, 3))
    sizes = {n: len(choose("uniform", RBF(1.0), X, n, rng).rows) for n in (7, 0.1, 1.0)}
    assert sizes == {7: 7, 0.1: 40, 1.0: 400}
    assert len(choose("uniform", RBF(1.0), X, None, rng).rows) == default_count(400)
    assert [default_count(n) for n in (50, 400, 900, 10**4, 10**6)] == [
        50,
        400,
        500,
        1000,
        2000,
    ]


@pytest.mark.parametrize("name", SAMPLERS)
def test_every_sampler_gives_distinct_samples_or_points(name, rng):
    X = rng.standard_normal((80, 4))
    X[10:20], X[20:25] = X[:10], 0.0  # duplicates, zero rows
    found = choose(name, Polynomial(3, coef0=1.0), X, 25, rng)
    assert found.rows.shape == (25, 4) and np.isfinite(found.rows).all()
    if found.indices is not None:
        assert len(set(found.indices)) == 25
        np.testing.assert_array_equal(found.rows, X[found.indices])


def test_given_indices_and_points(rng):
    X = rng.standard_normal((10, 3))
    found = choose([4, 2, 7], RBF(1.0), X, None, rng)
    np.testing.assert_array_equal(found.rows, X[[4, 2, 7]])
    np.testing.assert_array_equal(found.indices, [4, 2, 7])
    points = rng.standard_normal((5, 3))
    found = choose(points, RBF(1.0), X, 5, rng)
    assert found.indices is None and np.array_equal(found.points, points)


@pytest.mark.parametrize(
    ("text", "sampler"),
    [
        ("uniform:replace=True", partial(uniform, replace=True)),
        (
            "coreset: own_mean=True, replace=True",
            partial(coreset, own_mean=True, replace=True),
        ),
        ("column-norm:squared=True", partial(column_norm, squared=True)),
        ("kmeans:max_iter=2", partial(kmeans, max_iter=2)),
    ],
)
def test_a_name_carries_options(text, sampler, rng):
    X = rng.standard_normal((60, 4)) + 1.0
    found, expected = (
        choose(each, RBF(1.0), X, 20, np.random.default_rng(0))
        for each in (text, sampler)
    )
    np.testing.assert_array_equal(found.points, expected.points)
    plain = choose(text.partition(":")[0], RBF(1.0), X, 20, np.random.default_rng(0))
    assert not np.array_equal(plain.points, found.points)


def test_mean_free_rows_of_unit_norm_are_equally_far_from_their_own_means(rng):
    X = datasets.remove_mean_and_normalize(rng.standard_normal((5, 4)))
    sets = drawn_sets(partial(coreset, own_mean=True), RBF(1.0), X, 2, rng)
    assert_law(sets, dict.fromkeys(combinations(range(5), 2), 1 / 10))


@pytest.mark.parametrize(
    ("landmarks", "n_landmarks", "message"),
    [
        (
            "coreset:own=True",
            None,
            r"coreset has no parameter 'own'.*replace, own_mean",
        ),
        ("coreset:replace=yes", None, "sampler parameter 'yes'"),
        ("coresett:replace=True", None, "did you mean 'coreset'"),
        ("unifrom", None, "did you mean 'uniform'"),
        ("magic", None, "column-norm"),
        ([0, 10], None, "rows 0 to 9"),
        ([-1, 2], None, "rows 0 to 9"),
        ([0.5, 1.5], None, "whole numbers"),
        (np.zeros((2, 4)), None, "4 columns but X has 3"),
        (np.full((2, 3), np.nan), None, "NaN"),
        ([0, 1, 2], 5, "leave n_landmarks out"),
    ],
)
def test_errors_name_the_argument(landmarks, n_landmarks, message, rng):
    with pytest.raises(ValueError, match=message):
        choose(landmarks, RBF(1.0), np.ones((10, 3)), n_landmarks, rng)


@pytest.mark.parametrize(
    "landmarks", ["kmeans", "coreset", "coreset:replace=True", np.ones((2, 10))]
)
def test_precomputed_kernels_have_no_vectors(landmarks, rng):
    with pytest.raises(ValueError, match="precomputed"):
        choose(landmarks, Precomputed(), np.eye(10), None, rng)


# Blocks that are read once


def blocks_of(X, sizes):
    return iter(np.split(X, np.cumsum(sizes)[:-1]))


def test_each_row_of_a_stream_is_equally_likely(rng):
    X = np.arange(60.0)[:, None]
    sizes = [1, 1, 20, 3, 30, 5]
    found = [
        choose("uniform", Linear(), blocks_of(X, sizes), 8, rng) for _ in range(1500)
    ]
    assert all(len(f.rows) == 8 == len(set(f.indices)) for f in found)
    assert all(np.array_equal(f.rows[:, 0], f.indices) for f in found)
    counts = np.bincount(np.concatenate([f.indices for f in found]), minlength=60)
    assert chisquare(counts).pvalue > SURE


def test_a_fraction_is_taken_of_each_block(rng):
    X = np.arange(100.0)[:, None]
    found = choose("uniform", Linear(), blocks_of(X, [50, 30, 20]), 0.1, rng)
    np.testing.assert_array_equal(
        np.histogram(found.indices, [0, 50, 80, 100])[0], [5, 3, 2]
    )


@pytest.mark.parametrize("name", SAMPLERS)
def test_samplers_on_streams(name, rng):
    X = rng.standard_normal((90, 3))
    found = choose(name, RBF(1.0), blocks_of(X, [40, 30, 20]), 12, rng)
    assert found.rows.shape == (12, 3) and len(found.probe) == 90
    if found.indices is not None:
        np.testing.assert_array_equal(X[found.indices], found.rows)


def test_a_stream_with_few_rows(rng):
    X = rng.standard_normal((9, 2))
    assert len(choose("uniform", Linear(), blocks_of(X, [4, 5]), None, rng).rows) == 9
    with pytest.warns(UserWarning, match="n_landmarks=10 is more than the 9 samples"):
        found = choose("uniform", Linear(), blocks_of(X, [4, 5]), 10, rng)
    assert len(found.rows) == 9
    with pytest.raises(ValueError, match="iterable of blocks"):
        choose([0, 1], Linear(), blocks_of(X, [4, 5]), None, rng)
    with pytest.raises(ValueError, match="whole matrix"):
        choose("uniform", Precomputed(), blocks_of(X, [4, 5]), 2, rng)
    points = np.ones((3, 2))
    found = choose(points, Linear(), blocks_of(X, [4, 5]), None, rng)
    np.testing.assert_array_equal(found.rows, points)


class CountingMap(np.memmap):
    """A memory map that counts the rows that are read, of all its views together."""

    n_read = 0

    def __getitem__(self, key):
        part = super().__getitem__(key)
        if isinstance(part, np.ndarray) and part.ndim == 2:
            CountingMap.n_read += part.shape[0]
        return part


@pytest.fixture
def on_disk(tmp_path, rng):
    X = rng.standard_normal((500, 4)).astype(np.float32)
    X.tofile(tmp_path / "X")
    CountingMap.n_read = 0
    return X, CountingMap(tmp_path / "X", np.float32, "r", shape=X.shape)


def test_uniform_reads_only_the_rows_it_needs(on_disk):
    X, disk = on_disk
    found = choose("uniform", Linear(), disk, 20, np.random.default_rng(0))
    assert CountingMap.n_read <= 25
    in_memory = choose("uniform", Linear(), X, 20, np.random.default_rng(0))
    np.testing.assert_array_equal(found.rows, in_memory.rows)


@pytest.mark.rounding
@pytest.mark.parametrize("name", [*SAMPLERS, "coreset:own_mean=True"])
def test_memory_map_as_array(name, on_disk):
    X, disk = on_disk
    found, expected = (
        choose(name, RBF(1.0), A, 20, np.random.default_rng(0)) for A in (disk, X)
    )
    np.testing.assert_array_equal(found.rows, expected.rows)
    with options(memory=8 * X.nbytes // 5):  # larger than the budget: in pieces
        pieces = choose(name, RBF(1.0), disk, 20, np.random.default_rng(0))
    assert pieces.rows.shape == (20, 4) and pieces.rows.dtype == np.float32


def test_rows_from_disk_are_checked(tmp_path, rng):
    disk = np.memmap(tmp_path / "X", np.float64, "w+", shape=(50, 2))
    disk[7] = np.nan
    for name in ("uniform", "coreset"):
        with pytest.raises(ValueError, match="NaN"):
            choose(name, Linear(), disk, 50, rng)


def test_spread_rows():
    assert evenly_spaced_rows(5).tolist() == [0, 1, 2, 3, 4]
    gaps = np.diff(evenly_spaced_rows(10**5, 100))
    assert len(gaps) == 99 and gaps.max() - gaps.min() <= 1


def test_nested_pairs_of_sets_cover_all_outcomes():
    """The enumeration used above is itself a probability law."""
    weights = [1.0, 2.0, 3.0]
    law = sets_without_replacement(weights, 2)
    assert set(law) == set(combinations(range(3), 2))
    assert sum(law.values()) == pytest.approx(1)
    assert law[(1, 2)] == pytest.approx(2 / 6 * 3 / 4 + 3 / 6 * 2 / 3)


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


def test_landmarks_that_are_none(rng):
    X = rng.standard_normal((30, 4))
    with pytest.raises(ValueError, match="is a kernel, not a sampler"):
        NystroemMap("rbf:1", landmarks=RBF()).fit(X)
    with pytest.raises(ValueError, match="points of equal length"):
        NystroemMap("rbf:1", landmarks=[[1.0], [1.0, 2.0]]).fit(X)
    with pytest.raises(TypeError, match="returned a int"):
        NystroemMap("rbf:1", landmarks=lambda *_: 3).fit(X)
