"""Maps of outlier scores over images and series."""

from __future__ import annotations

import numpy as np
import pytest

from kernlets import (
    DictionaryOutlierDetector,
    RLSDictionary,
    StreamOutlierDetector,
    load,
    options,
    plotting,
    save,
)
from kernlets.outliers import PatchOutlierDetector
from kernlets.outliers.patches import average_scores


def stripes(rng, shape=(48, 40), channels=()):
    rows, cols = np.indices(shape)
    plain = np.sin(rows / 2 + cols / 3)
    plain = plain[..., None] * np.ones(channels) if channels else plain
    return plain + 0.05 * rng.standard_normal(plain.shape)


def naive_map(model, image, size, stride):
    """Patch by patch, pixel by pixel."""
    h, w = image.shape
    total, count = np.zeros((h, w)), np.zeros((h, w))
    tops = [*range(0, h - size, stride), h - size]
    lefts = [*range(0, w - size, stride), w - size]
    for top in tops:
        for left in lefts:
            own = slice(top, top + size), slice(left, left + size)
            row = image[own].reshape(1, -1)
            total[own] += -model.detector_.score_samples(row)
            count[own] += 1
    return total / count


def test_the_map_is_that_of_the_definition(rng):
    image = stripes(rng, (21, 18))
    model = PatchOutlierDetector(patch_size=5, stride=3, random_state=0).fit(image)
    np.testing.assert_allclose(model.score_map(image), naive_map(model, image, 5, 3))


@pytest.mark.parametrize("channels", [(), (3,)])
def test_a_scratch_is_found(channels, rng):
    normal = [stripes(rng, channels=channels) for _ in range(2)]
    model = PatchOutlierDetector(patch_size=6, random_state=0).fit(normal)
    scratched = stripes(rng, channels=channels)
    scratched[20:23, 10:24] = 1.5
    scores = model.score_map(scratched)
    top, left = np.unravel_index(scores.argmax(), scores.shape)
    assert scores.shape == scratched.shape[:2]
    assert 17 <= top < 26 and 8 <= left < 26
    fresh = model.score_map(stripes(rng, channels=channels))
    assert fresh.max() < scores.max() / 2
    assert scores.max() > model.threshold_


@pytest.mark.parametrize("channels", [(), (2,)])
def test_steps_of_a_series(channels, rng):
    time = np.sin(np.arange(900) / 5)
    series = time[:, None] * np.ones(channels) if channels else time
    series = series + 0.05 * rng.standard_normal(series.shape)
    model = PatchOutlierDetector(patch_size=(20,), random_state=0).fit(series)
    odd = series[:300].copy()
    odd[150:160] += 1.5
    scores = model.score_map(odd)
    assert scores.shape == (300,)
    assert 145 <= scores.argmax() < 165


def test_volumes_and_other_detectors(rng):
    volume = rng.standard_normal((9, 10, 11))
    detector = StreamOutlierDetector(RLSDictionary(8, 2), window=200)
    model = PatchOutlierDetector(detector, (3, 3, 3), random_state=0).fit(volume)
    assert model.detector_.random_state is not None
    assert model.score_map(volume).shape == volume.shape


def test_unknown_pixels(rng):
    image = stripes(rng)
    model = PatchOutlierDetector(patch_size=6, random_state=0).fit(image)
    known = model.score_map(image)
    image[5, 5] = np.nan
    scores = model.score_map(image)
    assert np.isfinite(scores).all()
    assert scores[5, 5] < 2 * known[5, 5]


def test_whole_numbers_and_torch(xp, rng):
    image = (100 * stripes(rng) + 120).astype(np.uint8)
    model = PatchOutlierDetector(patch_size=6, random_state=0).fit(image)
    scores = model.score_map(xp.asarray(image.astype(np.float64)))
    np.testing.assert_allclose(scores, model.score_map(image))


@pytest.mark.rounding
def test_patches_are_made_a_few_at_a_time(rng, monkeypatch):
    """A small memory option changes the blocks, and no score."""
    image = stripes(rng, (90, 90))
    model = PatchOutlierDetector(patch_size=8, stride=1, random_state=0).fit(image)
    sizes, score = [], DictionaryOutlierDetector.score_samples

    def watched(self, rows):
        sizes.append(len(rows))
        return score(self, rows)

    monkeypatch.setattr(DictionaryOutlierDetector, "score_samples", watched)
    plain = model.score_map(image)
    with options(memory=2**21):
        small = model.score_map(image)
    np.testing.assert_array_equal(plain, small)
    assert min(sizes) < 83 * 83 / 4


def test_overlaps_are_averaged():
    found = average_scores(np.array([1.0, 3.0]), [np.array([0, 2])], (4,), (6,))
    np.testing.assert_array_equal(found, [1, 1, 2, 2, 3, 3])


def test_saved_and_loaded(rng, tmp_path):
    image = stripes(rng)
    model = PatchOutlierDetector(patch_size=6, random_state=0).fit(image)
    save(model, tmp_path / "m")
    again = load(tmp_path / "m").score_map(image)
    np.testing.assert_array_equal(again, model.score_map(image))


def test_bad_input_is_named(rng):
    image = stripes(rng)
    with pytest.raises(ValueError, match="no patches of"):
        PatchOutlierDetector(patch_size=60).fit(image)
    with pytest.raises(ValueError, match="no patches of"):
        PatchOutlierDetector().fit(image[0])
    with pytest.raises(ValueError, match="leaves gaps"):
        PatchOutlierDetector(patch_size=4, stride=5).fit(image).score_map(image)
    with pytest.raises(ValueError, match="whole numbers above 0"):
        PatchOutlierDetector(patch_size=(4, 0)).fit(image)
    with pytest.raises(ValueError, match="empty list"):
        PatchOutlierDetector().fit([])
    with pytest.raises(ValueError, match="those of one kind"):
        PatchOutlierDetector().fit([image, stripes(rng, channels=(3,))])
    model = PatchOutlierDetector(n_patches=50, random_state=0).fit(image)
    with pytest.raises(ValueError, match="3 channels"):
        model.score_map(stripes(rng, channels=(3,)))


def test_heat_maps(rng):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    image, scores = rng.random((6, 7, 3)), np.arange(42.0).reshape(6, 7)
    figure, axes = pyplot.subplots(1, 3)
    ax = plotting.plot_score_map(scores, image, axes[0], threshold=30.5)
    assert len(ax.images) == 2
    np.testing.assert_array_equal(ax.images[1].get_array(), scores)
    assert "at 26.2 % of places" in ax.get_title()
    assert figure.axes[-1].get_ylabel() == "score"
    plain = plotting.plot_score_map(scores, ax=axes[1])
    assert plain.get_title() == "outlier score: largest 41"
    line = plotting.plot_score_map(scores[0], image[0, :, 0], axes[2], threshold=4)
    np.testing.assert_array_equal(line.get_lines()[0].get_ydata(), scores[0])
    assert line.get_xlabel() == "step"
    pyplot.close(figure)
