"""No objective rises by more than rounding, with any update, coder and start."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from kernlets import KSVD, MOD, OMP, KernelKSVD, KernelMOD, Lasso, Threshold, options
from kernlets.coders import encode
from kernlets.dictionaries import ExplicitDictionary
from kernlets.learners.code_and_update import better_codes, code_errors
from kernlets.learners.initial_atoms import STARTS
from kernlets.updates import UPDATES

CODERS = {
    "omp": OMP(2),
    "positive": OMP(2, positive=True),
    "top-k": Threshold(kind="top-k", n_nonzero_coefs=2),
}
STEADY_UPDATES = [name for name, kind in UPDATES.items() if not kind.may_raise_error]
LINEAR = [n for n in STEADY_UPDATES if n != "orthogonal"] + ["ksvd:exact=True"]
LONG = {"max_iter": 12, "random_state": 1}
STEADY = {**LONG, "schedule": "steady=True"}


def samples(rng, n=120, p=16):
    atoms = rng.standard_normal((12, p))
    codes = np.where(rng.random((n, 12)) < 0.2, rng.standard_normal((n, 12)), 0)
    return codes @ atoms + 0.05 * rng.standard_normal((n, p))


def rise(learner, X, **given):
    """The largest step upwards, relative to the objective."""
    objective = np.array(learner.fit(X, **given).history_["objective"])
    assert len(objective) == learner.max_iter and objective[-1] < objective[0]
    return (objective[1:] / objective[:-1] - 1).max()


@pytest.mark.parametrize("coder", CODERS)
@pytest.mark.parametrize("update", LINEAR)
def test_no_update_coder_and_start_lets_the_error_rise(update, coder, xp, rng):
    X = xp.asarray(samples(rng))
    for init in STARTS:
        learner = KSVD(14, coder=CODERS[coder], update=update, init=init, **LONG)
        assert rise(learner.set_params(schedule="steady=True"), X) <= 1e-9, init


@pytest.mark.parametrize("coder", CODERS)
@pytest.mark.parametrize("Learner", [KernelKSVD, KernelMOD])
def test_no_error_rises_in_feature_space(Learner, coder, rng):
    X = samples(rng)
    for kernel in ("poly:2", "rbf:3"):
        learner = Learner(kernel, 14, coder=CODERS[coder], **STEADY)
        assert rise(learner, X) <= 1e-8, kernel


@pytest.mark.parametrize("update", ["ksvd", "ksvd-parallel"])
def test_weights_exchanges_and_races_are_steady(update, rng):
    X, weights = samples(rng), rng.random(120) * 3
    learner = KSVD(14, 2, update=update, schedule="exchange=2,steady=True", **LONG)
    assert rise(learner, X, sample_weight=weights) <= 1e-9
    assert rise(clone(learner).set_params(schedule__n_init=3), X) <= 1e-9


def test_plain_fits_do_rise(rng):
    """So that the tests above say something."""
    X = samples(rng)
    rises = [
        rise(KSVD(14, coder=coder, init=init, **LONG), X)
        for coder in CODERS.values()
        for init in STARTS
    ]
    assert max(rises) > 1e-3


def test_the_better_code_of_each_sample_is_kept(rng, xp):
    X, atoms = samples(rng), np.linalg.qr(rng.standard_normal((16, 16)))[0][:10]
    X, dictionary = xp.asarray(X), ExplicitDictionary(xp.asarray(atoms))
    codes = [encode(dictionary, OMP(width), X) for width in (1, 3)]
    errors = code_errors(dictionary, X, codes[0])
    np.testing.assert_allclose(
        xp.to_numpy(errors), xp.to_numpy(codes[0].residual), atol=1e-9
    )
    for pair in (codes, codes[::-1]):
        best = xp.to_numpy(better_codes(*pair).toarray())
        np.testing.assert_allclose(best, xp.to_numpy(codes[1].toarray()))


@pytest.mark.parametrize(
    "learner",
    [KSVD(14, 2), MOD(14, 2), KernelKSVD("poly:2", 14, n_nonzero_coefs=2)],
    ids=lambda learner: type(learner).__name__,
)
def test_a_steady_fit_that_was_stopped_goes_on(learner, rng, tmp_path):
    X, learner = samples(rng), learner.set_params(**STEADY)
    expected = clone(learner).fit(X)

    def stop(state):
        if state["iteration"] == 6:
            raise KeyboardInterrupt

    with options(checkpoint=str(tmp_path)), pytest.raises(KeyboardInterrupt):
        clone(learner).set_params(schedule__callback=stop).fit(X)
    with options(checkpoint=str(tmp_path)):
        resumed = clone(learner).fit(X)
    assert resumed.history_["objective"] == expected.history_["objective"]


def test_what_cannot_be_steady_says_so(rng):
    X = samples(rng)
    with pytest.raises(ValueError, match="steady=True compares errors"):
        KSVD(5, coder=Lasso(0.1), schedule="steady=True").fit(X)
    with pytest.raises(ValueError, match="needs all codes at once"):
        MOD(5, 2, schedule="steady=True").fit([X, X])
    X[0, 0] = np.nan
    with pytest.raises(ValueError, match="without missing values"):
        KSVD(5, 2, schedule="steady=True").fit(X)
