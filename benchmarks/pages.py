"""``python -m benchmarks.pages``: the pages in ``docs``, written from the records.

``docs/reproduction`` is written in full from its ``results``. Of the pages in `PAGES`
the parts between marks are written, see `marks`:

* the name of an experiment, such as ``lkdl/fig1b``: published numbers and ours;
* the name of a benchmark, such as ``omp``: its measurements in ``docs/benchmarks``;
* ``NAME summary``: the same in short, as `peers.summary` says;
* ``NAME on Haswell``: its measurements in ``docs/benchmarks/haswell``, where libraries
  were told to use the code for such processors;
* ``gpu`` and ``giants``: what was measured on a GPU, see `gpu_tables`;
* ``papers``: the counts of the verdicts.

``docs/images/speed.svg``, the README's picture, and ``accuracy-*.svg`` beside it are
written from the same records.

``--check`` writes nothing and names the files that are out of date.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from papers.catalogue import exhibits
from papers.findings import Findings
from papers.pages import FIGURES, pages
from papers.records import Records
from papers.show import all_findings
from papers.summary import exhibit_table, papers_table

from .accuracy_pictures import accuracy_pictures
from .harness import marks
from .harness.gpu_tables import PARTS as GPU_PARTS
from .harness.gpu_tables import gpu_part
from .harness.html import write_file
from .harness.records import JsonLines
from .peers.records import last_results
from .peers.summary import summary
from .peers.tables import markdown
from .speed_picture import PICTURE, speed_picture

SCALE = "full"
HASWELL = " on Haswell"
PAGES = (
    "docs/accuracy.md",
    "docs/benchmarks.md",
    "docs/gpu.md",
    "docs/images.md",
    "docs/missing-values.md",
    "README.md",
)


def documents(root: Path) -> dict[Path, bytes]:
    """Every generated file of a repository, with its content."""
    folder = root / "docs" / "reproduction"
    records = Records(folder / "results")
    found = all_findings(records, SCALE)
    written = pages(found, records.sessions())
    files = {folder / name: content for name, content in written.items()}
    store = JsonLines(root / "docs" / "benchmarks")
    files[root / PICTURE] = speed_picture(store)
    files |= {root / path: svg for path, svg in accuracy_pictures(store).items()}
    for page in (root / name for name in PAGES):
        text = page.read_text("utf-8")
        files[page] = _filled(text, partial(part, root=root, found=found)).encode()
    return files


def _filled(text: str, content: Callable[[str], str]) -> str:
    for name in marks.names(text):
        text = marks.filled(text, name, content(name))
    return text


def part(name: str, root: Path, found: Sequence[Findings]) -> str:
    """The content of one part of a page."""
    if name == "papers":
        return papers_table(found, "docs/reproduction")
    if name in exhibits():
        (own,) = (each for each in found if each.exhibit.name == name)
        return exhibit_table(own)
    if name in GPU_PARTS:
        return gpu_part(name, root / "docs" / "benchmarks")
    benchmark = name.removesuffix(" summary").removesuffix(HASWELL)
    command, folder = f"python -m benchmarks {benchmark}", "docs/benchmarks"
    if name.endswith(HASWELL):
        command, folder = f"OPENBLAS_CORETYPE=Haswell {command}", f"{folder}/haswell"
    store = JsonLines(root / folder)
    if not store.sessions(benchmark):
        return f"There is no record yet: `{command} --out {folder}`, then `make pages`."
    results = last_results(store, benchmark)
    is_short = name.endswith(" summary")
    return summary(benchmark, results) if is_short else markdown(results)


def changes(root: Path) -> dict[Path, bytes | None]:
    """Files that are out of date, with their new content; None if obsolete."""
    wanted = documents(root)
    present = (root / "docs" / "reproduction" / FIGURES).glob("*")
    stale = {path: None for path in present if path not in wanted}
    new = {path: data for path, data in wanted.items() if _held(path) != data}
    return {**new, **stale}


def _held(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def main(arguments: list[str] | None = None) -> int:
    """Write the files that are out of date, or only list them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("root", nargs="?", type=Path, default=Path("."))
    asked = parser.parse_args(arguments)
    found = changes(asked.root)
    for path, content in found.items():
        print(f"{'out of date:' if asked.check else 'updated'} {path}")
        if not asked.check:
            _update(path, content)
    return 1 if asked.check and found else 0


def _update(path: Path, content: bytes | None) -> None:
    if content is None:
        path.unlink()
    else:
        write_file(path, content)


if __name__ == "__main__":
    sys.exit(main())
