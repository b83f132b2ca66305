"""The results of a benchmark as tables: measurements and targets."""

from __future__ import annotations

from ..harness.records import Line
from ..harness.tables import Table
from .spec import label


def tables(results: Line) -> list[Table]:
    """The measurements and the targets, as far as there are any."""
    ours, cases = results["ours"], results["cases"]
    measured = [case for case in cases if case["methods"]]
    found = [_measurements(results["title"], ours, measured)] if measured else []
    if any(case["targets"] for case in measured):
        found.append(_targets(measured))
    return found


def markdown(results: Line) -> str:
    """What the benchmark is about, its measurements, and what it ran on."""
    measured = [case for case in results["cases"] if case["methods"]]
    parts = []
    if measured:
        table = _measurements(results["title"], results["ours"], measured)
        parts.append(table.filled().markdown())
    parts += [f"* not run: {line}" for line in skipped(results)]
    return "\n\n".join([results["about"], *parts, _footer(results)])


def skipped(results: Line) -> list[str]:
    """One line for each method that did not run, with its reason."""
    return [
        f"{method} at {label(case['case'])}: {reason}"
        for case in results["cases"]
        for method, reason in case["skipped"].items()
    ]


def _measurements(title: str, ours: str, cases: list[Line]) -> Table:
    names = _figure_names(cases)
    header = ["case", "method", "seconds", "min - max", f"speed of {ours}"]
    header += ["peak MB (data)", *names]
    rows = [
        _row(case, method, ours, names) for case in cases for method in case["methods"]
    ]
    return Table(header, rows, title)


def _figure_names(cases: list[Line]) -> list[str]:
    """Names of all figures, in order of appearance."""
    records = [record for case in cases for record in case["methods"].values()]
    return list(dict.fromkeys(name for r in records for name in r["figures"]))


def _row(case: Line, method: str, ours: str, names: list[str]) -> list[str]:
    record = case["methods"][method]
    seconds = record["all_seconds"]
    scaled = "" if record["share"] == 1 else " (scaled)"
    speed = f"speed: {method}"
    return [
        label(case["case"]) if method == ours else "",
        method,
        number(record["seconds"]) + scaled,
        f"{number(min(seconds), 3)} - {number(max(seconds), 3)}",
        _times(case["figures"].get(speed)),
        _memory(record),
        *(number(record["figures"].get(name)) for name in names),
    ]


def _times(ratio: float | None) -> str:
    return "" if ratio is None else f"× {number(ratio, 3)}"


def _memory(record: Line) -> str:
    if "peak_mb" not in record:
        return ""
    return f"{record['peak_mb']:.0f} ({record['data_mb']:.0f})"


def _targets(cases: list[Line]) -> Table:
    rows = [
        [
            label(case["case"]),
            goal["figure"],
            number(goal["measured"], digits=6),
            goal["target"],
            {True: "yes", False: "NO", None: "not measured"}[goal["met"]],
        ]
        for case in cases
        for goal in case["targets"]
    ]
    return Table(["case", "figure", "measured", "target", "met"], rows, "targets")


def number(value: float | None, digits: int = 4) -> str:
    """Up to `digits` significant digits, never in scientific notation above 1."""
    if value is None:
        return ""
    return f"{value:.0f}" if abs(value) >= 10**digits else f"{value:.{digits}g}"


def _footer(results: Line) -> str:
    machine, versions = results["machine"], dict(results["versions"])
    python = versions.pop("python")
    packages = ", ".join(f"{name} {version}" for name, version in versions.items())
    code_for = machine.get("code_for")  # old records do not say it
    told = f", {code_for}" if code_for else ""
    quick = "Quick run on tiny sizes: ratios mean nothing. " * results["quick"]
    return (
        f"Measured {results['date']} on {machine['processor']}, {machine['threads']} "
        f"threads, Python {python}, {machine['blas']}{told}; {packages}. {quick}"
        "Seconds are medians, without data and warm-up; the methods took turns."
    )
