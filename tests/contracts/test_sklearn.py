"""scikit-learn's own checks, for every public estimator."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernlets import registry


@pytest.mark.filterwarnings("ignore::UserWarning")  # small classes in the checks' data
@parametrize_with_checks([Estimator() for Estimator in registry.estimators()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)
