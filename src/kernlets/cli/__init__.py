"""The command ``kernlets``."""

from .app import app


def main() -> None:
    """Entry point of the command ``kernlets``, as in `kernlets.__main__`."""
    from ..__main__ import main

    main()


__all__ = ["app", "main"]
