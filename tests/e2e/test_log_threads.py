"""Logs whose place hangs, moves or speaks TLS: lines wait or are counted, and no request waits for them."""

import os
import signal
import socket
import ssl
import threading
import time

from harness import ports
from harness.certificates import CLIENT, Authority
from harness.checks import contains, equal, lacks, true, until
from harness.disk_faults import DiskFaults
from harness.origin import Origin
from harness.retort import Retort
from harness.suite import memcheck
from harness.wire import request
from test_log_targets import RFC5424


def hits(proxy, url, numbers, fields=None):
    """Asks for each number on one connection, and says how long the slowest took."""
    slowest = 0
    with proxy.wire(timeout=20 * proxy.lab.patience) as wire:
        for n in numbers:
            begun = time.monotonic()
            wire.send(request("GET", url, {"User-Agent": f"n{n}", **(fields or {})}))
            equal(wire.response().status, 200, "status")
            slowest = max(slowest, time.monotonic() - begun)
    return slowest


def agents(path):
    with open(path, encoding="ascii") as file:
        return [line.strip() for line in file]


def test_a_disk_that_hangs_stops_nobody(lab):
    """A write that takes 3 s: requests go on, lines wait, those without room are counted, and none is lost in silence."""
    origin, path, count = Origin(lab), lab.write("hanging.log", ""), 3000
    faults = DiskFaults(lab, path)
    proxy = Retort(lab, environment=faults.environment(), workers=2,
                   extra=f'access_log "{path}" {{ format = "%{{User-Agent}}>h %{{X-Long}}>h"  queue = 64KB }}\n')
    url = origin.url("/text", say="x", cc="max-age=60")
    faults.set(write_delay=3000)
    slowest = hits(proxy, url, range(count), {"X-Long": "x" * 100})
    true(slowest < 1 * lab.patience, f"the slowest request took {slowest:.2f} s")
    until(lambda: proxy.counter("access_log_lines_lost") > 0, 10 * lab.patience, "lines to be lost")
    true(faults.count("writes") > 0, "writes that hang")
    faults.clear()
    until(lambda: len(agents(path)) + proxy.counter("access_log_lines_lost") == count, 10 * lab.patience, "each line written or counted")
    written = [int(line.split()[0][1:]) for line in agents(path)]
    true(0 < len(written) < count, f"{len(written)} lines of {count}")
    equal(written, sorted(set(written)), "their order")


