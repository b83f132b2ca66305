"""Parameters of parts that are given by a name, and of parts that are objects."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from kernlets import (
    KSVD,
    OMP,
    BudgetKernelDL,
    KernelKSVD,
    NystroemMap,
    Polynomial,
    ResidualClassifier,
    registry,
)
from kernlets.updates import KSVDUpdate

#: names, a parameter of what they name, and a value that is not its default
NAMES = {
    "kernel": [("poly:2", "degree", 3), ("rbf", "gamma", 0.5)],
    "coder": [("lasso:0.1", "alpha", 0.3), ("omp:3", "n_nonzero_coefs", 4)],
    "update": [("ksvd", "exact", True), ("parameter", "penalty", 0.5)],
    "admission": [("coherence", "threshold", 0.3)],
}


def cases():
    for Estimator in registry.estimators():
        for name in NAMES.keys() & Estimator._get_param_names():
            for case in NAMES[name]:
                if name != "update" or takes_update(Estimator, case[0]):
                    yield Estimator, name, *case


def takes_update(Estimator, text):
    return (text == "parameter") == (Estimator is BudgetKernelDL)


@pytest.mark.parametrize(("Estimator", "name", "text", "inner", "value"), list(cases()))
def test_parameters_of_what_a_string_names(Estimator, name, text, inner, value):
    model = Estimator(**{name: text})
    key = f"{name}__{inner}"
    assert key in model.get_params() and key not in model.get_params(deep=False)
    assert getattr(model, name) is text  # what was given is stored unchanged
    assert getattr(clone(model), name) == text
    assert repr(clone(model)) == repr(model) == repr(Estimator(**{name: text}))
    model.set_params(**{key: value})
    part = getattr(model, name)
    assert getattr(part, inner) == value == model.get_params()[key]
    assert getattr(getattr(clone(model), name), inner) == value
    with pytest.raises(ValueError, match="Invalid parameter"):
        Estimator(**{name: text}).set_params(**{f"{name}__nothing": 1})


@pytest.mark.parametrize("Estimator", registry.estimators())
def test_every_deep_parameter_can_be_set_to_its_value(Estimator):
    for key, value in Estimator().get_params().items():
        model = Estimator().set_params(**{key: value})
        assert key in model.get_params()


def test_the_grid_of_the_readme(rng):
    X, y = rng.standard_normal((60, 8)), np.arange(60) % 3
    model = make_pipeline(
        NystroemMap("poly:2", landmarks="kmeans", n_landmarks=0.2, random_state=0),
        ResidualClassifier(KSVD(5, n_nonzero_coefs=2, max_iter=2, random_state=0)),
    )
    grid = {
        "nystroemmap__kernel__degree": [3],
        "residualclassifier__learner__update__exact": [True],
    }
    search = GridSearchCV(model, grid, cv=2, error_score="raise").fit(X, y)
    assert search.best_estimator_[0].kernel_.degree == 3
    assert search.best_estimator_[1].learners_[0].update.exact


def test_name_and_its_parameters_together():
    learner = KernelKSVD().set_params(kernel__degree=4, kernel="poly:2,coef0=1")
    assert repr(learner.kernel) == repr(Polynomial(4, coef0=1))


def test_an_update_that_becomes_an_object_keeps_codes_non_negative():
    learner = KSVD(coder=OMP(2, positive=True), positive_atoms=True)
    learner.set_params(update__exact=True)
    expected = KSVDUpdate(exact=True, positive=True, positive_atoms=True)
    assert repr(learner.update) == repr(expected)


def test_bad_names_are_refused_when_their_parameters_are_set():
    learner = KernelKSVD("polly")
    assert not any(key.startswith("kernel__") for key in learner.get_params())
    with pytest.raises(ValueError, match="did you mean 'poly'"):
        learner.set_params(kernel__degree=3)
    with pytest.raises(ValueError, match="coder=None has no parameters"):
        learner.set_params(coder__alpha=3)
    assert learner.kernel == "polly" and learner.coder is None
