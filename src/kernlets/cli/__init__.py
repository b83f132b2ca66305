"""The command ``kernlets``; its entry point is `kernlets.__main__`."""

from .app import app

__all__ = ["app"]
