"""Checks the pages of a site: each link within it leads to a file, and its anchor to an element of that file.

    check_links.py DIRECTORY

Prints each mistake, then "N passed, N failed"; exit status 0 when nothing failed. A page may load nothing from elsewhere.
"""

import html.parser
import os
import sys
import urllib.parse

LOADED = {("link", "href"), ("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src")}


class Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.anchors, self.links = set(), []
        with open(path, encoding="utf-8") as file:
            self.feed(file.read())

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id" or (tag, name) == ("a", "name"):
                self.anchors.add(value)
            elif name in ("href", "src") and value:
                self.links.append((tag, name, value))


def pages_below(directory):
    for folder, _, names in os.walk(directory):
        for name in names:
            if name.endswith(".html"):
                path = os.path.join(folder, name)
                yield path, Page(path)


def fault_of(path, link, pages):
    tag, name, target = link
    url = urllib.parse.urlsplit(target)
    if url.scheme or url.netloc:
        return "loads from elsewhere" if (tag, name) in LOADED and url.scheme != "data" else None
    # The page for what is missing is shown at any path, so its links begin at the top.
    base = "" if url.path.startswith("/") else os.path.dirname(path)
    linked = os.path.normpath(os.path.join(base, urllib.parse.unquote(url.path))) if url.path else path
    if not os.path.exists(linked):
        return "leads to nothing"
    if url.fragment and linked in pages and urllib.parse.unquote(url.fragment) not in pages[linked].anchors:
        return "has an anchor that is not there"
    return None


def main():
    directory = os.path.normpath(sys.argv[1])
    pages = {path: page for path, page in pages_below(directory) if os.path.basename(path) != "404.html"}
    checked = failed = 0
    for path, page in sorted(pages.items()):
        for link in page.links:
            fault = fault_of(path, link, pages)
            checked += 1
            if fault:
                failed += 1
                print(f"{os.path.relpath(path, directory)}: the link {link[2]} {fault}")
    print(f"{checked - failed} passed, {failed} failed")
    return 1 if failed or not checked else 0


sys.exit(main())
