"""How long urgent responses take beside a large one that is not, on the same connection (RFC 9218)."""

import ssl
import time

from harness.http2 import Http2 as Client

from .. import table

LARGE, URGENT = 3_900_000, 500_000
TRIES = 30
BEGUN = 100_000  # so many bytes of the large one come first
MOST = 1.5  # times as long as alone, for Retort
WINDOW = 1 << 27


def context():
    """Of a client that trusts any certificate and speaks HTTP/2."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    made.set_alpn_protocols(["h2"])
    return made


def compare(server, large, urgent):
    """Milliseconds of the slowest but one of urgent responses, alone and beside a large one."""
    with Client(server.address, context=context(), receive_buffer=32768, initial_window_size=WINDOW, credit=False) as client:
        client.give(0, (1 << 31) - 1 - 65535)
        alone = [taken(client, server, urgent) for _ in range(TRIES)]
    beside = []
    for _ in range(TRIES):
        with Client(server.address, context=context(), receive_buffer=32768, initial_window_size=WINDOW, credit=False) as client:
            client.give(0, WINDOW)
            lazy = client.request("GET", server.url(large), [("priority", "u=6")])
            client.read_until(lambda stream=lazy, client=client: client.answer(stream).length > BEGUN)
            beside.append(taken(client, server, urgent))
    alone, beside = (sorted(times)[-2] * 1000 for times in (alone, beside))
    return {"alone_ms": alone, "beside_ms": beside}


def taken(client, server, path):
    began = time.monotonic()
    answer = client.response(client.request("GET", server.url(path), [("priority", "u=1")]))
    if answer.status != 200 or answer.length != URGENT:
        raise AssertionError(f"{server.name} {path}: {answer.status}, {answer.length} bytes")
    return time.monotonic() - began


def show(figures, row):
    rows = [[table.LABELS.get(server, server), *table.medians(figures, row, server, {"alone": ("alone_ms", 1), "beside": ("beside_ms", 1)}),
             table.ratio(figures.ratio(row, server, server, "beside_ms", "alone_ms"))] for at, server in figures.known() if at == row]
    heads = [f"an urgent response of {URGENT // 1000} KB (goal: {MOST} times as long)", "ms alone", "ms beside a large one", "times as long"]
    return table.markdown(heads, rows) if rows else ""
