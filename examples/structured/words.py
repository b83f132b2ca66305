"""
Dictionaries of words
=====================

Samples that are not vectors, through a kernel function: it counts the pairs of
neighbouring letters that two words share. One dictionary is learned for the words of
each language, and new words go to the language that represents them best. Runs in a few
seconds: ``python examples/structured/words.py``
"""

from collections import Counter

import matplotlib.pyplot as plt
import numpy as np

from kernlets import Callable, KernelKSVD, Normalized, ResidualClassifier

WORDS = {
    "english": "the weather through thought whether with there these those other "
    "mother father brother another together although something everything night light "
    "right might bright sight fight knight eight weight height freight straight which "
    "when where while white wheel whisper wheat whale shadow shelter shoulder".split(),
    "italian": "ragazzo palazzo bellezza dolcezza grandezza piazza stazione lezione "
    "azione nazione emozione canzone ragione stagione montagna campagna lasagna "
    "giornata passeggiata cioccolato gelato formaggio viaggio coraggio messaggio "
    "bottiglia famiglia figlia moglie luglio foglio sbaglio meglio".split(),
    "german": "schule schwester schwarz schnell schlafen schreiben schlecht schon "
    "zwischen deutsch mensch wunsch tisch fisch frisch nacht licht recht macht acht "
    "wichtig richtig vielleicht nicht dich mich sich ich auch noch doch hoch buch "
    "kuchen suchen machen lachen sprechen brechen zeichen gleich reich".split(),
}
NEW = {
    "english": ["thirteen", "laughter", "whistle", "thunder", "neither"],
    "italian": ["ghiaccio", "ragazza", "soluzione", "maglia", "pazienza"],
    "german": ["schreck", "kirche", "achtung", "zeitschrift", "sprache"],
}


def shared_pairs(a: str, b: str) -> float:
    """⟨counts of letter pairs in a, counts of letter pairs in b⟩, ends included."""
    left, right = (Counter(zip(f"^{w}", f"{w}$", strict=True)) for w in (a, b))
    return float(sum(count * right[pair] for pair, count in left.items()))


words = [word for group in WORDS.values() for word in group]
languages = [name for name, group in WORDS.items() for _ in group]
kernel = Callable(shared_pairs, pairwise=True)

# %%
# A dictionary for each language, and labels of words that none of them has seen.

learner = KernelKSVD(kernel, n_components=15, n_nonzero_coefs=3, random_state=0)
model = ResidualClassifier(learner).fit(words, languages)
new = [word for group in NEW.values() for word in group]
truth = [name for name, group in NEW.items() for _ in group]
guesses = model.predict(new)
for word, language, guess in zip(new, truth, guesses, strict=True):
    print(f"{word:<12} {guess:<8} {'' if guess == language else 'not ' + language}")
right = sum(guess == language for guess, language in zip(guesses, truth, strict=True))
print(f"{right} of {len(new)} right")
closest = Normalized(kernel)(["schachtel"], words)[0].argmax()
print("nearest training word to schachtel:", words[closest])

# %%
# The probability of each language.

figure, axes = plt.subplots(figsize=(6, 4.5), layout="constrained")
left = np.zeros(len(new))
for name, share in zip(model.classes_, model.predict_proba(new).T, strict=True):
    axes.barh(new, share, left=left, label=name)
    left += share
axes.invert_yaxis()
axes.set(xlabel="probability", xlim=(0, 1))
figure.legend(loc="outside upper center", ncols=3)
plt.show()

# %%
# **What one sees.** Pairs of letters are enough for most words. The bars show which
# words are doubtful: those whose pairs occur in several languages.
#
# **What to change.** ``shared_pairs`` may be any symmetric, positive semi-definite
# function of two samples. ``kernlets.Spectrum(2)`` does the same in compiled code.
