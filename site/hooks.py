"""What mkdocs does not know of this project: pages outside of docs/, the order of the pages, links to sources, tabs.

The site has each *.md of the project. A page of docs/ is at its path below docs/, another page at its path in the project. A link to
any other file leads to the repository.
"""

import json
import os
import re
from itertools import groupby
from pathlib import Path, PurePosixPath
from textwrap import indent

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
SOURCE = os.environ["SITE_SOURCE"]

# A section has a name and pages. Pages are the path of a document, or (document, heading): what the table below that heading links to.
NAV = [
    ("Home", "README.md"),
    (
        "Develop",
        [
            ("Start", ["docs/guide/first-afternoon.md", "docs/choosing.md", "docs/README.md"]),
            ("Guide", ("docs/README.md", "Guide")),
            ("Recipes", ("docs/README.md", "Recipes")),
            ("Coming from", ["docs/migrating/README.md", ("docs/README.md", "Coming from")]),
            (
                "Clients",
                [
                    "docs/clients/README.md",
                    "clients/node/README.md",
                    "clients/python/README.md",
                    ("docs/clients/README.md", "Clients"),
                ],
            ),
            ("Examples", ["examples/README.md", "examples/*/README.md", "demo/README.md"]),
        ],
    ),
    ("Operate", [("docs/README.md", "Operations"), "console/README.md"]),
    ("Reference", ("docs/README.md", "Reference")),
    (
        "Maintain",
        [
            ("Internals", ("docs/README.md", "Internals")),
            ("Sources", ["CONTRIBUTING.md", "test/README.md", "test/model/README.md", "src/*/README.md", "sql/README.md"]),
            ("Benchmarks", ["bench/README.md", "bench/NOTES.md"]),
        ],
    ),
    ("About", ["docs/guarantees.md", "docs/stability.md", "CHANGELOG.md", "SECURITY.md"]),
]


# --- Which pages there are ---------------------------------------------------


def documents() -> list[str]:
    return sorted(
        str(path.relative_to(ROOT))
        for pattern in ("*.md", "*/*.md", "*/*/*.md")
        for path in ROOT.glob(pattern)
        if not path.relative_to(ROOT).parts[0].startswith(".")
    )


def page_of(document: str) -> str:
    """The path in the site. There it has no README.md at the top but that of the project."""
    return "contents.md" if document == "docs/README.md" else document.removeprefix("docs/")


def on_files(files: Files, config) -> Files:
    site = Files([file for file in files if not file.src_uri.endswith(".md")])
    for document in documents():
        file = File(page_of(document), str(ROOT), config["site_dir"], config["use_directory_urls"])
        file.abs_src_path = str(ROOT / document)
        file.document = document
        site.append(file)
    site.append(File("site.css", str(ROOT / "site"), config["site_dir"], config["use_directory_urls"]))
    return site


# --- Their order -------------------------------------------------------------


def linked(document: str, heading: str) -> list[tuple[str, str]]:
    """Titles and documents that the first links of the lines of a table lead to, below a heading of a document."""
    text = (ROOT / document).read_text()
    section = re.search(rf"^#+ {heading}\n(.*?)(?=^#|\Z)", text, re.M | re.S)
    rows = re.findall(r"^\|[^[\n]*\[([^]]+)\]\(([^)#]+\.md)\)", section[1], re.M)
    return [(title, resolved(document, target)) for title, target in rows]


def title_of(document: str) -> str:
    if document == "docs/README.md":
        return "All pages"
    return re.search(r"^# (.*)", (ROOT / document).read_text(), re.M)[1]


def entries(pages, seen: set[str]) -> list:
    """What mkdocs calls nav. A page is in the first section that names it."""
    found = []
    for page in [pages] if isinstance(pages, tuple) else pages:
        if isinstance(page, str):
            named = [(title_of(document), document) for document in sorted(str(path.relative_to(ROOT)) for path in ROOT.glob(page))]
        elif page[0].endswith(".md"):
            named = linked(*page)
        else:
            found.append({page[0]: entries(page[1], seen)})
            continue
        found += [{title: page_of(document)} for title, document in named if document not in seen]
        seen.update(document for _, document in named)
    return found


