"""Model files: what goes in comes out, and appears whole or not at all."""

from __future__ import annotations

import math
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from safetensors.numpy import load_file
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import LabelEncoder, Normalizer, StandardScaler
from sklearn.svm import LinearSVC

from forger import Draft
from kernlets import (
    KSVD,
    MOD,
    OMP,
    RBF,
    Lasso,
    NystroemMap,
    Polynomial,
    ResidualClassifier,
    Schedule,
    load,
    registry,
    save,
)
from kernlets import (
    Callable as CallableKernel,
)
from kernlets.dictionaries import ExplicitDictionary, KernelDictionary
from kernlets.io import (
    ModelFileError,
    PersistenceError,
    info,
    load_state,
    save_state,
)

Rows = tuple[np.ndarray, np.ndarray]


@pytest.fixture
def rows(rng: np.random.Generator) -> Rows:
    """Two classes of 60 samples, labels as text."""
    X = rng.standard_normal((120, 12))
    X[:60] += 1.0
    return X, np.repeat(["cat", "dog"], 60)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.model"


def again(model: Any, path: Path) -> Any:
    save(model, path)
    return load(path)


def carried(value: Any, path: Path) -> Any:
    """A value after a journey in a file that may hold any: a checkpoint."""
    save_state({"value": value}, path)
    return load_state(path)["value"]


# ----------------------------------------------------------------- round trips


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("learner", [KSVD, MOD])
def test_learners_come_back_bit_by_bit(
    learner: type, dtype: type, rows: Rows, path: Path
) -> None:
    X = rows[0].astype(dtype)
    model = learner(10, 3, random_state=0).fit(X)
    loaded = again(model, path)
    assert type(loaded) is learner
    assert loaded.get_params() == model.get_params()
    assert vars(loaded).keys() == vars(model).keys()
    assert loaded.history_ == model.history_
    assert loaded.components_.dtype == dtype
    assert_array_equal(loaded.components_, model.components_)
    assert_array_equal(loaded.transform(X), model.transform(X))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_pipeline_predicts_the_same(dtype: type, rows: Rows, path: Path) -> None:
    X, y = rows[0].astype(dtype), rows[1]
    model = make_pipeline(
        StandardScaler(),
        NystroemMap(Polynomial(2) + 0.5 * RBF(2.0), n_landmarks=30, random_state=0),
        ResidualClassifier(KSVD(8, 2, coder=None, random_state=0)),
    ).fit(X, y)
    loaded = again(model, path)
    assert_array_equal(loaded.predict(X), model.predict(X))
    assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    assert loaded.decision_function(X).dtype == dtype
    assert loaded.classes_.dtype == y.dtype
    refitted = clone(loaded).fit(X, y)
    assert_array_equal(refitted.decision_function(X), model.decision_function(X))


def _registered() -> list[tuple[str, str]]:
    kinds = [kind for kind in registry.TABLES if kind != "landmarks"]
    return [(kind, name) for kind in kinds for name in registry.table(kind)]


@pytest.mark.parametrize(("kind", "name"), _registered())
def test_every_registered_class_can_be_saved(
    kind: str, name: str, rows: Rows, path: Path
) -> None:
    X, y = rows
    model = registry.table(kind)[name]()
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    if hasattr(model, "fit"):
        model.fit(X, y)
    loaded = again(model, path)
    assert repr(loaded) == repr(model)
    for method in ("transform", "predict"):
        if hasattr(model, method):
            expected = getattr(model, method)(X)
            assert_array_equal(getattr(loaded, method)(X), expected)


