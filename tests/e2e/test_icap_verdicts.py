"""Verdicts on requests: what a service said is used again for an equal one, as long as its ICAP head permits."""

import itertools
import json
import threading
import time

from harness.adaptation import verdicts
from harness.checks import contains, equal, true, until
from harness.icap import IcapServer
from harness.origin import Origin, echoed
from harness.retort import Retort, Service
from harness.services import Services
from harness.suite import memcheck
from harness.wire import Truncated

HOUR = b"Cache-Control: max-age=3600\r\n"
ANSWER = b"HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain\r\n\r\n"


def passes(permission=HOUR):
    return lambda _icap, transaction: transaction.send_204(permission)


def rewrites(add=("X-Added", "1"), permission=HOUR):
    return lambda _icap, transaction: transaction.send_head(transaction.request_head(add=[add]), body=False, icap=permission)


def answers(body, head=ANSWER, permission=HOUR):
    def behave(_icap, transaction):
        if transaction.http_request.start.startswith("HEAD "):
            transaction.send_head(head, body=False, icap=permission)
        else:
            transaction.send_200(head, body, icap=permission)
    return behave


def start(lab, behave, *, point="reqmod_precache", workers=1, extra="", server=None, **options):
    """An origin, an ICAP server that is asked about requests, and a proxy between them."""
    icap = server or IcapServer(lab, behave, methods="REQMOD")
    service = Service("s", icap.uri(), point=point, **{"bypass": False, **options})
    return Origin(lab), icap, Retort(lab, services=[service], workers=workers, extra=extra)


def counters(proxy, *names):
    return tuple(proxy.counter(f"verdicts_{name}") for name in names)


KINDS = {"/echo/pass": ("UNMODIFIED", passes()), "/echo/new": ("MODIFIED", rewrites()), "/echo/no": ("SATISFIED", answers(b"no")),
         "/echo/empty": ("SATISFIED", answers(b"")), "/echo/large": ("SATISFIED", answers(b"x" * 65536))}


def by_path(icap, transaction):
    path = transaction.http_request.start.split(" ")[1]
    _, behave = next(kind for part, kind in KINDS.items() if path.endswith(part))
    behave(icap, transaction)


