"""The order of the gallery: sections by task, and in each the easy examples first."""

from __future__ import annotations

SECTIONS = "damaged outliers parameters atoms structured large maps".split()
EXAMPLES = (
    "plot_missing plot_patches plot_denoise plot_photographs "
    "plot_outliers plot_outlier_reasons plot_outlier_maps "
    "grid_search plot_supervised_search "
    "plot_preimages plot_recovery "
    "words plot_covariances plot_graphs "
    "stream_from_disk plot_budget cluster "
    "plot_kernel_error plot_ika_bases plot_ika_classification "
    "plot_ika_refined plot_ika_stacked"
).split()


class EasyFirst:
    """A key to sort examples by; those that are not in `EXAMPLES` come last."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __repr__(self) -> str:
        return "<EasyFirst>"  # part of the configuration, which must not change

    def __call__(self, file_name: str) -> tuple[int, str]:
        name = file_name.removesuffix(".py")
        return EXAMPLES.index(name) if name in EXAMPLES else len(EXAMPLES), name