@pytest.mark.parametrize(
    "model",
    [
        PCA(3),
        FeatureUnion([("pca", PCA(2)), ("same", Normalizer())]),
        make_pipeline(KSVD(5, 2, random_state=0), LogisticRegression()),
        make_pipeline(StandardScaler(), RidgeClassifier()),
        LinearSVC(random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_parts_from_scikit_learn(model: Any, rows: Rows, path: Path) -> None:
    X, y = rows
    model.fit(X, y)
    loaded = again(model, path)
    method = "predict" if hasattr(model, "predict") else "transform"
    assert_array_equal(getattr(loaded, method)(X), getattr(model, method)(X))


def test_all_named_classes_of_scikit_learn_exist() -> None:
    classes = registry.storable()
    for name in registry.SKLEARN:
        assert issubclass(classes[f"sklearn.{name}"], BaseEstimator)


def test_dictionaries_can_be_saved_alone(rows: Rows, path: Path) -> None:
    X = rows[0]
    explicit = again(ExplicitDictionary(X[:4]), path)
    assert_array_equal(explicit.gram(), ExplicitDictionary(X[:4]).gram())
    kernel = KernelDictionary(RBF(2.0), X[:9], X[:4, :9])
    assert_array_equal(again(kernel, path).correlate(X), kernel.correlate(X))


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        0,
        -(2**70),
        0.1,
        math.inf,
        -math.inf,
        "κ(x, y) \n \" '",
        [],
        [1, [2.5, None]],
        (1, ("a", [])),
        {"a": 1, 2: {"@": "array"}, (3, "b"): [None]},
        np.float32(0.1),
        np.float64(math.inf),
        np.int8(-3),
        np.bool_(True),
        np.dtype("float32"),
        OMP(3, tol=0.1),
        [("lasso", Lasso(0.2))],
    ],
    ids=repr,
)
def test_values_keep_type_and_content(value: Any, path: Path) -> None:
    loaded = carried(value, path)
    assert type(loaded) is type(value)
    assert repr(loaded) == repr(value)


def test_not_a_number(path: Path) -> None:
    assert math.isnan(carried(math.nan, path))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", ">f8", "i1", "i8", "u4", "?"])
def test_arrays_keep_values_and_order(dtype: str, order: Any, path: Path) -> None:
    array = np.array(np.arange(24).reshape(2, 3, 4) % 7, dtype=dtype, order=order)
    loaded = carried(array, path)
    assert_array_equal(loaded, array)
    assert loaded.dtype == array.dtype.newbyteorder("=")
    assert loaded.flags.c_contiguous == array.flags.c_contiguous
    loaded[...] = 0  # and can be written to


@pytest.mark.parametrize(
    "array",
    [
        np.array(3.5),
        np.zeros((0, 3)),
        np.arange(12.0).reshape(3, 4)[:, ::-2],
        np.array(["a", "bcd", "κ"]),
        np.array([["x"], ["y"]]),
        np.array(["cat", 3, None], dtype=object),
        np.array([3, None], dtype=object),
    ],
    ids=["scalar", "empty", "strided", "text", "column", "objects", "no text"],
)
def test_unusual_arrays(array: np.ndarray, path: Path) -> None:
    loaded = carried(array, path)
    assert (loaded.dtype, loaded.shape) == (array.dtype, array.shape)
    assert loaded.tolist() == array.tolist()


def test_arrays_with_nan(path: Path) -> None:
    array = np.array([[np.nan, 1.0, -np.inf]])
    assert_array_equal(carried(array, path), array)


def test_room_in_wide_text_is_not_kept(path: Path) -> None:
    """A file of a few bytes cannot ask for gigabytes."""
    loaded = carried(np.array(["a", "b" * 70], dtype="U9000"), path)
    assert loaded.tolist() == ["a", "b" * 70]
    assert loaded.dtype == np.dtype("U70")


def test_sparse_matrices(path: Path) -> None:
    matrix = sparse.csr_array(np.random.default_rng(0).poisson(0.4, (5, 7)))
    assert_array_equal(carried(matrix, path).toarray(), matrix.toarray())


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState])
def test_random_generators_go_on_where_they_were(make: Any, path: Path) -> None:
    random = make(3)
    random.normal(size=5)
    loaded = carried(random, path)
    assert_array_equal(loaded.normal(size=9), random.normal(size=9))


