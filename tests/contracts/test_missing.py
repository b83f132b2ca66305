"""NaN means unknown for every estimator that says so, and is refused by all others."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.utils import get_tags

from .models import INSTANCES, TAKE_BLOCKS, answer, fitted, in_memory, samples

ALLOWED = [n for n, m in INSTANCES.items() if get_tags(m).input_tags.allow_nan]
PER_ROW = (
    *("transform", "predict", "predict_proba", "decision_function", "score_samples"),
    *("residuals", "p_values", "predict_confidence", "codes"),
)
REFUSED = [name for name in INSTANCES if name not in ALLOWED]


@pytest.fixture(scope="module")
def clean():
    return samples().astype(np.float64)


@pytest.fixture(scope="module")
def holed(clean):
    X = clean.copy()
    X[np.random.default_rng(3).random(X.shape) < 0.3] = np.nan
    X[0] = clean[0]  # all known
    X[1, :] = np.nan
    X[1, 2] = 4.0  # only one
    return X


@pytest.fixture(scope="module")
def model(clean):
    known = {}

    def get(name):
        if name not in known:
            known[name] = fitted(name, clean)
        return known[name]

    return get


def test_learners_classifiers_and_maps_are_among_them():
    wanted = {"KSVD", "MOD", "Online", "RLS", "Orthogonal", "KernelKSVD", "KernelMOD"}
    wanted |= {"Reduced", "Budget", "Residual", "SRC", "UnitNorm", "Standardize"}
    assert wanted | {"Nystroem uniform"} <= set(ALLOWED)


@pytest.mark.parametrize("name", ALLOWED)
def test_rows_with_gaps_get_an_answer(name, model, clean, holed):
    found = in_memory(answer(model(name), holed))
    expected = in_memory(answer(model(name), clean))
    assert found.shape == expected.shape and not np.isinf(found).any()
    unknown = np.isnan(found)  # of maps that keep what is, and mark what is wrong
    assert not unknown.any() or unknown[np.isnan(holed)].all()
    assert not np.allclose(found[2:], expected[2:], equal_nan=True)


@pytest.mark.parametrize("name", ALLOWED)
def test_what_is_missing_plays_no_part(name, model, holed):
    """Each row alone, and among others, and whatever the masks of the others."""
    together = in_memory(answer(model(name), holed))
    alone = [in_memory(answer(model(name), holed[i : i + 1])) for i in range(6)]
    np.testing.assert_allclose(
        np.concatenate(alone), together[:6], rtol=1e-6, atol=1e-8
    )


def answers(model, X):
    """All that a fitted model says of each row."""
    for method in PER_ROW:
        if method == "p_values" and not hasattr(model, "calibration_scores_"):
            continue
        if hasattr(model, method):
            yield method, in_memory(getattr(model, method)(X))
    if hasattr(model, "encode"):
        codes = model.encode(X)
        yield "encode", in_memory(codes.toarray())
        if codes.residual is not None:
            yield "residual", in_memory(codes.residual)
    if hasattr(model, "reconstruction_error"):
        errors = model.reconstruction_error(X, per_sample=True)
        yield "reconstruction_error", in_memory(errors)


@pytest.mark.rounding
@pytest.mark.parametrize("name", ALLOWED)
@pytest.mark.filterwarnings("ignore:.*no observed value")
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_complete_rows_are_answered_as_if_all_were(name, model, clean, holed):
    """Equal bits: products of matrices have the shapes that they have without NaN."""
    X = np.where(np.arange(len(holed))[:, None] % 3 == 1, holed, clean)
    X[7] = np.nan
    complete = ~np.isnan(X).any(axis=1)
    assert 0 < complete.sum() < len(X)
    expected = dict(answers(model(name), clean))
    assert expected
    for method, found in answers(model(name), X):
        np.testing.assert_array_equal(
            found[complete], expected[method][complete], err_msg=method
        )


@pytest.mark.parametrize("name", ALLOWED)
def test_containers_agree(name, model, holed, tmp_path):
    expected = in_memory(answer(model(name), holed))
    stored = np.memmap(tmp_path / "X", np.float64, "w+", shape=holed.shape)
    stored[:] = holed
    found = in_memory(answer(model(name), stored))
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)
    masked = np.ma.masked_invalid(holed)
    masked.data[np.isnan(holed)] = 7.0  # what is under the mask is nobody's business
    found = in_memory(answer(model(name), masked))
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)
    if name in TAKE_BLOCKS:
        blocks = [holed[:20], holed[20:]]
        found = in_memory(answer(model(name), blocks))
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", ALLOWED)
def test_float32_stays(name, clean, holed):
    small = fitted(name, clean.astype(np.float32))
    found = in_memory(answer(small, holed.astype(np.float32)))
    assert found.dtype == np.float32


@pytest.mark.parametrize("name", ALLOWED)
def test_infinity_is_refused(name, model, holed):
    X = holed.copy()
    X[3, 1] = np.inf
    with pytest.raises(ValueError, match="inf"):
        answer(model(name), X)


@pytest.mark.parametrize("name", REFUSED)
def test_others_refuse(name, model, holed):
    with pytest.raises(ValueError, match="NaN"):
        in_memory(answer(model(name), holed))
    with pytest.raises(ValueError, match="NaN"):
        fitted(name, holed)


@pytest.mark.parametrize("name", ALLOWED)
@pytest.mark.filterwarnings("ignore:filled-in values still moved")
def test_a_fit_learns_from_gaps(name, holed):
    model = fitted(name, holed)
    found = in_memory(answer(model, holed))
    assert len(found) == len(holed) and not np.isinf(found).any()
    unknown = np.isnan(found)
    assert not unknown.any() or unknown[np.isnan(holed)].all()
