"""Files around the library agree with it: workflows, recipe, citation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import kernlets

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def project():
    tomllib = pytest.importorskip("tomllib")  # Python 3.11
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def steps(workflow):
    for job in workflow["jobs"].values():
        assert {"runs-on", "steps"} <= job.keys()
        yield from job["steps"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_are_thin_around_make(path):
    workflow = yaml.safe_load(path.read_text())
    assert workflow["permissions"] == {"contents": "read"}
    for step in steps(workflow):
        assert ("uses" in step) != ("run" in step)
        if "run" in step:
            words = step["run"].removeprefix("sudo ").split()
            assert words[0] == "make"
            assert {word for word in words[1:] if "=" not in word} <= TARGETS
        else:
            assert re.fullmatch(r"[\w-]+/[\w-]+@[\w./-]+", step["uses"])


def test_the_matrix_is_what_the_package_claims():
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text())
    claimed = re.findall(r"Python :: (3\.\d+)", "\n".join(project()["classifiers"]))
    assert workflow["jobs"]["test"]["strategy"]["matrix"]["python"] == claimed


def test_the_recipe_needs_what_the_package_needs():
    recipe = yaml.safe_load((ROOT / "conda" / "recipe.yaml").read_text())
    python, *needs = recipe["requirements"]["run"]
    assert python == f"python {project()['requires-python']}"
    assert [need.replace(" ", "") for need in needs] == project()["dependencies"]
    assert recipe["context"]["version"] == kernlets.__version__


def test_the_citation_names_this_version_and_the_papers():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == kernlets.__version__ == project()["version"]
    assert citation["license"] == project()["license"]
    assert len(citation["references"]) == 5
    for paper in citation["references"]:
        assert paper["type"] in ("article", "conference-paper")
        assert paper["title"] and paper["authors"] and paper["year"] > 2000


def test_targets_named_in_the_documentation_exist():
    for name in ("CONTRIBUTING.md", "README.md", "docs/development.md"):
        for line in re.findall(r"`make ([a-z -]+)", (ROOT / name).read_text()):
            assert set(line.split()) <= TARGETS, f"{name}: make {line}"
