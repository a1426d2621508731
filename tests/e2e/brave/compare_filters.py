#!/usr/bin/python3
"""Holds the ad remover's decisions against those of Brave's filter, on real rules and real URLs.

    compare_filters.py --builddir DIR [--every N] [--brave wheel|crate] [--made] [--time]

Each URL of tests/data (tests/data/fetch.sh) is asked as five types of request, from three pages of other sites and one
of its own. Prints how often the two agree, and which rule made the difference elsewhere. Exit status 1 when they agree in
less than 99.9 % of cases, or when a difference has a reason that is not listed in REASONS.

Without --brave: the wheel, PyPI's braveblock, which fetch.sh brings; its decisions only. The crate is the engine of
today (Cargo.toml and main.rs in this folder; needs cargo and a few minutes for the first build): then rules are compared too.
--every N takes one URL in N. --made asks besides for URLs that are made of the rules themselves. --time compares speed
instead: both engines one after the other on the same requests, several times, in nanoseconds of one core.
"""
import argparse
import collections
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
CACHE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "data", "cache")
LISTS = [os.path.join(CACHE, "lists", name) for name in ("easylist.txt", "easyprivacy.txt")]
TYPES = ["image", "script", "stylesheet", "xmlhttprequest", "subdocument"]
PAGES = ["http://www.goal.com/", "https://news.example/", "https://www.youtube.com/watch", None]
WANTED = 0.999
TIMES = 5
SKIPPED = 77  # as make check understands it


def fragment(url, ours, theirs):
    """Brave looks at what stands behind "#", which no browser sends: their rule must not match without it."""
    return "#" in url


def older(url, ours, theirs):
    """The engine in the wheel is of 2022; today's, the crate, decides as we do."""
    return theirs in ("block", "none") and (url == "http://youjizz.com/" or ours.startswith(tuple(OLDER)))


def word_begins(url, ours, theirs):
    """Brave takes a word at the beginning of a pattern for a whole one; "468x60.php?" is in "ad468x60.php?" all the same."""
    return re.match(r"block [A-Za-z0-9]", ours)


def port(url, ours, theirs):
    """Brave compares the pattern's host and port with the URL's host."""
    return re.match(r"block \|\|[\w.-]+:\d+", ours)


def lookahead(url, ours, theirs):
    """Rust's regular expressions have no (?!...)."""
    return "(?!" in ours


def option(url, ours, theirs):
    """Options that Brave passes the whole rule over for, and that change nothing for a proxy."""
    return re.search(r"[$,](~document|~collapse|popup)(,|$)", ours)


OLDER = ["block ://ads.$domain=~ads.ac.uk|", "block .ace.advertising.", "block /beacon.js", "block /adsense/*"]
REASONS = {"the fragment": fragment, "older engine": older, "word begins": word_begins, "port": port,
           "lookahead": lookahead, "option": option}


def urls_of_data():
    with open(os.path.join(CACHE, "lists", "urls.txt"), encoding="latin-1") as file:
        return [line.strip() for line in file if line.startswith("http")]


def urls_of_rules():
    """For each rule of the lists a URL that it was probably written for."""
    made = []
    for path in LISTS:
        with open(path, encoding="latin-1") as file:
            for rule in file.read().splitlines():
                if rule.startswith(("!", "[", "/^")) or "##" in rule or "#@#" in rule or "#?#" in rule:
                    continue
                pattern = re.sub(r"^@@", "", rule)
                pattern = re.sub(r"\$[^$/]*$", "", pattern)
                if not pattern or re.search(r"[^!-~]", pattern):
                    continue
                if pattern.startswith("||"):
                    url = "http://" + pattern[2:]
                elif pattern.startswith("|http"):
                    url = pattern[1:]
                else:
                    url = "http://site.example/a" + pattern
                url = url.rstrip("|").replace("*", "xyz").replace("|", "")
                url = re.sub(r"\^$", "/", url).replace("^", "/")
                if re.match(r"https?://[a-z0-9.-]*[a-z0-9](/|\?|:\d|$)", url):
                    made.append(url)
    return made


