"""ICAP exchanges recorded, shown and replayed: retortctl icap record, show, replay."""

import json
import os
import re
import resource
import socket
import struct
import subprocess
import threading

from harness import ports
from harness.certificates import Authority
from harness.checks import contains, equal, lacks, same_bytes, true, until
from harness.cicap import Cicap, Module
from harness.icap import IcapServer, append, unchanged
from harness.origin import Origin
from harness.retort import Retort, Service
from harness.services import Services
from harness.suite import memcheck
from harness.tls import HOSTS, TlsIcapServer

HEAD = 32  # of a record
FILE_HEAD = 16


class Recording:
    """retortctl icap record, which runs from here on until it has what it wants or is stopped."""

    def __init__(self, lab, proxy, *arguments):
        self.path = lab.path(lab.unique("recording"))
        self.lab = lab
        self.command = subprocess.Popen(
            [lab.built("proxy/retortctl"), "-s", proxy.admin_path, "--json", "icap", "record", self.path, *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **lab.environment()})
        lab.opens(self)
        # It has written the file's head when everything is recorded that begins.
        until(lambda: self.size() >= FILE_HEAD or self.command.poll() is not None, 20 * lab.patience, "a recording")

    def size(self):
        return os.path.getsize(self.path) if os.path.exists(self.path) else 0

    def end(self):
        """What it says at its end, which it comes to by itself."""
        out, errors = self.command.communicate(timeout=60 * self.lab.patience)
        equal(self.command.returncode, 0, f"retortctl icap record: {errors}; exit status")
        return json.loads(out)

    def interrupt(self):
        self.command.terminate()
        return self.end()

    def stop(self):
        if self.command.poll() is None:
            self.command.kill()
        self.command.communicate()

    def findings(self):
        return []


def ctl(lab, *arguments):
    """(exit status, standard output, standard error) of retortctl icap, without a proxy."""
    done = subprocess.run([lab.built("proxy/retortctl"), "icap", *arguments], capture_output=True, timeout=60 * lab.patience,
                          check=False, env={**os.environ, **lab.environment()})
    return done.returncode, done.stdout.decode("latin-1"), done.stderr.decode("latin-1")


def show(lab, path, *arguments):
    """Each exchange as an object."""
    status, out, errors = ctl(lab, "show", path, "--json", *arguments)
    equal(status, 0, f"retortctl icap show: {errors}; exit status")
    return [json.loads(line) for line in out.splitlines()]


def part(lab, path, number, name):
    status, out, errors = ctl(lab, "show", path, str(number), name)
    equal(status, 0, f"retortctl icap show: {errors}; exit status")
    return out


def replay(lab, path, uri, *arguments, expect=0):
    status, out, errors = ctl(lab, "replay", path, "--service", uri, "--json", *arguments)
    equal(status, expect, f"retortctl icap replay: {out} {errors}; exit status")
    return json.loads(out)


def recorded(lab, proxy, requests, *arguments):
    """A file with as many exchanges as `requests` makes; it is given the proxy."""
    recording = Recording(lab, proxy, *arguments)
    requests(proxy)
    end = recording.end()
    equal(end["dropped"], 0, "exchanges dropped")
    return recording.path


def page(number, size=3000):
    return f"<html><head><title>{number}</title></head><body>{'x' * size}</body></html>"


def start(lab, behave=unchanged, *, preview=1024, workers=1, **options):
    """An origin, an ICAP server and a proxy between them."""
    icap = IcapServer(lab, behave, preview=preview)
    return Origin(lab), icap, Retort(lab, services=[Service("s", icap.uri(), **options)], workers=workers)


