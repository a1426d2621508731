"""What /metrics says, as numbers.

    text = scrape(proxy)
    value(text, "retort_requests_total", method="GET", result="HIT")
"""

import re

from . import wire
from .checks import equal


def fetch(proxy, headers=None):
    """(the text of /metrics, its type)"""
    answer = wire.fetch(proxy.admin_path, "GET", "/metrics", headers, host="localhost", timeout=20 * proxy.lab.patience)
    equal(answer.status, 200, "GET /metrics")
    return answer.body.decode(), answer.header("Content-Type")


def scrape(proxy):
    return fetch(proxy)[0]


def samples(text, name):
    """{labels as a frozenset of pairs: value} of one family's samples of that name."""
    found = {}
    for line in re.findall(rf"^{name}(\{{.*?\}})? (\S+)", text, re.M):
        found[frozenset(re.findall(r'(\w+)="([^"]*)"', line[0]))] = float(line[1])
    return found


def value(text, name, **labels):
    """The sum of the samples that have these labels."""
    return sum(found for has, found in samples(text, name).items() if set(labels.items()) <= has)
