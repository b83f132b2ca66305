"""scikit-learn's own checks, for every public estimator."""

from __future__ import annotations

import inspect

import pytest
from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import parametrize_with_checks

import kernlets
from kernlets.core import Kernel, SparseCoder


def public_estimators():
    values = [getattr(kernlets, name) for name in kernlets.__all__]
    return [
        value
        for value in values
        if inspect.isclass(value)
        and issubclass(value, BaseEstimator)
        and not issubclass(value, (Kernel, SparseCoder))  # values without fit
    ]


@pytest.mark.filterwarnings("ignore::UserWarning")  # small classes in the checks' data
@parametrize_with_checks([Estimator() for Estimator in public_estimators()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)
