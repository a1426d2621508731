"""Groups of origins: their section of the configuration, servers that say who they are, and can be
gone for a while.

    origins = [RawOrigin(lab, named(b"s0")), RawOrigin(lab, named(b"s1"))]
    proxy = Retort(lab, reverse={"/": "web"}, extra=group(origins, max_connections=3))
    gone(origins[0])
    state(proxy)[origins[0].url("")]["state"]        what /origins says of a server
"""

import json
import socket
import time

from .retort import options_text


def named(name, status=b"200 OK", pause=0):
    """An origin's answer that says whose it is, after `pause` seconds."""
    def answer(connection, seen):
        if pause:
            time.sleep(pause)
        body = b"" if seen.method == "HEAD" else name
        connection.send(b"HTTP/1.1 %s\r\nContent-Length: %d\r\nCache-Control: no-store\r\n\r\n%s" % (status, len(name), body))
        return False
    return answer


def group(origins, name="web", suffixes=(), **options):
    urls = [origin.url("") if hasattr(origin, "url") else origin for origin in origins]
    urls = [url + (" " + suffixes[at] if at < len(suffixes) and suffixes[at] else "") for at, url in enumerate(urls)]
    options = {"servers": urls, "down_min": "300ms", "down_max": "1s", **options}
    options = {key: "=" + value if key in ("balance", "hash_by", "direct", "http2") else value for key, value in options.items()}
    return f"origins {name} {{ {options_text(options)} }}\n"


def state(proxy, name="web"):
    """{URL: what /origins says of the server}"""
    groups = json.loads(proxy.admin("GET", "/origins").body)["origins"]
    return {server["url"]: server for one in groups if one["name"] == name for server in one["servers"]}


def gone(origin):
    """Refuses connections, and ends those it has."""
    origin.close_listener()
    with origin.lock:
        for connection in origin.open:
            try:
                connection.socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def back(origin):
    origin.listen_again()