def test_a_text_injector_and_another(lab):
    """The same service says the same; one with another text differs in each body, at that text."""
    count = 3
    services = Services(lab, names=("inject",))
    others = Services(lab, names=("inject",), text='<meta name="retort-test" content="another">')
    origin, proxy = Origin(lab), Retort(lab, services=services.for_proxy())

    def pages(proxy):
        for i in range(count):
            answer = proxy.get(origin.url("/text", say=page(i), type="text/html", cc="no-store"))
            contains(answer.body, b'content="127.0.0.1"', "page")
    path = recorded(lab, proxy, pages, "--exchanges", str(count))

    done = replay(lab, path, services.cicap.uri("inject"))
    equal([done["exchanges"], done["equal"], done["different"], done["differences"]], [count, count, 0, []], "replay")

    text = part(lab, path, 1, "result").index("127.0.0.1")
    done = replay(lab, path, others.cicap.uri("inject"), expect=1)
    equal([done["equal"], done["different"], done["bodies"], done["verdicts"]], [0, count, count, 0], "replay")
    equal({(d["what"], d["offset"]) for d in done["differences"]}, {("body", text)}, "differences")

    status, out, _ = ctl(lab, "replay", path, "--service", others.cicap.uri("inject"))
    equal(status, 1, "exit status")
    contains(out, f"body differs at byte {text}", "lines")
    contains(out, f"{count} exchanges: 0 equal, {count} differ", "closing count")


def test_an_ad_remover_with_another_list(lab):
    """What one list takes for an ad and the other does not differs in its verdict."""
    services = Services(lab, names=("adremover",), ads="||127.0.0.1^*/ad/\n")
    others = Services(lab, names=("adremover",), ads="||127.0.0.1^*/other/\n")
    origin, proxy = Origin(lab), Retort(lab, services=services.for_proxy())

    def requests(proxy):
        for path in ("/ad/1.gif", "/page", "/other/1.gif"):
            proxy.get(origin.url(path))
    path = recorded(lab, proxy, requests, "--exchanges", "3")
    equal(replay(lab, path, services.cicap.uri("adremover"))["equal"], 3, "equal")
    done = replay(lab, path, others.cicap.uri("adremover"), "--concurrency", "1", expect=1)
    equal([done["equal"], done["verdicts"]], [1, 2], "replay")
    verdicts = [(d["recorded"], d["replayed"]) for d in done["differences"]]
    equal([v[0] for v in verdicts], [verdicts[1][1], "unmodified"], "verdicts")


def test_real_echo_services(lab):
    """A 206 counts as what comes of it: the same service once more, and one that sends all itself."""
    cicap = Cicap(lab, [Module("echo", "srv_echo.so"), Module("ex206", "srv_ex206.so")])
    origin, proxy = Origin(lab), Retort(lab, services=[Service("ex206", cicap.uri("ex206"))])

    def requests(proxy):
        for size in (100, 5000, 200000):
            equal(proxy.get(origin.url("/bytes", n=size, type="text/html")).status, 200, "status")
    path = recorded(lab, proxy, requests, "--exchanges", "3")
    equal(replay(lab, path, cicap.uri("ex206"))["equal"], 3, "equal")
    for exchange in show(lab, path):
        equal(exchange["virgin_whole"], 1, "virgin body is whole")


@memcheck
def test_replay_by_tls(lab):
    """To c-icap's own TLS port, and to none whose certificate is not believed."""
    ca, other, port = Authority(lab), Authority(lab, "other"), ports.take()
    good = ca.leaf(*HOSTS)
    cicap = Cicap(lab, [Module("ex206", "srv_ex206.so")], extra=f"TlsPort 127.0.0.1:{port} cert={good.file} key={good.key}")
    origin, proxy = Origin(lab), Retort(lab, services=[Service("ex206", cicap.uri("ex206"))])

    def requests(proxy):
        for size in (100, 5000, 200000, 3000000):
            equal(proxy.get(origin.url("/bytes", n=size, type="text/html")).status, 200, "status")
    path = recorded(lab, proxy, requests, "--exchanges", "4", "--body", "4MB")
    done = replay(lab, path, f"icaps://localhost:{port}/ex206", "--ca", ca.file)
    equal([done["exchanges"], done["equal"]], [4, 4], "replay")
    for uri, arguments, word in ((f"icaps://localhost:{port}/ex206", (), "is neither sent nor trusted"),
                                 (f"icaps://localhost:{port}/ex206", ("--ca", other.file), "ca_file to the certificate of the issuer (here: --ca FILE)"),
                                 (f"icaps://localhost:{port}/ex206", ("--ca", good.key), "it must contain certificates in PEM, and has none (here: --ca FILE)"),
                                 (cicap.uri("ex206"), ("--ca", ca.file), "--ca works only with icaps://")):
        status, out, errors = ctl(lab, "replay", path, "--service", uri, *arguments)
        equal(status, 2, f"{uri} {arguments}: {out} {errors}; exit status")
        contains(errors, word, f"{uri} {arguments}: message")


