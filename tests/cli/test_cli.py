"""The command line, from the outside: files in, files and exit codes out."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline
from typer.testing import CliRunner, Result

from kernlets import (
    KSVD,
    ResidualClassifier,
    UnitNorm,
    __version__,
    load,
    registry,
    save,
)
from kernlets.cli import app
from kernlets.cli.fit import fit_with_progress

NAMES = np.array(["zero", "one", "two", "three"])
FIT = ["--atoms", "12", "--iterations", "3"]
OUTLIERS = ["--method", "outliers", "--unsupervised"]


@pytest.fixture(scope="module")
def digits() -> tuple[np.ndarray, np.ndarray]:
    """Four digits, float32."""
    X, y = load_digits(n_class=4, return_X_y=True)
    return X.astype(np.float32), y


@pytest.fixture(scope="module")
def folder(
    digits: tuple[np.ndarray, np.ndarray], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A folder with train and test data in several formats, and two models."""
    X, y = digits
    folder = tmp_path_factory.mktemp("cli")
    for name, part in {"train": slice(0, 500), "test": slice(500, None)}.items():
        np.savez(folder / f"{name}.npz", X=X[part], y=y[part])
        np.save(folder / f"{name}.npy", X[part])
        _write_csv(folder / f"{name}.csv", X[part], NAMES[y[part]])
    ok(run("fit", folder / "train.npz", "-m", folder / "digits.model", *FIT))
    ok(run("fit", folder / "train.npy", "-m", folder / "plain.model", *FIT))
    return folder


def _write_csv(path: Path, X: np.ndarray, labels: np.ndarray) -> None:
    head = ",".join([f"p{j}" for j in range(X.shape[1])] + ["digit"])
    lines = [",".join([*map(str, x), name]) for x, name in zip(X, labels, strict=True)]
    path.write_text("\n".join([head, *lines, ""]))


def run(*arguments: Any) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def ok(result: Result) -> str:
    assert result.exit_code == 0, result.output
    return result.stdout


def error(*arguments: Any, code: int = 1) -> str:
    """The one line on standard error of a command that fails."""
    result = run(*arguments)
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    if code == 1:
        assert result.stderr.startswith("error: ")
        assert result.stderr.count("\n") == 1
    return result.stderr


def accuracy(text: str) -> float:
    line = next(line for line in text.splitlines() if line.startswith("accuracy"))
    return float(line.split()[1])


# ---------------------------------------------------------------- good commands


def test_fit_score_and_predict(folder: Path) -> None:
    model, test = folder / "digits.model", folder / "test.npz"
    truth = np.load(test)["y"]
    predicted = np.array(ok(run("predict", model, test)).split(), dtype=int)
    share = float(np.mean(predicted == truth))
    assert share > 0.95
    assert accuracy(ok(run("score", model, test))) == pytest.approx(share, abs=1e-4)
    assert_array_equal(predicted, load(model).predict(np.load(test)["X"]))


def test_fit_says_what_came_out(folder: Path, tmp_path: Path) -> None:
    test = ["--test", folder / "test.npz"]
    text = ok(run("fit", folder / "train.npz", "-m", tmp_path / "m", *FIT, *test))
    for fact in ("500 of 64 features", "12 for each class", "unit norm", "MB)"):
        assert fact in text
    assert accuracy(text) > 0.95


def test_quiet_says_nothing(folder: Path, tmp_path: Path) -> None:
    result = run("fit", folder / "train.npz", "-m", tmp_path / "m", *FIT, "--quiet")
    assert (result.exit_code, result.output) == (0, "")


def test_the_default_is_lkdl(folder: Path) -> None:
    model = load(folder / "digits.model")
    assert list(model.named_steps) == [
        "unitnorm",
        "nystroemmap",
        "residualclassifier",
    ]
    assert model[1].get_params()["kernel__degree"] == 2
    assert model[2].learner.get_params()["n_components"] == 12


