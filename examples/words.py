"""
Dictionaries of words
=====================

Samples that are not vectors, through a kernel function.
The kernel counts the pairs of neighbouring letters that two words share. One dictionary
is learned for the words of each language, and new words go to the language that
represents them best. Runs in a few seconds: ``python examples/words.py``
"""

from __future__ import annotations

from collections import Counter

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


def main() -> None:
    words = [word for group in WORDS.values() for word in group]
    languages = [name for name, group in WORDS.items() for _ in group]
    kernel = Callable(shared_pairs, pairwise=True)
    learner = KernelKSVD(kernel, n_components=15, n_nonzero_coefs=3, random_state=0)
    model = ResidualClassifier(learner).fit(words, languages)
    right = 0
    for truth, group in NEW.items():
        for word, guess in zip(group, model.predict(group), strict=True):
            right += guess == truth
            print(f"{word:<12} {guess:<8} {'' if guess == truth else 'not ' + truth}")
    print(f"{right} of {sum(map(len, NEW.values()))} right")
    closest = Normalized(kernel)(["schachtel"], words)[0].argmax()
    print("nearest training word to schachtel:", words[closest])


if __name__ == "__main__":
    main()