def test_the_smallest_queue_takes_what_a_busy_log_gathers(lab):
    """A queue of 64 KB and megabytes of lines: they leave in parts that find room, and what does not is counted."""
    origin, path, count = Origin(lab), lab.path("busy.log"), 1500
    proxy = Retort(lab, extra=f'access_log "{path}" {{ format = "%{{X-Long}}>h"  queue = 64KB }}\n')
    hits(proxy, origin.url("/text", say="x", cc="max-age=60"), range(count), {"X-Long": "x" * 1900})
    until(lambda: len(agents(path)) + proxy.counter("access_log_lines_lost") == count, 10 * lab.patience, "each line written or counted")
    true(len(agents(path)) > count // 2, f"{len(agents(path))} lines written of {count}")


def test_fields_of_the_reply(lab):
    """As the client got them: of a miss, of a hit with what rules and the cache add, of a 304 and of a page of our own."""
    origin, path = Origin(lab), lab.path("reply.log")
    proxy = Retort(lab, extra='response_headers all { set = "X-Rule: %{host}" }\n'
                   f'access_log "{path}" {{ format = "%>Hs %{{Content-Type}}<h %{{X-Rule}}o %{{Content-Length}}o %{{ETag}}o %{{Age}}<h" }}\n')
    url = origin.url("/text", say="hello", cc="max-age=60", etag="e")
    first, second = proxy.get(url), proxy.get(url)
    third, page = proxy.get(url, {"If-None-Match": first.header("ETag")}), proxy.get(f"http://127.0.0.1:{ports.take()}/")
    equal([answer.status for answer in (first, second, third, page)], [200, 200, 304, 502], "statuses")
    want = [f"{a.status} {a.header('Content-Type') or '-'} {a.header('X-Rule') or '-'} {a.header('Content-Length') or '-'} "
            f"{a.header('ETag') or '-'} {a.header('Age') or '-'}".replace("; ", ";%20").replace('"', "%22") for a in (first, second, third, page)]
    until(lambda: len(agents(path)) == 4, 10 * lab.patience, "the lines")
    equal(agents(path), want, "lines")
    equal([want[0].split()[2], want[1].split()[3]], ["127.0.0.1", "5"], "what the test compares")


def test_a_reader_that_stops_stops_nobody(lab):
    """A FIFO that is read by nobody, and one whose reader stops: the slowest request is as fast as without."""
    origin, stopped, unread = Origin(lab), lab.path("stopped"), lab.path("unread")
    os.mkfifo(stopped)
    os.mkfifo(unread)
    reader = os.open(stopped, os.O_RDONLY | os.O_NONBLOCK)
    proxy = Retort(lab, extra=f'access_log "pipe:{stopped}" {{ format = "%{{User-Agent}}>h %{{X-Long}}>h"  queue = 64KB }}\n'
                   f'access_log "pipe:{unread}" {{ format = "%{{User-Agent}}>h %{{X-Long}}>h"  queue = 64KB }}\n')
    url = origin.url("/text", say="x", cc="max-age=60")
    slowest = hits(proxy, url, range(2000), {"X-Long": "x" * 200})
    true(slowest < 1 * lab.patience, f"the slowest request took {slowest:.2f} s")
    until(lambda: proxy.counter("access_log_lines_lost") > 0, 10 * lab.patience, "lines to be lost")
    equal(len(proxy.log(2000)), 2000, "lines of the other log")
    os.close(reader)


def test_rotation_keeps_all_lines(lab):
    """Renamed ten times under load: each line is in one of the files, once. When a reload has answered, the old file is complete."""
    origin, path, count = Origin(lab), lab.path("rotated.log"), 3000
    proxy = Retort(lab, workers=2, extra=f'access_log "{path}" {{ format = "%{{User-Agent}}>h" }}\n')
    url, done, files = origin.url("/text", say="x", cc="max-age=60"), threading.Event(), []
    def load(begin):
        hits(proxy, url, range(begin, begin + count))
        done.set()
    clients = [threading.Thread(target=load, args=(n * count,)) for n in range(2)]
    until(lambda: os.path.exists(path), 10 * lab.patience, "the file, which a thread opens")
    for client in clients:
        client.start()
    while not done.is_set() or len(files) < 10:
        files.append(f"{path}.{len(files)}")
        os.rename(path, files[-1])
        if len(files) % 2:
            equal(proxy.reload().status, 200, "reload")
            size = os.path.getsize(files[-1])
            time.sleep(0.05)
            equal(os.path.getsize(files[-1]), size, "the old file after the reload")
        else:
            os.kill(proxy.pid, signal.SIGUSR1)
        until(lambda: os.path.exists(path), 10 * lab.patience, "the new file")
    for client in clients:
        client.join()
    proxy.stop()
    lines = sorted((line for file in [*files, path] for line in agents(file)), key=lambda name: int(name[1:]))
    equal(lines, [f"n{n}" for n in range(2 * count)], "lines of all files")


def test_a_line_that_was_cut_is_ended(lab):
    """A process that was killed leaves a part of a line: the next line does not continue it. A file that is whole gets no empty line."""
    origin, cut, whole = Origin(lab), lab.write("cut.log", "n-2\nn-1 and a p"), lab.write("whole.log", "n-1\n")
    proxy = Retort(lab, extra="".join(f'access_log "{path}" {{ format = "%{{User-Agent}}>h" }}\n' for path in (cut, whole)))
    url = origin.url("/text", say="x", cc="max-age=60")
    hits(proxy, url, range(2))
    until(lambda: len(agents(whole)) == 3, 10 * lab.patience, "the lines")
    os.rename(cut, cut + ".1")
    with open(cut, "w", encoding="ascii") as file:
        file.write("torn")
    equal(proxy.reload().status, 200, "reload")
    hits(proxy, url, range(2, 4))
    proxy.stop()
    equal(agents(cut + ".1"), ["n-2", "n-1 and a p", "n0", "n1"], "lines behind the one that was cut")
    equal(agents(cut), ["torn", "n2", "n3"], "lines in a file that stood in its place")
    equal(agents(whole), ["n-1", "n0", "n1", "n2", "n3"], "lines of the other file")


def test_a_stop_keeps_all_lines(lab):
    origin, path = Origin(lab), lab.path("last.log")
    proxy = Retort(lab, workers=2, extra=f'access_log "{path}" {{ format = "%{{User-Agent}}>h" }}\n')
    hits(proxy, origin.url("/text", say="x", cc="max-age=60"), range(500))
    proxy.stop()
    equal(agents(path), [f"n{n}" for n in range(500)], "lines")


def test_a_file_that_can_not_be_opened_yet(lab):
    """It is said, its lines are counted, and it works as soon as its directory is there."""
    origin, path = Origin(lab), lab.path("later/access.log")
    os.mkdir(os.path.dirname(path))
    proxy = Retort(lab, extra=f'access_log "{path}" {{ format = "%{{User-Agent}}>h" }}\n')
    os.rename(os.path.dirname(path), lab.path("gone"))
    os.kill(proxy.pid, signal.SIGUSR1)
    until(lambda: f"cannot open the log {path}: No such file or directory" in proxy.process.log(), 10 * lab.patience, "the error")
    hits(proxy, origin.url("/text", say="x", cc="max-age=60"), range(3))
    until(lambda: proxy.counter("access_log_lines_lost") == 3, 10 * lab.patience, "lines to be lost")
    os.mkdir(os.path.dirname(path))
    hits(proxy, origin.url("/text", say="x", cc="max-age=60"), range(3, 5))
    until(lambda: os.path.exists(path) and agents(path) == ["n3", "n4"], 10 * lab.patience, "lines in the new file")
    contains(proxy.process.log(), f"writing the log {path} works again", "the proxy's log")


class Receiver:
    """A server that takes TLS connections and keeps what comes over each."""

    def __init__(self, lab, certificate, clients=None, port=0):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(certificate.file, certificate.key)
        if clients:
            self.context.verify_mode = ssl.CERT_REQUIRED
            self.context.load_verify_locations(clients)
        self.server = socket.create_server(("127.0.0.1", port))
        self.port = self.server.getsockname()[1]
        self.server.settimeout(20 * lab.patience)
        self.got, self.ends, self.errors, self.names = [], [], [], []
        self.context.sni_callback = lambda _socket, name, _context: self.names.append(name)
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        while True:
            try:
                plain = self.server.accept()[0]
            except OSError:
                return
            try:
                stream = self.context.wrap_socket(plain, server_side=True, suppress_ragged_eofs=False)
                self.got.append(b"")
                while data := stream.recv(65536):
                    self.got[-1] += data
                self.ends.append("close_notify")
                stream.close()
            except (ssl.SSLError, OSError) as error:
                self.errors.append(str(error))
                plain.close()

    def close(self):
        self.server.shutdown(socket.SHUT_RDWR)
        self.thread.join(5)
        self.server.close()


def counted_messages(data):
    """RFC 5425, 4.3: SYSLOG-FRAME = MSG-LEN SP SYSLOG-MSG."""
    found = []
    while data:
        length, _, data = data.partition(b" ")
        match = RFC5424.fullmatch(data[:int(length)].decode("ascii"))
        true(match, "a counted message of RFC 5424")
        found.append(match.group(3))
        data = data[int(length):]
    return found


@memcheck
def test_syslog_and_lines_over_tls(lab):
    """All lines come, in frames or as they are, and the connection ends with a close_notify: RFC 5425, 4.4."""
    origin, authority = Origin(lab), Authority(lab)
    certificate = authority.leaf("127.0.0.1", "localhost")
    syslog, plain = Receiver(lab, certificate), Receiver(lab, certificate)
    proxy = Retort(lab, extra=f'access_log "syslog+tls://localhost:{syslog.port}" {{ format = "%ru"  ca_file = "{authority.file}" }}\n'
                   f'access_log "tls://127.0.0.1:{plain.port}" {{ format = "%ru"  ca_file = "{authority.file}" }}\n')
    urls = [origin.url("/text", say=f"s{n}") for n in range(300)]
    for url in urls:
        proxy.get(url)
    equal(proxy.reload().status, 200, "reload")
    proxy.get(urls[0])
    proxy.stop()
    until(lambda: len(syslog.ends) == len(plain.ends) == 1, 10 * lab.patience, "the ends")
    equal(counted_messages(syslog.got[0]), [*urls, urls[0]], "messages")
    equal(plain.got[0].decode("ascii").splitlines(), [*urls, urls[0]], "lines")
    equal((syslog.ends, syslog.errors, syslog.names, plain.names), (["close_notify"], [], ["localhost"], [None]), "ends, errors, names")
    for receiver in (syslog, plain):
        receiver.close()


def test_a_receiver_that_is_not_trusted_gets_nothing(lab):
    """RFC 5425, 5.2: the sender verifies who receives. Another name, another authority, a clear-text server: not a byte of a line."""
    origin, authority, other = Origin(lab), Authority(lab), Authority(lab, "other")
    receivers = [Receiver(lab, authority.leaf("elsewhere.example")), Receiver(lab, other.leaf("127.0.0.1"))]
    clear = socket.create_server(("127.0.0.1", 0))
    ports_of = [receiver.port for receiver in receivers] + [clear.getsockname()[1]]
    proxy = Retort(lab, extra="".join(f'access_log "tls://127.0.0.1:{port}" {{ format = "%ru"  ca_file = "{authority.file}"  queue = 64KB }}\n'
                                      for port in ports_of))
    url = origin.url("/text", say="secret")
    proxy.get(url)
    connection = clear.accept()[0]
    connection.settimeout(10 * lab.patience)
    lacks(connection.recv(65536), b"secret", "what a clear-text server sees")
    for port, words in ((ports_of[0], "elsewhere.example"), (ports_of[1], "ca_file")):
        until(lambda port=port: f"to 127.0.0.1 port {port}" in proxy.process.log(), 10 * lab.patience, "the warning")
        line = next(line for line in proxy.process.log().splitlines() if f"port {port}" in line)
        contains(line, words, "why")
    equal([receiver.got for receiver in receivers], [[], []], "what was received")
    connection.close()
    clear.close()
    for receiver in receivers:
        receiver.close()


def test_a_receiver_that_asks_for_a_certificate(lab):
    """With the proxy's certificate lines come. A receiver that was away, or did not trust the certificate, gets what has waited."""
    origin, authority, other = Origin(lab), Authority(lab), Authority(lab, "other")
    ours, port = authority.leaf("proxy.example", usage=CLIENT), ports.take()
    strict = Receiver(lab, authority.leaf("127.0.0.1"), clients=other.file, port=port)
    proxy = Retort(lab, extra=f'access_log "tls://127.0.0.1:{port}" {{ format = "%ru"  ca_file = "{authority.file}"  '
                   f'certificate = "{ours.file}"  certificate_key = "{ours.key}" }}\n')
    url = origin.url("/text", say="x")
    proxy.get(url)
    until(lambda: "cannot write the access_log to 127.0.0.1" in proxy.process.log(), 10 * lab.patience, "the warning")
    strict.close()
    equal(strict.got, [], "what a receiver got that refuses the certificate")
    receiver = Receiver(lab, authority.leaf("127.0.0.1"), clients=authority.file, port=port)
    until(lambda: b"".join(receiver.got) == f"{url}\n".encode(), 10 * lab.patience, "the line that has waited")
    equal(proxy.counter("access_log_lines_lost"), 0, "lost lines")
    receiver.close()


def test_no_thread_outlives_the_process(lab):
    """Threads that end slowly, one of them with what OpenSSL keeps for each thread: the process waits for them all."""
    origin, authority, left = Origin(lab), Authority(lab), lab.path("left")
    certificate = Authority(lab, "other").leaf("127.0.0.1")
    receivers = [Receiver(lab, certificate) for _ in range(2)]
    environment = {"LD_PRELOAD": lab.built("tests/e2e/faults/.libs/slow_ends.so"), "RETORT_THREADS_LEFT": left}
    logs = [f'access_log "tls://127.0.0.1:{receiver.port}" {{ format = "%ru"  ca_file = "{authority.file}" }}\n'
            for receiver in receivers]
    proxy = Retort(lab, environment=environment, extra="".join(logs))
    proxy.get(origin.url("/text", say="x"))
    until(lambda: proxy.process.log().count("cannot write the access_log to 127.0.0.1") == 2, 10 * lab.patience, "the warnings")
    proxy.write_config(proxy.text(extra=logs[0]))
    equal(proxy.reload().status, 200, "a reload without one of the logs, whose thread ends then")
    proxy.stop()
    equal(agents(left), ["0"], "threads at the end of the process")
    for receiver in receivers:
        receiver.close()


def test_options_of_tls_are_for_tls(lab):
    proxy = Retort(lab)
    for place, option, message in (
            ("/tmp/x.log", 'ca_file = "/etc/ssl/certs/ca-certificates.crt"', "only syslog+tls:// and tls:// places have TLS"),
            ("tcp://127.0.0.1:5", "verify = false", "only syslog+tls:// and tls:// places have TLS"),
            ("tls://127.0.0.1:5", 'ca_file = "/nowhere"', "ca_file"), ("tls://127.0.0.1", "", "needs a host and a port"),
            ("tls://127.0.0.1:5", 'certificate = "/x"', "certificate and certificate_key need each other")):
        status, said = proxy.check_config(proxy.text() + f'access_log "{place}" {{ {option} }}\n')
        equal(status, 1, place)
        contains(said, message, place)
