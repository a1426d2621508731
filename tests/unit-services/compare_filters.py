#!/usr/bin/env python3
"""Compares our filter with another one (PyPI: braveblock) on real rules and real URLs.

    compare_filters.py FILTER-TOOL EASYLIST URLS [COUNT]

Each URL is asked as part of several pages and as several types. Prints how often the two agree, and
the first disagreements. Exit status 1 when they agree on less than 99.5 %.
"""
import collections
import subprocess
import sys

import braveblock

PAGES = ["http://news.example/", "http://goal.com/", "same"]
TYPES = ["image", "script", "stylesheet", "subdocument", "xmlhttprequest", "other"]


def host_of(url):
    return url.split("//", 1)[-1].split("/", 1)[0].split(":", 1)[0]


def main():
    tool, easylist, urls = sys.argv[1:4]
    count = int(sys.argv[4]) if len(sys.argv) > 4 else 1 << 30
    rules = open(easylist, encoding="utf-8").read().splitlines()
    # Both do not know the other's extras: compare what they have in common.
    network = [rule for rule in rules if "##" not in rule and "#@#" not in rule and not rule.startswith("!")]
    other = braveblock.Adblocker(rules=network, include_easylist=False, include_easyprivacy=False)
    lines = [line.strip() for line in open(urls, encoding="latin-1") if line.startswith("http")][:count]
    asked = []
    for i, url in enumerate(lines):
        page = PAGES[i % len(PAGES)]
        asked.append((url, url if page == "same" else page, TYPES[i // 3 % len(TYPES)]))
    text = "".join(f"{url}\t{host_of(page)}\t{kind}\n" for url, page, kind in asked)
    result = subprocess.run([tool, easylist], input=text.encode("latin-1"), stdout=subprocess.PIPE, check=True)
    ours = result.stdout.decode().split()
    table, shown = collections.Counter(), 0
    for (url, page, kind), verdict in zip(asked, ours):
        theirs = other.check_network_urls(url, page, kind)
        table[(verdict, theirs)] += 1
        if (verdict == "block") != theirs and shown < 20:
            shown += 1
            print(f"ours {verdict:9} theirs {'block' if theirs else 'pass':6} {kind:14} {page} {url[:150]}")
    for (verdict, theirs), number in sorted(table.items()):
        print(f"{number:8}  ours {verdict:10} theirs {'block' if theirs else 'pass'}")
    agreed = sum(n for (v, t), n in table.items() if (v == "block") == t)
    share = agreed / sum(table.values())
    print(f"agreement {share:.4%}")
    return 0 if share >= 0.995 else 1


sys.exit(main())