def test_replay_by_tls_to_a_server_that_leaves(lab):
    """It resets connections that are idle, on which TLS would like to say goodbye."""
    count = 20

    def behave(icap, transaction):
        transaction.send_204()
        transaction.connection.socket.shutdown(socket.SHUT_WR)
        transaction.connection.abort()
        return True
    ca = Authority(lab)
    origin, icap, proxy = start(lab)
    path = recorded(lab, proxy, lambda proxy: [proxy.get(origin.url("/bytes", n=10, i=i)) for i in range(count)],
                    "--exchanges", str(count))
    leaving = TlsIcapServer(lab, behave, ca.leaf(*HOSTS))
    status, out, errors = ctl(lab, "replay", path, "--service", leaving.uri(), "--ca", ca.file, "--json")
    true(status >= 0, f"{out} {errors}; ended by signal {-status}")  # some answers may be lost with their connection
    equal(json.loads(out)["exchanges"], count, "exchanges")


def behave_by_preview(icap, transaction):
    """200 with the body twice, for RESPMOD."""
    body = transaction.finish_body()
    transaction.send_200(transaction.response_head(add=[("X-Twice", "yes")]), body + body)


@memcheck
def test_what_is_recorded(lab):
    """Both messages, both ICAP heads, and what became of it."""
    origin, icap, proxy = start(lab, behave_by_preview)
    path = recorded(lab, proxy, lambda proxy: proxy.get(origin.url("/bytes", n=5000)), "--exchanges", "1")
    equal(os.stat(path).st_mode & 0o777, 0o600, "mode of the file")
    exchange, = show(lab, path)
    entry = proxy.last(1)
    for name, value in {"id": entry["id"], "service": "s", "uri": icap.uri(), "point": "respmod_precache",
                        "method": "GET", "url": origin.url("/bytes", n=5000), "verdict": "modified", "status": 200,
                        "icap_status": 200, "client_ip": "127.0.0.1", "masked": 1,
                        "virgin_given": 1, "virgin_length": 5000, "virgin_whole": 1,
                        "result_given": 1, "result_length": 10000, "result_whole": 1}.items():
        equal(exchange[name], value, name)
    true(exchange["total_microseconds"] >= exchange["verdict_microseconds"] > 0, "times")
    same_bytes(part(lab, path, 1, "virgin").encode("latin-1"), Origin.body(5000))
    same_bytes(part(lab, path, 1, "result").encode("latin-1"), Origin.body(5000) * 2)
    contains(part(lab, path, 1, "asked"), "Preview: 1024\r\n", "ICAP head")
    equal(re.findall(r"ICAP/1.0 (\d+)", part(lab, path, 1, "answered")), ["100", "200"], "ICAP answers")
    contains(part(lab, path, 1, "request_head"), f"GET {origin.url('/bytes', n=5000)} HTTP/1.1\r\n", "request")
    contains(part(lab, path, 1, "response_head"), "HTTP/1.1 200 OK\r\n", "response")
    contains(part(lab, path, 1, "result_head"), "X-Twice: yes\r\n", "result")
    status, out, _ = ctl(lab, "show", path)
    equal(status, 0, "exit status")
    contains(out, "s modified 5000 -> 10000 bytes", "list")
    contains(out, "1 exchange, 0 dropped", "closing count")
    equal(proxy.counter("icap_recorded"), 1, "counter")


