#!/usr/bin/env python3
"""Clients that fetch pictures through the proxy, none of which is stored, and note how long each waits for a link that is cut.

    visits.py PROXY-PORT URL CLIENTS TIMES FILE       until SIGTERM, or for a minute; then writes to FILE as JSON:

    visits, statuses, waiting (visits that were under way while the link was cut), longest (milliseconds of these behind the cut)

TIMES has when the link was cut and when it was mended, in seconds since 1970, a line each; "-": it was not. Before the cut a visit
takes as long as its services do, which says nothing of the link.
"""

import json
import signal
import sys
import threading
import time
import urllib.request

PORT, URL, CLIENTS, TIMES, FILE = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4], sys.argv[5]
stop, visits, statuses = threading.Event(), [], set()


def client(number):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": f"http://127.0.0.1:{PORT}"}))
    visit = 0
    while not stop.is_set():
        visit += 1
        began = time.time()
        try:
            with opener.open(f"{URL}?{number}.{visit}", timeout=30) as answer:
                answer.read()
                statuses.add(answer.status)
        except OSError as error:
            statuses.add(str(error))
        visits.append((began, time.time()))
        stop.wait(0.05)


signal.signal(signal.SIGTERM, lambda *_: stop.set())
clients = [threading.Thread(target=client, args=(number,)) for number in range(CLIENTS)]
for one in clients:
    one.start()
stop.wait(60)
stop.set()
for one in clients:
    one.join()
cut = mended = time.time()
if TIMES != "-":
    with open(TIMES, encoding="ascii") as times:
        cut, mended = map(float, times)
waits = [1000 * (ended - max(began, cut)) for began, ended in visits if began < mended and ended > cut]
with open(FILE, "w", encoding="utf-8") as out:
    json.dump({"visits": len(visits), "statuses": sorted(statuses, key=str), "waiting": len(waits), "longest": round(max(waits, default=0))}, out)
