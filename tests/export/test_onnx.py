"""Exported models say outside of Python what they say in it."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.base import is_classifier, is_outlier_detector
from sklearn.decomposition import PCA
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    RobustScaler,
    StandardScaler,
)

from contracts.models import INSTANCES, fitted, labels, samples
from kernlets import (
    KSVD,
    OMP,
    RBF,
    Callable,
    Chi2,
    Cosine,
    DictionaryOutlierDetector,
    FourierMap,
    IKAMap,
    Intersection,
    KernelKSVD,
    Laplacian,
    Lasso,
    LCKSVDClassifier,
    Linear,
    Matern,
    Normalized,
    NystroemMap,
    Polynomial,
    RationalQuadratic,
    ResidualClassifier,
    Sigmoid,
    SRCClassifier,
    Standardize,
    Threshold,
    UnitNorm,
    to_onnx,
)
from kernlets.export import ExportError, codes
from kernlets.export import onnx as onnx_files
from kernlets.export.graph import OperationGraph
from kernlets.export.onnx import graph_of, precision

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
ort = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

TOLERANCE = {"float32": 1e-4, "float64": 1e-9}
TYPES = sorted(TOLERANCE)
#: what has no such form, and what the error says of it
REFUSED = {
    "Budget": "Lasso cannot be exported: use OMP",
    "Sketch": "PolynomialSketchMap cannot be exported: export the steps before it",
    "KSAD": "KSADClassifier cannot be exported: use ResidualClassifier",
    "KSAD Fisher": "KSADClassifier cannot be exported: use ResidualClassifier",
    "FDDL": "FDDLClassifier cannot be exported: use ResidualClassifier",
    "StreamOutlierDetector": "Detector cannot be exported: use DictionaryOutlier",
    "DictionaryImputer": "DictionaryImputer cannot be exported: export the steps",
    "ImageClassifier": "ImageClassifier cannot be exported",
    "KernelRidgeClassifier": "KernelRidgeClassifier cannot be exported",
    "PatchDictionaryMap": "PatchDictionaryMap cannot be exported: export the steps",
    "GrossErrorMask": "GrossErrorMask cannot be exported: export the steps",
}
KERNELS = [
    RBF(sigma=2.0),
    Laplacian(0.3),
    *(Matern(1.5, nu) for nu in (0.5, 1.5, 2.5)),
    RationalQuadratic(1.5, 0.7),
    Linear(),
    Polynomial(3, 0.5, scale=0.2),
    Sigmoid(0.1, 0.2),
    Cosine(),
    Chi2(0.4),
    Intersection(),
    Normalized(Polynomial(2)),
    RBF(sigma=2.0) + 2.0 * Linear(),
    Laplacian(0.3) * Polynomial(2) + 1.0,
]


def run(model, X):
    """Outputs by name, from an exported model."""
    session = ort.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, {"X": X}), strict=True))


def rows(dtype, n=300, p=5, seed=3):
    return np.random.default_rng(seed).uniform(0, 15, (n, p)).astype(dtype)


def close(found, expected, dtype, scale=1.0):
    """To the tolerance, relative to the largest numbers."""
    scale = max(scale, np.abs(expected).max())
    return np.abs(found - expected).max(axis=-1) <= TOLERANCE[dtype] * scale


def margins(gram, corr, energy, width, tol):  # (m, m), (n, m), (n,) -> (n,)
    """By how much the choices of a textbook OMP are clear, relatively.

    Where two atoms are equally good up to rounding, either may be chosen, and where
    the residual is `tol` up to rounding, it may stop or go on.
    """
    found = np.full(len(corr), np.inf)
    for i, own in enumerate(corr):
        support = []
        for _ in range(width):
            known = gram[np.ix_(support, support)]
            coefs = np.linalg.lstsq(known, own[support], rcond=None)[0]
            residual = energy[i] - coefs @ own[support]
            if tol is not None:
                found[i] = min(found[i], abs(residual - tol) / energy[i])
                if residual <= tol:
                    break
            left = np.abs(own - coefs @ gram[support])
            left[support] = 0
            second, first = np.partition(left, -2)[-2:] if len(left) > 1 else (0, 1)
            if first < 1e-4 * np.abs(own).max():
                break  # what is left is rounding
            found[i] = min(found[i], (first - second) / first)
            support.append(int(left.argmax()))
    return found


def is_clear(dictionary, coder, X):
    """Rows of which OMP chooses the same atoms in spite of rounding in float32."""
    if not isinstance(coder, OMP):
        return np.ones(len(X), dtype=bool)
    X = X.astype(np.float64)
    gram = np.asarray(dictionary.gram(), dtype=np.float64)
    corr = np.asarray(dictionary.correlate(X), dtype=np.float64)
    energy = np.asarray(dictionary.energy(X), dtype=np.float64)
    width = coder.width(len(gram))
    return margins(gram, corr, energy, width, coder.tol) > 1e-3


def clear_rows(model, X):
    parts = getattr(model, "learners_", [model])
    parts = [part for part in parts if hasattr(part, "dictionary_")]
    known = [is_clear(part.dictionary_, part.coder_, X) for part in parts]
    return np.all([np.ones(len(X), dtype=bool), *known], axis=0)


def expected_outputs(model, X):
    """What the model itself says, by the names of the outputs."""
    if is_outlier_detector(model):
        return {"label": model.predict(X), "score": -model.score_samples(X)}
    if is_classifier(model):
        model = getattr(model, "best_pipeline_", model)
        last, F = model, X
        if hasattr(model, "steps"):
            last, F = model[-1], model[:-1].transform(X)
        found = {"label": model.predict(X), "scores": last._scores(F)}
        odds = hasattr(model, "predict_proba")
        return found | ({"probabilities": model.predict_proba(X)} if odds else {})
    if hasattr(model, "reconstruction_error"):
        error = model.reconstruction_error(X, per_sample=True)
        return {"codes": model.transform(X), "error": error}
    return {"features": model.transform(X)}


def check(model, X, dtype, clear=None):
    """Equal labels, and equal numbers to the tolerance, for all outputs."""
    clear = clear_rows(model, X) if clear is None else clear
    assert clear.mean() > 0.8
    found, expected = run(to_onnx(model, dtype=dtype), X), expected_outputs(model, X)
    assert found.keys() == expected.keys()
    for name, values in found.items():
        assert values.shape == expected[name].shape
        if name == "label":
            assert (values[clear] == expected[name][clear]).all()
        else:
            assert values.dtype == dtype
            columns = values.reshape(len(X), -1), expected[name].reshape(len(X), -1)
            # a squared residual is the rest of an energy, and so is its rounding
            energy = model.dictionary_.energy(X).max() if name == "error" else 1.0
            assert close(*columns, dtype, energy)[clear].all(), name


# -------------------------------------------------------------------------- all parts


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", INSTANCES)
def test_every_estimator_is_exported_or_refused_by_name(name, dtype):
    model = fitted(name, samples().astype(dtype))
    if name in REFUSED:
        with pytest.raises(ExportError, match=REFUSED[name]):
            to_onnx(model)
        return
    if name != "UnitNorm":  # which has no numbers of its own
        assert precision(model) == dtype
    check(model, rows(dtype), dtype)


def test_what_is_refused_is_there():
    assert REFUSED.keys() <= INSTANCES.keys()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_kernels(kernel, dtype):
    X, Z = rows(dtype, 40), rows(dtype, 7, seed=4)
    X[0] = 0
    graph = OperationGraph(np.dtype(dtype))
    value = graph.input("X", X.shape[1])
    graph.output("matrix", codes.kernel_matrix(kernel, value, Z))
    graph.output("energy", codes.energy(kernel, value))
    found = run(graph.to_proto(onnx, kernel), X)
    assert close(found["matrix"], kernel(X, Z), dtype).all()
    assert close(found["energy"][:, 0], kernel.diag(X), dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("basis", ["relu", "sigmoid", "cosine"])
def test_units_of_a_layer(basis, dtype):
    X = samples().astype(dtype)
    check(IKAMap(RBF(9.0), basis=basis, random_state=0).fit(X), rows(dtype), dtype)


@pytest.mark.parametrize("k", [1, 7])
def test_an_odd_number_of_waves(k):
    X = samples().astype(float)
    check(FourierMap(n_components=k, random_state=0).fit(X), X, "float64")


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    "coder",
    [
        Threshold(2.0),
        Threshold(2.0, "hard"),
        Threshold(kind="top-k", n_nonzero_coefs=3),
        Threshold(2.0, positive=True),
        Threshold(kind="top-k", n_nonzero_coefs=3, positive=True),
        OMP(tol=5.0),
        OMP(4, tol=1.0),
    ],
    ids=str,
)
def test_pursuits(coder, dtype):
    X = samples().astype(dtype)
    model = KSVD(6, coder=coder, max_iter=2, random_state=0).fit(X)
    check(model, rows(dtype), dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    "scaler",
    [
        StandardScaler(),
        StandardScaler(with_mean=False),
        StandardScaler(with_std=False),
        RobustScaler(),
        MaxAbsScaler(),
        MinMaxScaler((-1, 2), clip=True),
        Normalizer(),
        Normalizer("l1"),
        Normalizer("max"),
        PCA(3),
        PCA(3, whiten=True, random_state=0),
        UnitNorm(),
        Standardize(),
    ],
    ids=str,
)
def test_scalers_before_a_map(scaler, dtype):
    X = samples().astype(dtype)
    virtual = FourierMap(RBF(2.0), 8, random_state=0)
    model = make_pipeline(scaler, "passthrough", virtual).fit(X)
    check(model, rows(dtype), dtype, clear=np.ones(300, dtype=bool))


# ------------------------------------------------------------------------- classifiers


def digit_like(dtype, seed=0):
    """Rows of three classes, each near a plane of its own, and their labels."""
    rng = np.random.default_rng(seed)
    planes = np.random.default_rng(9).standard_normal((3, 4, 12))
    y = np.arange(240) % 3
    X = np.einsum("nk,nkp->np", rng.standard_normal((240, 4)), planes[y])
    return (X + 0.2 * rng.standard_normal(X.shape)).astype(dtype), y


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    "names",
    [[0, 1, 2], [-5, 0, 70], ["ape", "Bär", "cat"], [-1.0, 0.0, 2.0], [True, False]],
    ids=str,
)
def test_labels_of_every_kind(names, dtype):
    X, y = digit_like(dtype)
    if len(names) == 2:
        X, y = X[y < 2], y[y < 2]
    model = ResidualClassifier(KSVD(4, n_nonzero_coefs=2, random_state=0))
    model.fit(X, np.array(names)[y])
    found = run(to_onnx(model), X)
    assert (found["label"] == model.predict(X)).all()
    assert found["scores"].shape == (len(X), len(names))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    "last",
    [
        ResidualClassifier(KSVD(6, n_nonzero_coefs=3, random_state=0)),
        LCKSVDClassifier(5, 3, max_iter=3, random_state=0),
        LCKSVDClassifier(5, 3, variant=1, max_iter=3, random_state=0),
        SRCClassifier("linear", 4),
        SRCClassifier("poly:2", 3),
    ],
    ids=lambda model: type(model).__name__,
)
def test_classifiers_behind_a_map(last, dtype):
    X, y = digit_like(dtype)
    Z, truth = digit_like(dtype, seed=1)
    virtual = NystroemMap("poly:2", n_landmarks=60, n_components=30, random_state=0)
    model = make_pipeline(UnitNorm(), virtual, last).fit(X, y)
    assert model.score(Z, truth) > 0.6  # it has learned something
    check(model, Z, dtype, clear=clear_rows(last, model[:-1].transform(Z)))


def test_two_classes_of_a_linear_classifier():
    X, y = digit_like("float64")
    model = make_pipeline(FourierMap("rbf", 50, random_state=0), LogisticRegression())
    for kept in (y < 3, y < 2):
        model.fit(X[kept], y[kept])
        found = run(to_onnx(model), X)
        assert (found["label"] == model.predict(X)).all()
        best = found["scores"].argmax(axis=1)
        assert (model.classes_[best] == model.predict(X)).all()


@pytest.mark.parametrize("dtype", TYPES)
def test_rows_at_the_edge(dtype):
    """Zero rows, multiples of atoms, and sums of two of them: pursuits stop early."""
    X = samples().astype(dtype)
    model = KSVD(6, n_nonzero_coefs=4, max_iter=2, random_state=0).fit(X)
    atoms = model.components_
    Z = np.concatenate([np.zeros_like(X[:1]), 3 * atoms, atoms[:3] - 2 * atoms[3:]])
    found = run(to_onnx(model), Z)
    assert close(found["codes"], model.transform(Z), dtype).all()
    assert close(found["codes"][:7], 3 * np.eye(7, 6, -1), dtype).all()
    assert not found["codes"][0].any()


# ---------------------------------------------------------------------------- outliers


@pytest.mark.parametrize("dtype", TYPES)
def test_training_rows_are_no_atoms_for_themselves(dtype):
    X, _ = digit_like(dtype)
    model = DictionaryOutlierDetector(random_state=0).fit(X)
    found = run(to_onnx(model), X)
    assert close(found["score"][:, None], model.decision_scores_[:, None], dtype).all()
    assert (found["label"] == 1 - 2 * model.labels_).all()


def test_dictionaries_of_rows_keep_their_type():
    X, _ = digit_like("float64")
    model = DictionaryOutlierDetector(random_state=0).fit(X)
    with pytest.raises(ExportError, match="export in that, or fit to rows of float32"):
        to_onnx(model, dtype="float32")


def test_a_detector_with_a_pipeline():
    X, _ = digit_like("float64")
    virtual = NystroemMap("rbf", n_landmarks=40, random_state=0)
    learner = make_pipeline(virtual, KSVD(9, n_nonzero_coefs=3, random_state=0))
    model = DictionaryOutlierDetector(learner, random_state=0).fit(X)
    check(model, X, "float64", clear=np.ones(len(X), dtype=bool))


# ------------------------------------------------------------------------ what is told


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (KSVD(4, coder=Lasso(0.1)), "Lasso cannot be exported: use OMP"),
        (KSVD(4, coder=OMP(2, positive=True)), "OMP with positive=True"),
        (KernelKSVD(Callable(np.dot, pairwise=True), 4), "Callable .* use RBF"),
        (IKAMap(RBF(9.0), basis=lambda X: X), "basis of your own"),
        (make_pipeline(UnitNorm(), LinearRegression()), "LinearRegression cannot be"),
        (GridSearchCV(KSVD(), {"n_components": [4]}, cv=2), "export its best_estim"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_refusals_name_the_part_and_a_remedy(model, message):
    X = samples().astype(float)
    with pytest.raises(ExportError, match=message):
        to_onnx(model.fit(X, labels()))


def test_a_matrix_of_a_kernel_is_refused():
    K = RBF(5.0)(samples().astype(float))
    with pytest.raises(ExportError, match=r"Precomputed .* fit to rows"):
        to_onnx(SRCClassifier("precomputed", 3).fit(K, labels()))
    with pytest.raises(ExportError, match=r"Precomputed .* fit to rows"):
        to_onnx(NystroemMap("precomputed", n_landmarks=9).fit(K))


def test_types_that_are_not_known_are_refused():
    model = UnitNorm().fit(samples())
    with pytest.raises(ValueError, match="dtype='int8' must be one of float32"):
        to_onnx(model, dtype="int8")


def test_lost_digits_are_told():
    X, _ = digit_like("float64")
    model = NystroemMap(RBF(20.0), n_landmarks=100, random_state=0).fit(X[:, :3])
    with pytest.warns(UserWarning, match="export in float64, or fit with fewer"):
        to_onnx(model, dtype="float32")


def test_missing_onnx_says_what_to_install(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(onnx_files, "import_module", missing)
    with pytest.raises(ImportError, match=r"pip install 'kernlets\[onnx\]'"):
        to_onnx(UnitNorm().fit(samples()))


# --------------------------------------------------------------------------- the file


def test_files_hold_names_and_numbers_of_rows(tmp_path):
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(samples().astype(float), columns=list("abcde"))
    model = ResidualClassifier(KSVD(4, n_nonzero_coefs=2, random_state=0))
    to_onnx(model.fit(X, labels()), tmp_path / "m.onnx")
    known = onnx.load(tmp_path / "m.onnx")
    facts = {entry.key: entry.value for entry in known.metadata_props}
    assert json.loads(facts["feature_names"]) == list("abcde")
    assert facts["model"] == "ResidualClassifier"
    (size, width) = known.graph.input[0].type.tensor_type.shape.dim
    assert (size.dim_param, width.dim_value) == ("rows", 5)
    alone = run(known, X.to_numpy()[:1])
    assert (alone["scores"] == run(known, X.to_numpy())["scores"][:1]).all()


def test_a_second_runtime_agrees():
    """The evaluator of the standard itself, which shares no code with onnxruntime."""
    reference = pytest.importorskip("onnx.reference")
    X, y = digit_like("float64")
    model = make_pipeline(UnitNorm(), SRCClassifier("rbf", 4)).fit(X, y)
    exported = to_onnx(model)
    found = reference.ReferenceEvaluator(exported).run(["label", "scores"], {"X": X})
    assert (found[0] == model.predict(X)).all()
    assert close(found[1], run(exported, X)["scores"], "float64").all()


def test_shapes_are_those_of_the_arrays():
    """The shapes that the graph was written with, against the standard's inference."""
    X, y = digit_like("float32")
    graph = graph_of(SRCClassifier("rbf", 3).fit(X, y), np.dtype("float32"))
    model = graph.to_proto(onnx, "a model")
    inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True)
    assert len(inferred.graph.value_info) > 30
    for value, output in zip(graph.outputs.values(), model.graph.output, strict=True):
        sizes = [d.dim_value or None for d in output.type.tensor_type.shape.dim]
        assert sizes == list(value.shape)
