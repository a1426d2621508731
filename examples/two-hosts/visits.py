#!/usr/bin/env python3
"""Clients that fetch pictures through the proxy, none of which is stored, and note how long each takes.

    visits.py PROXY-PORT URL CLIENTS FILE       until SIGTERM, or for a minute; then writes to FILE as JSON:

    visits, longest and slow (milliseconds, and visits above a second), statuses
"""

import json
import signal
import sys
import threading
import time
import urllib.request

PORT, URL, CLIENTS, FILE = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]
stop, took, statuses = threading.Event(), [], set()


def client(number):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": f"http://127.0.0.1:{PORT}"}))
    visit = 0
    while not stop.is_set():
        visit += 1
        began = time.monotonic()
        try:
            with opener.open(f"{URL}?{number}.{visit}", timeout=30) as answer:
                answer.read()
                statuses.add(answer.status)
        except OSError as error:
            statuses.add(str(error))
        took.append(1000 * (time.monotonic() - began))
        stop.wait(0.05)


signal.signal(signal.SIGTERM, lambda *_: stop.set())
clients = [threading.Thread(target=client, args=(number,)) for number in range(CLIENTS)]
for one in clients:
    one.start()
stop.wait(60)
stop.set()
for one in clients:
    one.join()
with open(FILE, "w", encoding="utf-8") as out:
    json.dump({"visits": len(took), "longest": round(max(took)), "slow": sum(t > 1000 for t in took), "statuses": sorted(statuses, key=str)}, out)