def test_what_a_service_leaves_alone_is_recorded_whole(lab):
    """It has seen a preview; the version of it that is asked next may want all."""
    origin, icap, proxy = start(lab)
    size = 300000

    def requests(proxy):
        for path in ("/bytes", "/chunked"):
            same_bytes(proxy.get(origin.url(path, n=size, piece=20000)).body, Origin.body(size))
    path = recorded(lab, proxy, requests, "--exchanges", "2")
    for i, exchange in enumerate(show(lab, path)):
        equal([exchange["verdict"], exchange["virgin_length"], exchange["virgin_whole"]], ["unmodified", size, 1], "exchange")
        same_bytes(part(lab, path, i + 1, "virgin").encode("latin-1"), Origin.body(size))
    other = IcapServer(lab, append(b"!"), preview=0)
    done = replay(lab, path, other.uri(), expect=1)
    equal([done["verdicts"], done["not_compared"]], [2, 0], "replay")


def test_heads_that_differ(lab):
    """Fields that were changed, added and lost; what changes each time is not looked at."""
    fields = [[("X-Same", "1"), ("X-Changed", "a"), ("X-Lost", "c"), ("X-Skipped", "1"), ("Via", "1.0 one")],
              [("X-Same", "1"), ("X-Changed", "b"), ("X-New", "d"), ("X-Skipped", "2"), ("Via", "1.0 two")]]
    turn = []

    def behave(icap, transaction):
        body = transaction.finish_body()
        transaction.send_200(transaction.response_head(add=fields[len(turn)]), body)
    origin, icap, proxy = start(lab, behave)
    path = recorded(lab, proxy, lambda proxy: proxy.get(origin.url("/bytes", n=10)), "--exchanges", "1")
    equal(replay(lab, path, icap.uri())["equal"], 1, "equal")
    turn.append(1)
    done = replay(lab, path, icap.uri(), "--ignore", "x-skipped", expect=1)
    equal([done["heads"], done["bodies"], done["verdicts"]], [1, 0, 0], "replay")
    equal(sorted((d["name"], d["recorded"], d["replayed"]) for d in done["differences"]),
          [("X-Changed", "a", "b"), ("X-Lost", "c", None), ("X-New", None, "d")], "differences")


SECRETS = {"Cookie": "session=seekrit-1", "Authorization": "Basic seekrit-2", "Proxy-Authorization": "Basic seekrit-3",
           "X-Api-Key": "seekrit-4"}


def test_secrets_are_masked(lab):
    """Not one is in the file, whether it came from the client, the origin, the service, or is ours."""
    def behave(icap, transaction):
        body = transaction.finish_body()
        transaction.send_200(transaction.response_head(add=[("Set-Cookie", "c=seekrit-5")]), body,
                             icap=b"X-Authenticated-User: seekrit-6\r\n")
    origin, icap = Origin(lab), IcapServer(lab, behave, preview=1024)
    proxy = Retort(lab, services=[Service("a", icap.uri(), credentials="name:seekrit-7"),
                                  Service("b", icap.uri(), proxy_credentials=True)])

    def requests(proxy):
        answer = proxy.get(origin.url("/bytes", n=10, h=["Set-Cookie:a=seekrit-8", "WWW-Authenticate:Digest seekrit-9"]), SECRETS)
        equal(answer.status, 200, "status")
    with open(recorded(lab, proxy, requests, "--exchanges", "2"), "rb") as file:
        masked = file.read()
    with open(recorded(lab, proxy, requests, "--exchanges", "2", "--unmasked"), "rb") as file:
        unmasked = file.read()
    basic = b"bmFtZTpzZWVrcml0LTc="  # name:seekrit-7
    for i in range(1, 10):
        lacks(masked.replace(b"%3Aa%3Dseekrit-8", b"").replace(b"%20seekrit-9", b""), b"seekrit-%d" % i, "masked file")
        if i != 7:
            contains(unmasked, b"seekrit-%d" % i, "unmasked file")
    lacks(masked, basic, "masked file")
    contains(unmasked, basic, "unmasked file")
    contains(masked, b"Cookie: masked\r\n", "masked file")


