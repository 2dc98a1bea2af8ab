"""Run functions of scipy and estimators of scikit-learn on mlc's tensors, and compare the results with those on arrays.

    python -m tests.peers.scientific [--only REGEX]

Both find mlc.array_api by the tensors' `__array_namespace__`. The results have to be tensors, or numbers, and as close
to those on numpy's arrays as float64 allows.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

os.environ["SCIPY_ARRAY_API"] = "1"                        # which scipy reads as it is imported
import numpy as np

import mlc

Case = Callable[[Any, Any], Any]
TOLERANCE = 1e-6
"""Of results relative to their size: scores are float32, scikit-learn's default on a device."""


@cache
def data() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Points, and a class for each."""
    rng = np.random.default_rng(0)
    points = rng.standard_normal((60, 4))
    return points, (points[:, 0] + 0.3 * rng.standard_normal(60) > 0).astype(np.int64)


def scipy_cases() -> dict[str, Case]:
    """Functions of scipy, of points x and their classes y."""
    from scipy import cluster, differentiate, fft, integrate, signal, special, stats
    return {
        "special.logsumexp": lambda x, y: special.logsumexp(x, axis=0),
        "special.softmax": lambda x, y: special.softmax(x, axis=1),
        "special.expit": lambda x, y: special.expit(x),
        "stats.zscore": lambda x, y: stats.zscore(x),
        "stats.skew": lambda x, y: stats.skew(x),
        "stats.kurtosis": lambda x, y: stats.kurtosis(x, axis=0),
        "stats.gmean": lambda x, y: stats.gmean(abs(x)),
        "stats.ttest_ind": lambda x, y: stats.ttest_ind(x[:, 0], x[:, 1]).pvalue,
        "stats.pearsonr": lambda x, y: stats.pearsonr(x[:, 0], x[:, 1]).statistic,
        "stats.trim_mean": lambda x, y: stats.trim_mean(x, 0.1),
        "stats.entropy": lambda x, y: stats.entropy(abs(x)),
        "fft.dct": lambda x, y: fft.dct(x),
        "signal.fftconvolve": lambda x, y: signal.fftconvolve(x[:, 0], x[:, 1]),
        "signal.hilbert": lambda x, y: signal.hilbert(x, axis=0),
        "signal.detrend": lambda x, y: signal.detrend(x),
        "signal.resample": lambda x, y: signal.resample(x, 10),
        "cluster.vq.whiten": lambda x, y: cluster.vq.whiten(x),
        "cluster.vq.vq": lambda x, y: cluster.vq.vq(x, x[:3])[0],
        "integrate.trapezoid": lambda x, y: integrate.trapezoid(x, axis=0),
        "differentiate.derivative": lambda x, y: differentiate.derivative(_exp, x[:3, 0]).df,
    }


def _exp(x: Any) -> Any:
    return mlc.array_api.exp(x) if isinstance(x, mlc.Tensor) else np.exp(x)


def sklearn_cases() -> dict[str, Case]:
    """Estimators and metrics of scikit-learn, of points x and their classes y."""
    from sklearn import decomposition, discriminant_analysis, linear_model, metrics, mixture, naive_bayes, preprocessing
    lda, pca = discriminant_analysis.LinearDiscriminantAnalysis, decomposition.PCA
    pairwise = metrics.pairwise

    def reduced(solver: str) -> Case:
        return lambda x, y: pca(2, svd_solver=solver, random_state=0).fit_transform(x)

    def scaled(name: str) -> Case:
        return lambda x, y: getattr(preprocessing, name)().fit_transform(x)

    def score(name: str, operands: Callable[[Any, Any], tuple[Any, ...]]) -> Case:
        return lambda x, y: getattr(metrics, name)(*operands(x, y))

    def kernel(name: str) -> Case:
        return lambda x, y: getattr(pairwise, name)(x)

    return {
        "LinearDiscriminantAnalysis.transform": lambda x, y: lda().fit(x, y).transform(x),
        "LinearDiscriminantAnalysis.predict": lambda x, y: lda().fit(x, y).predict(x),
        "Ridge": lambda x, y: linear_model.Ridge(solver="svd").fit(x, x[:, 0]).predict(x),
        "LogisticRegression": lambda x, y: linear_model.LogisticRegression().fit(x, y).predict_proba(x),
        "GaussianNB": lambda x, y: naive_bayes.GaussianNB().fit(x, y).predict_proba(x),
        "GaussianMixture": lambda x, y: mixture.GaussianMixture(
            2, init_params="random_from_data", random_state=0).fit(x).predict_proba(x),
        **{f"PCA, {name}": reduced(name) for name in ("full", "covariance_eigh", "randomized")},
        **{name: scaled(name) for name in ("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "Normalizer", "Binarizer",
                                           "PolynomialFeatures")},
        **{name: score(name, lambda x, y: (x[:, 0], x[:, 1])) for name in (
            "mean_squared_error", "mean_absolute_error", "r2_score", "explained_variance_score", "max_error",
            "median_absolute_error")},
        **{name: score(name, lambda x, y: (y, (x[:, 1] > 0) + 0 * y)) for name in (
            "accuracy_score", "f1_score", "precision_score", "recall_score", "confusion_matrix")},
        **{name: score(name, lambda x, y: (y, 1 / (1 + _exp(-x[:, 0])))) for name in (
            "log_loss", "roc_auc_score", "average_precision_score")},
        **{name: kernel(name) for name in ("cosine_similarity", "euclidean_distances", "rbf_kernel",
                                           "manhattan_distances")},
    }


def compare(case: Case) -> str:
    """The error of a case on tensors, or "" if it agrees with arrays."""
    x, y = data()
    want = case(x, y)
    try:
        got = case(mlc.tensor(x), mlc.tensor(y))
    except Exception as error:                             # of whatever kind: the report names it
        return f"{type(error).__name__}: {error}".splitlines()[0]
    if not isinstance(got, mlc.Tensor | int | float):
        return f"the result is a {type(got).__name__}"
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape:
        return f"the shape is {got.shape}, not {want.shape}"
    off = float(np.abs(got - want).max()) / max(1.0, float(np.abs(want).max()))
    return "" if off <= TOLERANCE else f"the difference is {off:.1e}"


def main() -> int:
    """Run the cases and print those that differ; 1 if there is one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", default="", help="regular expression of names")
    only = re.compile(parser.parse_args().only)
    import sklearn
    sklearn.set_config(array_api_dispatch=True)
    warnings.simplefilter("ignore")
    cases = {name: case for name, case in (scipy_cases() | sklearn_cases()).items() if only.search(name)}
    found = {name: compare(case) for name, case in cases.items()}
    for name, problem in found.items():
        print(f"{name}: {problem or 'agrees'}")
    failed = sum(map(bool, found.values()))
    print(f"{len(found) - failed} agree, {failed} differ")
    return 1 if failed or not found else 0


if __name__ == "__main__":
    sys.exit(main())
