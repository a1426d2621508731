#!/usr/bin/env python3
"""A phone that reads pages of a site: fetches each with its style sheets and pictures, and counts the bytes that it gets.

    visit.py SITE PAGES [PROXY]          SITE and PROXY are host:port

Prints as JSON: pages, files, bytes (heads and bodies as they come), again (bytes of a second visit by the same phone, which
asks whether what it has is still valid), and wrong (files that are not what they should be).
"""

import gzip
import html.parser
import http.client
import json
import os
import posixpath
import sys

IDENTITY, ACCEPTED = "identity", "gzip"


class Parts(html.parser.HTMLParser):
    """What a browser loads with a page."""

    def __init__(self, text):
        super().__init__()
        self.names = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if tag == "img" and values.get("src"):
            self.names.append(values["src"])
        elif tag == "link" and values.get("rel") == "stylesheet" and values.get("href"):
            self.names.append(values["href"])


class Phone:
    def __init__(self, site, proxy):
        self.site, self.proxied = site, proxy is not None
        self.connection = http.client.HTTPConnection(proxy or site, timeout=60)
        self.bytes, self.kept = 0, {}

    def get(self, name, accept=ACCEPTED):
        """The body as it was meant, or None for what is still valid. Status and reason count as 30 bytes."""
        fields = {"Host": self.site, "Accept-Encoding": accept}
        if name in self.kept:
            fields["If-None-Match"] = self.kept[name]
        path = "/" + name
        self.connection.request("GET", f"http://{self.site}{path}" if self.proxied else path, headers=fields)
        answer = self.connection.getresponse()
        body = answer.read()
        self.bytes += len(body) + 30 + sum(len(key) + len(value) + 4 for key, value in answer.getheaders())
        if answer.status == 304:
            return None
        if answer.status != 200:
            raise SystemExit(f"{name}: status {answer.status}")
        if answer.getheader("ETag"):
            self.kept[name] = answer.getheader("ETag")
        return gzip.decompress(body) if answer.getheader("Content-Encoding") == "gzip" else body

    def forget_bytes(self):
        count, self.bytes = self.bytes, 0
        return count


def parts_of(pages, phone):
    """All files of the pages, each once, in the order in which a browser asks for them."""
    files = {}
    for page in pages:
        files[page] = phone.get(page)
        for name in Parts(files[page].decode()).names:
            name = posixpath.normpath(posixpath.join(posixpath.dirname(page), name))
            if name not in files and not name.startswith("..") and "//" not in name:
                files[name] = phone.get(name)
    return files


def is_wrong(name, got, original):
    """Texts are the same bytes; a picture may have become smaller, but is one."""
    if name.endswith((".png", ".jpg", ".gif")):
        return got[:3] != original[:3] or len(got) > len(original)
    return got != original


def main():
    site, count, proxy = sys.argv[1], int(sys.argv[2]), (sys.argv[3:] + [None])[0]
    phone, plain = Phone(site, proxy), Phone(site, None)
    pages = sorted(name for name in os.listdir(sys.stdin.readline().strip()) if name.endswith(".html"))[:count]
    files = parts_of(pages, phone)
    first = phone.forget_bytes()
    wrong = [name for name, got in files.items() if is_wrong(name, got, plain.get(name, IDENTITY))]
    for name in files:
        phone.get(name)
    print(json.dumps({"pages": len(pages), "files": len(files), "bytes": first, "again": phone.bytes, "wrong": wrong}))


main()
