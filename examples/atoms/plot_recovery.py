"""
Are these the true atoms?
=========================

Samples are sums of three of forty hidden atoms, with non-negative codes. K-SVD finds
more of these atoms, and has a smaller error, if it knows that codes cannot be negative.
Run with ``python examples/atoms/plot_recovery.py``.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone

from kernlets import KSVD, OMP, metrics, plotting
from kernlets.updates import ParallelKSVDUpdate

rng = np.random.default_rng(0)
atoms = rng.standard_normal((40, 20))
codes = np.zeros((2000, 40))
for code in codes:
    code[rng.choice(40, 3, replace=False)] = rng.random(3)
X = codes @ atoms

# %%
# Three ways to learn, three seeds each.

apart = ParallelKSVDUpdate(max_coherence=0.9)
ways = {
    "signed codes": KSVD(40, 3, max_iter=60),
    "non-negative codes": KSVD(40, coder=OMP(3, positive=True), max_iter=60),
    "no two alike, warm-up": KSVD(
        40,
        coder=OMP(3, positive=True),
        update=apart,
        max_iter=60,
        schedule="warm_up=30",
    ),
}
found = {}
for name, learner in ways.items():
    fits = [clone(learner).set_params(random_state=seed).fit(X) for seed in range(3)]
    found[name] = [metrics.recovery(atoms, fit) for fit in fits]
    share = np.mean([one.share for one in found[name]])
    print(f"{name}: {share:.0%} found, error {fits[-1].reconstruction_error(X):.4f}")

# %%
# The share of atoms that were found falls with the cosine that is asked for.

plotting.plot_recovery(found)
plt.show()

# %%
# **What one sees.** A line that stays high to the right means atoms that are recovered
# exactly. Knowing the sign of the codes helps most. The error alone would not have
# told: it is nearly the same for the last two.
#
# **What to change.** Fewer samples, or more non-zeros in each, make the task harder;
# :doc:`true atoms </true-atoms>` says what helps then.
