"""
Kernel, landmarks and sparsity chosen together
==============================================

Everything is a scikit-learn estimator, so a search reaches the kernel's parameters by
name through the pipeline. Folds are shuffled: the rows stand in the order of their
writers, and with folds of consecutive rows (``cv=3``) the few writers of a fold decide
by more than any of these parameters.
Under a minute: ``python examples/parameters/grid_search.py``
"""

import matplotlib.pyplot as plt
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline

from kernlets import KSVD, NystroemMap, Polynomial, ResidualClassifier, datasets
from kernlets.datasets import remove_mean_and_normalize

digits = datasets.load("digits")
X, new = (remove_mean_and_normalize(A) for A in (digits.X_train, digits.X_test))
model = make_pipeline(
    NystroemMap(Polynomial(2), "kmeans", n_landmarks=0.3, random_state=0),
    ResidualClassifier(KSVD(25, random_state=0)),
)

# %%
# A grid over two parameters of the kernel and one of the learner.

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

# %%
# All points of the grid, with the standard deviation over the folds.

results = search.cv_results_
names = [", ".join(str(value) for value in each.values()) for each in results["params"]]
scores, spread = 100 * results["mean_test_score"], 100 * results["std_test_score"]
figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
axes.errorbar(scores, names, xerr=spread, fmt="o", capsize=3)
axes.set(xlabel="accuracy in cross-validation (%)", ylabel="coef0, degree, non-zeros")
plt.show()

# %%
# **What one sees.** Ten non-zeros are a little better than four for every kernel. All
# other differences are smaller than the bars, so that chance chose the best point. The
# test score is lower than that of the folds, because the test digits are by other
# writers.
#
# **What to change.** ``n_jobs=2`` in the search. ``n_landmarks`` and ``KSVD(25)`` can
# be searched by name as well: ``model.get_params()`` lists all names.
