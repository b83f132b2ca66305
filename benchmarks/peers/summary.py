"""Some benchmarks as short tables: one figure by two parameters of the cases."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import mean

from ..harness.records import Line
from ..harness.tables import Table
from .spec import label
from .tables import number

SPREAD = "spread"  # the figure that is the standard deviation of the one shown


@dataclass(frozen=True)
class Pivot:
    """Rows and columns are values of a case's parameters, cells are one figure.

    `where` keeps the cases with these values of a parameter.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    figure: str
    digits: int
    where: tuple[str, tuple[str, ...]] | None = None

    def table(self, results: Line) -> Table:
        """The table of the cases that were measured."""
        cells = {}
        for each in results["cases"]:
            figures = each["methods"].get(results["ours"], {}).get("figures", {})
            if self.figure in figures and self._in(each):
                key = _values(each, self.rows), _values(each, self.columns)
                cells[key] = self._cell(figures)
        columns = list(dict.fromkeys(column for _, column in cells))
        rows = list(dict.fromkeys(row for row, _ in cells))
        body = [[row, *(cells.get((row, c), "") for c in columns)] for row in rows]
        return Table(["", *columns], body)

    def _in(self, measured: Line) -> bool:
        if self.where is None:
            return True
        name, values = self.where
        return measured["case"][name] in values

    def _cell(self, figures: dict[str, float]) -> str:
        spread = figures.get(SPREAD)  # zero where there was one split only
        deviation = f" ± {spread:.{self.digits}f}" if spread else ""
        return f"{figures[self.figure]:.{self.digits}f}{deviation}"


@dataclass(frozen=True)
class Methods:
    """All methods on one case, with all their figures."""

    parameter: str
    value: str

    def table(self, results: Line) -> Table:
        """One row per method."""
        (measured,) = (
            each["methods"]
            for each in results["cases"]
            if each["case"][self.parameter] == self.value
        )
        names = list(dict.fromkeys(n for m in measured.values() for n in m["figures"]))
        body = [
            [method, *(number(found["figures"].get(name)) for name in names)]
            for method, found in measured.items()
        ]
        return Table(["", *names], body)


@dataclass(frozen=True)
class Peers:
    """One figure of all methods, case by case, and its mean over all cases."""

    parameters: tuple[str, ...]
    figure: str
    digits: int
    title: str = ""

    def table(self, results: Line) -> Table:
        """One row per case; the mean is over cases that all methods have solved."""
        cases = [each for each in results["cases"] if each["methods"]]
        names = list(dict.fromkeys(name for each in cases for name in each["methods"]))
        body = [
            [_values(each, self.parameters), *self._cells(each, names)]
            for each in cases
        ]
        whole = [each for each in cases if set(names) <= each["methods"].keys()]
        means = [f"{mean(self._values(whole, n)):.{self.digits}f}" for n in names]
        return Table([self.title, *names], [*body, [f"mean of {len(whole)}", *means]])

    def _cells(self, measured: Line, names: list[str]) -> list[str]:
        found = {n: m["figures"][self.figure] for n, m in measured["methods"].items()}
        return [f"{found[n]:.{self.digits}f}" if n in found else "" for n in names]

    def _values(self, cases: list[Line], name: str) -> list[float]:
        return [each["methods"][name]["figures"][self.figure] for each in cases]


@dataclass(frozen=True)
class OverFloor:
    """Seconds of our method over those of the calls that it cannot do without."""

    floor: str  # the method that makes only these calls

    def table(self, results: Line) -> Table:
        """One row per case, with the operations and bytes of its floor."""
        body = []
        for measured in results["cases"]:
            if self.floor not in measured["methods"]:
                continue
            sizes = dict(measured["case"])
            name, bare = sizes.pop("method"), measured["methods"][self.floor]
            seconds = measured["methods"][results["ours"]]["seconds"]
            operations, read = (bare["figures"][x] for x in ("GFLOP", "GB read"))
            numbers = (operations, read, bare["seconds"], seconds)
            over = f"{seconds / bare['seconds']:.2f}"
            body.append([name, label(sizes), *map(number, numbers), over])
        header = ["", "sizes", "GFLOP", "GB read", "floor, s", "seconds", "over floor"]
        return Table(header, body)


@dataclass(frozen=True)
class ByAccuracy:
    """All methods at all sizes of one data set, the most accurate first."""

    data: str
    size: str  # the parameter of the cases that changes

    def table(self, results: Line) -> Table:
        """One row per method and size, with seconds and peak memory."""
        rows = [
            (measured["case"][self.size], name, record)
            for measured in results["cases"]
            if measured["case"]["data"] == self.data
            for name, record in measured["methods"].items()
        ]
        rows.sort(key=lambda row: -row[2]["figures"]["accuracy"])
        names = list(dict.fromkeys(n for *_, record in rows for n in record["figures"]))
        body = [
            [
                name,
                str(size),
                *(number(record["figures"][each]) for each in names),
                number(record.get("peak_mb")),
            ]
            for size, name, record in rows
        ]
        return Table([self.data, self.size, *names, "peak MB"], body)


def _values(measured: Line, parameters: tuple[str, ...]) -> str:
    return ", ".join(str(measured["case"][name]) for name in parameters)


DAMAGES = ("noise", "lost", "clean")
PICTURES = "deviation of the noise, quality, pictures"
View = Pivot | Methods | Peers | OverFloor | ByAccuracy
SUMMARIES: dict[str, tuple[View, ...]] = {
    "ksad": (Pivot(("method",), ("data", "images"), "accuracy", 2),),
    "supervised": (
        Pivot(
            ("method", "rows"),
            ("data",),
            "accuracy",
            2,
            ("data", ("yaleb-features", "ar-540", "ar")),
        ),
        Pivot(("method",), ("data",), "accuracy", 2, ("data", ("usps",))),
    ),
    "streams": (Pivot(("learner", "forgetting"), ("map",), "accuracy", 2),),
    "budget": (Pivot(("method",), ("pixels", "budget"), "precision", 4),),
    "outliers": (
        Methods("set", "mean of all sets"),
        Methods("set", "mean of all sets, normal rows only"),
    ),
    "defaults": (Peers(("data",), "accuracy", 2),),
    "automatic": (Peers(("data",), "accuracy", 2),),
    "robust": tuple(Peers(("data",), kind, 2, kind) for kind in DAMAGES),
    "missing": (
        Peers(("data", "trained on", "lost"), "accuracy", 1, "data, trained on, lost"),
    ),
    "images": (Peers(("sigma", "quality", "pictures"), "psnr", 2, PICTURES),),
    "inpainting": (Peers(("lost",), "psnr", 2, "lost, %"),),
    "imputation": (Peers(("table", "lost"), "rmse", 3, "table, removed"),),
    "occlusion": (
        Peers(("faces", "by", "covered"), "accuracy", 1, "faces, covered by, share"),
    ),
    "floors": (OverFloor("bare calls"),),
    "growth": (Pivot(("method",), ("doubled",), "exponent", 2),),
    "instead": tuple(ByAccuracy(data, "features") for data in ("mnist", "usps")),
}


def summary(name: str, results: Line) -> str:
    """The short tables of a benchmark, as Markdown."""
    tables = (view.table(results) for view in SUMMARIES[name])
    return "\n\n".join(table.filled().markdown() for table in tables)