@pytest.mark.rounding
def test_fits_are_repeatable(folder: Path, tmp_path: Path) -> None:
    X = np.load(folder / "test.npy")
    first = load(folder / "digits.model").decision_function(X)
    again, other = tmp_path / "again", tmp_path / "other"
    ok(run("fit", folder / "train.npz", "-m", again, *FIT))
    ok(run("fit", folder / "train.npz", "-m", other, *FIT, "--seed", "1"))
    assert_array_equal(load(again).decision_function(X), first)
    assert not np.allclose(load(other).decision_function(X), first)


def test_csv_with_text_labels(folder: Path, tmp_path: Path) -> None:
    model, out = tmp_path / "m", tmp_path / "out.csv"
    ok(run("fit", folder / "train.csv", "-m", model, *FIT))  # a last column of text
    assert load(model).classes_.tolist() == sorted(NAMES)
    ok(run("predict", model, folder / "test.csv", "-o", out))
    header, *lines = out.read_text().split()
    assert header == "row,label"
    rows, labels = zip(*(line.split(",") for line in lines), strict=True)
    assert rows == tuple(map(str, range(len(labels))))
    truth = NAMES[np.load(folder / "test.npz")["y"]]
    assert np.mean(np.array(labels) == truth) > 0.95


def test_numbers_match_labels_that_are_text(folder: Path, tmp_path: Path) -> None:
    X, y = np.load(folder / "test.npz").values()
    np.savez(tmp_path / "text.npz", X=X, y=y.astype(str))
    as_text = ok(run("score", folder / "digits.model", tmp_path / "text.npz"))
    assert as_text == ok(run("score", folder / "digits.model", folder / "test.npz"))


def test_explanations_need_labels(folder: Path) -> None:
    told = error("explain", folder / "plain.model", folder / "test.npy")
    assert "was fitted without labels, and explains none" in told


def test_a_kind_that_is_misspelt() -> None:
    assert "did you mean 'kernels'?" in error("list", "kernal", code=2)


def test_labels_that_the_model_does_not_know(folder: Path, tmp_path: Path) -> None:
    """None of them known is an error; some of them unknown count as wrong."""
    X, y = np.load(folder / "test.npz").values()
    model, data = folder / "digits.model", tmp_path / "other.npz"
    np.savez(data, X=X, y=NAMES[y])
    for arguments in [
        ("score", model, data),
        ("fit", folder / "train.npz", "-m", tmp_path / "m", *FIT, "--test", data),
    ]:
        told = error(*arguments)
        assert "has the labels 'one', 'three', 'two', 'zero', of which" in told
        assert "it knows 0, 1, 2, 3." in told
    assert not (tmp_path / "m").exists()
    np.savez(data, X=X, y=np.where(y == 2, 7, y))
    result = run("score", model, data)
    assert accuracy(ok(result)) < 0.8
    count = np.count_nonzero(y == 2)
    assert f"{count} of {len(y)} rows have labels that the model does" in result.stderr
    assert "know, 7: they count as wrong" in result.stderr


@pytest.mark.parametrize("spelt", [float, "{}.0".format, " {} ".format])
def test_labels_that_are_the_same_numbers(
    spelt: Any, folder: Path, tmp_path: Path
) -> None:
    X, y = np.load(folder / "test.npz").values()
    np.savez(tmp_path / "text.npz", X=X, y=np.array([spelt(label) for label in y]))
    as_text = ok(run("score", folder / "digits.model", tmp_path / "text.npz"))
    assert as_text == ok(run("score", folder / "digits.model", folder / "test.npz"))