def requests_of(urls):
    return [(url, page or url, kind) for url in urls for page in PAGES for kind in TYPES]


def as_input(requests):
    return "".join("%s\t%s\t%s\n" % request for request in requests).encode("latin-1")


def output_of(command, requests):
    done = subprocess.run(command, input=as_input(requests), stdout=subprocess.PIPE, check=True)
    return done.stdout.decode("latin-1").split("\n")[:-1]


def by_crate():
    target = os.path.join(CACHE, "brave")
    subprocess.run(["cargo", "build", "--release", "--quiet", "--manifest-path", os.path.join(HERE, "Cargo.toml"),
                    "--target-dir", target], check=True)
    return [os.path.join(target, "release", "brave-filter")]


def by_wheel(requests):
    sys.path.insert(0, os.path.join(CACHE, "braveblock"))
    try:
        import braveblock  # pylint: disable=import-error
    except ImportError as error:
        print("there is no braveblock for this Python: %s" % error)
        sys.exit(SKIPPED)
    rules = []
    for path in LISTS:
        with open(path, encoding="utf-8", errors="replace") as file:
            rules += [rule for rule in file.read().splitlines() if "##" not in rule and "#@#" not in rule]
    engine = braveblock.Adblocker(rules=rules, include_easylist=False, include_easyprivacy=False)
    return ["block" if engine.check_network_urls(*request) else "none" for request in requests]


def reason_of(url, ours, theirs):
    return next((name for name, test in REASONS.items() if test(url, ours, theirs)), None)


def compare(ours, theirs, requests):
    """Counts where one blocks and the other does not, by the reason and the rules."""
    assert len(ours) == len(theirs) == len(requests), (len(ours), len(theirs), len(requests))
    different = collections.Counter()
    for mine, other, (url, _, _) in zip(ours, theirs, requests):
        if mine.startswith("block") != other.startswith("block"):
            different[reason_of(url, mine, other), mine, re.sub(r" \d+:\d+:", "", other)] += 1
    return different


def report(different, total):
    share = 1 - sum(different.values()) / total
    for (reason, mine, other), count in different.most_common(40):
        print("%7d  %-14s ours: %s  theirs: %s" % (count, reason or "NO REASON", mine[:90], other[:90]))
    unexplained = sum(count for (reason, _, _), count in different.items() if reason is None)
    print("%d decisions, %d differ, %d of them without a listed reason: %.4f %% agree"
          % (total, sum(different.values()), unexplained, 100 * share))
    return share >= WANTED and unexplained == 0


def time_both(tool, theirs, requests):
    for turn in range(TIMES):
        for name, command in (("ours", [tool, "test", "--time"] + LISTS), ("Brave's", theirs + ["--time"] + LISTS)):
            done = subprocess.run(command, input=as_input(requests), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                  check=True)
            print("%d  %-8s %s" % (turn + 1, name, done.stderr.decode().strip()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--builddir", required=True)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--brave", choices=["wheel", "crate"], default="wheel")
    parser.add_argument("--made", action="store_true")
    parser.add_argument("--time", action="store_true")
    options = parser.parse_args()
    if not all(os.path.exists(path) for path in LISTS):
        print("the lists are missing: run tests/data/fetch.sh")
        return SKIPPED
    tool = os.path.join(options.builddir, "icap-services", "retort-adlist")
    urls = urls_of_data() + (urls_of_rules() if options.made else [])
    requests = requests_of(urls[::options.every])
    if options.time:
        time_both(tool, by_crate(), requests[::len(PAGES) * len(TYPES) + 1])
        return 0
    theirs = by_wheel(requests) if options.brave == "wheel" else output_of(by_crate() + LISTS, requests)
    ours = output_of([tool, "test"] + LISTS, requests)
    return 0 if report(compare(ours, theirs, requests), len(requests)) else 1


sys.exit(main())
