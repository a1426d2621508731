"""Logs that go to other places than files: lines arrive whole and in order, and no place stops a request."""

import os
import re
import socket
import sys
import threading

from harness import ports
from harness.checks import contains, equal, true, until
from harness.origin import Origin
from harness.retort import Retort
from harness.suite import memcheck

# RFC 5424, 6: <PRI>VERSION TIMESTAMP HOSTNAME APP-NAME PROCID MSGID STRUCTURED-DATA MSG
RFC5424 = re.compile(r"<(\d{1,3})>1 \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z [!-~]{1,255} retort (\d+) access_log - (.*)", re.S)


def datagrams(lab, family, address):
    server = socket.socket(family, socket.SOCK_DGRAM)
    server.bind(address)
    server.settimeout(10 * lab.patience)
    return server


def test_syslog_by_udp_and_unix(lab):
    origin, path = Origin(lab), lab.path("log")
    remote, local = datagrams(lab, socket.AF_INET, ("127.0.0.1", 0)), datagrams(lab, socket.AF_UNIX, path)
    proxy = Retort(lab, extra=f'access_log "syslog://127.0.0.1:{remote.getsockname()[1]}" {{ format = "%rm %ru"  facility = local6 }}\n'
                   f'access_log "syslog:{path}" {{ format = "%rm %ru"  severity = err }}\n')
    url = origin.url("/text", say="x")
    proxy.get(url)
    for server, priority in ((remote, 22 * 8 + 6), (local, 3 * 8 + 3)):
        match = RFC5424.fullmatch(server.recv(65536).decode("ascii"))
        true(match, "a message of RFC 5424")
        equal(match.groups(), (str(priority), str(proxy.pid), f"GET {url}"), "the message")
        server.close()


def test_syslog_by_tcp(lab):
    """RFC 6587, 3.4.1: MSG-LEN SP SYSLOG-MSG. A server that comes late gets what has waited, and after a break all goes on."""
    origin, port = Origin(lab), ports.take()
    proxy = Retort(lab, extra=f'access_log "syslog+tcp://127.0.0.1:{port}" {{ format = "%ru" }}\n')
    urls = [origin.url("/text", say=f"s{n}") for n in range(4)]
    proxy.get(urls[0])
    until(lambda: "cannot write the access_log to 127.0.0.1" in proxy.process.log(), 10 * lab.patience, "the warning")
    proxy.get(urls[1])
    got = b""
    with socket.create_server(("127.0.0.1", port)) as server:
        server.settimeout(10 * lab.patience)
        for part in (urls[:2], urls[2:]):
            if part == urls[2:]:
                for url in part:
                    proxy.get(url)
            connection = server.accept()[0]
            connection.settimeout(10 * lab.patience)
            while part[-1].encode() not in got:
                got += connection.recv(65536)
            connection.close()
    found = []
    while got:
        length, _, got = got.partition(b" ")
        match = RFC5424.fullmatch(got[:int(length)].decode("ascii"))
        true(match, "a counted message of RFC 5424")
        found.append(match.group(3))
        got = got[int(length):]
    equal(found, urls, "messages")


def test_journald(lab):
    """Its native protocol: a field a line."""
    origin, path = Origin(lab), lab.path("journal")
    server = datagrams(lab, socket.AF_UNIX, path)
    proxy = Retort(lab, extra=f'access_log "journald:{path}" {{ format = "%ru" }}\n')
    url = origin.url("/text", say="x")
    proxy.get(url)
    fields = dict(line.split("=", 1) for line in server.recv(65536).decode("ascii").splitlines())
    equal({name: fields[name] for name in ("SYSLOG_IDENTIFIER", "PRIORITY", "MESSAGE")},
          {"SYSLOG_IDENTIFIER": "retort", "PRIORITY": "6", "MESSAGE": url}, "fields")
    server.close()


@memcheck
def test_program_pipe_and_tcp(lab):
    """A program is started without a shell, and has all lines when the proxy has ended."""
    origin, out, fifo = Origin(lab), lab.path("out"), lab.path("fifo")
    script = lab.write("keep.py", "import sys\nfor line in sys.stdin:\n    open(sys.argv[1], 'a').write(line)\n")
    os.mkfifo(fifo)
    server = socket.create_server(("127.0.0.1", 0))
    proxy = Retort(lab, extra=f'access_log "|{sys.executable} {script} {out}" {{ format = "%ru" }}\n'
                   f'access_log "pipe:{fifo}" {{ format = "%ru" }}\n'
                   f'access_log "tcp://127.0.0.1:{server.getsockname()[1]}" {{ format = "%ru" }}\n')
    got = {}
    def read_fifo():
        with open(fifo, encoding="ascii") as pipe:
            got["fifo"] = pipe.read()
    def read_tcp():
        connection = server.accept()[0]
        with connection.makefile() as stream:
            got["tcp"] = stream.read()
    readers = [threading.Thread(target=read, daemon=True) for read in (read_fifo, read_tcp)]
    for reader in readers:
        reader.start()
    urls = [origin.url("/text", say=f"s{n}") for n in range(3)]
    for url in urls:
        proxy.get(url)
    equal(proxy.reload().status, 200, "reload")
    proxy.get(urls[0])
    proxy.stop()
    for reader in readers:
        reader.join(10 * lab.patience)
    with open(out, encoding="ascii") as file:
        got["program"] = file.read()
    equal(got, dict.fromkeys(("fifo", "tcp", "program"), "".join(url + "\n" for url in urls + urls[:1])), "lines")
    server.close()


@memcheck
def test_a_place_that_takes_nothing_stops_nobody(lab):
    """A server that accepts and never reads: requests go on, what finds no room is lost and counted, other logs are whole."""
    origin = Origin(lab)
    server = socket.create_server(("127.0.0.1", 0))
    server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    proxy = Retort(lab, extra=f'access_log "tcp://127.0.0.1:{server.getsockname()[1]}" '
                   '{ format = "' + "%{X-Long}>h " * 20 + '"  queue = 64KB }\n')
    url, sent = origin.url("/text", say="x", cc="max-age=60"), 0
    def lose_some():
        nonlocal sent
        for _ in range(20):
            equal(proxy.get(url, {"X-Long": "x" * 2500}).status, 200, "status")
            sent += 1
        return proxy.counter("access_log_lines_lost") > 0
    until(lose_some, 30 * lab.patience, "lines to be lost")
    contains(proxy.process.log(), "too slowly", "the warning")
    equal(len(proxy.log(sent)), sent, "lines of the other log")
    server.close()


def test_bad_places_are_refused(lab):
    proxy = Retort(lab)
    for place, message in (("syslog://", "needs a host and a port"), ("tcp://h", "needs a host and a port"),
                           ("tcp://h:70000", "needs a host and a port"), ("udp://h:1", "names no place that is known"),
                           ("pipe:x", "needs an absolute path"), ("|tee", "needs an absolute path"), ("journald:x", "needs an absolute path")):
        status, said = proxy.check_config(proxy.text() + f'access_log "{place}" {{ }}\n')
        equal(status, 1, place)
        contains(said, message, place)
