"""Hits behind access sections and limits, beside a Retort without any."""

from .. import peers, table
from ..requests import HITS_ONLY, measure
from ..rounds import Case, Point

SIZE, CONNECTIONS, ROW, NONE = 1000, 20, "1 KB hit", "none"
ACCESS = 'url_class {name} {{ domain = "{name}.example.org" }}\naccess {name} {{ action = deny }}\n'
RATE, CONCURRENT, BANDWIDTH = 'requests = "1000000/s"', "concurrent = 10000", 'bandwidth = "100GB"'


def access(count):
    """All but the last are about other hosts; the last allows everything."""
    others = "".join(ACCESS.format(name=f"c{i}") for i in range(count - 1))
    return others + "access all { action = allow }\n"


SECTIONS = {NONE: "", "1 access section": access(1), "100 access sections": access(100),
            "limit: requests": f"limit all {{ {RATE} }}\n", "limit: concurrent": f"limit all {{ {CONCURRENT} }}\n",
            "limit: requests, concurrent, bandwidth": f"limit all {{ {RATE}  {CONCURRENT}  {BANDWIDTH} }}\n"}


class Sections(Case):
    name, title = "sections", "Hits behind access and limit sections"
    most_rounds = 2

    def open(self):
        self.path = self.bench.origin.has(f"/hit/{SIZE}")
        self.servers = {name: peers.retort.start(self.bench, f"retort-sections-{number}", more=text)
                        for number, (name, text) in enumerate(SECTIONS.items())}
        for server in self.servers.values():
            self.bench.warm(server, self.path, SIZE)

    def points(self):
        return [Point(ROW, name, lambda server=server: self.measured(server)) for name, server in self.servers.items()]

    def measured(self, server):
        return measure(self, server, self.path, CONNECTIONS, expect=HITS_ONLY)

    @staticmethod
    def show(figures):
        columns = {"requests/s": ("rate", None), "CPU us": ("cpu_us", None), "99 % ms": ("p99_ms", 2)}
        rows = [[server, *table.medians(figures, row, server, columns), table.ratio(figures.ratio(row, server, NONE, "cpu_us"))]
                for row, server in figures.known()]
        return (f"{SIZE} bytes, {CONNECTIONS} connections. Of a hundred access sections only the last is for what is asked for. The limits "
                "count each client, and nobody reaches them. Instructions: [costs that are counted](#costs-that-are-counted).\n\n"
                + table.markdown(["sections", *columns, "CPU, times none"], rows))
