"""Selects the files of the mkdocs site (mkdocs.yml): the pages of docs/, and every file of the tree that a page of the site links to.

A file outside docs/ is copied below source/ in the site, as a page if it is Markdown. Links are adjusted. A link to a folder becomes its text.
"""
import os
import re
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
LINK = re.compile(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)#\s]+)(#[^)]*)?\)")


def place(path):
    """Returns the path of a file of the tree in the site."""
    inside = path.is_relative_to(DOCS)
    return str(path.relative_to(DOCS)) if inside else str("source" / path.relative_to(ROOT))


def target(page, link):
    """Returns the file or folder of the tree that a link of a page refers to, or None."""
    if "://" in link or link.startswith("mailto:"):
        return None
    found = (page.parent / link).resolve()
    return found if found.exists() and found.is_relative_to(ROOT) else None


def reachable():
    """Returns the pages of docs/ and all files that they link to, following links through Markdown files."""
    files = sorted(DOCS.rglob("*.md"))
    known = set(files)
    for file in files:  # grows
        if file.suffix != ".md":
            continue
        for _, link, _ in LINK.findall(file.read_text(encoding="utf-8")):
            found = target(file, link)
            if found and found.is_file() and found not in known:
                known.add(found)
                files.append(found)
    return files


def anchor(heading, separator):
    """Returns the anchor of a heading as code hosts compute it, so that links work there and here."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", separator)


def on_config(config):
    config["mdx_configs"].setdefault("toc", {})["slugify"] = anchor
    return config


def on_files(files, config):
    for file in list(files):
        if Path(file.abs_src_path).is_relative_to(DOCS):
            files.remove(file)
    for path in reachable():
        file = File(place(path), str(DOCS), config["site_dir"], config["use_directory_urls"])
        file.abs_src_path = str(path)
        files.append(file)
    return files


def on_page_markdown(markdown, page, config, files):
    source = Path(page.file.abs_src_path)

    def moved(found):
        path = target(source, found[2])
        if path is None:
            return found[0]
        if path.is_dir():
            return found[1]
        link = os.path.relpath(place(path), os.path.dirname(place(source)) or ".")
        return f"[{found[1]}]({link}{found[3] or ''})"

    return LINK.sub(moved, markdown)
