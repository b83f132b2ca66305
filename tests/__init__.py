"""A package, so that no `tests` that another library installs is found instead."""
