"""One rule for SciPy's sparse rows: an estimator takes them, or says what to do.

The tag `input_tags.sparse` says which. That results are those of dense rows is in
test_metamorphic.py.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils import get_tags

from kernlets import (
    KSVD,
    MOD,
    Blocks,
    BudgetKernelDL,
    KernelKSVD,
    NystroemMap,
    ResidualClassifier,
    StreamOutlierDetector,
    options,
    registry,
)
from kernlets.learners import LEARNERS

from .models import INSTANCES, fitted, labels, samples

FORMATS = [
    *(sparse.csr_array, sparse.csr_matrix, sparse.csc_array, sparse.csc_matrix),
    *(sparse.coo_array, sparse.coo_matrix),
]
NEW_ROWS = (
    *("transform", "encode", "predict", "decision_function", "score_samples"),
    *("residuals", "explain"),
)
ADVICE = (
    r"X is sparse, but {0} needs dense rows: put NystroemMap in front, e\.g\. "
    r"make_pipeline\(NystroemMap\('linear'\), {0}\(\.\.\.\)\), or pass X\.toarray\(\)"
)
TAKE_SPARSE = [name for name, m in INSTANCES.items() if get_tags(m).input_tags.sparse]


@pytest.fixture(autouse=True)
def one_thread():
    with options(n_threads=1):
        yield


@pytest.fixture(scope="module")
def X():
    rows = samples().astype(np.float64)
    return np.where(rows > 4, rows, 0.0)


def fits(model, rows):
    """Each way to fit a copy of the model."""
    y = labels() if is_classifier(model) else None
    yield "fit", lambda: clone(model).fit(rows, y)
    if hasattr(model, "partial_fit"):
        given = (rows,) if y is None else (rows, y, [0, 1, 2])
        yield "partial_fit", lambda: clone(model).partial_fit(*given)


def answers(model, rows):
    """Each method of a fitted model that takes new rows."""
    for name in NEW_ROWS:
        if hasattr(model, name):
            yield name, partial(getattr(model, name), rows)


def as_dense(result):
    return result.toarray() if hasattr(result, "toarray") else np.asarray(result)


def test_every_registered_estimator_has_an_instance():
    assert {type(model) for model in INSTANCES.values()} == set(registry.estimators())


@pytest.mark.rounding
@pytest.mark.parametrize("name", TAKE_SPARSE)
def test_sparse_rows_are_taken_in_every_format(name, X):
    model = INSTANCES[name]
    trained = fitted(name, sparse.csr_array(X))
    wanted = {method: call() for method, call in answers(trained, sparse.csr_array(X))}
    for make in FORMATS:
        for _, fit in fits(model, make(X)):
            fit()
        for method, call in answers(trained, make(X)):
            if method != "explain":  # an object
                found, same = as_dense(call()), as_dense(wanted[method])
                np.testing.assert_array_equal(found, same)


@pytest.mark.parametrize("name", sorted(INSTANCES.keys() - TAKE_SPARSE))
def test_sparse_rows_are_refused_with_advice(name, X):
    model, trained = INSTANCES[name], fitted(name, X)
    advice = ADVICE.format(type(model).__name__)
    for make in FORMATS:
        calls = [*fits(model, make(X)), *answers(trained, make(X))]
        assert len(calls) > 1
        for _, call in calls:
            with pytest.raises(TypeError, match=advice):
                call()


@pytest.mark.parametrize("Estimator", registry.estimators())
def test_only_what_works_through_a_kernel_takes_sparse_rows(Estimator):
    takes_sparse = {
        *("BudgetKernelDL", "FourierMap", "IKAMap", "KSADClassifier", "KernelKSVD"),
        "KernelRidgeClassifier",
        *("KernelMOD", "NystroemMap", "SRCClassifier"),
    }
    tags = get_tags(Estimator()).input_tags
    assert tags.sparse == (Estimator.__name__ in takes_sparse)


@pytest.mark.parametrize("Learner", LEARNERS.values())
def test_a_classifier_takes_the_rows_that_its_learner_takes(Learner, X):
    learner = Learner(n_components=4, n_nonzero_coefs=2, max_iter=1, random_state=0)
    model, rows = ResidualClassifier(learner), sparse.csr_array(X)
    assert get_tags(model).input_tags == get_tags(learner).input_tags
    if get_tags(learner).input_tags.sparse:
        model.fit(rows, labels())
        assert model.predict(sparse.coo_matrix(X)).shape == labels().shape
    else:
        with pytest.raises(TypeError, match=ADVICE.format("ResidualClassifier")):
            model.fit(rows, labels())


@pytest.mark.parametrize("name", sorted(INSTANCES.keys() - TAKE_SPARSE))
def test_the_advice_works(name, X):
    rows = sparse.csr_array(X)
    first = NystroemMap("linear", random_state=0), INSTANCES[name]
    make_pipeline(*map(clone, first)).fit(rows, labels())


@pytest.mark.parametrize("kernel", ["laplacian", "precomputed"])
def test_a_kernel_of_dense_rows_gets_no_advice_that_changes_its_values(kernel, X):
    rows = sparse.csr_array(X @ X.T)
    for model in (KernelKSVD(kernel, 4), NystroemMap(kernel)):
        words = f"with kernel='{kernel}' needs dense rows: pass X.toarray"
        with pytest.raises(TypeError, match=words):
            model.fit(rows)


@pytest.mark.parametrize(
    "model", [NystroemMap("rbf:9", n_landmarks=9), BudgetKernelDL("rbf:9", 6)], ids=repr
)
def test_sparse_blocks_are_refused_with_advice(model, X):
    blocks = [sparse.csr_array(X[:20]), sparse.csr_array(X[20:])]
    for given in (blocks, Blocks(lambda: iter(blocks))):
        with pytest.raises(TypeError, match=r"sparse\.vstack\(blocks\)"):
            model.fit(given)
    with pytest.raises(TypeError, match="X is sparse, but MOD needs dense rows"):
        MOD(4).fit(Blocks(lambda: iter(blocks)))


@pytest.mark.rounding
def test_frames_of_sparse_columns(X):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame.sparse.from_spmatrix(sparse.csr_array(X))
    with pytest.raises(TypeError, match=ADVICE.format("KSVD")):
        KSVD(4).fit(frame)
    learner = KernelKSVD("poly:2", 4, max_iter=1, random_state=0)
    same = learner.fit_transform(sparse.csr_array(X))
    np.testing.assert_array_equal(learner.fit_transform(frame), same)


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor")
def test_sparse_tensors_are_refused_with_advice(X):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    tensor = torch.asarray(X)
    for rows in (tensor.to_sparse(), tensor.to_sparse_csr()):
        for model in (KSVD(4), KernelKSVD("poly:2", 4)):
            with pytest.raises(TypeError, match=r"sparse tensor.*X\.to_dense\(\)"):
                model.fit(rows)


def test_encoded_columns_that_come_out_sparse(X):
    words = np.array([f"word {i % 20}" for i in range(len(X))], dtype=object)
    rows = np.column_stack([words, X.astype(object)])

    def encoded(**dense):
        steps = [("words", OneHotEncoder(), [0])]
        return ColumnTransformer(steps, remainder="passthrough", **dense)

    learner = KSVD(4, 2, max_iter=1, random_state=0)
    with pytest.raises(TypeError, match=r"sparse_threshold=0.*sparse_output=False"):
        make_pipeline(encoded(), learner).fit(rows)
    make_pipeline(encoded(sparse_threshold=0), learner).fit(rows)
    make_pipeline(encoded(), NystroemMap("linear"), learner).fit(rows)


def test_a_detector_of_streams_refuses_sparse_rows_in_any_call(X):
    model = StreamOutlierDetector(random_state=0).partial_fit(X)
    with pytest.raises(TypeError, match=ADVICE.format("StreamOutlierDetector")):
        model.partial_fit(sparse.csr_array(X))
