"""Checks of parameters, progress, names and scores that all estimators share."""
