"""How long a start takes: from the command to the whole of a first answer, which comes from the origin."""

import time

from .. import peers, table
from ..rounds import Case, Point

SIZE = 1000


class Starts(Case):
    name, title = "starts", "From start to first answer"

    def open(self):
        self.path = self.bench.origin.has(f"/hit/{SIZE}")
        self.starts = {"retort": peers.retort, **peers.CACHES}

    def points(self):
        return [Point("start", name, lambda module=module: self.first_answer(module)) for name, module in self.starts.items()]

    def first_answer(self, module):
        server = module.start(self.bench)
        begin = time.monotonic()
        self.bench.warm(server, self.path, SIZE, times=1)
        seconds = server.start_seconds + time.monotonic() - begin
        self.bench.stop_servers()
        return {"ms": seconds * 1e3}

    @staticmethod
    def show(figures):
        return table.by_server(figures, {"ms": ("ms", 0)})
