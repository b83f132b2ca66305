"""The former name of ``python -m kernlets.lab.papers``; it goes in the next release."""

from __future__ import annotations

import sys
import warnings

from .lab.papers.__main__ import main

if __name__ == "__main__":
    warnings.warn(
        "kernlets.experiments is now kernlets.lab.papers: run `python -m "
        "kernlets.lab.papers`",
        FutureWarning,
        stacklevel=1,
    )
    sys.exit(main())
