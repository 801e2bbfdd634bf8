"""What mkdocs needs to show a repository that reads well without it.

Pages of the repository's root and the log become pages of the site. Links that lead out of docs/
to such a page lead there; links to source files become the file's path, as the site has no copy.
"""

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

from ducos.upscaling import OPTIONS

REPOSITORY = Path(__file__).parent.parent
BESIDE = ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "dev/LOG.md")
ELSEWHERE = {"README.md": "index.md"}
WORDS = r"[^\]\[]*(?:\[[^\]]*\][^\]\[]*)*"
LINK = re.compile(rf"(!?)\[({WORDS})\]\((?!https?:|#|mailto:)([^)#\s]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that do not lie in docs/."""
    for name in BESIDE:
        text = (REPOSITORY / name).read_text(encoding="utf-8")
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links as they are right on the site."""
    name = page.file.src_uri
    place = name if name in BESIDE else f"docs/{name}"
    markdown = markdown.replace("<!-- options -->", options_table())
    return LINK.sub(lambda found: site_link(found, place, name), markdown)


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """The docstring of super_resolve takes its options from their fields when it is imported."""
    return html.replace("{options}", "the fields of Options, below")


def options_table() -> str:
    """Every field of `Options` with its default and its sentence of help."""
    rows = [f"| `{n}` | `{o.default!r}` | {o.metadata['help']} |" for n, o in OPTIONS.items()]
    return "\n".join(["| option | default | |", "|---|---|---|", *rows])


def site_link(found: re.Match[str], place: str, page: str) -> str:
    """One link of the file `place` of the repository, which is `page` of the site."""
    picture, words, target, anchor = found[1], found[2], found[3], found[4] or ""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(place), target))
    path = ELSEWHERE.get(path, path)
    if path.startswith("docs/"):
        path = path.removeprefix("docs/")
    elif path not in (*BESIDE, *ELSEWHERE.values()):
        return f"{words} (`{path}`)" if words.strip("`") != path else f"`{path}`"
    return f"{picture}[{words}]({posixpath.relpath(path, posixpath.dirname(page) or '.')}{anchor})"