def test_masked_fields_are_equal(lab):
    """What was replaced can't be compared but for its presence."""
    def behave(icap, transaction):
        body = transaction.finish_body()
        transaction.send_200(transaction.response_head(add=[("Set-Cookie", "n=%d" % len(icap.transactions))]), body)
    origin, icap, proxy = start(lab, behave)
    path = recorded(lab, proxy, lambda proxy: proxy.get(origin.url("/bytes", n=10)), "--exchanges", "1")
    equal(replay(lab, path, icap.uri())["equal"], 1, "equal")


def test_filters(lab):
    """All must hold; what does not fit is left out."""
    def behave(icap, transaction):
        if "change" in transaction.http_request.start:
            append(b"!")(icap, transaction)
        else:
            unchanged(icap, transaction)
    origin, icap, proxy = start(lab, behave)

    def requests(proxy):
        for path in ("/bytes?n=1", "/change?n=1", "/bytes?n=2&status=404", "/bytes?n=3"):
            proxy.get(origin.url(path))

    def of(*filters):
        arguments = [word for f in filters for word in ("--filter", f)]
        recording = Recording(lab, proxy, *arguments)
        requests(proxy)
        before = proxy.status()["counters"]["client_requests"]
        true(before > 0, "requests")
        recording.interrupt()
        return [exchange["url"].split("/")[-1] for exchange in show(lab, recording.path)]
    everything = ["bytes?n=1", "change?n=1", "bytes?n=2&status=404", "bytes?n=3"]
    equal(of(), everything, "no filter")
    equal(of("service=s", "host=127.0.0.1", "point=respmod_precache"), everything, "filters that fit")
    for other in ("service=t", "host=127.0.0.2", "point=reqmod_precache", "status=500", "verdict=satisfied"):
        equal(of(other), [], other)
    equal(of("verdict=modified"), ["change?n=1"], "verdict")
    equal(of("status=404"), ["bytes?n=2&status=404"], "status")
    equal(of("prefix=" + origin.url("/bytes")), ["bytes?n=1", "bytes?n=2&status=404", "bytes?n=3"], "prefix")
    equal(of("regex=n=[23]"), ["bytes?n=2&status=404", "bytes?n=3"], "regex")
    equal(of("sample=2"), ["bytes?n=1", "bytes?n=2&status=404"], "sample")
    for bad, word in (("verdict=good", "verdict"), ("regex=(", "regex"), ("colour=red", "colour"), ("point=x", "respmod_precache")):
        status, _, errors = ctl(lab, "record", lab.path("none"), "--filter", bad)
        equal(status, 2, f"{bad}: exit status")
        contains(errors, word, f"{bad}: message")


def test_limits(lab):
    """So many exchanges, so many seconds, so many bytes of each body; sums are of all of it."""
    origin, icap, proxy = start(lab, append(b"!"))
    recording = Recording(lab, proxy, "--exchanges", "2", "--body", "1KB")
    for i in range(4):
        proxy.get(origin.url("/bytes", n=20000, i=i, cc="no-store"))
    end = recording.end()
    equal(end["exchanges"], 2, "exchanges")
    for i, exchange in enumerate(show(lab, recording.path)):
        equal(len(part(lab, recording.path, i + 1, "virgin")), 1024, "bytes kept")
        equal([exchange["virgin_length"], exchange["result_length"]], [20000, 20001], "bytes that passed")
    done = replay(lab, recording.path, icap.uri(), expect=2)
    equal([done["equal"], done["not_compared"]], [0, 2], "replay of bodies that are not whole")

    end = Recording(lab, proxy, "--seconds", "1").end()
    equal([end["exchanges"], end["ended"]], [0, "its time limit was reached"], "recording of a second")


