"""The order of the gallery: by task, and within a task the easy ones first."""

from __future__ import annotations

ORDER = (
    "plot_missing plot_preimages grid_search plot_supervised_search plot_outliers "
    "plot_outlier_reasons plot_outlier_maps plot_photographs plot_denoise "
    "plot_recovery words plot_covariances plot_graphs stream_from_disk plot_budget "
    "cluster plot_kernel_error plot_ika_bases plot_ika_classification "
    "plot_ika_refined plot_ika_stacked"
).split()


class ByTask:
    """A key to sort examples by; those that are not in `ORDER` come last."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __repr__(self) -> str:
        return "<ByTask>"  # part of the configuration, which must not change

    def __call__(self, file_name: str) -> tuple[int, str]:
        name = file_name.removesuffix(".py")
        return ORDER.index(name) if name in ORDER else len(ORDER), name
