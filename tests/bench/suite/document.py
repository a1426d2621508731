"""The generated part of docs/PERFORMANCE.md, its plots, and a table of docs/SERVICES.md.

What stands between two marks is replaced; everything else is written by hand.
"""

import os
import re

from . import results, table
from .cases import CASES, table5
from .peers import CACHES, LABELS, plain, retort
from .results import Figures

PLACES_BEGIN, PLACES_END = "<!-- places: begin, by tests/bench/run.sh -->\n", "<!-- places: end -->\n"
BEGIN, END = "<!-- measured: begin, by tests/bench/run.sh -->\n", "<!-- measured: end -->\n"
PACKAGES = {"haproxy": "haproxy", "nginx": "nginx-light", "trafficserver": "trafficserver", "varnish": "varnish",
            "squid": "squid-openssl", "microhttpd": "libmicrohttpd12"}
BUSY_LOAD = 0.5


def rounds_of(case):
    """A case may be measured again by itself, with more rounds than the others."""
    return max((len(point["samples"]) for point in case["points"]), default=0)


def section(name, case, plots=()):
    """One case as text."""
    figures = Figures(case)
    when = f"; taken on {case['taken']}" if "taken" in case else ""
    when += f", {case['processor']}" if "processor" in case else ""
    notes = [f"rounds: {rounds_of(case)}{when}", *case["notes"], *([f"failed: {case['failure']}"] if case["failure"] else []), *table.failures(figures)]
    pictures = "".join(f"\n![{plot.title}](plots/{plot.name}.png)\n" for plot in plots)
    return f"### {case['title']}\n\n{CASES[name].show(figures)}" + pictures + "".join(f"\n- {note}" for note in notes) + "\n"


def plots_of(name, case):
    return [plot for plot in CASES[name].plots(Figures(case)) if plot.series]


def provenance(known):
    machine, settings = known["machine"], known["settings"]
    minutes = sum(case["seconds"] for case in known["cases"].values()) / 60
    busy = ""
    if machine["load"] > BUSY_LOAD:
        busy = f" The machine was busy with other work (load {machine['load']:.1f}): compare within a table only."
    return (f"Taken until {machine['taken']}; each table says when, and on which processor: compare times within a table only. "
            f"{settings['seconds']} s for most figures of a round, {minutes:.0f} minutes in all, on {machine['cores']} cores, "
            f"Linux {machine['kernel']}.{busy}\n")


def peers_of(known):
    versions = known["machine"]["versions"]
    modules = {"retort": retort, **CACHES}
    rows = [[LABELS[name], versions.get(PACKAGES.get(name), "this one"), sentence(module)]
            for name, module in modules.items()]
    rows.append(["libmicrohttpd", versions.get(PACKAGES["microhttpd"], table.NOTHING), sentence(plain.microhttpd)])
    return table.markdown(["", "version", "configured with"], rows, texts=3)


def sentence(peer):
    """What a peer's file says of its configuration."""
    return peer.__doc__.split("\n\n")[0].split(": ", 1)[-1].strip().replace("\n", " ")


def replace(path, begin, end, part):
    """What stands between two marks of a file."""
    with open(path, encoding="utf-8") as file:
        before, rest = file.read().split(begin)
    after = rest.split(end)[1]
    with open(path, "w", encoding="utf-8") as out:
        out.write(before + begin + "\n" + re.sub(r"\n{3,}", "\n\n", part) + end + after)


def write(known, docs):
    """Replaces the generated parts, and draws the plots."""
    parts = [provenance(known), peers_of(known)]
    for name, case in results.cases(known, CASES):
        plots = plots_of(name, case)
        for plot in plots:
            plot.draw(os.path.join(docs, "plots"))
        parts.append(section(name, case, plots))
    replace(os.path.join(docs, "PERFORMANCE.md"), BEGIN, END, "\n".join(parts) + "\n")
    choice = table5.choice(Figures(known["cases"]["table5"])) if "table5" in known["cases"] else None
    if choice:
        replace(os.path.join(docs, "SERVICES.md"), PLACES_BEGIN, PLACES_END, choice + "\n")
