"""Imputers, which fill in missing values by dictionaries."""

from .dictionary import DictionaryImputer

#: Imputers by the names that the command line knows.
IMPUTERS = {"imputer": DictionaryImputer}

__all__ = ["IMPUTERS", "DictionaryImputer"]