def test_a_verdict_is_used_again(lab):
    """At both points, whatever it was."""
    for point in ("reqmod_precache", "reqmod_postcache"):
        origin, icap, proxy = start(lab, by_path, point=point)
        for path, (name, _) in KINDS.items():
            before = icap.count
            for method in ("GET", "HEAD", "OPTIONS"):
                seen = [proxy.fetch(method, origin.url(path)) for _ in range(3)]
                equal(len({(answer.status, answer.body if name == "SATISFIED" else b"") for answer in seen}), 1, f"{method}: answers")
                if name != "SATISFIED" and method == "GET":
                    equal({echoed(answer)["header"]("x-added") for answer in seen}, {"1" if name == "MODIFIED" else None}, "X-Added")
            equal(icap.count - before, 3, f"{point}, {path}: ICAP transactions")
            equal(origin.count(path), 0 if name == "SATISFIED" else 9, f"{point}, {path}: origin requests")
            equal(verdicts(proxy, 9 * (icap.count // 3))[-9:], [[name], [f"REMEMBERED_{name}"], [f"REMEMBERED_{name}"]] * 3, "verdicts in the log")
        equal(counters(proxy, "kept", "used", "evicted"), (15, 30, 0), "counters")


def test_what_an_answer_looks_like(lab):
    """As when the service gave it."""
    origin, icap, proxy = start(lab, answers(b"no", ANSWER[:-2] + b"X-Why: ads\r\nCache-Control: no-store\r\n\r\n"))
    first, second = (proxy.get(origin.url("/x")) for _ in range(2))
    equal((second.status, second.text(), second.header("X-Why")), (403, "no", "ads"), "the answer")
    own = ("Content-Length", "Transfer-Encoding", "Date")
    equal(*([(name, value) for name, value in answer.fields if name not in own] for answer in (second, first)), "its fields")
    equal((icap.count, proxy.result("/x")), (1, "SERVICE"), "ICAP transactions, result")


PERMISSIONS = (
    (b"", False),
    (b"Cache-Control: max-age=60\r\n", True),
    (b"cache-control: public, MAX-AGE=60\r\n", True),
    (b'Cache-Control: max-age="60"\r\n', True),
    (b"Cache-Control: max-age=99999999999999999999999999\r\n", True),
    (b"Cache-Control: s-maxage=60, max-age=0\r\n", True),
    (b"Cache-Control: max-age=60, max-age=0\r\n", True),
    (b"Cache-Control: x=y, max-age=60\r\n", True),
    (b"Expires: Fri, 31 Dec 2060 00:00:00 GMT\r\n", True),
    (b"Cache-Control: max-age=60\r\nExpires: 0\r\n", True),
    (b"Cache-Control: max-age=0\r\n", False),
    (b"Cache-Control: max-age=0, max-age=60\r\n", False),
    (b"Cache-Control: s-maxage=0, max-age=60\r\n", False),
    (b"Cache-Control: max-age=-60\r\n", False),
    (b"Cache-Control: max-age=+60\r\n", False),
    (b"Cache-Control: max-age=60s\r\n", False),
    (b"Cache-Control: max-age=\r\n", False),
    (b"Cache-Control: max-age\r\n", False),
    (b"Cache-Control: max-age=0x60\r\n", False),
    (b"Cache-Control: maxage=60\r\n", False),
    (b"Cache-Control: public\r\n", False),
    (b"Cache-Control: \r\n", False),
    (b"Cache-Control: max-age=60, no-store\r\n", False),
    (b"Cache-Control: max-age=60\r\nCache-Control: no-store\r\n", False),
    (b"Cache-Control: max-age=60, private\r\n", False),
    (b"Cache-Control: max-age=60, no-cache\r\n", False),
    (b'Cache-Control: no-cache="X", max-age=60\r\n', False),
    (b"Cache-Control: max-age=60\r\nVary: *\r\n", False),
    (b"Cache-Control: max-age=60\r\nAge: 61\r\n", False),
    (b"Cache-Control: max-age=60\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n", False),
    (b"Expires: Sun, 06 Nov 1994 08:49:37 GMT\r\n", False),
    (b"Expires: never\r\n", False),
    (b"Expires: Fri, 31 Dec 2060 00:00:00 GMT\r\nCache-Control: no-cache\r\n", False),
    (b"Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n", False),
    (b"Pragma: no-cache\r\n", False),
)


def test_what_permits(lab):
    """Only a lifetime that is stated and has not passed, and nothing that forbids."""
    def behave(_icap, transaction):
        number = int(transaction.http_request.start.split(" ")[1].partition("/text/")[2].partition("?")[0])
        transaction.send_204(PERMISSIONS[number][0])
    origin, icap, proxy = start(lab, behave)
    for number, (permission, permits) in enumerate(PERMISSIONS):
        before = icap.count
        for _ in range(2):
            equal(proxy.get(origin.url(f"/text/{number}", say="x")).text(), "x", "body")
        equal(icap.count - before, 1 if permits else 2, f"ICAP transactions with {permission!r}")


def test_it_expires(lab):
    origin, icap, proxy = start(lab, passes(b"Cache-Control: max-age=2\r\n"))
    url = origin.url("/text", say="x")
    began = time.monotonic()
    proxy.get(url)
    until(lambda: proxy.get(url).status == 200 and icap.count >= 2, 20, "the service is asked again")
    true(time.monotonic() - began >= 2, "not before its time")


def test_another_istag_ends_it(lab):
    """Noticed on any answer; and a bump ends it as well."""
    origin, icap, proxy = start(lab, passes())
    urls = [origin.url(f"/text/{n}", say="x") for n in range(4)]

    def asked():
        before = icap.count
        for url in urls * 2:
            equal(proxy.get(url).text(), "x", "body")
        return icap.count - before
    equal([asked(), asked()], [4, 0], "ICAP transactions")
    icap.istag = icap.options["ISTag"] = '"test-2"'
    equal(asked(), 0, "ICAP transactions while nobody knows")
    proxy.get(origin.url("/other"))
    equal([asked(), asked()], [4, 0], "ICAP transactions under another ISTag")
    contains(proxy.ctl("services", "bump", "s"), "made again", "what retortctl says")
    equal([asked(), asked()], [4, 0], "ICAP transactions after a bump")
    proxy.reload()
    equal(asked(), 0, "ICAP transactions after a reload")


def test_options_tell_of_another_istag(lab):
    """Though no request goes to the service any more, its OPTIONS are asked as often as they say."""
    icap = IcapServer(lab, passes(), methods="REQMOD", Options_TTL=1)
    origin, _, proxy = start(lab, None, server=icap)
    url = origin.url("/text", say="x")
    proxy.get(url)
    icap.istag = icap.options["ISTag"] = '"test-2"'
    until(lambda: proxy.get(url).status == 200 and icap.count >= 2, 20, "the new ISTag is noticed")


def test_what_is_under_way_when_it_is_bumped(lab):
    """Its verdict is of before, also where only OPTIONS told the ISTag."""
    lab.needs("admin")
    for istag in (b'ISTag: "test-1"\r\n', b""):
        arrived, gate = threading.Event(), threading.Event()

        def behave(_icap, transaction, arrived=arrived, gate=gate, istag=istag):
            arrived.set()
            gate.wait(20)
            transaction.send(b"ICAP/1.0 204 No Content\r\n" + istag + HOUR + b"\r\n")
        origin, icap, proxy = start(lab, behave, timeout="20s")
        url = origin.url("/text", say="x")
        client = threading.Thread(target=proxy.get, args=(url,))
        client.start()
        true(arrived.wait(20), "the service is asked")
        proxy.ctl("services", "bump", "s")
        gate.set()
        client.join()
        equal([proxy.get(url).text(), proxy.get(url).text(), icap.count], ["x", "x", 2], f"bodies, ICAP transactions, {istag}")
        proxy.stop()


def test_without_an_istag(lab):
    """Nothing would tell when it has become old."""
    def behave(_icap, transaction):
        transaction.send(b"ICAP/1.0 204 No Content\r\n" + HOUR + b"\r\n")
    origin, icap, proxy = start(lab, None, server=IcapServer(lab, behave, methods="REQMOD", ISTag=None))
    for _ in range(3):
        proxy.get(origin.url("/text", say="x"))
    equal((icap.count, proxy.counter("verdicts_kept")), (3, 0), "ICAP transactions, verdicts that were kept")


@memcheck
def test_which_requests_are_equal(lab):
    """Those of which the service would get the same bytes."""
    origin, icap, proxy = start(lab, passes(), proxy_credentials=True)
    url = origin.url("/text", say="x")
    many = ((url, {}), (url, {"A": "1"}), (url, {"A": "2"}), (url, {"a": "1"}), (url, {"A": "1", "B": "2"}),
            (url, {"B": "2", "A": "1"}), (url, {"Cookie": "a"}), (url, {"Cookie": "b"}), (url + "&", {}),
            (origin.url("/text", say="y"), {}), (url, {"Proxy-Authorization": "Basic YTpi"}),
            (url, {"Proxy-Authorization": "Basic YTpj"}), (url, {"X-Client-IP": "127.0.0.1"}))
    for number, (target, fields) in enumerate(many):
        for _ in range(2):
            proxy.get(target, fields)
            equal(icap.count, number + 1, f"ICAP transactions with {target}, {fields}")
    for method in ("POST", "PUT", "DELETE", "PROPFIND"):
        before = icap.count
        for _ in range(2):
            proxy.fetch(method, url)
        equal(icap.count, before + 2, f"ICAP transactions of {method}")
    for method in ("GET", "OPTIONS"):
        before = icap.count
        for _ in range(2):
            proxy.fetch(method, url, body=b"body")
        equal(icap.count, before + 2, f"ICAP transactions of {method} with a body")
    before = icap.count
    for _ in range(2):
        proxy.get(url, {"Cache-Control": "no-store"})
    equal(icap.count, before + 2, "ICAP transactions of a request that is not to be stored")


def test_what_the_service_is_told_of_the_client(lab):
    """Where it gets the address, one client's verdict is not another's; from the first request on."""
    for wanted, include, expected in ((None, "none", 1), ("X-Client-IP", "none", 2), (None, None, 2), ("X-Client-Port", "none", 6)):
        icap = IcapServer(lab, passes(), methods="REQMOD", X_Include=wanted)
        origin, _, proxy = start(lab, None, server=icap, **({} if include is None else {"include": include}))
        url = origin.url("/text", say="x")
        for source in ("127.0.0.1", "127.0.0.2") * 3:
            proxy.get(url, source=source)
        equal(icap.count, expected, f"ICAP transactions, X-Include {wanted}, include {include}")
        proxy.stop()


def test_by_some_fields(lab):
    """With verdict_by what other fields say does not matter, but for what the service has changed."""
    def behave(_icap, transaction):
        path = transaction.http_request.start.split(" ")[1]
        if "/bad" in path:
            answers(b"no")(_icap, transaction)
        elif "/new" in path:
            rewrites()(_icap, transaction)
        else:
            transaction.send_204(HOUR)
    origin, icap, proxy = start(lab, behave, verdict_by=["Accept", "Referer"])

    def asked(path, *many):
        before = icap.count
        seen = [proxy.get(origin.url(path), fields) for fields in many]
        return icap.count - before, seen
    many = ({"Cookie": "a"}, {"Cookie": "b"}, {"cookie": "b", "X": "y"}, {})
    equal(asked("/echo", *many)[0], 1, "ICAP transactions")
    equal(asked("/echo", {"Accept": "a"}, {"accept": "a"}, {"Accept": "b"}, {"Accept": ""}, {"Referer": "a"})[0], 4,
          "ICAP transactions with other values")
    number, seen = asked("/bad", *many)
    equal((number, {answer.text() for answer in seen}), (1, {"no"}), "ICAP transactions and answers")
    number, seen = asked("/echo/new", *many, *many)
    equal((number, {echoed(answer)["header"]("x-added") for answer in seen}), (4, {"1"}), "ICAP transactions and X-Added")
    equal([echoed(answer)["header"]("cookie") for answer in seen], ["a", "b", "b", None] * 2, "each client's own fields")


def test_what_an_answer_depends_on_beside_verdict_by(lab):
    """An answer to a Range or a condition, or with Vary, is not for those who asked otherwise; one with a cookie for nobody else."""
    def behave(_icap, transaction):
        path = transaction.http_request.start.split(" ")[1]
        status, field, value = next(case for part, case in cases.items() if path.endswith(part))
        asked = field is None or transaction.http_request.header(field) == value
        body = b"yours" if asked else b"plain"
        start = b"HTTP/1.1 %d Status\r\n" % (status if asked else 200)
        extra = {"/vary": b"Vary: X-Kind\r\n", "/cookie": b"Set-Cookie: session=1\r\n"}.get("/" + path.rpartition("/")[2], b"")
        if asked and status == 304:
            transaction.send_head(start + b'ETag: "a"\r\n\r\n', body=False, icap=HOUR)
        else:
            transaction.send_200(start + extra + b"\r\n", body, icap=HOUR)
    cases = {"/range": (206, "Range", "bytes=0-4"), "/match": (304, "If-None-Match", '"a"'), "/failed": (412, "If-Match", '"b"'),
             "/beyond": (416, "Range", "bytes=9-"), "/vary": (200, "X-Kind", "mine")}
    origin, icap, proxy = start(lab, behave, verdict_by="none")
    for path, (status, field, value) in cases.items():
        for fields, expected in (({field: value}, status), ({field: value}, status), ({}, 200), ({}, 200)):
            answer = proxy.get(origin.url(path), fields)
            equal(answer.status, expected, f"{path}: status with {fields}")
            equal(answer.text(), "" if expected == 304 else "yours" if fields else "plain", f"{path}: body with {fields}")
    equal(icap.count, 2 * len(cases), "ICAP transactions")
    cases["/cookie"] = (200, None, None)
    for _ in range(2):
        equal(proxy.get(origin.url("/cookie")).header("Set-Cookie"), "session=1", "the cookie")
    equal(icap.count, 2 * len(cases), "ICAP transactions")


def test_a_reload_names_other_fields(lab):
    """What was said when a field did not count is not used for those without it when it does."""
    def behave(_icap, transaction):
        who = transaction.http_request.header("X-Group") or "nobody"
        transaction.send_200(ANSWER, who.encode(), icap=HOUR)
    origin, icap, proxy = start(lab, behave, verdict_by="none")
    url = origin.url("/x")
    equal([proxy.get(url, {"X-Group": "staff"}).text(), proxy.get(url).text()], ["staff", "staff"], "answers by the URL")
    text = proxy.text()
    contains(text, 'verdict_by = "none"', "the configuration")
    proxy.write_config(text.replace('verdict_by = "none"', "verdict_by = X-Group"))
    equal(proxy.reload().status, 200, "reload")
    equal([proxy.get(url).text(), proxy.get(url, {"X-Group": "staff"}).text()], ["nobody", "staff"], "answers by the field")


def chain(lab, *behaviours, options=({}, {})):
    servers = [IcapServer(lab, behave, methods="REQMOD") for behave in behaviours]
    services = [Service(f"s{n}", server.uri(), point="reqmod_precache", bypass=False, **options[n])
                for n, server in enumerate(servers)]
    return Origin(lab), servers, Retort(lab, services=services)


def test_chains(lab):
    """Each service permits for itself."""
    for first, second, expected in ((passes(), passes(b""), (1, 3)), (passes(b""), passes(), (3, 1)),
                                    (rewrites(), passes(), (1, 1)), (rewrites(permission=b""), rewrites(("X-Two", "2")), (3, 1)),
                                    (rewrites(), answers(b"no"), (1, 1)), (answers(b"no"), passes(), (1, 0))):
        origin, servers, proxy = chain(lab, first, second)
        for _ in range(3):
            proxy.get(origin.url("/echo"))
        equal(tuple(server.count for server in servers), expected, "ICAP transactions of both")
        proxy.stop()


@memcheck
def test_the_second_sees_what_the_first_has_made(lab):
    """When the first changes its mind, what the second said of something else does not count."""
    origin, servers, proxy = chain(lab, rewrites(("X-One", "1")), rewrites(("X-Two", "2")))
    url = origin.url("/echo")
    for _ in range(2):
        seen = echoed(proxy.get(url))
        equal((seen["header"]("x-one"), seen["header"]("x-two")), ("1", "2"), "fields at the origin")
    servers[0].behave = rewrites(("X-One", "other"))
    proxy.ctl("services", "bump", "s0")
    for _ in range(2):
        seen = echoed(proxy.get(url))
        equal((seen["header"]("x-one"), seen["header"]("x-two")), ("other", "2"), "fields at the origin")
    equal([server.count for server in servers], [2, 2], "ICAP transactions of both")


def test_next_services(lab):
    """Which services follow is part of what is remembered."""
    for names, expected in ((b"s2", (1, 0, 1)), (b"s2, s1", (1, 1, 1)), (b"", (1, 0, 0))):
        def routes(_icap, transaction, names=names):
            transaction.send_204(HOUR + b"X-Next-Services: " + names + b"\r\n")
        servers = [IcapServer(lab, behave, methods="REQMOD") for behave in (routes, passes(), passes())]
        services = [Service(f"s{n}", server.uri(), point="reqmod_precache", routing=n == 0) for n, server in enumerate(servers)]
        origin, proxy = Origin(lab), Retort(lab, services=services, adapt={"all": ["s0", "s1"]})
        for _ in range(3):
            proxy.get(origin.url("/text", say="x"))
        equal(tuple(server.count for server in servers), expected, f"ICAP transactions with {names!r}")
        log = [[v["service"] for v in entry["icap"]] for entry in proxy.log(3)]
        equal((log[1], log[2]), (log[0], log[0]), "services in the log")
        proxy.stop()


def test_a_reload_switches_routing(lab):
    """Services that were named count from when that is wanted, and no longer than it is."""
    def routes(_icap, transaction):
        transaction.send_204(HOUR + b"X-Next-Services: s2\r\n")
    servers = [IcapServer(lab, behave, methods="REQMOD") for behave in (routes, passes(b""), passes(b""))]
    services = [Service(f"s{n}", server.uri(), point="reqmod_precache", **({"routing": False} if n == 0 else {})) for n, server in enumerate(servers)]
    origin, proxy = Origin(lab), Retort(lab, services=services, adapt={"all": ["s0", "s1"]})
    text = proxy.text()
    for number, routing in enumerate((False, True, False)):
        proxy.write_config(text.replace("routing = false", "routing = true") if routing else text)
        equal(proxy.reload().status, 200, "reload")
        for _ in range(2):
            proxy.get(origin.url("/text", say="x"))
        equal([server.count for server in servers], [[1, 2, 0], [2, 2, 2], [2, 4, 2]][number], f"ICAP transactions, routing {routing}")
    proxy.stop()


def test_answers_that_are_not_kept(lab):
    """Too long, or broken off."""
    def breaks_off(_icap, transaction):
        transaction.send_head(ANSWER, icap=HOUR)
        transaction.send(b"5\r\nhal")
        return True
    origin, icap, proxy = start(lab, answers(b"x" * 65537))
    for _ in range(2):
        equal(len(proxy.get(origin.url("/x")).body), 65537, "length")
    icap.behave = breaks_off
    for _ in range(2):
        try:
            proxy.get(origin.url("/y"))
        except Truncated:
            pass
    equal((icap.count, proxy.counter("verdicts_kept")), (4, 0), "ICAP transactions, verdicts that were kept")


def test_changed_requests_with_a_body_are_not_kept(lab):
    """A service may make a GET with a body of one without."""
    def behave(_icap, transaction):
        head = transaction.request_head(add=[("Content-Length", "4")])
        transaction.send_200(head, b"body", icap=HOUR)
    origin, icap, proxy = start(lab, behave)
    for _ in range(2):
        equal(echoed(proxy.get(origin.url("/echo")))["length"], 4, "length at the origin")
    equal((icap.count, proxy.counter("verdicts_kept")), (2, 0), "ICAP transactions, verdicts that were kept")


def test_space(lab):
    """Under verdict_space the least used go; with 0 none is kept; a reload applies it."""
    origin, icap, proxy = start(lab, answers(b"x" * 1000), extra='verdict_space = "256KB"')
    for number in range(400):
        proxy.get(origin.url(f"/{number}"))
    kept, evicted = counters(proxy, "kept", "evicted")
    true(kept == 400 and evicted > 100, f"kept {kept}, evicted {evicted}")
    metrics = dict(line.rsplit(" ", 1) for line in proxy.admin("GET", "/metrics").body.decode().splitlines() if line[0] != "#")
    equal(float(metrics["retort_verdict_limit_bytes"]), 262144.0, "limit")
    equal(float(metrics["retort_verdicts"]), float(kept - evicted), "entries")
    true(0 < float(metrics["retort_verdict_bytes"]) <= 262144, "bytes")
    proxy.write_config(proxy.text(extra="verdict_space = 0"))
    equal(proxy.reload().status, 200, "reload")
    before = icap.count
    for _ in range(2):
        proxy.get(origin.url("/399"))
    equal(icap.count, before + 2, "ICAP transactions without space")


@memcheck
def test_a_service_that_is_down(lab):
    """What it said still counts."""
    origin, icap, proxy = start(lab, passes())
    url = origin.url("/text", say="x")
    equal(proxy.get(url).status, 200, "status")
    icap.stop()
    equal((proxy.get(url).status, proxy.get(url + "y").status), (200, 502), "statuses")
    services = json.loads(proxy.admin("GET", "/services").body)["services"]
    equal([service["account"]["remembered"] for service in services], [1], "its account")


def test_a_failure_permits_nothing(lab):
    """When another endpoint need not be asked, it is not the failed one's word that counts."""
    def fails(_icap, transaction):
        transaction.send(b'ICAP/1.0 500 No\r\nISTag: "test-1"\r\n' + HOUR + b"\r\n")
    first, second = IcapServer(lab, fails, methods="REQMOD"), IcapServer(lab, methods="REQMOD", Transfer_Ignore="gif")
    service = Service("s", [first.uri(), second.uri()], point="reqmod_precache", bypass=False)
    origin, proxy = Origin(lab), Retort(lab, services=[service])
    numbers = itertools.count()

    def asked():
        equal(proxy.get(origin.url(f"/text/{next(numbers)}.gif", say="x")).text(), "x", "body")
        return first.count > 0
    until(asked, 10 * lab.patience, "the first one is up, and it is its turn")
    equal((second.count, proxy.counter("verdicts_kept")), (0, 0), "asked, and verdicts that were kept")


def test_while_a_recording_runs(lab):
    """What is recorded is kept all the same, and what is remembered is no exchange."""
    origin, icap, proxy = start(lab, answers(b"no"))
    proxy.admin("POST", "/icap/record")
    for _ in range(3):
        equal(proxy.get(origin.url("/x")).text(), "no", "the answer")
    equal((icap.count, proxy.counter("icap_recorded")), (1, 1), "ICAP transactions, recorded exchanges")


def test_workers_share_verdicts(lab):
    """And bumps: what was said before one is used by none after it."""
    version = [0]

    def behave(_icap, transaction):
        transaction.send_200(ANSWER, b"%d" % version[0], icap=HOUR)
    origin, icap, proxy = start(lab, behave, workers=2)
    stop, wrong = threading.Event(), []

    def run(number):
        while not stop.is_set():
            least = version[0]
            seen = int(proxy.get(origin.url(f"/{number % 3}")).body)
            if seen < least:
                wrong.append((seen, least))
    threads = [threading.Thread(target=run, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for number in range(1, 11):
        before = proxy.counter("verdicts_used")
        until(lambda before=before: proxy.counter("verdicts_used") > before + 20, 30 * lab.patience, "verdicts are used")
        icap.behave = lambda _icap, transaction, number=number: transaction.send_200(ANSWER, b"%d" % number, icap=HOUR)
        proxy.ctl("services", "bump", "s")
        version[0] = number
    stop.set()
    for thread in threads:
        thread.join()
    equal(wrong, [], "answers of before a bump")


# With the ad remover.

def test_the_ad_remover_permits(lab):
    """With its Remember; new lists are another ISTag."""
    for way, expected in (("rewrite", "MODIFIED"), ("answer", "SATISFIED")):
        services = Services(lab, adremover=f"adremover.Target {way}\nadremover.Remember 60m", names=("adremover",))
        origin, proxy = Origin(lab), Retort(lab, services=services.for_proxy(bypass=False))
        for _ in range(3):
            equal(proxy.get(origin.url("/text", say="x")).text(), "x", "what is no ad")
            equal(proxy.get("http://ads.example/x.gif").header("Content-Type"), "image/gif", "an ad")
        log = verdicts(proxy, 6)
        equal(log[:2], [["UNMODIFIED"], [expected]], "the first verdicts")
        equal(log[2:], [["REMEMBERED_UNMODIFIED"], [f"REMEMBERED_{expected}"]] * 2, "the others")
        proxy.stop()


def test_new_lists_end_verdicts(lab):
    services = Services(lab, adremover="adremover.Remember 60m\nadremover.OptionsTTL 1", names=("adremover",))
    origin, proxy = Origin(lab), Retort(lab, services=services.for_proxy(bypass=False))
    url = origin.url("/text/picture.gif", say="x")
    for _ in range(2):
        equal(proxy.get(url).text(), "x", "what is no ad")
    lab.write("ads.txt", "||127.0.0.1^*/picture.gif\n")
    services.cicap.reconfigure()
    until(lambda: proxy.get(url).header("Content-Type") == "image/gif", 30 * lab.patience, "the new list")


def test_the_ad_remover_says_nothing_unasked(lab):
    services = Services(lab, names=("adremover",))
    origin, proxy = Origin(lab), Retort(lab, services=services.for_proxy(bypass=False))
    for _ in range(2):
        proxy.get(origin.url("/text", say="x"))
    equal(verdicts(proxy, 2), [["UNMODIFIED"]] * 2, "verdicts")
