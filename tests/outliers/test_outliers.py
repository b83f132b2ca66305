"""The outlier detector: scores, thresholds, and which learners serve."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline

import kernlets
from kernlets import (
    KSVD,
    OMP,
    Anchors,
    DictionaryOutlierDetector,
    KernelDictionary,
    KernelKSVD,
    Laplacian,
    NystroemMap,
    ReducedKernelDL,
    StreamOutlierDetector,
    plotting,
)
from kernlets.outliers import SampledDictionaries
from kernlets.outliers.thresholds import medcouple


@pytest.fixture
def rings(rng):
    """Inliers on a circle, outliers inside it: no linear method sees them."""
    angle = rng.uniform(0, 2 * np.pi, 300)
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    inside = 0.15 * rng.standard_normal((20, 2))
    X = np.concatenate([circle + 0.05 * rng.standard_normal((300, 2)), inside])
    return X, np.repeat([0, 1], [300, 20])


def ring_learner():
    return ReducedKernelDL(
        "rbf:0.5", 10, n_nonzero_coefs=2, anchors=Anchors(30, "kmeans")
    )


def test_a_kernel_sees_what_a_line_does_not(rings, xp):
    X, y = rings
    normal = X[y == 0]
    found = DictionaryOutlierDetector(ring_learner(), random_state=0)
    scores = found.fit(xp.asarray(normal)).score_samples(xp.asarray(X))
    linear = DictionaryOutlierDetector(KSVD(2, 1), random_state=0).fit(normal)
    assert roc_auc_score(y, -xp.to_numpy(scores)) > 0.95
    assert roc_auc_score(y, -linear.score_samples(X)) < 0.6


def test_trimming_keeps_outliers_from_becoming_atoms(rings):
    """Not always, where they are as close together as here: a matter of the mean."""
    X, y = rings
    plain, trimmed = (
        np.mean([ring_auc(X, y, trim, seed) for seed in range(12)])
        for trim in (False, True)
    )
    assert trimmed > plain + 0.05


def ring_auc(X, y, trim, seed):
    found = DictionaryOutlierDetector(ring_learner(), trim=trim, random_state=seed)
    return roc_auc_score(y, found.fit(X).decision_scores_)


def test_default_finds_what_lies_far_away(rng):
    X = rng.standard_normal((300, 5)) * [1, 10, 100, 1000, 1e4]
    X[:10] *= 8 / np.linalg.norm(X[:10] / X.std(axis=0), axis=1, keepdims=True)
    found = DictionaryOutlierDetector(contamination=10 / 300, random_state=0).fit(X)
    assert set(np.flatnonzero(found.labels_)) == set(range(10))


def test_scores_and_labels_fit_together(rng):
    X = rng.standard_normal((200, 4))
    found = DictionaryOutlierDetector(contamination=0.05, random_state=0).fit(X)
    errors = found.decision_scores_
    np.testing.assert_allclose(found.score_samples(X), -errors)
    np.testing.assert_allclose(found.decision_function(X), found.threshold_ - errors)
    assert found.offset_ == -found.threshold_
    assert found.labels_.sum() == (errors > found.threshold_).sum() == 10
    predicted = found.predict(X)
    np.testing.assert_array_equal(predicted == -1, found.labels_ == 1)
    assert set(predicted) == {-1, 1}


@pytest.mark.parametrize(
    "learner",
    [
        KSVD(6, 2),
        KernelKSVD("rbf", 6, n_nonzero_coefs=2),
        make_pipeline(NystroemMap("rbf", n_landmarks=40, random_state=0), KSVD(6, 2)),
    ],
    ids=lambda learner: type(learner).__name__,
)
def test_errors_are_those_of_the_learner(learner, rng):
    X, new = rng.standard_normal((150, 4)), rng.standard_normal((20, 4))
    found = DictionaryOutlierDetector(
        learner, standardize=False, trim=False, random_state=3
    ).fit(X)
    fitted = found.learner_
    if not isinstance(learner, (KSVD, KernelKSVD)):
        new_features, fitted = fitted[:-1].transform(new), fitted[-1]
    else:
        new_features = new
    expected = fitted.reconstruction_error(new_features, per_sample=True)
    np.testing.assert_allclose(found.score_samples(new), -expected)
    assert not hasattr(learner, "dictionary_")  # the argument stays as it was


def test_units_of_the_features_do_not_matter(rng):
    X = rng.standard_normal((150, 4))
    scaled = X * [1, 1e3, 1e-3, 7] + [0, 5, 1, -2]
    one, other = (
        DictionaryOutlierDetector(random_state=0).fit(data).decision_scores_
        for data in (X, scaled)
    )
    np.testing.assert_allclose(one, other, atol=1e-6)


def test_float32_torch_and_seeds(xp, rng):
    X = xp.asarray(rng.standard_normal((120, 4)).astype(np.float32))
    one, same, other = (
        xp.to_numpy(DictionaryOutlierDetector(random_state=s).fit(X).decision_scores_)
        for s in (1, 1, 2)
    )
    assert one.dtype == np.float32
    np.testing.assert_array_equal(one, same)
    assert np.abs(one - other).max() > 1e-4


def test_saved_and_loaded(tmp_path, rng):
    X = rng.standard_normal((100, 3))
    found = DictionaryOutlierDetector(random_state=0).fit(X)
    kernlets.save(found, tmp_path / "model")
    again = kernlets.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X), found.predict(X))


def test_bad_parameters_are_named(rng):
    X = rng.standard_normal((30, 3))
    with pytest.raises(ValueError, match="contamination"):
        DictionaryOutlierDetector(contamination=0.6).fit(X)
    with pytest.raises(ValueError, match="learner"):
        DictionaryOutlierDetector(learner="ksvd").fit(X)


# ------------------------------------------------------------ many small dictionaries


def naive_score(found, x):
    """The score of one row, dictionary by dictionary and atom by atom."""
    rows, total = found.rows_, 0.0
    for t, places in enumerate(found.atoms_):
        see = np.flatnonzero(found.features_[t])
        change = found.whitening_ if found.views_[t] == 2 else np.eye(len(x))
        alone = found.is_single_
        atoms = [rows[i] for i in places if not (alone[i] and (rows[i] == x).all())]
        gaps = [np.abs((x - atom) @ change)[see].sum() for atom in atoms]
        total += found.weights_[t] * min(gaps) / found.units_[t]
    return total


def test_scores_are_distances_to_the_nearest_atoms(rng):
    X, new = rng.standard_normal((60, 4)), rng.standard_normal((9, 4))
    found = SampledDictionaries(12, 5, random_state=0).fit(X)
    rows = np.concatenate([X[:9], new])
    expected = [naive_score(found, x) for x in rows]
    np.testing.assert_allclose(found.errors(rows), expected)
    contributions, places = found.parts(rows)
    np.testing.assert_allclose(contributions.sum(axis=1), expected)
    assert (contributions >= 0).all()
    assert places.shape == (18, 12)


def test_the_order_is_that_of_errors_of_one_sparse_codes(rng):
    """−σ/2 · log(1 − error) of OMP over the atoms is the distance."""
    X = rng.standard_normal((60, 4))
    found = SampledDictionaries(3, 5, random_state=0).fit(X)
    new = rng.standard_normal((20, 4))
    atoms = found.rows_[found.atoms_[0]]  # the first view is that of all features
    kernel = Laplacian(gamma=0.2)
    dictionary = KernelDictionary(kernel, atoms, np.eye(5))
    gram, corr = dictionary.gram(), dictionary.correlate(new)
    codes = OMP(1).solve(gram, corr, dictionary.energy(new)).toarray()
    errors = 1 - 2 * (codes * corr).sum(axis=1) + (codes @ gram * codes).sum(axis=1)
    distances = -np.log(1 - errors) / (2 * 0.2)
    expected = np.abs(new[:, None] - atoms).sum(axis=2).min(axis=1)
    np.testing.assert_allclose(distances, expected)


def test_a_row_is_no_atom_for_itself_but_its_equals_are(rng):
    X = rng.standard_normal((30, 3))
    alone = SampledDictionaries(30, 10, trim=0.0, random_state=0).fit(X)
    assert (alone.errors(X) > 0.1).all()
    assert alone.is_single_.all()
    twins = np.concatenate([X, X])
    paired = SampledDictionaries(30, 10, trim=0.0, random_state=0).fit(twins)
    assert not paired.is_single_.any()
    expected = [naive_score(paired, x) for x in X[:9]]
    np.testing.assert_allclose(paired.errors(X[:9]), expected)


def test_clusters_of_outliers_do_not_buy_atoms(rng):
    """Three percent of the rows lie close together, far from all others."""
    X = rng.standard_normal((500, 6))
    X[:15] = 6 + 0.05 * rng.standard_normal((15, 6))
    y = np.arange(500) < 15
    areas = [
        roc_auc_score(
            y, DictionaryOutlierDetector(random_state=s).fit(X).decision_scores_
        )
        for s in range(3)
    ]
    assert min(areas) > 0.999


def test_novelty_mode_learns_from_normal_rows_only(rings):
    X, y = rings
    found = DictionaryOutlierDetector(novelty=True, random_state=0).fit(X[y == 0])
    assert roc_auc_score(y, -found.score_samples(X)) > 0.98
    assert found.learner_.atoms_.shape[1] > 16
    assert found.learner_.trim == 0


@pytest.mark.rounding
def test_threads_and_blocks_change_nothing(rng):
    X = rng.standard_normal((3000, 5))
    scores = []
    for settings in ({"n_threads": 1}, {"n_threads": 3}):
        with kernlets.options(**settings):
            model = DictionaryOutlierDetector(random_state=0).fit(X)
            scores.append(model.decision_scores_)
    np.testing.assert_array_equal(*scores)


def test_missing_values_are_filled_in(rng):
    X = rng.standard_normal((200, 4)) @ rng.standard_normal((4, 4))
    X[rng.random(X.shape) < 0.05] = np.nan
    found = DictionaryOutlierDetector(random_state=0).fit(X)
    assert np.isfinite(found.decision_scores_).all()
    new = np.array([[50.0, np.nan, -50.0, np.nan]])
    assert found.predict(new)[0] == -1
    assert np.isfinite(found.explain(new)[0].values).all()


# ------------------------------------------------------------ thresholds and odds


def test_false_alarms_keep_to_the_stated_rate():
    """Marginally at most alpha: the sum over fits lies within the binomial band."""
    alpha, fits, fresh = 0.05, 20, 200
    alarms = 0
    for seed in range(fits):
        rng = np.random.default_rng(seed)
        X = rng.standard_t(3, (300, 3))
        found = DictionaryOutlierDetector(novelty=True, alpha=alpha, random_state=seed)
        found.fit(X)
        alarms += int((found.predict(rng.standard_t(3, (fresh, 3))) < 0).sum())
    # the threshold of a fit varies as well: Beta(k, n + 1 - k) of its 150 rows
    per_fit = alpha * (1 - alpha) * (1 / fresh + 1 / 152)
    assert abs(alarms / (fits * fresh) - alpha) < 3.5 * (per_fit / fits) ** 0.5


def test_p_values_and_the_threshold_agree(rng):
    X, new = rng.standard_normal((400, 3)), 3 * rng.standard_normal((100, 3))
    found = DictionaryOutlierDetector(alpha=0.1, random_state=0).fit(X)
    assert len(found.calibration_scores_) == 200
    np.testing.assert_array_equal(found.p_values(new) <= 0.1, found.predict(new) == -1)
    with pytest.raises(ValueError, match=r"fit with alpha"):
        DictionaryOutlierDetector(random_state=0).fit(X).p_values(new)
    with pytest.raises(ValueError, match=r"needs at least 999 calibration rows.*200"):
        DictionaryOutlierDetector(alpha=0.001).fit(X)
    with pytest.raises(ValueError, match=r"half of the rows aside.*there are 3"):
        DictionaryOutlierDetector(alpha=0.5).fit(X[:3])


def test_auto_finds_about_as_many_as_there_are(rng):
    X = rng.standard_normal((1000, 5))
    clean = DictionaryOutlierDetector(contamination="auto", random_state=0).fit(X)
    assert clean.labels_.mean() < 0.03
    X[:40] *= 6
    found = DictionaryOutlierDetector(contamination="auto", random_state=0).fit(X)
    assert found.labels_[:40].mean() > 0.9
    assert found.labels_[40:].mean() < 0.03


def test_the_medcouple_is_that_of_all_pairs(rng):
    values = rng.exponential(size=41)
    middle = np.median(values)
    pairs = [
        ((b - middle) - (middle - a)) / (b - a)
        for a in values
        for b in values
        if a <= middle <= b and a < b
    ]
    assert medcouple(values) == pytest.approx(np.median(pairs))
    assert medcouple(np.ones(5)) == 0


def test_probabilities_and_confidence(rng):
    X = rng.standard_normal((200, 3))
    found = DictionaryOutlierDetector(random_state=0).fit(X)
    far = np.array([[9.0, 9, 9], [0, 0, 0]])
    for method in ("linear", "unify"):
        shares = found.predict_proba(far, method)
        np.testing.assert_allclose(shares.sum(axis=1), 1)
        assert shares[0, 1] > 0.99
        assert shares[1, 1] < 0.3
    sure = found.predict_confidence(np.concatenate([X, far]))
    assert ((sure >= 0) & (sure <= 1)).all()
    assert sure[-2:].min() > 0.99
    with pytest.raises(ValueError, match="choose 'linear' or 'unify'"):
        found.predict_proba(far, "softmax")


@pytest.mark.parametrize(
    "ours", [DictionaryOutlierDetector(), StreamOutlierDetector(window=80)]
)
def test_what_pyod_expects_of_a_detector(ours, rng):
    """Attributes, shapes and ranges that its own detectors are tested for."""
    pytest.importorskip("pyod")
    from pyod.utils.data import generate_data, get_outliers_inliers

    X, new, y, _ = generate_data(n_train=200, n_test=50, random_state=0)
    order = rng.permutation(200)  # outliers come last, in a stream a lasting change
    found = ours.set_params(random_state=0).fit(X[order])
    assert found.decision_scores_.shape == found.labels_.shape == (200,)
    assert set(found.labels_.tolist()) <= {0, 1}
    assert found.threshold_ > 0
    for method in ("linear", "unify"):
        odds = found.predict_proba(new, method=method)
        assert odds.shape == (50, 2)
        assert odds.min() >= 0 and odds.max() <= 1
    sure = found.predict_confidence(new)
    assert sure.shape == (50,) and sure.min() >= 0 and sure.max() <= 1
    outliers, inliers = get_outliers_inliers(X, y)
    scores = -found.score_samples(outliers), -found.score_samples(inliers)
    assert np.median(scores[0]) > np.median(scores[1])


def test_odds_are_those_of_pyod(rng):
    base = pytest.importorskip("pyod.models.base")

    class Ours(base.BaseDetector):
        def __init__(self, contamination=0.1):
            super().__init__(contamination=contamination)

        def fit(self, X, y=None):
            self.ours = DictionaryOutlierDetector(random_state=0).fit(X)
            self.decision_scores_ = self.ours.decision_scores_
            self._set_n_classes(y)
            self._process_decision_scores()
            return self

        def decision_function(self, X):
            return -self.ours.score_samples(X)

    X, new = rng.standard_normal((200, 3)), 2 * rng.standard_normal((50, 3))
    theirs = Ours(contamination=0.1).fit(X)
    ours = theirs.ours
    assert theirs.threshold_ == pytest.approx(ours.threshold_)
    np.testing.assert_array_equal(theirs.labels_, ours.labels_)
    for method in ("linear", "unify"):
        expected = theirs.predict_proba(new, method=method)
        np.testing.assert_allclose(ours.predict_proba(new, method), expected)
    np.testing.assert_allclose(
        ours.predict_confidence(new), theirs.predict_confidence(new)
    )


# ------------------------------------------------------------------------ reasons


def strange(rng):
    """Rows of five correlated features, and one row of which the third is wrong."""
    X = rng.standard_normal((300, 2)) @ rng.standard_normal((2, 5))
    X = 10 + X + 0.1 * rng.standard_normal(X.shape)
    row = X[7].copy()
    row[2] += 8
    return X, row


@pytest.mark.parametrize(
    "learner",
    [
        None,
        KSVD(6, 2),
        ReducedKernelDL("rbf:3", 8),
        make_pipeline(NystroemMap("rbf:0.1", random_state=0), KSVD(6, 2)),
    ],
    ids=["sampled", "linear", "kernel", "map"],
)
def test_an_outlier_is_explained_in_words_and_numbers(learner, rng):
    X, row = strange(rng)
    found = DictionaryOutlierDetector(learner, 0.05, random_state=0).fit(X)
    (reason,) = found.explain(row[None])
    assert reason.order[0] == 2
    assert reason.shares.sum() == pytest.approx(1)
    np.testing.assert_allclose(reason.values, row)
    assert reason.score == pytest.approx(-found.score_samples(row[None])[0])
    np.testing.assert_allclose(reason.nearest, X[reason.nearest_row])
    assert abs(reason.expected[2] - row[2]) > 3
    text = str(reason)
    assert "x2 is" in text
    assert f"nearest normal training row: {reason.nearest_row}" in text
    assert reason.brief().startswith("x2=")


def test_shares_add_up_to_the_score_and_use_names(rng):
    pandas = pytest.importorskip("pandas")
    X, row = strange(rng)
    table = pandas.DataFrame(X, columns=["height", "width", "weight", "age", "pulse"])
    found = DictionaryOutlierDetector(random_state=0).fit(table)
    one, other = found.explain(pandas.DataFrame([row, X[0]], columns=table.columns))
    assert one.contributions.sum() == pytest.approx(one.score)
    assert one.is_outlier
    assert "weight is" in str(one)
    assert "normal: score" in str(other) or other.is_outlier


def test_pictures_of_reasons(rng):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    X, row = strange(rng)
    X, row = np.tile(X, (1, 2))[:, :9], np.tile(row, 2)[:9]
    found = DictionaryOutlierDetector(random_state=0).fit(X)
    (reason,) = found.explain(row[None])
    _, axes = pyplot.subplots(1, 3)
    bars = plotting.plot_outlier(reason, axes[0], n_features=4)
    assert len(bars.patches) == 4
    assert bars.patches[0].get_width() == pytest.approx(reason.shares.max())
    assert "outlier: score" in bars.get_title()
    image = plotting.plot_outlier(reason, axes[1], image_shape=(3, 3))
    assert image.images[0].get_array().shape == (3, 9)
    lines = plotting.plot_outlier(reason, axes[2], series=True).get_lines()
    np.testing.assert_array_equal(lines[0].get_ydata(), reason.values)
    pyplot.close("all")
    with pytest.raises(ValueError, match="image_shape"):
        plotting.plot_outlier(reason, image_shape=(2, 2))


# ---------------------------------------------------------------------- bad input


def awkward(kind, rng):
    X = rng.standard_normal((80, 5))
    cases = {
        "constant feature": lambda: X.__setitem__((slice(None), 1), 3.0),
        "all equal": lambda: X.__setitem__(slice(None), 2.5),
        "scales of 1e30": lambda: X.__imul__([1e30, 1, 1e-30, 1e15, 1]),
        "one value of 1e30": lambda: X.__setitem__((0, 0), 1e30),
        "one-hot": lambda: X.__setitem__(
            slice(None), np.eye(5)[rng.integers(0, 5, 80)]
        ),
        "mostly outliers": lambda: X.__setitem__(slice(0, 50), 30 * X[:50]),
    }
    if kind in cases:
        cases[kind]()
        return X
    return {"two rows": X[:2], "p >> n": rng.standard_normal((12, 700))}[kind]


@pytest.mark.parametrize("novelty", [False, True])
@pytest.mark.parametrize(
    "kind",
    [
        *("constant feature", "all equal", "scales of 1e30", "one value of 1e30"),
        *("one-hot", "mostly outliers", "two rows", "p >> n"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_awkward_rows_get_finite_scores(kind, novelty, rng):
    X = awkward(kind, rng)
    found = DictionaryOutlierDetector(novelty=novelty, random_state=0).fit(X)
    assert np.isfinite(found.decision_scores_).all()
    np.testing.assert_allclose(-found.score_samples(X), found.decision_scores_)
    assert np.isfinite(found.predict_proba(X)).all()
    assert np.isfinite(found.explain(X[:2])[0].contributions).all()
    if kind == "one value of 1e30":
        assert found.decision_scores_.argmax() == 0


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
