"""Imputation of missing values, and detection of gross errors."""

from .dictionary import DictionaryImputer
from .gross import GrossErrorMask

#: By the names that the command line knows.
IMPUTERS = {"imputer": DictionaryImputer, "gross-errors": GrossErrorMask}

__all__ = ["IMPUTERS", "DictionaryImputer", "GrossErrorMask"]
