"""
Why is this an outlier?
=======================

A detector learns what handwritten threes look like. Other digits are novelties, and
the detector says which pixels give them away. Then a table: which of its columns make
a row an outlier, in words and as bars; and a window of a series.
Run with ``python examples/plot_outlier_reasons.py``.
"""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np

from kernlets import DictionaryOutlierDetector, datasets, plotting

digits = datasets.load("digits")
threes = digits.X_train[digits.y_train == 3]
others = digits.X_test[digits.y_test == 8]

# %%
# All training rows are normal: ``novelty=True``. With ``alpha`` at most one in twenty
# fresh threes is a false alarm.

detector = DictionaryOutlierDetector(novelty=True, alpha=0.05, random_state=0)
detector.fit(threes)
fresh = digits.X_test[digits.y_test == 3]
print(f"false alarms: {(detector.predict(fresh) < 0).mean():.0%} of {len(fresh)}")
print(f"eights found: {(detector.predict(others) < 0).mean():.0%} of {len(others)}")

figure, axes = plt.subplots(1, 3, figsize=(13, 3.4), layout="constrained")
most = others[detector.score_samples(others).argmin()]
(reason,) = detector.explain(most[None])
plotting.plot_outlier(reason, axes[0], image_shape=(8, 8))

# %%
# A table of correlated columns. In the last row no value is extreme, but one of them
# does not go with the others.

rng = np.random.default_rng(0)
size = rng.normal(170, 10, 400)
table = np.stack(
    [
        size,
        0.9 * size - 85 + rng.normal(0, 4, 400),
        0.4 * size + rng.normal(0, 2, 400),
        rng.normal(65, 9, 400),
    ],
    axis=1,
)
odd = np.array([[192.0, 58.0, 77.0, 66.0]])
people = DictionaryOutlierDetector(novelty=True, random_state=0).fit(table)
(reason,) = people.explain(odd)  # a dataframe would bring the names along
reason = replace(reason, names=("height", "weight", "arm", "pulse"))
print(reason)
plotting.plot_outlier(reason, axes[1])

# %%
# Windows of a series with a bump in one of them.

time = np.arange(3000)
series = np.sin(time / 5) + 0.1 * rng.standard_normal(len(time))
windows = np.lib.stride_tricks.sliding_window_view(series, 40)[::3].copy()
window = windows[100].copy()
window[18:24] += 1.2
heart = DictionaryOutlierDetector(novelty=True, random_state=0).fit(windows)
plotting.plot_outlier(heart.explain(window[None])[0], axes[2], series=True)
plt.show()
