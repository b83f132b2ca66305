"""One word for one thing: names of parts, parameters and methods, and former names."""

from __future__ import annotations

import ast
import doctest
import inspect
from pathlib import Path

import numpy as np
import pytest
from packaging.version import Version
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GridSearchCV

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
    load,
    registry,
    save,
)
from kernlets.backend import names
from kernlets.backend.renamed import removed_in, warn_renamed
from kernlets.core import SparseCodes
from kernlets.pursuits import CODERS, resolve_coder
from kernlets.updates import RENAMED, UPDATES, KSVDUpdate, resolve_update

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


@pytest.mark.parametrize("old", RENAMED)
def test_former_names_of_updates_warn(old, data):
    with pytest.warns(FutureWarning, match=f"update='{old}' .* use '{RENAMED[old]}'"):
        former = KSVD(6, 2, update=old, max_iter=2, random_state=0).fit(data[0])
    new = KSVD(6, 2, update=RENAMED[old], max_iter=2, random_state=0).fit(data[0])
    np.testing.assert_array_equal(former.components_, new.components_)


def test_the_exact_update_by_name():
    assert resolve_update("ksvd:exact=True").exact is True
    update = KSVDUpdate(exact=True)
    assert resolve_update(update) is update


def test_examples_of_names():
    failed, tried = doctest.testmod(names)
    assert failed == 0 and tried == 3


# parameters


@pytest.mark.parametrize("Classifier", PER_CLASS)
def test_atoms_of_each_class(Classifier, data):
    new = Classifier(4, max_iter=1, random_state=0).fit(*data)
    assert np.bincount(new.atom_classes_).tolist() == [4, 4, 4]
    with pytest.warns(FutureWarning, match="n_components is depr.*n_atoms_per_class"):
        old = Classifier(n_components=4, max_iter=1, random_state=0).fit(*data)
    np.testing.assert_array_equal(new.components_, old.components_)
    with pytest.raises(ValueError, match="both given: leave n_components out"):
        Classifier(4, n_components=4).fit(*data)


@pytest.mark.parametrize("Classifier", PER_CLASS)
def test_the_former_name_can_be_cloned_set_and_searched(Classifier, data, tmp_path):
    model = clone(Classifier(n_components=4, max_iter=1, random_state=0))
    assert model.get_params()["n_components"] == 4
    with pytest.warns(FutureWarning, match="n_atoms_per_class"):
        model.set_params(n_components=5).fit(*data)
    assert model.dictionary_.n_atoms == 15
    save(model, tmp_path / "model.klm")
    assert load(tmp_path / "model.klm").get_params()["n_components"] == 5
    grid = {"n_components": [2, 3]}
    search = GridSearchCV(Classifier(max_iter=1, random_state=0), grid, cv=2)
    with pytest.warns(FutureWarning, match="n_atoms_per_class"):
        assert search.fit(*data).best_params_["n_components"] in (2, 3)


def test_top_k_is_a_count_and_not_a_weight():
    gram, corr = np.eye(4), np.array([[3.0, -2.0, 1.0, 0.5]])
    energy = (corr**2).sum(1)
    new = Threshold(kind="top-k", n_nonzero_coefs=2).solve(gram, corr, energy)
    with pytest.warns(FutureWarning, match="use n_nonzero_coefs"):
        old = Threshold(2, kind="top-k").solve(gram, corr, energy)
    assert new.toarray().tolist() == old.toarray().tolist() == [[3.0, -2.0, 0.0, 0.0]]


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


@pytest.mark.parametrize("dictionary", ["orthogonal", "fisher"])
def test_the_former_method_of_ksad_warns(dictionary, data):
    model = KSADClassifier("rbf:2", dictionary, random_state=0).fit(*data)
    with pytest.warns(FutureWarning, match=r"use encode\(X\).toarray\(\)"):
        dense = model.codes(data[0])
    np.testing.assert_array_equal(model.encode(data[0]).toarray(), dense)


# how long former names stay


def test_former_names_stay_for_two_minor_releases():
    assert removed_in("0.1") == "0.3"
    with pytest.warns(FutureWarning, match=r"since version 1\.9 .* 1\.11: use b"):
        warn_renamed("a", "b", since="1.9")


def test_no_former_name_outlives_its_time():
    package = Path(kernlets.__file__).parent
    calls = [
        call
        for path in package.rglob("*.py")
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id == "warn_renamed"
    ]
    assert len(calls) >= 5
    default = inspect.signature(warn_renamed).parameters["since"].default
    for call in calls:
        given = [word.value for word in call.keywords if word.arg == "since"]
        since = ast.literal_eval(given[0]) if given else default
        assert Version(kernlets.__version__) < Version(removed_in(since))
