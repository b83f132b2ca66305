"""Checks of parameters, progress and names that all estimators share."""