def test_only_the_beginning_of_a_result(lab):
    """What is beyond the part that was kept is compared by its length and its sum."""
    tail = [b"!"]

    def behave(icap, transaction):
        transaction.finish_body()
        transaction.send_200(transaction.response_head(), b"x" * 5000 + tail[0])
    origin, icap, proxy = start(lab, behave)
    path = recorded(lab, proxy, lambda proxy: proxy.get(origin.url("/bytes", n=100)), "--exchanges", "1", "--body", "1KB")
    equal(replay(lab, path, icap.uri())["equal"], 1, "equal")
    tail[0] = b"?"
    done = replay(lab, path, icap.uri(), expect=1)
    equal([(d["what"], d["offset"]) for d in done["differences"]], [("body", None)], "differences")


def test_one_recording_at_a_time(lab):
    origin, icap, proxy = start(lab)
    recording = Recording(lab, proxy)
    equal(proxy.admin("POST", "/icap/record").status, 409, "status of a second one")
    proxy.get(origin.url("/bytes", n=1))
    until(lambda: proxy.counter("icap_recorded") >= 1, 10 * lab.patience, "an exchange")
    equal(recording.interrupt()["exchanges"], 1, "exchanges of the first")
    equal(len(show(lab, recording.path)), 1, "exchanges in its file")
    done = Recording(lab, proxy, "--seconds", "1")
    equal(done.end()["exchanges"], 0, "exchanges of the next")
    done = subprocess.run([lab.built("proxy/retortctl"), "-s", proxy.admin_path, "icap", "record", recording.path],
                          capture_output=True, text=True, check=False, env={**os.environ, **lab.environment()})
    equal(done.returncode, 1, "exit status where the file exists")
    contains(done.stderr, "choose another name", "message")


def records(data):
    """(kind, content) of each."""
    while data:
        magic, kind, length = struct.unpack("<IIQ", data[:16])
        equal(magic, 0x0A636572, "magic of a record")
        yield kind, data[HEAD:HEAD + length]
        data = data[HEAD + length:]


def about(content):
    _, _, length = struct.unpack("<IIQ", content[:16])
    return dict(line.split(" ", 1) for line in content[16:16 + length].decode().splitlines())


def test_a_reader_that_is_too_slow(lab):
    """Whole exchanges are left out and counted; no client waits, and memory keeps to its limit."""
    count = 12
    origin, icap, proxy = start(lab, append(b"!"))
    number = json.loads(proxy.admin("POST", "/icap/record?memory=300000").body)["recording"]
    for i in range(count):
        equal(len(proxy.get(origin.url("/bytes", n=50000, i=i, cc="no-store")).body), 50001, "body")
    until(lambda: proxy.counter("icap_recorded") + proxy.counter("icap_record_dropped") >= count, 10 * lab.patience,
          "the last exchange")
    equal(proxy.admin("POST", f"/icap/record/stop?recording={number}").status, 200, "stop")
    taken = list(records(proxy.admin("POST", f"/icap/record/take?recording={number}").body))
    last = about(taken[-1][1])
    kept = len(taken) - 1
    true(1 <= kept <= 300000 // 100001, f"{kept} exchanges kept")
    equal([taken[-1][0], int(last["kept"]), int(last["dropped"])], [2, kept, count - kept], "the end")
    equal(proxy.admin("POST", f"/icap/record/take?recording={number}").body, b"", "behind the end")


def test_nobody_takes_what_is_recorded(lab):
    """The recording ends, and the next may begin; one that was full before that keeps nothing either."""
    origin, icap, proxy = start(lab)
    full = Retort(lab, services=[Service("s", icap.uri())])
    number = json.loads(full.admin("POST", "/icap/record?exchanges=1").body)["recording"]
    full.get(origin.url("/bytes", n=10))
    recording = Recording(lab, proxy)
    recording.command.kill()
    until(lambda: proxy.admin("POST", "/icap/record").status == 200, 30 * lab.patience, "an end of the recording", pause=0.2)
    full.get(origin.url("/bytes", n=11))
    (kind, content), = records(full.admin("POST", f"/icap/record/take?recording={number}").body)
    equal([kind, about(content).get("kept"), about(content)["dropped"]], [2, None, "1"], "the end")


def test_no_room_for_the_file(lab):
    """It says so, and the next recording may begin at once."""
    origin, icap, proxy = start(lab)
    path = lab.path("recording")
    command = subprocess.Popen(
        [lab.built("proxy/retortctl"), "-s", proxy.admin_path, "icap", "record", path], stderr=subprocess.PIPE, text=True,
        env={**os.environ, **lab.environment()}, restore_signals=False,  # SIGXFSZ stays ignored: a write that fails
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10000, 10000)))
    until(lambda: os.path.exists(path) and os.path.getsize(path) >= FILE_HEAD, 20 * lab.patience, "a recording")
    proxy.get(origin.url("/bytes", n=50000))
    _, errors = command.communicate(timeout=30 * lab.patience)
    equal(command.returncode, 1, "exit status")
    contains(errors, f"can't write {path}: File too large; free some space", "message")
    equal(proxy.admin("POST", "/icap/record").status, 200, "status of the next recording")


