"""Declarations of fitted attributes: kinds of values, shapes, sizes that agree.

A class that a model file may hold declares its parts in `_declared`: an estimator
its fitted attributes, a record its fields::

    _declared = {
        "n_features_in_": Size("p"),
        "frequencies_": Floats("h", "p"),
        "phase_": Number(),
    }

Letters are sizes. A letter stands for the same size everywhere in one object, and
`Part` says which sizes an object shares with another one inside it. What kinds and
shapes cannot say stands in `_conditions`: a sentence, and a function that tells whether
it is true of an object. Both tables are inherited. An object has all that is declared,
or none of it before a fit, except what `_early` names. `check` holds an object to that:
compiled loops do not look where their arrays end, so that what comes from a file has
to be right before.

`check.py` walks over an object, `kinds.py` has arrays and single values,
`composite.py` what is made of other values, `foreign.py` the declarations for
scikit-learn's classes.
"""

from . import foreign as foreign
from .check import (
    Conditions,
    Declared,
    Field,
    Misfit,
    attributes,
    check,
    declared_of,
    is_record,
    record_fields,
)
from .composite import Either, Facts, History, Many, Maybe, Part, Samples, Size
from .kinds import (
    Digests,
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

__all__ = [
    "Conditions",
    "Declared",
    "Digests",
    "Either",
    "Facts",
    "Field",
    "Flag",
    "Floats",
    "History",
    "Indices",
    "Labels",
    "Many",
    "Maybe",
    "Misfit",
    "Names",
    "Nothing",
    "Number",
    "Part",
    "Samples",
    "Size",
    "Text",
    "Whole",
    "attributes",
    "check",
    "declared_of",
    "is_record",
    "record_fields",
]
