"""links DIRECTORY: what is wrong with the links of a site: a line for each, and exit status 1 if there is any.

A link within the site leads to a file that is there, and to a heading that is there. No page and no style sheet makes a browser ask
another host. Nothing that Markdown should have changed is left as text.
"""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

LOADED = {
    "script": "src",
    "img": "src",
    "link": "href",
    "iframe": "src",
    "source": "src",
    "use": "href",
    "object": "data",
    "form": "action",
}
LEFT = re.compile(r"\]\([^)]*\)|^```|^\| |(?<!\S)\*\*\S|^- |^#+ |\\\|", re.M)


class Page(HTMLParser):
    """Ids and links of a page, and the text of it that is no code."""

    def __init__(self, path: Path):
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.text = ""
        self.code = 0
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.code += tag in ("code", "script", "style")
        self.text += "\n" * (tag == "p")
        if "id" in values:
            self.ids.add(values["id"])
        if tag == "a" and values.get("href") is not None:
            self.links.append(values["href"])
        if values.get(LOADED.get(tag, "")):
            self.loads.append(values[LOADED[tag]])

    def handle_endtag(self, tag):
        self.code -= tag in ("code", "script", "style")

    def handle_data(self, data):
        if not self.code:
            self.text += data


def is_elsewhere(address: str) -> bool:
    return re.match(r"([a-z]+:)?//", address) is not None


def complaints(directory: Path):
    pages = {path: Page(path) for path in directory.rglob("*.html")}
    if len(pages) < 50:
        yield f"{directory} has {len(pages)} pages"
    for path, page in sorted(pages.items()):
        for address in page.loads:
            if is_elsewhere(address):
                yield f"{path}: loads {address}"
        for address in page.links + page.loads:
            if is_elsewhere(address) or address.startswith("mailto:"):
                continue
            file, heading = urldefrag(address)
            target = (path.parent / unquote(file)).resolve() if file else path
            if target.is_dir():
                target /= "index.html"
            if not target.is_file():
                yield f"{path}: no file for {address}"
            elif heading and target in pages and unquote(heading) not in pages[target].ids:
                yield f"{path}: no heading for {address}"
        for match in LEFT.finditer(page.text):
            yield f"{path}: as text: {page.text[match.start():match.start() + 60]!r}"
    for path in directory.rglob("*.css"):
        for address in re.findall(r"""(?:url\(|@import\s+["'])\s*["']?([^)"'\s]+)""", path.read_text()):
            if is_elsewhere(address):
                yield f"{path}: loads {address}"


if __name__ == "__main__":
    found = list(complaints(Path(sys.argv[1]).resolve()))
    sys.exit("\n".join(found) or None)