def on_config(config):
    seen: set[str] = set()
    config["nav"] = [{title: page_of(pages) if isinstance(pages, str) else entries(pages, seen)} for title, pages in NAV]
    config["repo_url"] = json.loads((ROOT / "META.json").read_text())["resources"]["repository"]["web"]
    config["repo_name"] = "Sources"
    return config


def on_nav(nav, config, files):
    missing = sorted(file.src_uri for file in files.documentation_pages() if file.page not in nav.pages)
    if missing:
        raise SystemExit(f"no table of docs/README.md has these pages, nor site/hooks.py: {', '.join(missing)}")
    return nav


# --- Their text --------------------------------------------------------------


def resolved(document: str, target: str) -> str:
    return os.path.normpath(PurePosixPath(document).parent / target)


def link(document: str, target: str) -> str:
    """Where a link of a document leads in the site."""
    path, mark, heading = target.partition("#")
    if not path or re.match(r"[a-z]+:", target):
        return target
    leads = resolved(document, path)
    if leads.endswith(".md") or leads.startswith("docs/") and (ROOT / leads).is_file():
        here = PurePosixPath(page_of(document)).parent
        return os.path.relpath(page_of(leads), here) + mark + heading
    return f"{SOURCE}/{leads}{mark}{heading}"


def outside_fences(text: str, change) -> str:
    """The text after change() of the parts that are no block of code."""
    return "".join(
        part if part.startswith("```") else change(part) for part in re.split(r"(^```.*?^```$)", text, flags=re.M | re.S)
    )


def sections(text: str) -> list[str]:
    """What is before the first heading, and each heading with the text below it."""
    found, fenced = [""], False
    for line in text.splitlines(keepends=True):
        fenced ^= line.startswith("```")
        if line.startswith("#") and not fenced:
            found.append("")
        found[-1] += line
    return found


def in_tabs(text: str) -> str:
    """Sections "In SQL", "In JavaScript", "In Python" that follow each other become tabs of one section. Links to each heading stay right."""

    def language(section: str) -> str | None:
        heading = re.match(r"## In (\w+)\n", section)
        return heading and heading[1]

    changed = ""
    for together, group in groupby(sections(text), key=lambda section: language(section) is not None):
        group = list(group)
        if not together or len(group) == 1:
            changed += "".join(group)
            continue
        languages = [language(section) for section in group]
        changed += (
            f"## In {' and '.join([', '.join(languages[:-1]), languages[-1]])}\n\n" + "".join(f'<span id="in-{name.lower()}"></span>' for name in languages) + "\n\n"
        )
        for name, section in zip(languages, group):
            changed += f'=== "{name}"\n\n{indent(section.partition(chr(10))[2].strip(), "    ")}\n\n'
    return changed


def nested_lists(text: str) -> str:
    """A list in a list, which GitHub finds at the text of its item, is found four blanks to the right."""
    return re.sub(r"^ {2,3}(?=\S)", "    ", text, flags=re.M)


def without_contents(text: str) -> str:
    """The site lists the headings of a page next to it, so the list at its top goes."""
    return re.sub(r"^(?:- \[[^]]+\]\(#[^)]+\)\n){4,}\n", "", text, flags=re.M)


def with_buttons(text: str) -> str:
    """The first page: where each reader begins, below the first paragraph."""
    buttons = " ".join(
        f"[{title}]({target}){{ .md-button {more}}}"
        for title, target, more in (
            ("Your first afternoon", "guide/first-afternoon.md", ".md-button--primary "),
            ("Which mechanism?", "choosing.md", ""),
            ("Install", "operations/install.md", ""),
        )
    )
    return re.sub(r"\n\n.*?\n\n", lambda match: f"{match[0]}{buttons}\n\n", text, count=1, flags=re.S)


def on_page_markdown(text: str, page, config, files) -> str:
    document = page.file.document
    text = outside_fences(text, nested_lists)
    text = outside_fences(text, lambda part: re.sub(r"(?<=\]\()[^)\s]+(?=\))", lambda match: link(document, match[0]), part))
    text = in_tabs(without_contents(text))
    if document == "README.md":
        page.meta["hide"] = ["navigation", "toc"]
        text = with_buttons(text)
    return re.sub(r"^( *)```output$", r"\1```{.text .output}", text, flags=re.M)
