"""Hits behind few rules and behind a hundred, of which only the last fits what is asked for."""

from .. import peers
from ..requests import HITS_ONLY, measure
from ..rounds import Point
from .growth import Growth

COUNTS, SIZE, CONNECTIONS = (1, 10, 100), 1000, 20
CLASS = "url_class {name} {{ path_regex = '{regex}' }}\npolicy {name} {{ query_drop = \"utm_*\" }}\n"
MAP = 'map "/section-{number}/" {{ origin = "http://127.0.0.1:9/{number}/" }}\n'


def classes(count):
    """Each has a policy, so that it is looked at for every request."""
    others = "".join(CLASS.format(name=f"c{i}", regex=rf"^/section-{i}/.*\.(png|jpe?g)$") for i in range(count - 1))
    return others + CLASS.format(name="last", regex="^/hit/")


def maps(count):
    """Beside the one of all configurations here, which is for any path."""
    return "".join(MAP.format(number=i) for i in range(count - 1))


class Rules(Growth):
    name, title, axis = "rules", "Hits by the number of rules", "rules"
    about = f"{SIZE} bytes, {CONNECTIONS} connections; only the last of the rules fits what is asked for."

    def open(self):
        self.path = self.bench.origin.has(f"/hit/{SIZE}")
        self.servers = {(kind, count): peers.retort.start(self.bench, f"retort-{kind}-{count}", more=text(count))
                        for kind, text in {"url_class": classes, "map": maps}.items() for count in COUNTS}
        for server in self.servers.values():
            self.bench.warm(server, self.path, SIZE)

    def points(self):
        return [Point(str(count), kind, lambda server=server: self.measured(server))
                for (kind, count), server in self.servers.items()]

    def measured(self, server):
        return measure(self, server, self.path, CONNECTIONS, expect=HITS_ONLY)
