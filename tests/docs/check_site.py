#!/usr/bin/python3
"""Checks that the navigation of mkdocs.yml names every page of docs/ once, and only existing pages.

check_site.py FOLDER also checks a built site: every link and file of its pages exists, nothing is fetched from elsewhere, the search index
contains every page of the navigation, and rules are coloured. check_site.py --build builds the site first, and exits with 77 if mkdocs is
not installed.
"""
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parents[2]


def nav(config):
    """Returns the paths of pages in the order of the navigation."""
    return re.findall(r"^ +- (?:[^\n]*: )?(\S+\.md)$", config.partition("\nnav:\n")[2], flags=re.M)


def source(page):
    """Returns the file of a page: below docs/, or elsewhere in the tree for source/."""
    return ROOT / page.removeprefix("source/") if page.startswith("source/") else ROOT / "docs" / page


def misnamed(pages, there):
    """Yields the mistakes of a navigation, given the paths of existing pages."""
    yield from (f"mkdocs.yml names {page} {count} times" for page, count in Counter(pages).items() if count > 1)
    yield from (f"mkdocs.yml: no such page: {page}" for page in pages if not source(page).is_file())
    yield from (f"mkdocs.yml does not name {page}" for page in sorted(there - set(pages)))


class Links(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.leads, self.loads, self.ids = [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.ids |= {given[key] for key in ("id", "name") if given.get(key)}
        if tag == "a" and given.get("href"):
            self.leads.append(given["href"])
        for key in ("src", "href") if tag in ("script", "img", "link") else ():
            if given.get(key):
                self.loads.append(given[key])


def broken(site):
    """Yields broken links and files of the site, and resources fetched from elsewhere."""
    pages = {path.resolve(): Links(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html")) if path.name != "404.html"}
    for path, links in pages.items():
        yield from (f"{path.relative_to(site)} fetches {url}" for url in links.loads if urlsplit(url).netloc)
        for url in links.leads + links.loads:
            parts = urlsplit(url)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file():
                yield f"{path.relative_to(site)}: no such file: {url}"
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].ids:
                yield f"{path.relative_to(site)}: no such heading: {url}"


def unsearched(site, pages):
    index = json.loads((site / "search/search_index.json").read_text(encoding="utf-8"))
    known = {entry["location"].partition("#")[0] or "index.html" for entry in index["docs"]}
    built = map(built_page, pages)
    return [f"the search index lacks {page}" for page in built if page not in known]


KEYWORD = re.compile(r'<div class="codehilite">(?:(?!</div>).)*<span class="kp?">', re.S)  # a block of code with a keyword of ours


def built_page(page):
    """Returns the path of a page of the navigation in the site."""
    return re.sub(r"(^|/)README\.md$", r"\1index.md", page).removesuffix(".md") + ".html"


def colourless(source_text, html):
    """Counts the blocks of rules of a page without colours on the site."""
    return max(len(re.findall(r"^```pwr$", source_text, flags=re.M)) - len(KEYWORD.findall(html)), 0)


def uncoloured(site, pages):
    for page in pages:
        text = source(page).read_text(encoding="utf-8")
        if count := colourless(text, (site / built_page(page)).read_text(encoding="utf-8")):
            yield f"{page}: {count} blocks of rules have no colours"


def build(folder):
    """Builds the site in a folder of its own. Returns False without mkdocs."""
    if not shutil.which("mkdocs"):
        return False
    subprocess.run(["mkdocs", "build", "--strict", "--quiet", "--site-dir", folder], cwd=ROOT, check=True)
    return True


def main():
    if sys.argv[1:] == ["--build"]:
        with tempfile.TemporaryDirectory() as folder:
            if not build(folder):
                print("SKIPPED: no mkdocs: install mkdocs and python3-pygments", file=sys.stderr)
                return 77
            return check([folder])
    return check(sys.argv[1:])


def check(folders):
    assert colourless("```pwr\nrule a {}\n```\n", "<pre><code>rule a {}</code></pre>") == 1, "the check cannot fail"
    there = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    assert list(misnamed(["no.md", "README.md", "README.md"], {"README.md", "ops.md"})) == [
        "mkdocs.yml names README.md 2 times",
        "mkdocs.yml: no such page: no.md",
        "mkdocs.yml does not name ops.md",
    ], "the check cannot fail"
    pages = nav((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    wrong = list(misnamed(pages, there))
    for site in map(Path, folders):
        wrong += [*broken(site.resolve()), *unsearched(site, pages), *uncoloured(site, pages)]
    print("\n".join(wrong) or f"site: the navigation has {len(pages)} pages, each of docs/ once")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