def test_several_workers(lab):
    """All of them record, while others talk; none is lost."""
    each, threads = 20, 4
    origin, icap, proxy = start(lab, append(b"!"), workers=2)
    recording = Recording(lab, proxy, "--exchanges", str(each * threads))

    def talk(number):
        for i in range(each):
            proxy.get(origin.url("/bytes", n=2000, i=i, by=number, cc="no-store"))
    talkers = [threading.Thread(target=talk, args=(number,)) for number in range(threads)]
    for talker in talkers:
        talker.start()
    for talker in talkers:
        talker.join()
    equal(recording.end()["exchanges"], each * threads, "exchanges")
    exchanges = show(lab, recording.path)
    equal(len({exchange["url"] for exchange in exchanges}), each * threads, "URLs")
    equal({exchange["result_length"] for exchange in exchanges}, {2001}, "results")
    equal(replay(lab, recording.path, icap.uri(), "--concurrency", "8")["equal"], each * threads, "equal")


@memcheck
def test_chains_at_all_points(lab):
    """Each service of a chain has an exchange of its own, in front of the cache and behind it."""
    origin, icap = Origin(lab), IcapServer(lab, methods="RESPMOD, REQMOD", behave=unchanged, preview=1024)

    def adding(text):
        return IcapServer(lab, append(text), preview=1024)
    first, second, late = adding(b"1"), adding(b"2"), adding(b"3")
    proxy = Retort(lab, services=[
        Service("ask", icap.uri(), point="reqmod_precache"), Service("first", first.uri()), Service("second", second.uri()),
        Service("late", late.uri(), point="respmod_postcache")])

    def requests(proxy):
        for _ in range(2):
            same_bytes(proxy.get(origin.url("/bytes", n=5000, cc="max-age=60")).body, Origin.body(5000) + b"123")
    path = recorded(lab, proxy, requests, "--exchanges", "6")
    seen = sorted((e["service"], e["virgin_length"], e["result_length"], e["virgin_whole"]) for e in show(lab, path))
    equal(seen, [("ask", 0, 0, 0)] * 2 + [("first", 5000, 5001, 1)] + [("late", 5002, 5003, 1)] * 2 + [("second", 5001, 5002, 1)],
          "exchanges")
    for name, server in (("ask", icap), ("second", second), ("late", late)):
        done = replay(lab, path, server.uri(), "--filter", f"service={name}")
        equal(done["equal"], done["exchanges"], f"{name}: equal")


