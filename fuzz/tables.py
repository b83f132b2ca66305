"""Data files for the command line: sound ones, odd ones, and no data at all."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from .draw import Draw
from .values import draw_matrix

WIDTH = 4  # columns of the rows that the models at hand expect
ODD_CELLS = (
    *["", " ", "nan", "NaN", "NA", "inf", "-inf", "1e999", "1,5", "1.5.2", "abc", "é"],
    *["0x10", "1_000", "--", "True", "None", '"', "'", "1\t2", "\0", "9" * 400, "💥"],
)


def draw_file(draw: Draw, folder: Path, stem: str) -> str:
    """Write one file, or none; its name."""
    kind = draw.weighted({name: weight for name, (weight, _) in KINDS.items()})
    return KINDS[kind][1](draw, folder, stem)


def _numbers(draw: Draw) -> np.ndarray:
    n = draw.pick([1, 2, 12, 20, 20, 20])
    return draw.rng.standard_normal((n, WIDTH)) + 2


def _labels(draw: Draw, n: int) -> np.ndarray:
    return np.array(draw.pick([["a", "b"], ["0", "1"], ["x y", "ü"]]))[np.arange(n) % 2]


# ------------------------------------------------------------------------ text


def _cells(draw: Draw) -> list[list[str]]:
    """A table with a header and the label in the last column."""
    X = _numbers(draw)
    y = _labels(draw, len(X))
    head = [*(f"c{i}" for i in range(WIDTH)), "label"]
    rows = [[f"{value:.6g}" for value in row] for row in X]
    return [head, *([*row, str(y[i])] for i, row in enumerate(rows))]


def _written(folder: Path, name: str, cells: list[list[str]], between: str) -> str:
    text = "\n".join(between.join(row) for row in cells) + "\n"
    (folder / name).write_text(text, encoding="utf-8", errors="surrogateescape")
    return name


def sound_csv(draw: Draw, folder: Path, stem: str) -> str:
    between, suffix = draw.pick([(",", "csv"), ("\t", "tsv"), (";", "csv")])
    return _written(folder, f"{stem}.{suffix}", _cells(draw), between)


def odd_csv(draw: Draw, folder: Path, stem: str) -> str:
    """One thing is wrong with a table."""
    cells = _cells(draw)
    row = draw.count(0, len(cells) - 1)
    column = draw.count(0, len(cells[row]) - 1)
    change = draw.pick(["cell"] * 4 + ["short", "long", "empty", "head", "names"])
    if change == "cell":
        cells[row][column] = draw.pick(ODD_CELLS)
    elif change == "short":
        del cells[row][column]
    elif change == "long":
        cells[row].append("7")
    elif change == "empty":
        cells.insert(row, [])
    elif change == "head":
        cells = cells[1:] if draw.chance(0.5) else cells[:1]
    else:
        cells[0] = draw.pick([["c"] * 5, [""] * 5, ["1", "2", "3", "4", "5"]])
    return _written(folder, f"{stem}.csv", cells, ",")


def odd_bytes(draw: Draw, folder: Path, stem: str) -> str:
    """Text that was stored in another way, or no text."""
    text = "\n".join(",".join(row) for row in _cells(draw)).encode()
    odd = {
        "mark": b"\xef\xbb\xbf" + text,
        "utf-16": text.decode().encode("utf-16"),
        "latin": text + b"\n1,2,3,4,\xe9\n",
        "crlf": text.replace(b"\n", b"\r\n"),
        "old mac": text.replace(b"\n", b"\r"),
        "nothing": b"",
        "newlines": b"\n\n\n",
        "noise": draw.rng.bytes(200),
    }
    suffix = draw.pick(["csv", "csv", "tsv", "npy", "npz", "parquet", "mat", "txt", ""])
    name = f"{stem}.{suffix}" if suffix else stem
    (folder / name).write_bytes(odd[draw.pick(sorted(odd))])
    return name


# ---------------------------------------------------------------------- arrays


def any_npy(draw: Draw, folder: Path, stem: str) -> str:
    X = draw_matrix(draw, draw.pick([WIDTH, WIDTH, None])).values
    shaped = [X, X, X, X.ravel(), X[None], X.astype("U8"), np.array(3.0)]
    np.save(folder / f"{stem}.npy", draw.pick(shaped), allow_pickle=True)
    return f"{stem}.npy"


def sound_npz(draw: Draw, folder: Path, stem: str) -> str:
    X = _numbers(draw)
    names = draw.pick([("X", "y"), ("X_train", "y_train"), ("data", "target")])
    np.savez(folder / f"{stem}.npz", **{names[0]: X, names[1]: _labels(draw, len(X))})
    return f"{stem}.npz"


def odd_npz(draw: Draw, folder: Path, stem: str) -> str:
    X = draw_matrix(draw, WIDTH).values
    y = np.arange(draw.pick([len(X), len(X) + 1, 0])) % 2
    arrays = [{"X": X, "y": y}, {"A": X, "B": X}, {}, {"y": y}, {"X": X, "y": X}]
    np.savez(folder / f"{stem}.npz", **draw.pick(arrays))
    return f"{stem}.npz"


def parquet(draw: Draw, folder: Path, stem: str) -> str:
    import pandas as pd

    X = _numbers(draw)
    frame = pd.DataFrame(X, columns=[f"c{i}" for i in range(WIDTH)])
    frame["label"] = _labels(draw, len(X))
    if draw.chance(0.3):
        frame = frame[draw.rng.permutation(frame.columns)]
    if draw.chance(0.3):
        odd = [None, "text", np.nan, True, pd.Timestamp(0), [1, 2]]
        frame["c1"] = pd.Series([draw.pick(odd)] * len(frame), dtype=object)
    frame.to_parquet(folder / f"{stem}.parquet")
    return f"{stem}.parquet"


def cut_short(draw: Draw, folder: Path, stem: str) -> str:
    """A sound file that was not written to its end."""
    name = draw.pick([sound_npz, any_npy, parquet, sound_csv])(draw, folder, stem)
    data = (folder / name).read_bytes()
    (folder / name).write_bytes(data[: draw.count(0, len(data))])
    return name


# --------------------------------------------------------------------- folders


def pictures(draw: Draw, folder: Path, stem: str) -> str:
    """A folder for each class with small pictures, some of them none."""
    from PIL import Image

    for name in ("cat", "dog"):
        (folder / stem / name).mkdir(parents=True)
        for i in range(draw.pick([0, 1, 6, 6])):
            path = folder / stem / name / f"{i}.png"
            side = 2 if draw.chance(0.9) else 3
            pixels = draw.rng.integers(0, 256, (side, 2), dtype=np.uint8)
            Image.fromarray(pixels).save(path)
            if draw.chance(0.05):
                path.write_bytes(b"no picture")
    return stem


def empty_folder(draw: Draw, folder: Path, stem: str) -> str:
    (folder / stem).mkdir()
    return stem


def absent(draw: Draw, folder: Path, stem: str) -> str:
    suffix = draw.pick(["csv", "npy", "npz", "parquet", "mat", "txt"])
    return f"nowhere/{stem}.csv" if draw.chance(0.2) else f"{stem}.{suffix}"


def zip_of_others(draw: Draw, folder: Path, stem: str) -> str:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(draw.pick(["X.npy", "readme.txt"]), b"text")
    (folder / f"{stem}.npz").write_bytes(packed.getvalue())
    return f"{stem}.npz"


KINDS: dict[str, tuple[float, Callable[[Draw, Path, str], str]]] = {
    "sound csv": (6, sound_csv),
    "odd csv": (6, odd_csv),
    "odd bytes": (2, odd_bytes),
    "npy": (4, any_npy),
    "sound npz": (4, sound_npz),
    "odd npz": (2, odd_npz),
    "parquet": (2, parquet),
    "cut short": (2, cut_short),
    "pictures": (1, pictures),
    "empty folder": (0.5, empty_folder),
    "absent": (1, absent),
    "zip": (0.5, zip_of_others),
}
