"""The command line: the signatures and help of the commands, and their errors.

Each command imports the functions that do its work when it runs, so that ``--help`` and
completion in a shell are quick.

Errors and warnings are one line each, in the words of the command line. Exit codes: 0
for success, 1 for an error in data, model or parameters, 2 for a command line that
cannot be understood, 130 after Ctrl-C (see `kernlets.__main__`).
"""

from __future__ import annotations

import inspect
import re
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from .. import __version__
from ..numerics.text import printable
from . import options as o

INTERRUPTED = 130  # 128 + SIGINT, the convention of shells
#: Errors that a user can understand; others should be reported as bugs.
FORESEEN = (ValueError, TypeError, ImportError)


class Commands(TyperGroup):
    """A group of commands that never shows a traceback unless asked to."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Accept ``--debug`` anywhere, by moving it to the front."""
        return super().parse_args(ctx, sorted(args, key="--debug".__ne__))

    def invoke(self, ctx: Any) -> Any:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            # columns were matched by name where the file was read
            warnings.filterwarnings("ignore", "X (does not have|has).* feature names")
            try:
                return super().invoke(ctx)
            except KeyboardInterrupt:
                raise typer.Exit(INTERRUPTED) from None
            except Exception as error:
                if _is_interruption(error):
                    raise typer.Exit(INTERRUPTED) from None
                # usage errors, exits and closed pipes are typer's to handle
                is_exit = hasattr(error, "exit_code")
                is_of_typer = isinstance(error, (typer.Abort, BrokenPipeError))
                if ctx.params["debug"] or is_exit or is_of_typer:
                    raise
                typer.echo(f"error: {_explain(error)}", err=True)
                raise typer.Exit(1) from error


