"""
Where is it unusual?
====================

A detector learns what patches of normal images look like, and draws a map of the scores
of another image: the scratch stands out. The same works for windows of a series. Then
a stream jumps to another level for good: alarms rise, and end by themselves.
Run with ``python examples/outliers/plot_outlier_maps.py``.
"""

import matplotlib.pyplot as plt
import numpy as np

from kernlets import StreamOutlierDetector, plotting
from kernlets.outliers import PatchOutlierDetector

rng = np.random.default_rng(0)


def new_axes():
    return plt.subplots(figsize=(7, 4), layout="constrained")[1]


# %%
# Woven cloth, and a piece of it with a scratch that is as bright as the cloth.

SIDE = 160
rows, cols = np.indices((SIDE, SIDE))


def cloth():
    weave = np.sin(rows / 1.5) * np.sin(cols / 2) + 0.3 * np.sin((rows + cols) / 9)
    return weave + 0.1 * rng.standard_normal((SIDE, SIDE))


scratched = cloth()
along = np.arange(30, 80)
scratched[along, along // 2 + 20] = scratched[along, along // 2 + 21] = 0.8
inspector = PatchOutlierDetector(patch_size=8, random_state=0).fit([cloth(), cloth()])
scores = inspector.score_map(scratched)
plotting.plot_score_map(scores, scratched, new_axes(), inspector.threshold_)
print("worst pixel:", *np.unravel_index(scores.argmax(), scores.shape))

# %%
# A pulse that misses a beat.

pulse = np.sin(np.arange(2000) / 6) ** 9 + 0.05 * rng.standard_normal(2000)
missed = pulse[:400].copy()
missed[200:215] = 0.05 * rng.standard_normal(15)
listener = PatchOutlierDetector(patch_size=(40,), random_state=0).fit(pulse)
scores = listener.score_map(missed)
plotting.plot_score_map(scores, missed, new_axes(), listener.threshold_)
print("worst step:", scores.argmax())

# %%
# A stream that changes for good after 2000 rows. A quarter of the window later the new
# rows are not rare any more; everything is learned anew from them.

stream = rng.standard_normal((4000, 4)) @ rng.standard_normal((4, 4))
stream[2000:] += 9
follower = StreamOutlierDetector(window=400, random_state=0)
alarms = []
for block in np.split(stream, 40):
    alarms.append(follower.partial_fit(block).labels_.mean())
axes = new_axes()
axes.plot(100 * np.arange(1, 41), alarms, color="C3")
axes.set(title="alarms of a stream", xlabel="rows so far", ylabel="share of alarms")
print("learned anew:", follower.n_restarts_, "time(s)")
plt.show()

# %%
# **What one sees.** The scratch is no brighter than the cloth, but no normal patch
# looks like it. The missed beat is a flat line, which is unusual where a beat is due.
# After the jump all rows are alarms for a short time, until the detector learns from
# them.
#
# **What to change.** ``patch_size``: about the size of the defects. ``window``: a
# shorter one forgets sooner, and takes a long fault for the new normal.
