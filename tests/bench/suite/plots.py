"""Results as pictures, drawn by gnuplot: lines over a logarithmic axis, or groups of bars.

    Plot("hits", "Hits in memory", "CPU time a request, µs", {"Retort": [("1 KB", 7.1), ...], ...}).draw(directory)

Positions that are numbers make lines, others bars. A server has the same colour everywhere.
"""

import collections
import os
import shutil
import subprocess

from .peers import LABELS
from .server import Missing

SIZE = "880,400"
COLOURS = {"limit": "#999999", "Retort": "#c0392b", "HAProxy": "#2d6fb5", "nginx": "#3a9a4a", "ATS": "#8e5bb5",
           "Varnish": "#d98c1f", "Squid": "#5f5f5f", "libmicrohttpd": "#bbbbbb"}
OTHERS = ["#c0392b", "#2d6fb5", "#3a9a4a", "#8e5bb5"]

HEAD = """
set terminal pngcairo noenhanced size {size} font "DejaVu Sans,10" background "#ffffff"
set output "{file}"
set title "{title}"
set ylabel "{ylabel}"
set yrange [0:*]
set grid ytics lt 1 lw 1 lc rgb "#e4e4e4"
set border 3 lc rgb "#888888"
set tics nomirror
set key outside right top
"""
LINES = """
set logscale x 10
set format x "%.0f"
set xlabel "{xlabel}"
"""
BARS = """
set style data histograms
set style histogram clustered gap 1
set style fill solid 0.9 noborder
set xrange [-0.6:{last}.6]
set xtics scale 0
set bmargin 4
"""


class Plot(collections.namedtuple("Plot", "name title ylabel series xlabel", defaults=("",))):
    def draw(self, directory):
        if not shutil.which("gnuplot"):
            raise Missing("gnuplot is not installed: tests/install.sh bench")
        os.makedirs(directory, exist_ok=True)
        file = os.path.join(directory, self.name + ".png")
        subprocess.run(["gnuplot"], input=self.script(file), text=True, check=True, timeout=30)
        return file

    def is_lines(self):
        return all(isinstance(x, (int, float)) for points in self.series.values() for x, _ in points)

    def script(self, file):
        places = max(len(points) for points in self.series.values())
        style = LINES.format(xlabel=self.xlabel) if self.is_lines() else BARS.format(last=places - 1)
        blocks, curves = [], []
        for number, (label, points) in enumerate(self.series.items()):
            rows = "\n".join(f'{x if self.is_lines() else quoted(x)} {"NaN" if y is None else y}' for x, y in points)
            blocks.append(f"$data{number} << END\n{rows}\nEND\n")
            colour = COLOURS.get(label, OTHERS[number % len(OTHERS)])
            how = (f'using 1:2 with linespoints lw 2 pt 7 ps 0.8 lc rgb "{colour}"' if self.is_lines()
                   else f'using 2:xtic(1) lc rgb "{colour}"')
            curves.append(f'$data{number} {how} title "{label}"')
        return (HEAD.format(size=SIZE, file=file, title=self.title, ylabel=self.ylabel) + style + "".join(blocks)
                + "plot " + ", \\\n     ".join(curves) + "\n")


def quoted(text):
    """A label in lines of its parts."""
    return '"' + text.replace(", ", ",\\n") + '"'


def of_figures(figures, name, title, value="cpu_us", ylabel="CPU time a request, µs", servers=None, xlabel="", numbers=False):
    """A curve or a colour for each server, a place for each row."""
    series = {}
    for server in servers or figures.servers():
        points = [(float(row) if numbers else row, figures.median(row, server, value)) for row in figures.rows()]
        if any(y is not None for _, y in points):
            series[LABELS.get(server, server)] = [point for point in points if point[1] is not None or not numbers]
    return Plot(name, title, ylabel, series, xlabel)
