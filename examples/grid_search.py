"""
Kernel, landmarks and sparsity chosen together
==============================================

Everything is a scikit-learn estimator, so the kernel's own parameters are reached by
name through the pipeline. Folds are shuffled: the rows stand in the order of their
writers, and with folds of consecutive rows (``cv=3``) the few writers of a fold decide
by more than any of these parameters. Differences of half a percent are chance even so.
Under a minute: ``python examples/grid_search.py``
"""

from __future__ import annotations

from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline

from kernlets import KSVD, NystroemMap, Polynomial, ResidualClassifier, datasets
from kernlets.datasets import remove_mean_and_normalize


def main() -> None:
    digits = datasets.load("digits")
    X, new = (remove_mean_and_normalize(A) for A in (digits.X_train, digits.X_test))
    model = make_pipeline(
        NystroemMap(Polynomial(2), "kmeans", n_landmarks=0.3, random_state=0),
        ResidualClassifier(KSVD(25, random_state=0)),
    )
    grid = {
        "nystroemmap__kernel__degree": [1, 2, 3],
        "nystroemmap__kernel__coef0": [0.0, 1.0],
        "residualclassifier__learner__n_nonzero_coefs": [4, 10],
    }
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    search = GridSearchCV(model, grid, cv=folds).fit(X, digits.y_train)
    for name, value in search.best_params_.items():
        print(f"{name:<46} {value}")
    print(f"cross-validation {100 * search.best_score_:.2f} %")
    print(f"test             {100 * search.score(new, digits.y_test):.2f} %")


if __name__ == "__main__":
    main()
