"""One word for one thing: names of parts, parameters and methods."""

from __future__ import annotations

import doctest
import inspect

import numpy as np
import pytest
from sklearn.base import is_classifier

import kernlets
from kernlets import (
    KSVD,
    MOD,
    OMP,
    BudgetKernelDL,
    DKSVDClassifier,
    FDDLClassifier,
    KSADClassifier,
    LCKSVDClassifier,
    OnlineDictionary,
    ResidualClassifier,
    SRCClassifier,
    Threshold,
    registry,
)
from kernlets.base import names
from kernlets.coders import CODERS, resolve_coder
from kernlets.contracts import SparseCodes
from kernlets.updates import UPDATES, KSVDUpdate, resolve_update

PER_CLASS = [LCKSVDClassifier, DKSVDClassifier, FDDLClassifier]
ENCODING = [*PER_CLASS, KSADClassifier, ResidualClassifier, SRCClassifier]


@pytest.fixture
def data():
    rng = np.random.default_rng(3)
    y = np.arange(60) % 3
    return rng.standard_normal((3, 8))[y] + 0.4 * rng.standard_normal((60, 8)), y


# names of coders and updates


@pytest.mark.parametrize("name", CODERS)
def test_every_coder_has_a_name_that_learners_take(name, data):
    learner = KSVD(6, coder=name, max_iter=1, random_state=0).fit(data[0])
    assert type(learner.coder_) is CODERS[name]
    assert learner.coder == name  # as the user wrote it


def test_a_name_carries_parameters(data):
    by_name = KSVD(6, coder="omp:2", max_iter=2, random_state=0).fit(data[0])
    by_object = KSVD(6, coder=OMP(2), max_iter=2, random_state=0).fit(data[0])
    np.testing.assert_array_equal(by_name.components_, by_object.components_)
    assert resolve_coder("lasso:0.3,positive=True").get_params()["positive"] is True
    assert SRCClassifier(coder="lasso:0.2").fit(*data).coder_.alpha == 0.2


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("opm", "unknown coder 'opm': did you mean 'omp'"),
        ("omp:n=3", "OMP has no parameter 'n'; it takes: n_nonzero_coefs, tol"),
        ("omp:two", "coder parameter 'two' is not a number"),
    ],
)
def test_a_wrong_coder_is_refused_with_advice(spec, message, data):
    with pytest.raises(ValueError, match=message):
        KSVD(6, coder=spec).fit(data[0])


def test_a_budget_takes_the_coders_that_it_can_run(data):
    model = BudgetKernelDL("rbf:2", 4, coder="omp:2", max_iter=1, random_state=0)
    assert isinstance(model.fit(data[0]).coder_, OMP)
    with pytest.raises(ValueError, match="coder='threshold' must be 'lasso' or 'omp'"):
        model.set_params(coder="threshold").fit(data[0])


@pytest.mark.parametrize("name", UPDATES)
def test_every_update_has_a_name_that_learners_take(name, data):
    learner = KSVD(6, 2, update=name, max_iter=1, random_state=0).fit(data[0])
    assert type(learner._atom_update()) is UPDATES[name]


def test_mod_by_name_is_the_method(data):
    by_name = KSVD(6, 2, update="mod", max_iter=3, random_state=0).fit(data[0])
    itself = MOD(6, 2, max_iter=3, random_state=0).fit(data[0])
    np.testing.assert_array_equal(by_name.components_, itself.components_)


def test_a_stream_takes_updates_that_need_sums(data):
    OnlineDictionary(6, 2, update="ksvd-parallel", random_state=0).fit(data[0])
    with pytest.raises(ValueError, match="needs all codes at once"):
        OnlineDictionary(6, 2, update="ksvd", random_state=0).fit(data[0])
    with pytest.raises(ValueError, match="did you mean 'mod'"):
        OnlineDictionary(6, 2, update="mode", random_state=0).fit(data[0])


def test_the_exact_update_by_name():
    assert resolve_update("ksvd:exact=True").exact is True
    update = KSVDUpdate(exact=True)
    assert resolve_update(update) is update


def test_examples_of_names():
    failed, tried = doctest.testmod(names)
    assert failed == 0 and tried == 6


# parameters


@pytest.mark.parametrize("Classifier", PER_CLASS)
def test_atoms_of_each_class(Classifier, data):
    new = Classifier(4, max_iter=1, random_state=0).fit(*data)
    assert np.bincount(new.atom_classes_).tolist() == [4, 4, 4]


def test_top_k_is_a_count_and_not_a_weight():
    gram, corr = np.eye(4), np.array([[3.0, -2.0, 1.0, 0.5]])
    energy = (corr**2).sum(1)
    new = Threshold(kind="top-k", n_nonzero_coefs=2).solve(gram, corr, energy)
    assert new.toarray().tolist() == [[3.0, -2.0, 0.0, 0.0]]
    with pytest.raises(ValueError, match="n_nonzero_coefs=None is the number of coeff"):
        Threshold(2, kind="top-k").solve(gram, corr, energy)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_nonzero_coefs": 0}, "n_nonzero_coefs"),
        ({"n_nonzero_coefs": -3}, "n_nonzero_coefs"),
        ({"n_nonzero_coefs": 3, "coder": OMP(2)}, "both given"),
    ],
)
def test_sparse_representation_refuses_what_it_would_ignore(params, message, data):
    with pytest.raises(ValueError, match=message):
        SRCClassifier(**params).fit(*data)


CONSTRUCTED = [
    getattr(kernlets, name)
    for name in kernlets.__all__
    if hasattr(getattr(kernlets, name), "get_params")
]


@pytest.mark.parametrize("kind", CONSTRUCTED, ids=lambda kind: kind.__name__)
def test_arguments_after_the_second_are_named(kind):
    third = list(inspect.signature(kind).parameters.values())[2:]
    assert all(parameter.kind is parameter.KEYWORD_ONLY for parameter in third)


def test_many_constructors_are_looked_at():
    assert len(CONSTRUCTED) > 40


# methods


def test_every_classifier_with_codes_is_looked_at():
    classifiers = [kind for kind in registry.estimators() if is_classifier(kind())]
    assert {kind for kind in classifiers if hasattr(kind, "encode")} == {*ENCODING}


@pytest.mark.parametrize("Classifier", ENCODING)
def test_codes_of_classifiers(Classifier, data):
    model = Classifier().fit(*data)
    codes = model.encode(data[0][:7])
    assert isinstance(codes, SparseCodes) and len(codes) == 7


def test_codes_over_the_dictionary_of_each_class(data):
    model = ResidualClassifier(KSVD(4, 2, max_iter=1, random_state=0)).fit(*data)
    codes = model.encode(data[0]).toarray()
    alone = [learner.transform(data[0]) for learner in model.learners_]
    np.testing.assert_array_equal(codes, np.hstack(alone))
