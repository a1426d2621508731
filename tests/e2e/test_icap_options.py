"""OPTIONS: when the ICAP client asks them, and what it makes of the answers."""

import time

from harness.adaptation import QUICK, account, fetch, start, verdicts
from harness.checks import between, contains, equal, one_of, until
from harness.icap import IcapServer, append
from harness.origin import Origin
from harness.retort import Retort, Service, measure
from harness.suite import memcheck


@memcheck
def test_options_first_and_once(lab):
    origin, icap, proxy = start(lab)
    for _ in range(3):
        fetch(proxy, origin, 100)
    equal((icap.options_count, icap.count), (1, 3), "OPTIONS and RESPMOD requests")


@memcheck
def test_options_of_all_at_the_start(lab):
    """RFC 3507 4.10: what a service can do is asked before there is a message for it, by one of the workers. What is away or silent
    delays neither the start nor the others, and a reload asks only what is new."""
    silent, good, late = IcapServer(lab), IcapServer(lab), IcapServer(lab)
    silent.options_answer = lambda _i, _c: time.sleep(20) is None
    origin = Origin(lab)
    services = [Service("silent", silent.uri(), timeout="20s", connect_timeout="20s"), Service("away", "icap://127.0.0.1:1/s"),
                Service("good", good.uri())]
    proxy = Retort(lab, workers=3, services=services, adapt={"all": ["good"]})
    until(lambda: account(proxy, "good")["state"] == "up", 5 * lab.patience, "the good one to be up without a request")
    until(lambda: account(proxy, "away")["state"] == "down", 5 * lab.patience, "the other one to be down")
    until(lambda: silent.options_count == 1, 5 * lab.patience, "the silent one to be asked")
    equal((account(proxy, "silent")["state"], good.options_count), ("unknown", 1), "the silent one, OPTIONS")
    equal(fetch(proxy, origin, 10).status, 200, "status meanwhile")
    equal((good.options_count, good.count), (1, 1), "OPTIONS and RESPMOD requests")
    proxy.write_config(proxy.text(services=services[1:] + [Service("late", late.uri())], adapt={"all": ["good"]}))
    equal(proxy.reload().status, 200, "reload")
    until(lambda: account(proxy, "late")["state"] == "up", 5 * lab.patience, "the new one to be up without a request")
    equal((good.options_count, late.options_count), (1, 1), "OPTIONS")


def test_options_of_many_at_the_start(lab):
    """Only so many at a time (adapt/warm_up.h), each once."""
    at_work, most = [0], [0]

    def answer(server, connection):
        with server.lock:
            at_work[0] += 1
            most[0] = max(most[0], at_work[0])
        time.sleep(0.02)
        with server.lock:
            at_work[0] -= 1
        server.send_options(connection)
    icap = IcapServer(lab)
    icap.options_answer = answer
    proxy = Retort(lab, services=[Service(f"s{n}", icap.uri(f"s{n}")) for n in range(50)], adapt={})
    until(lambda: icap.options_count == 50, 10 * lab.patience, "all to be asked")
    between(most[0], 2, 16, "services that are asked at the same time")
    until(lambda: all(account(proxy, f"s{n}")["state"] == "up" for n in (0, 49)), 5 * lab.patience, "them to be up")
    equal(len({request.uri for request in icap.options_requests}), 50, "services that were asked")


def test_options_again_after_its_ttl(lab):
    icap = IcapServer(lab, Options_TTL=1)
    origin, _, proxy = start(lab, server=icap)
    fetch(proxy, origin, 100)
    time.sleep(1.5)
    fetch(proxy, origin, 100)
    until(lambda: icap.options_count >= 2, 5 * lab.patience, "OPTIONS after the TTL")


def test_options_without_ttl_is_not_repeated(lab):
    icap = IcapServer(lab, Options_TTL=None)
    origin, _, proxy = start(lab, server=icap)
    fetch(proxy, origin, 100)
    time.sleep(1.2)
    fetch(proxy, origin, 100)
    equal(icap.options_count, 1, "OPTIONS requests")


