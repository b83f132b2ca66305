"""Arguments and options of the commands, as annotations."""

from __future__ import annotations

import csv
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer


def _number(text: str) -> float:
    """A count as int, a share as float."""
    return float(text) if "." in text else int(text)


class Scale(str, Enum):
    """What is done to rows before anything else."""

    auto = "auto"
    standard = "standard"
    unit = "unit"
    none = "none"


def _size(text: str) -> tuple[int, int]:
    sides = text.lower().split("x")
    try:
        height, width = map(int, sides)
    except ValueError:
        height = width = 0
    if min(height, width) < 1:
        raise typer.BadParameter(
            f"{text!r} is no size: write height and width in pixels, e.g. 28x28"
        )
    return height, width


def _names(text: str) -> tuple[str, ...]:
    """Names between commas, which may be in quotation marks as in CSV."""
    return tuple(name.strip() for name in next(csv.reader([text]), []))


def _seconds(text: str) -> float:
    """A duration: 90, 90s, 2m, 1h."""
    units = {"s": 1, "m": 60, "h": 3600}
    number, unit = (text[:-1], text[-1]) if text[-1:] in units else (text, "s")
    try:
        seconds = float(number) * units[unit]
    except ValueError:
        seconds = 0.0
    if not seconds > 0:
        raise typer.BadParameter(f"{text!r} is no time: write e.g. 60s, 2m or 1h")
    return seconds


def _sigma(text: str) -> float | None:
    """A deviation, or nothing for auto."""
    if text == "auto":
        return None
    try:
        sigma = float(text)
    except ValueError:
        sigma = -1.0
    if not 0 <= sigma < float("inf"):
        raise typer.BadParameter(f"{text!r} is no deviation: write a number or auto")
    return sigma


class PictureAtoms(str, Enum):
    """Where the atoms for a picture come from."""

    learned = "learned"
    bundled = "bundled"


class Quality(str, Enum):
    """How much is done to restore a picture."""

    best = "best"
    fast = "fast"


class Precision(str, Enum):
    """Types of numbers in an exported model."""

    float32 = "float32"
    float64 = "float64"


# groups of options in --help
_writing_option = partial(typer.Option, rich_help_panel="Output")
_reading_option = partial(typer.Option, rich_help_panel="Input")
_accuracy_option = partial(typer.Option, rich_help_panel="Accuracy")
_fitting_option = partial(typer.Option, rich_help_panel="Method")
_computing_option = partial(typer.Option, rich_help_panel="Computer")

Data = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help=".npz, .npy, .csv, .tsv, .parquet, .mat, or a folder of images with one "
        "sub-folder per class; - for CSV text from standard input",
    ),
]
Model = Annotated[
    Path, typer.Argument(metavar="MODEL", help="file that `kernlets fit` wrote")
]
ModelOut = Annotated[
    Path,
    _writing_option("--model", "-m", metavar="FILE", help="file to save the model in"),
]

# how data are read
Label = Annotated[
    str | None,
    _reading_option(metavar="COLUMN", help="label column or array, by name or index"),
]
Unsupervised = Annotated[
    bool,
    _reading_option(
        "--unsupervised", metavar="", help="leave labels out: one dictionary for all"
    ),
]
Key = Annotated[
    str | None,
    _reading_option(metavar="NAME", help=".npz and .mat: array that holds the rows"),
]
Size = Annotated[
    Any | None,
    _reading_option(
        parser=_size,
        metavar="HxW",
        help="resize images, e.g. 28x28",
        show_default="that of the images, or of the model",
    ),
]
Color = Annotated[
    bool | None,
    _reading_option(
        "--color",
        metavar="",
        help="images: keep red, green and blue",
        show_default="grey",
    ),
]
Header = Annotated[
    bool | None,
    _reading_option(
        "--header/--no-header",
        metavar="",
        help=".csv and .tsv: whether the first line names the columns",
        show_default="recognised",
    ),
]
Keep = Annotated[
    list[str] | None,
    _reading_option(
        metavar="COLUMN",
        help="use a column, by name or index, that would be left out because it seems "
        "to number the rows or holds text with many values; may be repeated",
    ),
]
ColumnNames = Annotated[
    Any | None,
    _reading_option(
        "--columns",
        parser=_names,
        metavar="A,B,...",
        help="use these columns alone",
        show_default="all but the labels",
    ),
]
Drop = Annotated[
    Any | None,
    _reading_option(parser=_names, metavar="A,B,...", help="leave out these columns"),
]
Test = Annotated[
    Path | None, _accuracy_option(metavar="DATA", help="data to report the accuracy on")
]
Holdout = Annotated[
    float | None,
    _accuracy_option(
        min=0.01,
        max=0.9,
        metavar="SHARE",
        help="keep this share of the rows out of the fit and report the accuracy on "
        "them, e.g. 0.2",
    ),
]

