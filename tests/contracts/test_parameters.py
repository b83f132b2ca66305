"""Parameters of parts that are given by a name, and of parts that are objects."""

from __future__ import annotations

import warnings
from copy import copy

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from kernlets import (
    KSVD,
    OMP,
    RBF,
    Budget,
    BudgetKernelDL,
    DictionaryImputer,
    DictionaryOutlierDetector,
    DKSVDClassifier,
    FDDLClassifier,
    FourierMap,
    IKAMap,
    KernelKSVD,
    LCKSVDClassifier,
    NystroemMap,
    Polynomial,
    ReducedKernelDL,
    ResidualClassifier,
    Schedule,
    UnitNorm,
    load,
    registry,
    save,
)
from kernlets.updates import KSVDUpdate

#: names, a parameter of what they name, and a value that is not its default
NAMES = {
    "kernel": [("poly:2", "degree", 3), ("rbf", "gamma", 0.5)],
    "coder": [("lasso:0.1", "alpha", 0.3), ("omp:3", "n_nonzero_coefs", 4)],
    "update": [("ksvd", "exact", True)],
    "schedule": [("tol=0.01", "n_init", 2)],
}


def cases():
    for Estimator in registry.estimators():
        for name in sorted(NAMES.keys() & Estimator._get_param_names()):
            for case in NAMES[name]:
                yield Estimator, name, *case


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


def test_parameters_of_the_rules_of_a_budget():
    model = BudgetKernelDL(budget=40)
    assert model.get_params()["budget__n_anchors"] == model.budget == 40
    model = BudgetKernelDL(budget=Budget(40, "coherence:0.9"))
    assert model.get_params()["budget__admission__threshold"] == 0.9
    values = {"budget__admission__threshold": 0.3, "budget__update__penalty": 0.5}
    changed = clone(model).set_params(**values)
    assert values.items() <= changed.get_params().items()
    assert changed.budget.n_anchors == 40 and model.budget.admission == "coherence:0.9"


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
    learner = KSVD(coder=OMP(2, positive=True), update="ksvd:positive_atoms=True")
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


METHODS = (
    "transform",
    "encode",
    "predict",
    "predict_proba",
    "decision_function",
    "residuals",
    "reconstruction_error",
    "score_samples",
    "explain",
)
OTHER_VALUES = [None, True, False, 1, 3, 7, 101, 0.3, 2.5]
NAMED = ["laplacian", "poly:3", "lasso:0.1", "mod", "kmeans", "relu", "nonsense"]


def options_of(Estimator, key):
    """Texts that a parameter may be, and some values that it may not be."""
    constraints = Estimator._parameter_constraints.get(key, ())
    options = [getattr(each, "options", ()) for each in constraints]
    return [*(o for some in options for o in some), *NAMED, *OTHER_VALUES]


def results_of(model, X):
    answers = [getattr(model, name)(X) for name in METHODS if hasattr(model, name)]
    if hasattr(model, "get_feature_names_out"):
        answers.append(model.get_feature_names_out())
    if hasattr(model, "inverse_transform"):
        answers.append(model.inverse_transform(model.transform(X)))
    return [as_arrays(answer) for answer in answers]


def as_arrays(answer):
    if hasattr(answer, "toarray"):
        return answer.toarray()
    return repr(answer) if isinstance(answer, (list, tuple)) else np.asarray(answer)


def small(Estimator):
    given = {"max_iter": 2, "random_state": 0, "n_components": 4, "seconds": 1}
    names = Estimator._get_param_names()
    if "n_atoms_per_class" in names:  # n_components is a former name of it
        given.pop("n_components")
    return Estimator(**{key: value for key, value in given.items() if key in names})


