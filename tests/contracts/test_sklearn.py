"""scikit-learn's own checks, for every public estimator."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys

import pytest
from sklearn.utils import get_tags
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
    kinds = ["dense", "sparse"] if get_tags(estimator).input_tags.sparse else ["dense"]
    return {name.format(kind): PLACES for kind in kinds}


@pytest.mark.filterwarnings("ignore::UserWarning")  # small classes in the checks' data
@parametrize_with_checks(
    [Estimator() for Estimator in registry.estimators()],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


DISPATCHED = """
import numpy as np, sklearn, torch
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from kernlets import KSVD, NystroemMap, ResidualClassifier
X, y = torch.randn(60, 6, generator=torch.manual_seed(0)), np.arange(60) % 3
learner = KSVD(5, 2, max_iter=2, random_state=0)
model = NystroemMap("rbf", random_state=0), ResidualClassifier(learner)
with sklearn.config_context(array_api_dispatch=True):
    codes = make_pipeline(StandardScaler(), learner).fit_transform(X)
    found = make_pipeline(StandardScaler(), *model).fit(X, y).predict(X)
plain = make_pipeline(StandardScaler(), learner).fit_transform(X.numpy())
assert isinstance(codes, torch.Tensor) and isinstance(found, torch.Tensor)
np.testing.assert_allclose(codes.numpy(), plain, atol=1e-4)
"""


def test_tensors_travel_through_pipelines_with_scikit_learns_steps():
    pytest.importorskip("torch")
    pytest.importorskip("scipy", "1.14", reason="what scikit-learn needs for it")
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    words = [sys.executable, "-c", DISPATCHED]
    done = subprocess.run(words, capture_output=True, env=environment)
    assert done.returncode == 0, done.stderr.decode()