# how it is computed
Memory = Annotated[
    str | None,
    _computing_option(
        metavar="SIZE", help="memory budget, e.g. 2GB", show_default="half of all"
    ),
]
Threads = Annotated[
    int | None,
    _computing_option(min=1, metavar="N", help="threads", show_default="all cores"),
]
Device = Annotated[
    str | None,
    _computing_option(
        "--device",
        metavar="DEVICE",
        help="torch device to fit on, e.g. cuda",
        show_default="NumPy",
    ),
]
Checkpoint = Annotated[
    Path | None,
    _computing_option(metavar="DIR", help="folder to keep the state of the fit in"),
]
Resume = Annotated[
    bool,
    _computing_option(
        "--resume", metavar="", help="go on from what --checkpoint holds, if anything"
    ),
]
Scheduler = Annotated[
    str | None,
    _computing_option(
        metavar="ADDRESS",
        help="let a Dask cluster do the work, e.g. tcp://host:8786, or local for "
        "workers on this machine; it reads .npy and .parquet files",
    ),
]
Force = Annotated[
    bool,
    _writing_option(
        "--force",
        metavar="",
        help="replace an existing file that is no model, or input",
    ),
]
Quiet = Annotated[
    bool,
    _writing_option("--quiet", "-q", metavar="", help="no progress and no summary"),
]

# what is fitted
Method = Annotated[
    str | None,
    _fitting_option(
        "--method",
        metavar="METHOD",
        help="lkdl (a Nyström map, then K-SVD), or a learner, classifier or outlier "
        "detector that `kernlets list` shows",
        show_default="lkdl; image-classifier for images with labels",
    ),
]
Search = Annotated[
    Any | None,
    _fitting_option(
        parser=_seconds,
        metavar="TIME",
        help="choose scaling, kernel, method and sizes by cross-validation in this "
        "time, e.g. 60s or 5m",
        show_default="no search",
    ),
]
Map = Annotated[
    str | None,
    _fitting_option(
        "--map",
        metavar="MAP",
        help="feature map in front of a linear method",
        show_default="nystroem for lkdl, else none",
    ),
]
Kernel = Annotated[
    str | None,
    _fitting_option(
        "--kernel",
        metavar="KERNEL",
        help="e.g. poly:2, rbf, rbf:0.5, chi2",
        show_default="poly:2,coef0=1 of rows of unit norm, else laplacian",
    ),
]
Landmarks = Annotated[
    str | None,
    _fitting_option(
        metavar="SAMPLER",
        help="sampler of the map, e.g. kmeans",
        show_default="coreset",
    ),
]
NLandmarks = Annotated[
    Any | None,
    _fitting_option(
        parser=_number,
        metavar="N",
        help="count, or share such as 0.2",
        show_default="10 √rows, from 500 to 2000",
    ),
]
NComponents = Annotated[
    Any | None,
    _fitting_option(
        parser=_number,
        metavar="N",
        help="dimension of the mapped rows, or share of the energy such as 0.99",
        show_default="the map's own",
    ),
]
Atoms = Annotated[
    int | None,
    _fitting_option(
        min=1,
        metavar="N",
        help="atoms of the dictionary of each class",
        show_default="the method's own; K-SVD: twice the features, up to 500 and a "
        "quarter of the rows; of classes at least 30",
    ),
]
Sparsity = Annotated[
    int | None,
    _fitting_option(
        min=1,
        metavar="N",
        help="non-zeros in the code of a row",
        show_default="the method's own; K-SVD: 5, of classes 10",
    ),
]
Iterations = Annotated[
    int | None,
    _fitting_option(
        min=1,
        metavar="N",
        help="iterations of the learner",
        show_default="the method's own; K-SVD: 10",
    ),
]
Scaling = Annotated[
    Scale,
    _fitting_option(
        "--scale",
        metavar="SCALE",
        help="auto, standard, unit or none. standard: each column to mean 0 and "
        "variance 1, for tables; unit: each row to unit norm, for images and "
        "histograms; auto looks at the rows, and leaves those for outlier detectors "
        "alone",
    ),
]
Seed = Annotated[
    int, _fitting_option(min=0, metavar="N", help="seed of all random choices")
]
Setting = Annotated[
    list[str] | None,
    _fitting_option(
        "--set",
        metavar="NAME=VALUE",
        help="any parameter by its scikit-learn name or the end of it, e.g. "
        "init=kmeans or nystroemmap__kernel__degree=3; may be repeated",
    ),
]

# pictures
PictureIn = Annotated[
    Path, typer.Argument(metavar="PICTURE", help=".png, .tif or .jpg")
]
PictureOut = Annotated[
    Path | None,
    _writing_option(
        "--output",
        "-o",
        metavar="FILE",
        help=".png, .tif or .jpg",
        show_default="beside PICTURE, named after the command",
    ),
]
Sigma = Annotated[
    Any | None,
    _fitting_option(
        parser=_sigma,
        metavar="NUMBER|auto",
        help="standard deviation of the noise, in steps of the grey values",
        show_default="auto: estimated",
    ),
]
QualityOption = Annotated[
    Quality,
    _fitting_option(
        "--quality",
        metavar="QUALITY",
        help="best or fast, which takes a quarter of the time",
    ),
]
PictureAtomsOption = Annotated[
    PictureAtoms,
    _fitting_option(
        "--atoms",
        metavar="ATOMS",
        help="learned (on PICTURE) or bundled (with the library)",
    ),
]
Mask = Annotated[
    Path | None,
    _reading_option(
        metavar="PICTURE",
        help="picture of the same size, white where pixels are lost",
        show_default="pixels of a .tif that are NaN",
    ),
]
ForcePicture = Annotated[
    bool, _writing_option("--force", metavar="", help="replace a picture that is read")
]
