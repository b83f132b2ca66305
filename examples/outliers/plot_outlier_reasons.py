"""
Why is this an outlier?
=======================

A detector learns what handwritten threes look like. Other digits are novelties, and
the detector says which pixels give them away. Then a table: which of its columns make
a row an outlier, in words and as bars; and a window of a series.
Run with ``python examples/outliers/plot_outlier_reasons.py``.
"""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np

from kernlets import DictionaryOutlierDetector, datasets, plotting


def new_axes():
    return plt.subplots(figsize=(7, 4), layout="constrained")[1]


digits = datasets.load("digits")
X = np.concatenate([digits.X_train, digits.X_test])
y = np.concatenate([digits.y_train, digits.y_test])
threes, eights = X[y == 3], X[y == 8]

# %%
# All training rows are normal: ``novelty=True``. With ``alpha`` a fresh three is a
# false alarm with a probability of at most one in twenty, over all ways to split the
# threes. The mean of ten splits comes near to that. Single ones lie above or below,
# because the threshold comes from the 60 rows that are set aside for it.

false_alarms, found = [], []
for seed in range(10):
    rows = np.random.default_rng(seed).permutation(threes)
    detector = DictionaryOutlierDetector(novelty=True, alpha=0.05, random_state=seed)
    detector.fit(rows[:120])
    false_alarms.append((detector.predict(rows[120:]) < 0).mean())
    found.append((detector.predict(eights) < 0).mean())
print(
    f"false alarms: {np.mean(false_alarms):.1%} on average, "
    f"from {min(false_alarms):.0%} to {max(false_alarms):.0%}"
)
print(f"eights found: {np.mean(found):.0%} of {len(eights)} on average")

most = eights[detector.score_samples(eights).argmin()]
(reason,) = detector.explain(most[None])
plotting.plot_outlier(reason, new_axes(), image_shape=digits.image_shape)

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
plotting.plot_outlier(reason, new_axes())

# %%
# Windows of a series with a bump in one of them.

time = np.arange(3000)
series = np.sin(time / 5) + 0.1 * rng.standard_normal(len(time))
windows = np.lib.stride_tricks.sliding_window_view(series, 40)[::3].copy()
window = windows[100].copy()
window[18:24] += 1.2
heart = DictionaryOutlierDetector(novelty=True, random_state=0).fit(windows)
plotting.plot_outlier(heart.explain(window[None])[0], new_axes(), series=True)
plt.show()

# %%
# **What one sees.** First the eight, then a usual three near it, then the share of each
# pixel in the score. One pixel, which is blank in nearly all threes, has most of it. In
# the table, height and weight share the score, although each of them is usual alone. In
# the series the bump stands out, and the rest hardly counts.
#
# **What to change.** ``alpha``: with 0.2 more eights are found, and more threes are
# false alarms. More normal rows make the threshold steadier from one split to the next.
