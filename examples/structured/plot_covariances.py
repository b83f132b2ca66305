"""
Signals told apart by their covariances
=======================================

Eight sensors record a mixture of a few sources. In each trial one of three sources is
stronger than usual; the signals themselves are noise, and no single sensor tells which
source it was. The covariance matrix of the sensors does.

Covariances are compared by kernels of positive definite matrices: `LogEuclidean` and
`Stein`. Sources that drift from one session to the next change all matrices A to MAMᵀ;
the Stein divergence of two matrices of one session does not notice.
Run with ``python examples/structured/plot_covariances.py``.
"""

import matplotlib.pyplot as plt
import numpy as np

from kernlets import (
    KernelKSVD,
    LogEuclidean,
    MeanEmbedding,
    ResidualClassifier,
    Stein,
    datasets,
)

N_TRIALS, N_STEPS, N_SENSORS = 180, 60, 8
rng = np.random.default_rng(0)
mixing = rng.standard_normal((5, N_SENSORS))
source = np.arange(N_TRIALS) % 3

signals = []
for s in source:
    strength = np.ones(5)
    strength[s] = 1.4
    sources = rng.standard_normal((N_STEPS, 5)) * strength
    signals.append(sources @ mixing + 0.5 * rng.standard_normal((N_STEPS, N_SENSORS)))

# %%
# One dictionary for each source, in three feature spaces. The third one sees each
# signal as a bag of steps, by the mean of a Gaussian kernel.

matrices = datasets.covariances(signals)
spaces = {
    "log-Euclidean": (LogEuclidean(), matrices),
    "Stein": (Stein(), matrices),
    "bag of steps": (MeanEmbedding(), signals),
}
half = N_TRIALS // 2
scores = {}
for name, (kernel, X) in spaces.items():
    learner = KernelKSVD(kernel, 8, n_nonzero_coefs=3, random_state=0)
    model = ResidualClassifier(learner).fit(X[:half], source[:half])
    scores[name] = model.score(X[half:], source[half:])
    print(f"{name}: {100 * scores[name]:.1f} % of {N_TRIALS - half} new trials")

# %%
# A signal of each source, its covariance, and where the trials lie: the two leading
# eigenvectors of the centred kernel matrix.

K = LogEuclidean().bound(matrices)(matrices)
centred = K - K.mean(axis=0) - K.mean(axis=1, keepdims=True) + K.mean()
values, vectors = np.linalg.eigh(centred)
places = vectors[:, -2:] * np.sqrt(values[-2:])

figure, axes = plt.subplots(2, 4, figsize=(12, 5), layout="constrained")
for s in range(3):
    axes[0, s].plot(signals[s] + 8 * np.arange(N_SENSORS), linewidth=0.8)
    axes[0, s].set_title(f"source {s}: eight sensors")
    axes[1, s].imshow(matrices[s], cmap="RdBu", vmin=-15, vmax=15)
    axes[1, s].set_title("covariance")
for s in range(3):
    axes[0, 3].plot(*places[source == s].T, ".", label=f"source {s}")
axes[0, 3].set_title("trials in feature space")
axes[0, 3].legend()
axes[1, 3].barh(list(scores), list(scores.values()))
axes[1, 3].set_xlim(0, 1)
axes[1, 3].set_title("accuracy on new trials")
plt.show()

# %%
# **What one sees.** The signals look alike to the eye. Their covariances do not, and
# the trials of a source are neighbours in the feature space.
#
# **What to change.** ``strength[s]``: nearer to 1 the sources are harder to tell apart.
# Shorter trials (``N_STEPS``) make the matrices noisier.
