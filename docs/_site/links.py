"""Names in pages become links: of classes and functions, and of examples.

Pages write `KSVD(30)` and `examples/damaged/plot_missing.py` as code, so that they can
be read without the site. In the site such code leads to the reference and the gallery.
Anchors in HTML, which the pages of the papers have, can be linked to as headings can.
"""

from __future__ import annotations

import re

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

from kernlets import registry

NAME = re.compile(r"(?:kernlets\.)?([A-Za-z][\w.]*)(?:\(.*)?", re.DOTALL)
EXAMPLE = re.compile(r"(?:python )?examples/([a-z]+/[a-z_]+)\.py.*")


ANCHOR = re.compile(r'<a id="([^"]+)">')


def know_anchors(app: Sphinx, doctree: nodes.document) -> None:
    for raw in doctree.findall(nodes.raw):
        for name in ANCHOR.findall(raw.astext()):
            slugs = app.env.metadata[app.env.docname].setdefault("myst_slugs", {})
            slugs[name] = (raw.line, name, name)


def link_names(app: Sphinx, doctree: nodes.document) -> None:
    if app.env.doc2path(app.env.docname).suffix != ".md":
        return
    for literal in list(doctree.findall(nodes.literal)):
        is_linked = isinstance(literal.parent, nodes.reference | addnodes.pending_xref)
        target = None if is_linked else _target(literal.astext())
        if target is not None:
            link = addnodes.pending_xref(
                "", refdoc=app.env.docname, refexplicit=True, refwarn=True, **target
            )
            literal.replace_self(link)
            link += literal


def _target(text: str) -> dict[str, str] | None:
    if example := EXAMPLE.fullmatch(text):
        page = f"/gallery/{example[1]}"
        return {"refdomain": "std", "reftype": "doc", "reftarget": page}
    name = NAME.fullmatch(text)
    if name and name[1] in registry.public_objects():
        target = f"kernlets.{name[1]}"
        return {"refdomain": "py", "reftype": "obj", "reftarget": target}
    return None


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("doctree-read", know_anchors)
    app.connect("doctree-read", link_names)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