def test_a_folder_of_images(
    digits: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    Image = pytest.importorskip("PIL.Image")
    X, y = digits
    for i in range(160):
        path = tmp_path / "images" / NAMES[y[i]] / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.uint8(X[i].reshape(8, 8) * 15)).save(path)
    images, model = tmp_path / "images", tmp_path / "m"
    for size in ("8", "8x", "8x8x8", "axb", "0x8", "-1x8"):
        told = error("fit", images, "-m", model, f"--size={size}", code=2)
        assert "is no size: write height and width" in " ".join(told.split())
    odd = images / "one" / "odd.png"
    Image.new("L", (9, 10)).save(odd)
    fitted = run("fit", images, "-m", model, *FIT)
    assert fitted.exit_code == 0 and load(model).n_features_in_ == 64
    assert "images have 2 sizes" in fitted.stderr and "8x8" in fitted.stderr
    odd.unlink()
    ok(run("fit", images, "-m", model, "--size", "10x9", *FIT))
    assert load(model).n_features_in_ == 90
    # later commands resize images to the size of the fit
    header, *lines = ok(run("predict", model, images)).splitlines()
    assert header == "file,label"
    files = dict(line.split(",") for line in lines)
    assert {images / name for name in files} == set(images.glob("*/*.png"))
    right = [name.partition("/")[0] == label for name, label in files.items()]
    assert np.mean(right) > 0.95
    out = [tmp_path / "p.csv", tmp_path / "p.npz"]
    for path in out:
        ok(run("predict", model, images, "-o", path))
    assert out[0].read_text().splitlines() == [header, *lines]
    with np.load(out[1]) as arrays:
        assert dict(zip(arrays["files"], arrays["y"], strict=True)) == files
    told = ok(run("explain", model, images))
    assert told.startswith(f"row {next(iter(files))}: label ")
    named = re.findall(r"^  row ([^,]*), class", told, re.MULTILINE)
    assert named and set(named) <= set(files)
    assert accuracy(ok(run("score", model, images))) > 0.95
    told = error("score", model, images, "--size", "8x8")
    assert "has 64 features, the model 90" in told


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_predictions_in_array_files(folder: Path, tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"labels{suffix}"
    ok(run("predict", folder / "digits.model", folder / "test.npz", "-o", out))
    labels = np.load(out, allow_pickle=False)
    labels = labels["y"] if suffix == ".npz" else labels
    expected = load(folder / "digits.model").predict(np.load(folder / "test.npy"))
    assert_array_equal(labels, expected)


@pytest.mark.rounding
def test_codes_of_a_dictionary(folder: Path, tmp_path: Path) -> None:
    """Without labels the model is one dictionary, and all formats agree."""
    model, data = folder / "plain.model", folder / "test.npy"
    expected = load(model).transform(np.load(data))
    outs = [tmp_path / f"codes{suffix}" for suffix in (".npz", ".npy", ".csv")]
    for out in outs:
        ok(run("transform", model, data, "-o", out))
    assert_array_equal(sparse.load_npz(outs[0]).toarray(), expected)
    assert_array_equal(np.load(outs[1]), expected)
    read = np.loadtxt(outs[2], delimiter=",", dtype=np.float32)
    assert_array_equal(read, expected)


def test_codes_of_a_classifier_stand_side_by_side(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "codes.npz"
    ok(run("transform", folder / "digits.model", folder / "test.npy", "-o", out))
    codes = sparse.load_npz(out)
    model, X = load(folder / "digits.model"), np.load(folder / "test.npy")
    assert codes.shape == (len(X), 4 * 12)
    second = model[-1].learners_[1].transform(model[:-1].transform(X))
    assert_array_equal(codes.toarray()[:, 12:24], second)


def test_scores_of_a_dictionary(folder: Path) -> None:
    text = ok(run("score", folder / "plain.model", folder / "test.npy"))
    name, value = text.rsplit(maxsplit=1)
    assert name == "mean squared error"
    model = load(folder / "plain.model")
    assert value == f"{-model.score(np.load(folder / 'test.npy')):.6g}"


def test_fit_on_a_torch_device(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    model, data = tmp_path / "m", folder / "train.npz"
    ok(run("fit", data, "-m", model, *FIT, "--device", "cpu"))
    assert accuracy(ok(run("score", model, folder / "test.npz"))) > 0.95
    told = error("fit", data, "-m", tmp_path / "no", "--device", "abacus")
    assert "--device 'abacus' cannot be used" in told


def test_labels_can_be_left_out(folder: Path, tmp_path: Path) -> None:
    model = tmp_path / "m"
    options = ["--unsupervised", *FIT, "--test", folder / "test.csv"]
    text = ok(run("fit", folder / "train.csv", "-m", model, *options))
    assert "mean squared error" in text
    assert load(model).n_features_in_ == 64
    assert not hasattr(load(model), "classes_")


def test_names_of_options_are_small_letters() -> None:
    """Some versions of typer take a metavar such as KERNEL for the name of --kernel."""
    for command in typer.main.get_command(app).commands.values():
        names = [name for param in command.params for name in param.opts]
        assert names == [name.lower() for name in names]


METHODS = {*registry.table("learners"), *registry.table("classifiers")}
METHODS -= {"residual", "auto"}  # what labels make of learners; see test_cli_search


@pytest.mark.parametrize("method", sorted(METHODS))
def test_every_registered_method_can_be_fitted(
    method: str, folder: Path, tmp_path: Path
) -> None:
    model = tmp_path / "m"
    ok(run("fit", folder / "train.npz", "-m", model, "--method", method))
    assert accuracy(ok(run("score", model, folder / "test.npz"))) > 0.9


@pytest.mark.parametrize("name", sorted(registry.table("landmarks")))
def test_every_registered_sampler(name: str, folder: Path, tmp_path: Path) -> None:
    options = ["--landmarks", name, "--n-landmarks", "0.2", "--n-components", "0.95"]
    ok(run("fit", folder / "train.npz", "-m", tmp_path / "m", *FIT, *options))
    features = load(tmp_path / "m")[1]
    assert features.landmarks == name
    assert (features.n_landmarks, features.n_components) == (0.2, 0.95)


def test_a_map_in_front_of_another_learner(folder: Path, tmp_path: Path) -> None:
    model = tmp_path / "m"
    options = ["--method", "MOD", "--map", "nystroem", "--kernel", "rbf:0.5"]
    ok(run("fit", folder / "train.npz", "-m", model, *options, "--scale", "none"))
    steps = load(model).named_steps
    assert list(steps) == ["nystroemmap", "residualclassifier"]
    assert steps["nystroemmap"].kernel.sigma == 0.5


def test_set_reaches_every_parameter(folder: Path, tmp_path: Path) -> None:
    model = tmp_path / "m"
    settings = [
        "residualclassifier__learner__max_iter=2",
        "kernel__degree=3",
        "init=kmeans",
        "n_nonzero_coefs=None",
        "coder=lasso",
        "alpha=0.05",
    ]
    options = [part for setting in settings for part in ("--set", setting)]
    ok(run("fit", folder / "train.npz", "-m", model, "--atoms", "12", *options))
    features, classifier = load(model)[1:]
    assert features.kernel.degree == 3
    learner = classifier.learner
    assert (learner.max_iter, learner.init) == (2, "kmeans")
    assert learner.coder.alpha == 0.05


def test_info(folder: Path) -> None:
    text = ok(run("info", folder / "digits.model"))
    for part in ("ResidualClassifier", "4: 0, 1, 2, 3", "kernlets-model", "sha256"):
        assert part in text


def test_the_card_of_a_model(folder: Path, tmp_path: Path) -> None:
    model = tmp_path / "small.model"
    shown = ok(run("fit", folder / "train.npz", "-m", model, *FIT, "--holdout", "0.2"))
    accuracy = next(line for line in shown.splitlines() if "accuracy" in line)
    card = ok(run("info", "--card", model))
    parts = ["Model", "Parameters", "Data", "Accuracy", "Intended use", "Limits"]
    assert re.findall(r"^## (.*)$", card, re.MULTILINE) == [*parts, "Versions"]
    assert f"| accuracy | {accuracy.split(maxsplit=1)[1]} |" in card
    assert "| measured on | rows that were held out |" in card
    assert "| data | train.npz |\n| rows | 400 |" in card
    assert "| classes | 4: 0, 1, 2, 3 |" in card
    assert f"kernlets {__version__}" in card
    assert "accuracy" in ok(run("info", model))


HOSTILE = "<script>alert(1)</script> ![x](http://evil.example/p.png) `|`\n# y __z__"


def test_names_in_cards_are_no_markup(digits: Any, tmp_path: Path) -> None:
    """File name, labels, columns and notes may hold anything."""
    X, y = digits
    labels = np.array([f"{HOSTILE} {c}" for c in range(4)])[y]
    model = ResidualClassifier(KSVD(4, 2, max_iter=1, random_state=0)).fit(X, labels)
    path = tmp_path / HOSTILE.replace("/", "").replace("\n", " ")
    save(model, path, notes={"data": HOSTILE, HOSTILE: HOSTILE})
    card = ok(run("info", "--card", path))
    assert "script" in card and "evil" in card
    assert not re.search(r"<|(?<!\\)[\[\]`]|(?<!\\)__|\w://", card)
    for line in card.splitlines():
        assert line.startswith(("#", "|", "*")) or not line or "evil" not in line
        if line.startswith("|"):
            assert len(re.findall(r"(?<!\\)\|", line)) == 3
    assert len(re.findall("^# ", card, re.MULTILINE)) == 1
    facts = ok(run("info", path))
    assert not [line for line in facts.splitlines() if line.startswith("# y")]


def test_cards_of_other_models(folder: Path, tmp_path: Path) -> None:
    """Without a record of accuracy, without classes, with marks in the parameters."""
    assert "Not recorded" in ok(run("info", "--card", folder / "digits.model"))
    learner = KSVD(4, coder="omp:2", max_iter=1).fit(np.eye(9))
    save(learner, tmp_path / "a|b.model", notes={"data": "x|<b>\x1b[31m"})
    card = ok(run("info", "--card", tmp_path / "a|b.model"))
    assert "| classes | none |" in card and "| KSVD.coder | 'omp:2' |" in card
    assert "x\\|&lt;b&gt;" in card and "\x1b" not in card
    ok(run("fit", folder / "train.npz", "-m", tmp_path / "o.model", *OUTLIERS))
    card = ok(run("info", "--card", tmp_path / "o.model"))
    assert "how unusual" in card and "16 in each of 96 dictionaries" in card


def test_export(folder: Path, tmp_path: Path) -> None:
    ort = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    model, target = folder / "digits.model", tmp_path / "digits.onnx"
    text = ok(run("export", model, "-o", target))
    assert "X (rows x 64)" in text and "scores (rows x 4)" in text
    X = np.load(folder / "test.npz")["X"]
    (labels,) = ort.InferenceSession(target).run(["label"], {"X": X})
    assert_array_equal(labels, load(model).predict(X))


def test_export_refuses_what_it_cannot_write(folder: Path, tmp_path: Path) -> None:
    model = folder / "digits.model"
    told = error("export", model, "-o", "digits.pkl", code=2)
    assert "must end in .onnx" in told
    pytest.importorskip("onnx", reason="onnx is not installed")
    learner = KSVD(4, coder="lasso:0.1", max_iter=1).fit(np.eye(9))
    save(learner, tmp_path / "lasso.model")
    told = error("export", tmp_path / "lasso.model", "-o", tmp_path / "lasso.onnx")
    assert "Lasso cannot be exported: use OMP" in told
    assert not (tmp_path / "lasso.onnx").exists()


def test_list_shows_everything_registered() -> None:
    text = ok(run("list"))
    for kind in registry.TABLES:
        for name in registry.table(kind):
            assert f"  {name} " in text
    assert "rbf" in ok(run("list", "kernels"))
    assert "coreset" in ok(run("list", "landmarks"))
    assert "how badly dictionaries" in " ".join(ok(run("list", "outliers")).split())
    assert "rbf" not in ok(run("list", "coders"))


def test_version_and_help() -> None:
    assert ok(run("--version")) == f"kernlets {__version__}\n"
    for command in ("fit", "predict", "score", "transform", "info", "list"):
        assert command in ok(run("--help"))
        assert "Usage" in ok(run(command, "--help"))
    shown = " ".join(ok(run("fit", "--help")).replace("│", " ").split())
    for default in ("(lkdl;", "auto]", "(coreset)]", "(half of all)]", "(recognised)]"):
        assert f"[default: {default}" in shown


def test_the_fit_is_that_of_the_pipeline(digits: Any) -> None:
    """Every step sees the labels, and the model is the same to the last bit."""
    X, y = digits
    seen = []

    class Curious(UnitNorm):
        def fit(self, X: Any, y: Any = None) -> Any:
            seen.append(y)
            return super().fit(X, y)

    def model(first: Any) -> Any:
        learner = ResidualClassifier(KSVD(8, 2, max_iter=2, random_state=0))
        return make_pipeline(first, learner)

    watched, plain = model(Curious()), model(UnitNorm()).fit(X, y)
    fit_with_progress(watched, X, y, len(X), quiet=False)
    assert len(seen) == 1 and seen[0] is y
    assert list(watched.named_steps) == ["curious", "residualclassifier"]
    expected = plain.decision_function(X)
    assert_array_equal(watched.decision_function(X), expected)


def test_the_commands_of_the_documentation(
    digits: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They run one after the other, in a folder with the data that they name."""
    page = Path(__file__).parents[2] / "docs" / "command-line.md"
    block = page.read_text().partition("```sh\n")[2].partition("```")[0]
    commands = [line.partition("#")[0].split()[1:] for line in block.splitlines()]
    assert len(commands) >= 9
    X, y = digits
    names = [f"p{j}" for j in range(64)]
    for name, labels in {"train": y, "test": y, "new": None, "log": None}.items():
        columns = X[::3] if labels is None else np.column_stack([X, y])[::3]
        head = names if labels is None else [*names, "class"]
        lines = [",".join(map(str, row)) for row in [head, *columns.tolist()]]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines))
    pytest.importorskip("onnx", reason="onnx is not installed")
    image = pytest.importorskip("PIL.Image", reason="pillow is not installed")
    picture = (60 + 8 * X[0].reshape(8, 8).repeat(5, 0).repeat(5, 1)).astype("u1")
    for name, pixels in {
        "noisy": picture,
        "old": picture,
        "scratches": np.where(np.eye(40), 255, 0).astype("u1"),
    }.items():
        image.fromarray(pixels).save(tmp_path / f"{name}.png")
    for label in (0, 1):
        (tmp_path / "faces" / str(label)).mkdir(parents=True)
        for number, row in enumerate(X[y == label][:12]):
            pixels = (16 * row.reshape(8, 8)).clip(0, 255).astype("u1")
            face = image.fromarray(pixels).resize((16, 16))
            face.save(tmp_path / "faces" / str(label) / f"{number}.png")
    monkeypatch.chdir(tmp_path)
    for command in commands:
        ok(run(*command))
    written = {path.name for path in tmp_path.iterdir()}
    assert written >= {"labels.csv", "proba.csv", "codes.npz", "scores.csv"}
    assert "digits.onnx" in written


# ----------------------------------------------------------------- bad commands


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["train.npy", "--key", "X"], "--key is for .npz, .mat: leave it out"),
        (["train.npz", "--size", "8x8"], "--size is for folders of images"),
        (["train.npz", "--no-header"], "--header is for .csv, .tsv: leave it out"),
        (["train.npy", "--label", "99"], "so --label 99 is outside"),
        (["train.npz", "--n-landmarks", "0"], "error: --n-landmarks (n_landmarks of"),
        (["train.npz", "--device", "gpu"], "--device 'gpu'"),
        (["absent.npz"], "absent.npz: does not exist"),
        (["train.npz", "--method", "ksdv"], "did you mean 'ksvd'?"),
        (["train.npz", "--kernel", "pol:2"], "did you mean 'poly'?"),
        (["train.npz", "--kernel", "poly:degree=x"], "is not a number"),
        (["train.npz", "--landmarks", "kmean"], "did you mean 'kmeans'?"),
        (["train.npz", "--map", "nystrom"], "did you mean 'nystroem'?"),
        (
            ["train.npz", "--method", "ksvd", "--kernel", "rbf"],
            "--kernel means nothing",
        ),
        (
            ["train.npz", "--set", "max_itr=3"],
            "did you mean residualclassifier__learner__max_iter?",
        ),
        (["train.npz", "--set", "zzz=3"], "there are batch_size, callback, coder"),
        (["train.npz", "--set", "steps=3"], "--set steps: no such parameter"),
        (["train.npz", "--method", "outliers", "--atoms", "9"], "--atoms means noth"),
        (["train.npz", "--method", "src", "--atoms", "9"], "--atoms means nothing"),
        (["train.npz", "--method", "ksvd", "--n-components", "9"], "--map nystroem"),
        (
            ["train.npz", "--map", "fourier", "--landmarks", "kmeans"],
            "--landmarks means nothing to --map fourier: leave it out",
        ),
        (["train.npz", "--set", "n_components=9"], "nystroemmap__n_components, resid"),
        (["train.npz", "--set", "max_iter"], "NAME=VALUE"),
        (["train.npz", "--set", "max_iter=many"], "max_iter"),
        (["train.npz", "--label", "nowhere"], "'nowhere'"),
        (["train.csv", "--label", "digt"], "did you mean 'digit'?"),
        (["train.npz", "--memory", "much"], "is not a size"),
        (["train.npz", "--memory", "0"], "is not a size; write e.g. '2GB'"),
        (["train.npz", "--test", "absent.csv"], "absent.csv: does not exist"),
        (["train.npz", "--test", "train.npy"], "has no labels"),
        (["broken.npz"], "broken.npz: cannot be read"),
        (["inf.npz"], "column 17, row 0 is inf"),
        (["one.npz"], "one class"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_errors_of_fit_are_one_line_and_leave_no_file(
    arguments: list[str], told: str, folder: Path, tmp_path: Path
) -> None:
    X, y = np.load(folder / "train.npz").values()
    np.savez(folder / "inf.npz", X=np.where(X == 3, np.inf, X), y=y)
    np.savez(folder / "one.npz", X=X, y=np.zeros_like(y))
    (folder / "broken.npz").write_bytes((folder / "train.npz").read_bytes()[:5000])
    places = [folder / a if (folder / a).suffix else a for a in arguments]
    assert told in error("fit", *places, "-m", tmp_path / "m")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--n-landmarks", "501"], "--n-landmarks 501 is more than the 500 samples"),
        (["--sparsity", "40", "--atoms", "12"], "--sparsity 40 is more than the"),
    ],
)
def test_sizes_that_are_too_large_are_clipped_with_a_warning(
    arguments: list[str], told: str, folder: Path, tmp_path: Path
) -> None:
    result = run("fit", folder / "train.npz", *arguments, "-m", tmp_path / "m")
    assert result.exit_code == 0 and f"warning: {told}" in result.output
    assert os.listdir(tmp_path) == ["m"]


def test_a_failed_fit_keeps_the_model_there_was(folder: Path) -> None:
    model = folder / "digits.model"
    before = model.read_bytes()
    error("fit", folder / "train.npz", "-m", model, "--set", "max_iter=0")
    assert model.read_bytes() == before


def test_places_that_cannot_be_written(folder: Path, tmp_path: Path) -> None:
    data = folder / "train.npz"
    assert "no such folder" in error("fit", data, "-m", tmp_path / "a" / "m")
    assert "is a folder" in error("fit", data, "-m", tmp_path)
    out = tmp_path / "a" / "out.csv"
    assert "no such folder" in error(
        "predict", folder / "digits.model", data, "-o", out
    )


def test_damaged_and_foreign_models(folder: Path, tmp_path: Path) -> None:
    data = folder / "test.npz"
    whole = (folder / "digits.model").read_bytes()
    bad = tmp_path / "bad.model"
    bad.write_bytes(whole[: len(whole) // 2])
    assert "damaged or cut short" in error("predict", bad, data)
    assert "damaged or cut short" in error("info", bad)
    bad.write_bytes(whole.replace(b'"format_version":"1"', b'"format_version":"2"', 1))
    assert "file version 2, this library reads up to 1: upgrade" in error(
        "score", bad, data
    )
    for command in ("predict", "score", "info"):
        rest = [] if command == "info" else [data]
        assert "is not a model file: give MODEL before" in error(command, data, *rest)
        absent = error(command, tmp_path / "absent", *rest)
        assert "there is no such model" in absent and "kernlets fit" in absent
        assert "is a folder" in error(command, tmp_path, *rest)


def test_models_that_do_not_fit_the_data(folder: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "narrow.npz", X=np.ones((3, 5)), y=[0, 1, 1])
    model = folder / "digits.model"
    assert "--label" in error("predict", model, tmp_path / "narrow.npz")
    assert "has no labels" in error("score", model, folder / "test.npy")
    assert "fitted without labels" in error(
        "predict", folder / "plain.model", folder / "test.npy"
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ["fit", "train.npz"],
        ["fit", "train.npz", "-m", "m", "--atoms", "0"],
        ["fit", "train.npz", "-m", "m", "--n-landmarks", "many"],
        ["fit", "train.npz", "-m", "m", "--size", "28"],
        ["predict", "digits.model", "test.npz", "-o", "labels.txt"],
        ["transform", "digits.model", "test.npz", "-o", "codes"],
        ["list", "kernel"],
        ["guess"],
    ],
    ids=" ".join,
)
def test_usage_errors(arguments: list[str]) -> None:
    assert "Usage" in error(*arguments, code=2)


def test_debug_shows_the_traceback(tmp_path: Path) -> None:
    result = run("predict", tmp_path / "absent", tmp_path, "--debug")
    assert isinstance(result.exception, ValueError)


def test_warnings_are_one_line(folder: Path, tmp_path: Path) -> None:
    options = ["--method", "ksvd", "--atoms", "200"]
    result = run("fit", folder / "train.npz", "-m", tmp_path / "m", *options)
    assert result.exit_code == 0
    lines = result.stderr.splitlines()
    assert lines
    assert all(line.startswith("warning: ") for line in lines)


# -------------------------------------------------------------- real processes


def process(*arguments: Any, **more: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kernlets", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **more)


def test_a_real_process(folder: Path, tmp_path: Path) -> None:
    data = [folder / "train.csv", "--label", "digit", "--test", folder / "test.csv"]
    fitted = process("fit", *data, "-m", tmp_path / "m", *FIT)
    assert (fitted.returncode, fitted.stderr) == (0, "")
    assert accuracy(fitted.stdout) > 0.95
    failed = process("predict", tmp_path / "m", "absent.csv")
    assert (failed.returncode, failed.stdout) == (1, "")
    assert failed.stderr == "error: absent.csv: does not exist: check the path\n"
    assert process("predict").returncode == 2


def test_help_loads_nothing_heavy() -> None:
    script = (
        "import json, sys; from kernlets.cli import app\n"
        "try: app(['fit', '--help'])\n"
        "except SystemExit: print('\\n' + json.dumps(list(sys.modules)))"
    )
    shown = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    loaded = set(json.loads(shown.stdout.splitlines()[-1]))
    assert "typer" in loaded
    assert not loaded & {"numpy", "scipy", "sklearn", "numba", "torch", "matplotlib"}


COMPLETE = """
eval "$(_KERNLETS_COMPLETE=source_bash "$1")"
COMP_WORDS=($2) COMP_CWORD=$3
_kernlets_completion "$1"
echo ${COMPREPLY[*]}
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize(
    ("line", "place", "completed"),
    [
        ("kernlets tr", 1, "transform"),
        ("kernlets fit --che", 2, "--checkpoint"),
        ("kernlets predict m x.csv --pro", 4, "--proba"),
    ],
)
def test_completion_in_a_shell(
    line: str, place: int, completed: str, tmp_path: Path
) -> None:
    program = tmp_path / "kernlets"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m kernlets "$@"\n')
    program.chmod(0o700)
    command = ["bash", "-c", COMPLETE, "bash", str(program), line, str(place)]
    shown = subprocess.run(command, capture_output=True, text=True)
    assert (shown.stdout, shown.stderr) == (f"{completed}\n", "")


def _read_all(handle: int) -> str:
    """What comes out of a pseudo-terminal until its other side is closed."""
    parts = []
    try:
        while part := os.read(handle, 4096):
            parts.append(part)
    except OSError:  # how Linux says that it is closed
        pass
    os.close(handle)
    return b"".join(parts).decode()


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_progress_on_a_terminal(folder: Path, tmp_path: Path) -> None:
    """On a terminal there is a bar, and nothing of it gets into the model."""
    import pty

    main, side = pty.openpty()
    model, data = tmp_path / "m", folder / "train.npz"
    command = [sys.executable, "-m", "kernlets", "fit", data, "-m", model, *FIT]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=side) as child:
        os.close(side)
        shown = _read_all(main)
    assert child.returncode == 0
    assert all(title in shown for title in ("reading", "nystroemmap", "learning"))
    assert "warning" not in shown
    assert load(model)[-1].learner.schedule is None