def test_what_fails_is_recorded(lab):
    """A service that breaks off, and one that is mended since."""
    broken = [True]

    def behave(icap, transaction):
        if broken[0]:
            transaction.connection.abort()
            return True
        unchanged(icap, transaction)
        return False
    origin, icap, proxy = start(lab, behave, bypass=True)
    path = recorded(lab, proxy, lambda proxy: proxy.get(origin.url("/bytes", n=3000)), "--exchanges", "1")
    exchange, = show(lab, path)
    equal(exchange["verdict"], "failed", "verdict")
    true(exchange["error"], "no error in it")
    equal(exchange["virgin_length"], 3000, "virgin bytes")
    broken[0] = False
    done = replay(lab, path, icap.uri(), expect=1)
    equal([(d["recorded"], d["replayed"]) for d in done["differences"]], [("failed", "unmodified")], "difference")


def test_trouble(lab):
    """Status 2: nobody there, no such file, exchanges of two services, nothing to compare."""
    icap = IcapServer(lab, unchanged, preview=1024)
    origin = Origin(lab)
    proxy = Retort(lab, services=[Service("a", icap.uri()), Service("b", icap.uri())])
    path = recorded(lab, proxy, lambda proxy: proxy.get(origin.url("/bytes", n=10)), "--exchanges", "2")
    for arguments, word in (((path, "--service", icap.uri()), "--filter service=NAME"),
                            ((path, "--service", "icap://127.0.0.1:1/x", "--filter", "service=a"), "answered nothing"),
                            ((path, "--service", icap.uri(), "--filter", "service=c"), "no exchange could be compared"),
                            ((path, "--service", "http://127.0.0.1/"), "icap://"),
                            ((path,), "--service"),
                            ((path + ".none", "--service", icap.uri()), "can't open")):
        status, out, errors = ctl(lab, "replay", *arguments)
        equal(status, 2, f"{arguments}: {out} {errors}; exit status")
        contains(errors, word, f"{arguments}: message")
    equal(replay(lab, path, icap.uri(), "--filter", "service=b")["equal"], 1, "equal")


def test_damaged_files(lab):
    """What can be read is, and a message says where it ends."""
    origin, icap, proxy = start(lab)

    def requests(proxy):
        for i in range(3):
            proxy.get(origin.url("/bytes", n=100, i=i))
    path = recorded(lab, proxy, requests, "--exchanges", "3")
    with open(path, "rb") as file:
        whole = file.read()
    at, starts = FILE_HEAD, []
    for _, content in records(whole[FILE_HEAD:]):
        starts.append(at)
        at += HEAD + len(content)

    def look(data):
        damaged = lab.write(lab.unique("damaged"), data)
        status, out, errors = ctl(lab, "show", damaged)
        exchanges = int(re.search(r"^(\d+) exchanges?", out, re.M).group(1)) if out else None
        result = ctl(lab, "replay", damaged, "--service", icap.uri(), "--json")
        return status, exchanges, errors, result

    def changed(at, byte):
        return whole[:at] + byte + whole[at + 1:]
    for data, exchanges, word in ((whole[:starts[3]], 3, f"cut off at byte {starts[3]}"),
                                  (whole[:starts[2] + 10], 2, f"cut off at byte {starts[2] + 10}"),
                                  (whole[:starts[2] + HEAD + 10], 2, f"inside the record at byte {starts[2]}"),
                                  (changed(starts[1] + HEAD + 20, b"\0"), 2, f"damaged in the record at byte {starts[1]}"),
                                  (changed(starts[1] + 9, b"\xff"), 1, f"damaged at byte {starts[1]}"),
                                  (whole + b"more", 3, "after its end")):
        status, seen, errors, (replay_status, replayed, _) = look(data)
        equal([status, seen, replay_status], [1, exchanges, 2], f"{word}: {errors}; show, exchanges, replay")
        contains(errors, word, "message")
        equal(json.loads(replayed)["equal"], exchanges, f"{word}: exchanges that were replayed")
    for data, word in ((b"", "not a recording"), (b"GIF89a" * 10, "not a recording"),
                       (b"retort-icap 0002" + whole[16:], "version")):
        status, _, errors, (replay_status, _, _) = look(data)
        equal([status, replay_status], [1, 2], f"{word}: exit status")
        contains(errors, word, "message")