FITTABLE = [E for E in registry.estimators() if "Auto" not in E.__name__]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("Estimator", FITTABLE)
def test_a_fitted_model_works_as_it_was_fitted(Estimator):
    rng = np.random.default_rng(0)
    X, new = rng.random((40, 6)) + 0.1, rng.random((5, 6))
    fitted = small(Estimator).fit(X, np.arange(40) % 2)
    before = results_of(fitted, new)
    for key in fitted.get_params(deep=False):
        for value in options_of(Estimator, key):
            changed = copy(fitted).set_params(**{key: value})
            try:
                after = results_of(changed, new)
            except ValueError as error:
                refusals = ("parameter of", "lower it", "unknown scheme")
                refusals += ("schedule parameter", "anchors parameter")
                refusals += ("unknown anchors",)
                assert any(text in str(error) for text in refusals), error
                continue  # what a fit would say, too
            if key in Estimator._acts_at_once:
                continue
            for first, second in zip(before, after, strict=True):
                np.testing.assert_array_equal(first, second, err_msg=f"{key}={value}")


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("Estimator", FITTABLE)
def test_parameters_of_parts_do_not_change_a_fitted_model(Estimator):
    rng = np.random.default_rng(0)
    X, y, new = rng.random((40, 6)), np.arange(40) % 2, rng.random((5, 6))
    model, names = small(Estimator), set(Estimator._get_param_names())
    kernel = Polynomial(2) if "Sketch" in Estimator.__name__ else RBF(sigma=2.0)
    given = {"kernel": kernel, "coder": OMP(2)}
    given = {key: value for key, value in given.items() if key in names}
    fitted = model.set_params(**given).fit(X, y)
    before = results_of(fitted, new)
    inner = {"coder__n_nonzero_coefs": 1, "kernel__sigma": 9.0, "kernel__degree": 3}
    fitted.set_params(**{k: v for k, v in inner.items() if k in fitted.get_params()})
    for first, second in zip(before, results_of(fitted, new), strict=True):
        np.testing.assert_array_equal(first, second)


def test_the_next_fit_takes_the_new_parameters(rng):
    X = rng.random((40, 6))
    model = FourierMap(n_components=8, random_state=0).fit(X)
    model.set_params(n_components=3)
    assert model.transform(X).shape == (40, 8)
    assert model.fit_transform(X).shape == model.transform(X).shape == (40, 3)
    model.set_params(n_components="many")
    with pytest.raises(ValueError, match="n_components"):
        model.transform(X)


def test_names_of_features_are_those_that_transform_gives(rng):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    X = pandas.DataFrame(rng.random((40, 6)), columns=list("abcdef"))
    model = FourierMap(n_components=8, random_state=0).set_output(transform="pandas")
    names = [f"fouriermap{i}" for i in range(8)]
    model.fit(X).set_params(n_components=3)
    assert list(model.get_feature_names_out()) == names
    assert list(model.transform(X).columns) == names
    pipe = make_pipeline(model, KSVD(4, 2, max_iter=1, random_state=0)).fit(X)
    pipe.set_params(fouriermap__n_components=5, ksvd__n_components=9)
    assert list(pipe[:-1].get_feature_names_out()) == names[:3]
    assert list(pipe.get_feature_names_out()) == [f"ksvd{i}" for i in range(4)]
    names = list(model.fit(X).get_feature_names_out())
    assert names == list(model.transform(X).columns) and len(names) == 5


def test_a_changed_model_can_be_saved(rng, tmp_path):
    X = rng.random((40, 6))
    model = FourierMap(n_components=8, random_state=0).fit(X)
    expected = model.transform(X)
    save(model.set_params(n_components=3), tmp_path / "model.safetensors")
    loaded = load(tmp_path / "model.safetensors")
    np.testing.assert_allclose(loaded.transform(X), expected)
    loaded.set_params(n_components=5)
    np.testing.assert_allclose(loaded.transform(X), expected)


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


def test_a_weight_that_is_a_number_of_numpy(rng):
    model = FDDLClassifier(2, lambda1=np.float32(0.5), max_iter=1, random_state=0)
    X = rng.standard_normal((8, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(model.fit(X, np.arange(8) % 2).decision_function(X)).all()


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


def test_weights_and_rates_at_the_ends_of_their_range(rng):
    X, y = rng.standard_normal((30, 4)), np.arange(30) % 2
    model = LCKSVDClassifier(9, alpha=10**30, max_iter=1, random_state=0).fit(X, y)
    assert np.isfinite(model.components_).all()
    with pytest.raises(ValueError, match="needs at least inf calibration rows"):
        DictionaryOutlierDetector(alpha=1e-320).fit(X)


@pytest.mark.parametrize("Estimator", [ResidualClassifier, DictionaryImputer])
@pytest.mark.parametrize("learner", [make_pipeline(UnitNorm(), KSVD(4)), KSVD])
def test_a_learner_alone_is_refused_as_pipeline_or_class(Estimator, learner, rng):
    X, y = rng.standard_normal((20, 3)), np.arange(20) % 2
    words = r"'learner' .* \(put other steps of a pipeline in front\)"
    with pytest.raises(ValueError, match=words):
        Estimator(learner).fit(X, y)
