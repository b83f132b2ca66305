"""The former name of ``python -m kernlets.lab.papers``."""

from __future__ import annotations

import sys

from .backend.renamed import warn_renamed
from .lab.papers.__main__ import main

if __name__ == "__main__":
    warn_renamed(
        "python -m kernlets.experiments", "python -m kernlets.lab.papers", stacklevel=0
    )
    sys.exit(main())
