"""nghttpx: a proxy without a cache, which asks the origin for each request."""

import signal

from harness import ports

from ..server import Server
from .programs import there


def start(bench, name="nghttpx", *, certificate):
    there("nghttpx")
    name, port = bench.lab.unique(name), ports.take()
    command = ["nghttpx", "--workers=1", "--no-ocsp", "--accesslog-file=/dev/null", "--errorlog-file=/dev/null", "--log-level=FATAL",
               "--frontend-http2-max-concurrent-streams=256", f"--frontend=127.0.0.1,{port}", f"--backend=127.0.0.1,{bench.origin.port}",
               "--conf=/dev/null", certificate, certificate]
    return bench.opened(Server(bench.lab, "nghttpx", name, command, port, expected_status=-signal.SIGTERM, secure=True))
