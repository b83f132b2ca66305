"""scikit-learn's own checks, for every public estimator."""

from __future__ import annotations

import inspect

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernlets import registry

# Rows repeated in their places are compared in test_weights.py.
PLACES = "first atoms are drawn by the places of rows, which this check shuffles"
ALL_ROWS = {"KSADClassifier", "SRCClassifier"}  # which draw none of so few rows


def expected_failures(estimator):
    """Checks that cannot pass, with the reason."""
    takes = "sample_weight" in inspect.signature(estimator.fit).parameters
    if not takes or type(estimator).__name__ in ALL_ROWS:
        return {}
    name = "check_sample_weight_equivalence_on_{}_data"
    return {name.format(kind): PLACES for kind in ("dense", "sparse")}


@pytest.mark.filterwarnings("ignore::UserWarning")  # small classes in the checks' data
@parametrize_with_checks(
    [Estimator() for Estimator in registry.estimators()],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