def test_torch_tensors_become_arrays(rows: Rows, path: Path) -> None:
    torch = pytest.importorskip("torch")
    X = torch.as_tensor(rows[0])
    model = KSVD(6, 2, random_state=0).fit(X)
    loaded = again(model, path)
    assert isinstance(loaded.components_, np.ndarray)
    assert_array_equal(loaded.components_, model.components_.numpy())
    assert_array_equal(loaded.transform(rows[0]) != 0, model.transform(X).numpy() != 0)


def test_shared_arrays_are_stored_once(path: Path) -> None:
    array = np.ones((100, 100))
    assert carried([array, {"again": array}], path)[1]["again"].sum() == 1e4
    assert path.stat().st_size < 1.5 * array.nbytes


def test_the_same_model_gives_the_same_bytes(rows: Rows, path: Path) -> None:
    model = KSVD(4, 2, random_state=0).fit(rows[0])
    save(model, path)
    first = path.read_bytes()
    save(load(path), path)
    assert path.read_bytes() == first


def test_other_tools_can_read_the_arrays(rows: Rows, path: Path) -> None:
    model = KSVD(4, 2, random_state=0).fit(rows[0])
    save(model, path)
    arrays = load_file(path)
    assert_array_equal(arrays["dictionary_.atoms"], model.components_)


def test_info_tells_what_is_inside(rows: Rows, path: Path) -> None:
    X, y = rows
    save(ResidualClassifier(MOD(4, 2)).fit(X, y), path)
    found = info(path)
    assert (found["format"], found["format_version"]) == ("kernlets-model", "1")
    assert found["classes"] == ["cat", "dog"]
    assert found["n_features"] == 12
    assert found["bytes"] == path.stat().st_size
    assert "MOD(n_components=4, n_nonzero_coefs=2)" in found["model"]
    assert found["arrays"]["learners_.1.dictionary_.atoms"] == "F64 (4, 12)"


def test_notes_are_kept_beside_the_model(rows: Rows, path: Path) -> None:
    model = KSVD(4, 2, random_state=0).fit(rows[0])
    save(model, path)
    assert info(path)["notes"] == {} and b'"notes"' not in path.read_bytes()
    notes = {"accuracy": "0.9", "by": 'Zoë "checksum":"' + "0" * 64 + '"'}
    save(model, path, notes=notes)
    assert info(path)["notes"] == notes
    assert_array_equal(load(path).components_, model.components_)
    with pytest.raises(PersistenceError, match="notes are text, but 'n' is 3"):
        save(model, path, notes={"n": 3})


@pytest.mark.parametrize("text", ["[]", "{", '{"a": 1}', '{"a": "1", "a": "2"}', "NaN"])
def test_forged_notes_are_refused(rows: Rows, path: Path, text: str) -> None:
    save(KSVD(4, 2, random_state=0).fit(rows[0]), path)
    draft = Draft.of(path.read_bytes())
    draft.metadata["notes"] = text
    path.write_bytes(draft.sealed())
    load(path)  # they are no part of the model
    with pytest.raises(ModelFileError, match="damaged"):
        info(path)


# ------------------------------------------------------- what cannot be saved


class _Own(BaseEstimator):
    pass


def _cycle() -> Normalizer:
    model = Normalizer()
    model.self_ = model
    return model


@pytest.mark.parametrize(
    ("model", "problem"),
    [
        (NystroemMap(lambda X, Y: X @ Y.T), "kernel: a builtins.function"),
        (NystroemMap(CallableKernel(np.dot)), "kernel.function: a "),
        (make_pipeline(_Own()), "steps.0.1: _Own is not a class"),
        (_cycle(), "it contains itself"),
        ({"a": 1}, "a dict is no estimator"),
        (np.ones(3), "a ndarray is no estimator"),
    ],
    ids=["function", "callable kernel", "own class", "cycle", "dict", "array"],
)
def test_what_cannot_be_saved_is_named(model: Any, problem: str, path: Path) -> None:
    with pytest.raises(PersistenceError, match=problem) as caught:
        save(model, path)
    assert "joblib.dump" in str(caught.value)
    assert not path.exists()


