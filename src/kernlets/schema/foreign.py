"""Declarations of the fitted attributes of scikit-learn's classes.

The classes are those in `registry.SKLEARN`. An attribute that only some versions have
may be missing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .check import FOREIGN, Conditions, Declared
from .composite import Either, Maybe, Named, Output, Size
from .kinds import (
    LARGEST,
    Flag,
    Floats,
    Indices,
    Labels,
    Names,
    Nothing,
    Number,
    Text,
    Whole,
)


def _n_rows(model: Any) -> int:
    """The number of linear functions."""
    return model.coef_.shape[0] if model.coef_.ndim == 2 else 1


WIDTH: Declared = {"n_features_in_": Size("p")}
ROW = Floats("p", finite=False)  # scalers of missing values have NaN
ROW_OR_NONE = Either(Nothing(), ROW)
N_ITER = Either(Nothing(), Whole(), Indices("i"))
SEEN = Either(Number(least=0), Indices("p"), Floats("p"))

LINEAR: Declared = {
    **WIDTH,
    "coef_": Either(Floats("t", "p", csr=True), Floats("p")),
    "intercept_": Either(Number(), Floats(None)),
    "n_iter_": Maybe(N_ITER),
    "solver_": Maybe(Text()),
}
LINEAR_RULES: Conditions = {
    "intercept_ must go with coef_": lambda self: (
        np.size(self.intercept_) in (1, _n_rows(self))
    ),
}
CLASSIFIER: Declared = {**LINEAR, "classes_": Labels("C")}
CLASSIFIER_RULES: Conditions = {
    **LINEAR_RULES,
    "coef_ must go with classes_": lambda self: (
        _n_rows(self) == (len(self.classes_) if len(self.classes_) > 2 else 1)
        or _n_rows(self) == len(self.classes_) == 2
    ),
}

DECLARED: dict[str, Declared] = {
    "BaseEstimator": {
        "feature_names_in_": Maybe(Names("p")),
        "row_names_": Maybe(Indices(None, least=-LARGEST), Names(None)),
        "_sklearn_output_config": Maybe(Output()),
    },
    "PCA": {
        **WIDTH,
        "components_": Floats("k", "p"),
        "n_components_": Size("k"),
        "mean_": Floats("p"),
        "explained_variance_": Floats("k", finite=False),
        "explained_variance_ratio_": Floats("k", finite=False),
        "singular_values_": Floats("k", finite=False),
        "noise_variance_": Number(finite=False),
        "n_samples_": Whole(),
        "_fit_svd_solver": Text(),
    },
    "LinearRegression": {
        **LINEAR,
        "rank_": Maybe(Whole()),
        "singular_": Maybe(Floats("s>=0")),
    },
    "LogisticRegression": CLASSIFIER,
    "Ridge": LINEAR,
    "RidgeClassifier": {
        **CLASSIFIER,
        "classes_": Maybe(Labels("C")),  # those of the binarizer, in older versions
        "_label_binarizer": Named("LabelBinarizer", C="C"),
    },
    "FeatureUnion": {},
    "Pipeline": {},
    "LabelBinarizer": {
        "classes_": Labels("C"),
        "y_type_": Text(),
        "sparse_input_": Flag(),
    },
    "LabelEncoder": {"classes_": Labels("C>=0", gaps=True)},
    "MaxAbsScaler": {**WIDTH, "n_samples_seen_": SEEN, "max_abs_": ROW, "scale_": ROW},
    "MinMaxScaler": {
        **WIDTH,
        "n_samples_seen_": SEEN,
        "scale_": ROW,
        "min_": ROW,
        "data_min_": ROW,
        "data_max_": ROW,
        "data_range_": ROW,
    },
    "Normalizer": WIDTH,
    "RobustScaler": {**WIDTH, "center_": ROW_OR_NONE, "scale_": ROW_OR_NONE},
    "StandardScaler": {
        **WIDTH,
        "n_samples_seen_": SEEN,
        "mean_": ROW_OR_NONE,
        "var_": ROW_OR_NONE,
        "scale_": ROW_OR_NONE,
    },
    "LinearSVC": CLASSIFIER,
}
RULES: dict[str, Conditions] = {
    "LinearRegression": LINEAR_RULES,
    "LogisticRegression": CLASSIFIER_RULES,
    "Ridge": LINEAR_RULES,
    "RidgeClassifier": CLASSIFIER_RULES,
    "StandardScaler": {
        "n_samples_seen_ must be NumPy's": lambda self: hasattr(
            self.n_samples_seen_, "shape"
        ),  # which `partial_fit` asks for
        "mean_ and scale_ must be there if they are used": lambda self: (
            (self.mean_ is not None or not self.with_mean)
            and (self.scale_ is not None or not self.with_std)
        ),
    },
    "RobustScaler": {
        "center_ and scale_ must be there if they are used": lambda self: (
            (self.center_ is not None or not self.with_centering)
            and (self.scale_ is not None or not self.with_scaling)
        ),
    },
    "LinearSVC": CLASSIFIER_RULES,
}

FOREIGN.update({"_declared": DECLARED, "_conditions": RULES})
