"""Kinds of values that consist of other values: objects, lists, choices, histories."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from .check import Dimension, Field, Misfit, Sizes, check, is_record
from .kinds import Floats, Text, Whole, type_text


class Size(Whole):
    """A whole number that is a size of arrays."""

    def __init__(self, dimension: Dimension) -> None:
        super().__init__(least=1)
        self.dimension = dimension

    def check(self, value: Any, sizes: Sizes) -> None:
        super().check(value, sizes)
        if not sizes.agree(self.dimension, int(value)):
            raise Misfit(f"is {value}, but there is {sizes.text(self.dimension)}")


class Part(Field):
    """Another object of given classes, fitted, with some sizes in common.

    In ``Part(KernelDictionary, m="m", p="p")`` letters of the other object are on the
    left, and letters of the object that holds it on the right.
    """

    def __init__(
        self, *classes: type, fitted: bool = True, **shared: Dimension
    ) -> None:
        self.classes, self.fitted, self.shared = classes, fitted, shared

    def check(self, value: Any, sizes: Sizes) -> None:
        if not isinstance(value, self.classes):
            class_names = " or ".join(cls.__name__ for cls in self.classes)
            raise Misfit(
                f"is {type_text(value)}, it must be of the class {class_names}"
            )
        part_sizes = check(value, sizes.checked_sizes)
        if self.fitted and not part_sizes.fitted:
            raise Misfit("is not fitted")
        for letter, dimension in self.shared.items():
            if letter in part_sizes and not sizes.agree(dimension, part_sizes[letter]):
                raise Misfit(
                    f"has {letter}={part_sizes[letter]}, but there is "
                    f"{sizes.text(dimension)}"
                )


class Named(Part):
    """A `Part` whose class is given by its name, so that it need not be imported."""

    def __init__(self, name: str, **shared: Dimension) -> None:
        super().__init__(object, fitted=True, **shared)
        self.name = name

    def check(self, value: Any, sizes: Sizes) -> None:
        if type(value).__name__ != self.name:
            raise Misfit(f"is {type_text(value)}, it must be of the class {self.name}")
        super().check(value, sizes)


class Many(Field):
    """A list of values of one kind."""

    def __init__(self, item: Field, count: Dimension) -> None:
        self.item, self.count = item, count
        self.waits = item.waits

    def check(self, value: Any, sizes: Sizes) -> None:
        if not isinstance(value, (list, tuple)):
            raise Misfit(f"is {type_text(value)}, it must be a list")
        if not sizes.agree(self.count, len(value)):
            raise Misfit(f"has {len(value)} items, not {sizes.text(self.count)}")
        for index, item in enumerate(value):
            try:
                self.item.check(item, sizes)
            except Misfit as error:
                raise Misfit(f"at {index} {error}") from None


class Either(Field):
    """One of several kinds, the first that fits."""

    def __init__(self, *kinds: Field) -> None:
        self.kinds = kinds
        self.waits = any(kind.waits for kind in kinds)

    def check(self, value: Any, sizes: Sizes) -> None:
        problems, initial_sizes = [], dict(sizes)
        for kind in self.kinds:
            try:
                return kind.check(value, sizes)
            except Misfit as error:
                problems.append(str(error))
                sizes.clear()
                sizes.update(initial_sizes)
        raise Misfit("; or it ".join(problems))


class Maybe(Either):
    """One of several kinds, or missing."""

    optional = True


class History(Field):
    """The history of a fit: lists, by name, with one number for each iteration."""

    def __init__(self, measure: str = "objective") -> None:
        self.measure = measure

    def check(self, value: Any, sizes: Sizes) -> None:
        if not isinstance(value, dict) or not {self.measure, "seconds"} <= value.keys():
            raise Misfit(f"must be a dict with {self.measure!r} and 'seconds'")
        for name, numbers in value.items():
            Text().check(name, sizes)
            if not isinstance(numbers, list) or not all(map(_is_number, numbers)):
                raise Misfit(f"has something else than a list of numbers as {name!r}")
        if not value[self.measure]:
            raise Misfit("has no iteration")


class Facts(Field):
    """Numbers, text and gaps by name, or such facts again under a name."""

    def check(self, value: Any, sizes: Sizes) -> None:
        if not isinstance(value, dict):
            raise Misfit(f"is {type_text(value)}, it must be a dict")
        for name, fact in value.items():
            Text().check(name, sizes)
            if isinstance(fact, dict):
                self.check(fact, sizes)
            elif not (fact is None or isinstance(fact, (bool, str, Real))):
                raise Misfit(f"has {type_text(fact)} as {name!r}")


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


class Samples(Field):
    """Samples that are not rows: an array of text, of matrices of numbers or records.

    All are of one kind; matrices have as many columns each, and one type.
    """

    def __init__(self, dimension: Dimension) -> None:
        self.dimension = dimension

    def check(self, value: Any, sizes: Sizes) -> None:
        if not isinstance(value, np.ndarray) or value.dtype != object:
            raise Misfit(f"is {type_text(value)}, it must be an array of samples")
        if value.ndim != 1 or not sizes.agree(self.dimension, len(value)):
            raise Misfit(f"has the shape {value.shape}, it must be a list of samples")
        samples = value.tolist()
        if all(isinstance(sample, str) for sample in samples):
            return
        if not samples or not isinstance(samples[0], np.ndarray):
            return self._check_records(samples, sizes)
        kind, n_columns = samples[0].dtype.name, samples[0].shape[-1]
        for sample in samples:
            Floats(None, n_columns, like=kind).check(sample, sizes)

    def _check_records(self, samples: list[Any], sizes: Sizes) -> None:
        for sample in samples:
            if not is_record(sample) or type(sample) is not type(samples[0]):
                raise Misfit("has samples of several kinds, or of none that is known")
            check(sample, sizes.checked_sizes)


class Output(Field):
    """The attribute that scikit-learn's `set_output` sets."""

    kinds = ("default", "pandas", "polars", None)

    def check(self, value: Any, sizes: Sizes) -> None:
        if not isinstance(value, dict) or list(value) != ["transform"]:
            raise Misfit("must be a dict with 'transform'")
        if value["transform"] not in self.kinds:
            raise Misfit(f"has {value['transform']!r}, not one of {self.kinds}")
