"""Every fitted estimator documents its attributes: all of them, and no others."""

from __future__ import annotations

import inspect
import re

import pytest

from kernlets import registry

from .models import INSTANCES, fitted, samples

COMMON = {"n_features_in_", "feature_names_in_"}  # scikit-learn's, on every estimator


def described_attributes(cls):
    pattern = r"^Attributes\n-{3,}\n(.*?)(?=^\w[^\n]*\n-{3,}\n|\Z)"
    found = re.search(pattern, inspect.getdoc(cls), re.DOTALL | re.MULTILINE)
    assert found, f"{cls.__name__} has no section Attributes"
    heads = [line.split(" : ")[0] for line in found[1].splitlines() if line[:1].strip()]
    return {name.strip() for head in heads for name in head.split(",")}


def public_attributes(model):
    """What `fit` has set, and properties that look like it."""
    owned = {name for name in vars(model) if name[-1] == "_" and name[0] != "_"}
    derived = {
        name
        for name, value in inspect.getmembers(type(model))
        if isinstance(value, property) and name[-1] == "_" and name[0] != "_"
    }
    return owned | derived


def test_every_estimator_has_an_instance():
    assert {type(model) for model in INSTANCES.values()} == set(registry.estimators())


@pytest.mark.parametrize("cls", registry.estimators(), ids=lambda cls: cls.__name__)
def test_attributes_are_those_of_the_fitted_estimator(cls):
    X = samples().astype(float)
    names = [name for name, model in INSTANCES.items() if type(model) is cls]
    found = set().union(*(public_attributes(fitted(name, X)) for name in names))
    described = described_attributes(cls)
    assert not described - found - COMMON, "described, but not there"
    assert not found - described - COMMON, "there, but not described"