@pytest.mark.parametrize(
    "value",
    [
        [()] * 300_000,
        np.array(["a" * 10_000, *["b"] * 10_000]),
    ],
    ids=["objects", "wide cells"],
)
def test_what_would_be_too_large_to_load_is_not_saved(value: Any, path: Path) -> None:
    with pytest.raises(PersistenceError, match="too many parts that are no arrays"):
        carried(value, path)
    assert not path.exists()


def test_deep_kernels_are_saved(rows: Rows, path: Path) -> None:
    kernel = sum((RBF(float(k)) for k in range(1, 100)), start=RBF(0.5))
    assert_array_equal(again(kernel, path)(rows[0]), kernel(rows[0]))


@pytest.mark.parametrize(
    "value", [b"bytes", 1j, {1}, np.longdouble(1), np.array([1j]), np.array([b"a"])]
)
def test_other_values_are_refused(value: Any, path: Path) -> None:
    with pytest.raises(PersistenceError, match="value: a "):
        carried(value, path)


def test_a_callback_stays_behind(rows: Rows, path: Path) -> None:
    model = KSVD(4, 2, schedule=Schedule(callback=print))
    with pytest.warns(UserWarning, match="callback is not part of a model file"):
        save(model, path)
    assert load(path).schedule.callback is None
    assert model.schedule.callback is print


# ------------------------------------------------------------------- the file


def test_a_failed_save_leaves_the_old_file(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(OMP(2), path)
    before = path.read_bytes()

    def broken(handle: int) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(OSError, match="no space"):
        save(OMP(3), path)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_a_killed_save_leaves_the_old_file(path: Path) -> None:
    """A real process dies between writing and renaming."""
    save(OMP(2), path)
    script = (
        "import os, signal, sys; from kernlets import OMP, save\n"
        "os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "save(OMP(3), sys.argv[1])"
    )
    killed = subprocess.run([sys.executable, "-c", script, str(path)], check=False)
    assert killed.returncode < 0
    assert load(path).n_nonzero_coefs == 2


def test_saving_through_a_link_keeps_it(tmp_path: Path, path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(path)
    save(OMP(2), link)
    assert link.is_symlink()
    assert load(path).n_nonzero_coefs == 2


def test_the_usual_permissions(tmp_path: Path, path: Path) -> None:
    (tmp_path / "usual").touch()
    save(OMP(2), path)
    usual = stat.S_IMODE((tmp_path / "usual").stat().st_mode)
    assert stat.S_IMODE(path.stat().st_mode) == usual


def test_a_missing_file_is_an_ordinary_error(path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load(path)


# ----------------------------------------------------------- the list of classes


def test_names_of_storable_classes_are_unique() -> None:
    names = [cls.__name__ for cls in set(registry._kernlets_classes())]
    assert len(names) == len(set(names))


def test_a_new_registered_class_is_storable(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Fresh(OMP):
        """One file, one name."""

    Fresh.__module__ = "kernlets.coders.fresh"
    monkeypatch.setitem(registry.table("coders"), "fresh", Fresh)
    registry.storable.cache_clear()
    try:
        assert type(again(Fresh(2), path)) is Fresh
    finally:
        registry.storable.cache_clear()


def test_label_encoders(path: Path) -> None:
    encoder = LabelEncoder().fit(["b", "a", "b"])
    assert again(encoder, path).inverse_transform([0, 1]).tolist() == ["a", "b"]


@pytest.mark.parametrize("name", ["m.mat", "m.NPZ", "m.pkl", "m.joblib", "m.json"])
def test_names_of_other_formats_are_refused(name, tmp_path):
    learner = KSVD(2).fit(np.eye(4))
    with pytest.raises(ValueError, match=r"name it m\.kernlets"):
        save(learner, tmp_path / name)
    with pytest.raises(ValueError, match="make it one with `kernlets export`"):
        save(learner, tmp_path / "m.onnx")
    assert not list(tmp_path.iterdir())
    for usual in ("m", "m.kernlets", "m.model", "version-1.2"):
        save(learner, tmp_path / usual)