def test_options_as_large_as_they_come(lab):
    """In one burst, of about as many bytes as are read at a time, and more."""
    for size in (4000, 15900, 16000, 16383, 16384, 16385, 17000, 40000):
        icap = IcapServer(lab, append(b"!"))
        filler = size - len("ICAP/1.0 200 OK\r\n\r\n") - sum(
            len(f"{name}: {value}\r\n") for name, value in icap.options.items() if value is not None)
        lines = [f"X-{n}: " for n in range(-(-filler // 7000))]
        each = filler // len(lines)
        for n, line in enumerate(lines):
            more = filler - each * (len(lines) - 1) if n == 0 else each
            icap.options[line[:-2]] = "f" * (more - len(line) - 2)
        origin, _, proxy = start(lab, server=icap, bypass=False)
        equal(fetch(proxy, origin, 10).body, origin.body(10) + b"!", f"body with OPTIONS of {size}")
        equal(icap.options_count, 1, "OPTIONS requests")
        proxy.stop()
        icap.stop()


@memcheck
def test_lists_of_any_length(lab):
    """RFC 9110 5.3: field lines of one name are one list. What it names last is as good as what it names first, and a list that is too long
    hides nothing from a scanner."""
    icap = IcapServer(lab, append(b"!"), Transfer_Ignore=", ".join(f"x{n}" for n in range(900)) + ", last", Service_ID="scanner-7")
    origin, _, proxy = start(lab, server=icap, bypass=False)

    def seen(name):
        return proxy.get(origin.url(f"/bytes/a.{name}", n=10, cc="no-store")).body[10:]
    equal([seen(name) for name in ("x0", "last", "y")], [b"", b"", b"!"], "what was scanned")
    contains(proxy.ctl("services"), "Service-ID scanner-7", "retortctl services")
    equal(account(proxy)["service_id"], "scanner-7", "in the API")
    icap.options["Transfer-Ignore"] = "*, " + "x" * 9000
    proxy.stop()
    origin, _, proxy = start(lab, server=icap, bypass=False)
    equal(seen("x0"), b"!", "what was scanned by a list that is too long")
    contains(proxy.process.log(), "longer than 8192 bytes together", "the log")


def test_options_beyond_reason(lab):
    icap = IcapServer(lab, append(b"!"))
    for n in range(12):
        icap.options[f"X-{n}"] = "f" * 7000
    origin, _, proxy = start(lab, server=icap, bypass=True, **QUICK)
    equal(fetch(proxy, origin, 10).body, origin.body(10), "body")


def test_options_that_change(lab):
    """Its TTL has passed, and it does responses no more: no RESPMOD is sent to it."""
    icap = IcapServer(lab, append(b"!"), Options_TTL=0)
    origin, _, proxy = start(lab, server=icap, **QUICK)
    equal(fetch(proxy, origin, 10).body, origin.body(10) + b"!", "body")
    icap.options["Methods"] = "REQMOD"
    until(lambda: fetch(proxy, origin, 10).body == origin.body(10), 10 * lab.patience, "the service to be left alone")
    count = icap.count
    fetch(proxy, origin, 10)
    equal(icap.count, count, "RESPMOD requests after that")
    icap.options["Methods"] = "RESPMOD"
    until(lambda: fetch(proxy, origin, 10).body.endswith(b"!"), 10 * lab.patience, "the service to be asked again")


OPTIONS_FAILURES = [
    ("404", b"ICAP/1.0 404 Service not found\r\nConnection: close\r\n\r\n"),
    ("500", b"ICAP/1.0 500 Error\r\nConnection: close\r\n\r\n"),
    ("garbage", b"nonsense\r\n\r\n"),
    ("HTTP", b"HTTP/1.1 200 OK\r\n\r\n"),
    ("half", b"ICAP/1.0 200 OK\r\nMeth"),
    ("other method", b'ICAP/1.0 200 OK\r\nMethods: REQMOD\r\nISTag: "x"\r\nEncapsulated: null-body=0\r\n\r\n'),
    ("no methods", b'ICAP/1.0 200 OK\r\nISTag: "x"\r\nEncapsulated: null-body=0\r\n\r\n'),
]


def test_options_that_fail(lab):
    origin = Origin(lab)
    for what, data in OPTIONS_FAILURES:
        icap = IcapServer(lab)
        icap.options_answer = lambda _i, connection, data=data: connection.send(data) is None
        for bypass in (True, False):
            proxy = Retort(lab, services=[Service("s", icap.uri(), bypass=bypass, **QUICK)])
            answer, took = measure(lambda: fetch(proxy, origin, 100))
            if what == "no methods":
                one_of(answer.status, (200, 500, 502, 503), f"{what}: status")
            else:
                equal(answer.status // 100, 2 if bypass else 5, f"{what}, bypass {bypass}: status class")
                equal(icap.count, 0, f"{what}: RESPMOD requests")
            between(took, 0, 4 * lab.patience, f"{what}: seconds")
            proxy.stop()
        icap.stop()


def test_options_of_another_status(lab):
    """RFC 9110 15: a client must "treat an unrecognized status code as being equivalent to the x00 status code of that class"."""
    for status, expected in (("201 Created", "UNMODIFIED"), ("299 Fine", "UNMODIFIED"), ("302 Elsewhere", "BYPASSED"), ("500 No", "BYPASSED")):
        icap = IcapServer(lab)
        icap.options_answer = lambda icap, connection, status=status: icap.send_options(connection, status)
        origin, _, proxy = start(lab, server=icap, **QUICK)
        fetch(proxy, origin, 100)
        equal(verdicts(proxy, 1), [[expected]], status)


def test_strange_options_values(lab):
    """Numbers that are none, or are absurd, must not take the service down or the proxy with it."""
    origin = Origin(lab)
    for options in ({"Preview": "-1"}, {"Preview": "many"}, {"Preview": "99999999999999999999"},
                    {"Max-Connections": "0"}, {"Max-Connections": "-5"}, {"Options-TTL": "-1"}, {"Options-TTL": "soon"},
                    {"ISTag": None}, {"Transfer-Preview": None}, {"Transfer-Ignore": "*"}):
        icap = IcapServer(lab, append(b"!"))
        icap.options.update(options)
        proxy = Retort(lab, services=[Service("s", icap.uri(), bypass=True, **QUICK)])
        for _ in range(3):
            answer = fetch(proxy, origin, 3000)
            one_of(answer.body, (origin.body(3000), origin.body(3000) + b"!"), f"{options}: body")
        proxy.stop()
        icap.stop()


def test_transfer_ignore(lab):
    """Types that the service does not want are not sent to it; the query does not count."""
    icap = IcapServer(lab, append(b"!"), Transfer_Ignore="zip, JPG", Transfer_Preview="*")
    origin, _, proxy = start(lab, server=icap)
    for path, asked in (("/text/a.zip", 0), ("/text/a.ZIP", 0), ("/text/a.jpg", 0), ("/text/a.html", 1), ("/text/a.txt?f=.zip", 1)):
        before = icap.count
        proxy.get(origin.url(path) + ("&" if "?" in path else "?") + "say=abc&cc=no-store")
        equal(icap.count - before, asked, f"ICAP transactions for {path}")


def test_transfer_complete(lab):
    """Types that the service wants whole are sent without a preview."""
    icap = IcapServer(lab, append(b"!"), Transfer_Complete="zip", Transfer_Preview="*")
    origin, _, proxy = start(lab, server=icap, bypass=False)
    for path, expected in (("/bytes/a.zip", None), ("/bytes/a.ZIP", None), ("/bytes/a.txt", 1024), ("/bytes/a", 1024)):
        proxy.get(origin.url(path, n=3000, cc="no-store"))
        equal(icap.transactions[-1].preview_limit, expected, f"Preview for {path}")