def _is_interruption(error: BaseException | None) -> bool:
    """Whether Ctrl-C caused an error, into which some libraries turn it."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False


def _explain(error: Exception) -> str:
    """Return the message of an error on one line."""
    if isinstance(error, OSError):
        reason = error.strerror or str(error)
        text = reason if error.filename is None else f"{error.filename}: {reason}"
    elif hasattr(error, "in_shell"):  # an `OverMemory` or `DataFileError`
        text = in_shell(error.in_shell)
    elif isinstance(error, MemoryError):
        text = f"not enough memory ({error}): use fewer samples, landmarks or atoms"
    elif isinstance(error, FORESEEN):
        text = in_shell(str(error))
    else:
        text = f"{type(error).__name__}: {error} (--debug shows where it comes from)"
    return printable(text)


def _show_warning(message: Any, *_: Any, **__: Any) -> None:
    typer.echo(f"warning: {printable(in_shell(str(message)))}", err=True)


OPTIONS = {
    "label": "--label",
    "device": "--device",
    "memory": "--memory",
    "n_threads": "--threads",
    "n_landmarks": "--n-landmarks",
    "landmarks": "--landmarks",
    "n_nonzero_coefs": "--sparsity",
    "max_iter": "--iterations",
    "random_state": "--seed",
}
"""Parameters that have an option of their own, whichever part of a model has them."""

ASSIGNMENT = re.compile(rf"(?<![\w(.])(?<!, )({'|'.join(OPTIONS)})=(?=\S)")
CONSTRAINT = re.compile(rf"^The '({'|'.join(OPTIONS)})' parameter of (\w+) must be")
PICTURES_NEEDED = "pass some rows, or begin the pipeline with UnitNorm"


def in_shell(text: str) -> str:
    """A message with options in place of parameters that are given outside of calls.

    >>> in_shell("label=9 is outside: use NystroemMap(kernel, n_landmarks=5)")
    '--label 9 is outside: use NystroemMap(kernel, n_landmarks=5)'
    """
    text = CONSTRAINT.sub(lambda m: f"{OPTIONS[m[1]]} ({m[1]} of {m[2]}) must be", text)
    text = ASSIGNMENT.sub(lambda match: f"{OPTIONS[match[1]]} ", text)
    return text.replace(PICTURES_NEEDED, "give some with --data, or fit --scale unit")


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(is_requested: bool) -> None:
    if is_requested:
        typer.echo(f"kernlets {__version__}")
        raise typer.Exit


@app.callback()
def _accept_common_options(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            metavar="",
            callback=_show_version,
            is_eager=True,
            help="show the version",
        ),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", metavar="", help="show the traceback of an error")
    ] = False,
) -> None:
    """Sparse dictionaries in the feature space of a kernel."""


@app.command(epilog="Example: kernlets fit train.csv -m digits.kernlets --label class")
def fit(
    data: o.Data,
    model: o.ModelOut,
    label: o.Label = None,
    unsupervised: o.Unsupervised = False,
    test: o.Test = None,
    holdout: o.Holdout = None,
    search: o.Search = None,
    method: o.Method = None,
    map_: o.Map = None,
    kernel: o.Kernel = None,
    landmarks: o.Landmarks = None,
    n_landmarks: o.NLandmarks = None,
    n_components: o.NComponents = None,
    atoms: o.Atoms = None,
    sparsity: o.Sparsity = None,
    iterations: o.Iterations = None,
    scale: o.Scaling = o.Scale.auto,
    seed: o.Seed = 0,
    set_: o.Setting = None,
    key: o.Key = None,
    size: o.Size = None,
    color: o.Color = None,
    header: o.Header = None,
    columns: o.ColumnNames = None,
    drop: o.Drop = None,
    keep: o.Keep = None,
    memory: o.Memory = None,
    threads: o.Threads = None,
    scheduler: o.Scheduler = None,
    device: o.Device = None,
    checkpoint: o.Checkpoint = None,
    resume: o.Resume = False,
    force: o.Force = False,
    quiet: o.Quiet = False,
) -> None:
    """Fit a model to DATA and save it.

    With labels it becomes a classifier, with one dictionary per class.

    Without labels it becomes one dictionary.
    """
    from .fit import fit_model
    from .input_data import Source, session
    from .output_files import check_checkpoints
    from .recipe import Recipe

    recipe = Recipe(
        method=method,
        map=map_,
        kernel=kernel,
        landmarks=landmarks,
        n_landmarks=n_landmarks,
        n_components=n_components,
        atoms=atoms,
        sparsity=sparsity,
        iterations=iterations,
        scale=scale,
        seed=seed,
        settings=tuple(set_ or ()),
        search=search,
    )
    source = Source(
        data,
        label,
        key,
        size,
        header,
        use_labels=not unsupervised,
        on_cluster=scheduler is not None,
        keep=tuple(keep or ()),
        columns=columns,
        drop=drop,
        quiet=quiet,
        color=color,
    )
    check_checkpoints(checkpoint, resume, (data, test, model))
    with session(memory, threads, device, checkpoint, scheduler):
        fit_model(recipe, source, model, test, quiet, force, holdout)


@app.command(
    epilog="Example: kernlets predict digits.kernlets new.csv -o labels.csv --proba"
)
def predict(
    model: o.Model,
    data: o.Data,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            rich_help_panel="Output",
            help=".csv, .npy or .npz, or - for a table on standard output",
            show_default="printed",
        ),
    ] = None,
    proba: Annotated[
        bool,
        typer.Option(
            "--proba",
            metavar="",
            rich_help_panel="Output",
            help="also the probability of each class",
        ),
    ] = False,
    reasons: Annotated[
        bool,
        typer.Option(
            "--reasons",
            metavar="",
            rich_help_panel="Output",
            help="also the features that make a row an outlier, in words",
        ),
    ] = False,
    label: o.Label = None,
    key: o.Key = None,
    size: o.Size = None,
    header: o.Header = None,
    memory: o.Memory = None,
    threads: o.Threads = None,
    scheduler: o.Scheduler = None,
    force: o.Force = False,
) -> None:
    """Predict the class of every row of DATA.

    A model of --method outliers gives 1 for normal rows and -1 for outliers, with a
    score that is higher for less normal rows, and with --reasons the features that
    stand out.
    """
    from .input_data import Source, session
    from .use import predict_rows

    source = Source(data, label, key, size, header, on_cluster=scheduler is not None)
    with session(memory, threads, scheduler=scheduler):
        predict_rows(model, source, output, proba, force, reasons)


@app.command(epilog="Example: kernlets score digits.kernlets test.csv --label class")
def score(
    model: o.Model,
    data: o.Data,
    label: o.Label = None,
    key: o.Key = None,
    size: o.Size = None,
    header: o.Header = None,
    memory: o.Memory = None,
    threads: o.Threads = None,
    scheduler: o.Scheduler = None,
) -> None:
    """Accuracy of a classifier, reconstruction error of a dictionary, on DATA."""
    from .input_data import Source, session
    from .use import score_rows

    source = Source(data, label, key, size, header, on_cluster=scheduler is not None)
    with session(memory, threads, scheduler=scheduler):
        score_rows(model, source)


@app.command(epilog="Example: kernlets transform digits.kernlets new.csv -o codes.npz")
def transform(
    model: o.Model,
    data: o.Data,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            rich_help_panel="Output",
            help=".npz (sparse, for scipy.sparse.load_npz), .npy or .csv (dense), or - "
            "for text on standard output",
        ),
    ],
    label: o.Label = None,
    key: o.Key = None,
    size: o.Size = None,
    header: o.Header = None,
    memory: o.Memory = None,
    threads: o.Threads = None,
    scheduler: o.Scheduler = None,
    force: o.Force = False,
) -> None:
    """Write the sparse code of every row of DATA.

    A classifier gives the codes over the dictionaries of all classes, side by side.
    """
    from .input_data import Source, session
    from .use import transform_rows

    source = Source(data, label, key, size, header, on_cluster=scheduler is not None)
    with session(memory, threads, scheduler=scheduler):
        transform_rows(model, source, output, force)


@app.command(epilog="Example: kernlets explain digits.kernlets new.csv --rows 3")
def explain(
    model: o.Model,
    data: o.Data,
    rows: Annotated[
        int,
        typer.Option(
            min=1,
            metavar="N",
            rich_help_panel="Output",
            help="number of rows to explain, from the first on",
        ),
    ] = 1,
    label: o.Label = None,
    key: o.Key = None,
    size: o.Size = None,
    header: o.Header = None,
) -> None:
    """Explain the labels of rows of DATA: classes, atoms, training rows.

    Of a model of --method outliers: which features stand out, and what is usual.
    """
    from .input_data import Source
    from .use import explain_rows

    explain_rows(model, Source(data, label, key, size, header), rows)


@app.command(epilog="Example: kernlets denoise noisy.png -o clean.png --sigma 20")
def denoise(
    picture: o.PictureIn,
    output: o.PictureOut = None,
    sigma: o.Sigma = None,
    quality: o.QualityOption = o.Quality.best,
    atoms: o.PictureAtomsOption = o.PictureAtoms.learned,
    threads: o.Threads = None,
    device: o.Device = None,
    force: o.ForcePicture = False,
    quiet: o.Quiet = False,
) -> None:
    """Remove noise from PICTURE, with a dictionary learned on it or a given one."""
    from .input_data import session
    from .pictures import PictureJob, denoise_picture

    job = PictureJob(picture, output, force, quiet)
    with session(None, threads, device):
        denoise_picture(job, sigma, quality.value, atoms.value)


@app.command(epilog="Example: kernlets inpaint old.png --mask scratches.png -o new.png")
def inpaint(
    picture: o.PictureIn,
    mask: o.Mask = None,
    output: o.PictureOut = None,
    threads: o.Threads = None,
    device: o.Device = None,
    force: o.ForcePicture = False,
    quiet: o.Quiet = False,
) -> None:
    """Fill in the lost pixels of PICTURE."""
    from .input_data import session
    from .pictures import PictureJob, inpaint_picture

    job = PictureJob(picture, output, force, quiet)
    with session(None, threads, device):
        inpaint_picture(job, mask)


@app.command(epilog="Example: kernlets info digits.kernlets --card")
def info(
    model: o.Model,
    card: Annotated[
        bool,
        typer.Option(
            "--card", metavar="", help="data, accuracy, use and limits, in Markdown"
        ),
    ] = False,
) -> None:
    """Show what a model file holds."""
    from .model_info import show_card, show_info

    (show_card if card else show_info)(model)


@app.command(epilog="Example: kernlets export digits.kernlets -o digits.onnx")
def export(
    model: o.Model,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            rich_help_panel="Output",
            help=".onnx, for any runtime of ONNX",
        ),
    ],
    dtype: Annotated[
        o.Precision | None,
        typer.Option(
            metavar="TYPE",
            rich_help_panel="Output",
            help="float32 or float64, of all numbers",
            show_default="that of the model",
        ),
    ] = None,
    force: o.Force = False,
) -> None:
    """Write MODEL as a file that runs without Python."""
    from .use import export_model

    export_model(model, output, dtype and dtype.value, force)


@app.command("list", epilog="Example: kernlets list kernels")
def list_(
    kind: Annotated[
        str | None,
        typer.Argument(help="e.g. kernels or outliers", show_default="everything"),
    ] = None,
) -> None:
    """List kernels, landmark samplers, maps, coders, learners, classifiers, ..."""
    from .model_info import show_tables

    show_tables(kind)


for (
    command
) in app.registered_commands:  # typer would keep the line breaks of the source
    paragraphs = inspect.cleandoc(getattr(command.callback, "__doc__", "")).split(
        "\n\n"
    )
    command.help = "\n\n".join(" ".join(text.split()) for text in paragraphs)
