"""Check every link and picture of the built site: python scripts/site_links.py site

Links within the site must lead to a file, and to an anchor that is there. Links to the web are not
followed; nothing but links may point there: the site loads nothing from elsewhere.
"""

import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """Targets of links, sources of pictures, scripts and styles, and anchors of one page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = {""}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = {name: value or "" for name, value in attrs}
        self.anchors |= {known[name] for name in ("id", "name") if name in known}
        if tag == "a" and "href" in known:
            self.links.append(known["href"])
        if tag in ("img", "script", "iframe") and "src" in known:
            self.loaded.append(known["src"])
        if tag == "link" and known.get("rel") in ("stylesheet", "icon"):
            self.loaded.append(known["href"])


@cache
def page(path: Path) -> Page:
    return Page(path)


def faults(folder: Path) -> list[str]:
    """A sentence for every link that leads nowhere."""
    found = []
    for path in sorted(folder.rglob("*.html")):
        if path.name == "404.html":
            continue
        for target in page(path).links + page(path).loaded:
            parts = urlsplit(target)
            name = path.relative_to(folder)
            if parts.scheme in ("http", "https", "mailto", "data") or parts.netloc:
                if target in page(path).loaded and parts.scheme != "data":
                    found.append(f"{name} loads {target}")
                continue
            goal = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            goal = goal / "index.html" if goal.is_dir() else goal
            if not goal.is_file():
                found.append(f"{name}: {target} is not there")
            elif goal.suffix == ".html" and unquote(parts.fragment) not in page(goal).anchors:
                found.append(f"{name}: {target} has no such anchor")
    return found


if __name__ == "__main__":
    wrong = faults(Path(sys.argv[1]).resolve())
    if wrong:
        sys.exit("\n".join(wrong))
    print("every link leads somewhere")
