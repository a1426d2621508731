"""What Prometheus is told: every request counted once, by labels that a client can't multiply; durations; both text formats.

Texts are read by the parsers of Debian's python3-prometheus-client and by promtool; a test says so where one is missing."""

import os
import re
import shutil
import socket
import ssl
import subprocess
import threading
import time

from harness import ports, wire
from harness.certificates import CLIENT, Authority
from harness.checks import Skip, between, contains, equal, lacks, true, until
from harness.disk_bench import Bench, names
from harness.icap import IcapServer
from harness.lab import SOURCE
from harness.metrics import fetch as scrape, samples, value
from harness.origin import Origin
from harness.raw_origin import RawOrigin
from harness.retort import Retort, Service
from harness.suite import memcheck

try:
    from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_open
    from prometheus_client.parser import text_string_to_metric_families as parse_plain
except ImportError:
    parse_open = parse_plain = None

OPEN = {"Accept": "application/openmetrics-text; version=1.0.0,text/plain;version=0.0.4;q=0.5"}


@memcheck
def test_each_request_is_counted_once_by_what_became_of_it(lab):
    origin = Origin(lab)
    proxy = Retort(lab, reverse={"/": origin.url("/")}, workers=2)
    listener = "%s:%d" % proxy.reverse
    for _ in range(3):
        equal(proxy.get("/text?say=a&cc=max-age%3D60", host="www.example.com").status, 200, "status")
    equal(proxy.fetch("POST", "/echo", body=b"x", host="www.example.com").status, 200, "status")
    equal(proxy.fetch("BREW", "/text?say=b", host="www.example.com").status, 200, "status")
    proxy.get("/text?say=c&status=404", host="www.example.com")
    until(lambda: value(scrape(proxy)[0], "retort_requests_total") == 6, 5 * lab.patience, "six requests")
    text = scrape(proxy)[0]
    one = {"listener": listener, "protocol": "HTTP/1.1"}
    equal(value(text, "retort_requests_total", **one, method="GET", result="HIT", status="2xx"), 2, "hits")
    equal(value(text, "retort_requests_total", **one, method="GET", result="MISS", status="2xx"), 1, "misses")
    equal(value(text, "retort_requests_total", **one, method="POST", status="2xx"), 1, "POST")
    equal(value(text, "retort_requests_total", **one, method="other"), 1, "a method that Retort does not know")
    equal(value(text, "retort_requests_total", **one, status="4xx"), 1, "an error")
    equal(value(text, "retort_requests_total", listener=listener), 6, "of the listener, in both workers")
    equal(value(text, "retort_request_duration_seconds_count"), 6, "requests that were measured")
    equal(value(text, "retort_request_duration_seconds_count", result="HIT"), 2, "hits that were measured")
    equal(value(text, "retort_origin_first_byte_seconds_count"), 4, "answers of the origin")


def test_durations_have_examples_of_transactions(lab):
    """OpenMetrics: a bucket names the latest transaction that it counts, by the id that the access log has."""
    if parse_open is None:
        raise Skip("python3-prometheus-client is not installed (tests/install.sh)")
    origin = Origin(lab)
    proxy = Retort(lab, reverse={"/": origin.url("/")}, services=[Service("s", "icap://127.0.0.1:1/s")], adapt={},
                   extra='origins web { servers = { "http://127.0.0.1:1" } }\nlimit all { requests = "1000/s" }')
    equal(proxy.get("/drip?n=20&piece=10&delay=20", host="www.example.com").status, 200, "status")
    entry = proxy.last(1)
    text, kind = scrape(proxy, OPEN)
    contains(kind, "application/openmetrics-text; version=1.0.0", "Content-Type")
    examples = [sample.exemplar for family in parse_open(text) for sample in family.samples if sample.exemplar]
    equal([example.labels["transaction_id"] for example in examples], [entry["id"]], "transactions of exemplars")
    true(0 < examples[0].value <= 20 * lab.patience, f"seconds that it took: {examples[0].value}")
    true(abs(float(examples[0].timestamp) - entry["time"]) < 60, f"when it ended: {examples[0].timestamp}")
    lacks(scrape(proxy)[0], "transaction_id", "the text format of Prometheus, which has no exemplars")


def test_both_formats_are_read_by_a_parser(lab):
    """Each family once, with a kind; counters with _total; what a client writes stays within labels."""
    if parse_open is None:
        raise Skip("python3-prometheus-client is not installed (tests/install.sh)")
    origin = Origin(lab)
    proxy = Retort(lab, reverse={"/": origin.url("/")}, services=[Service("s", "icap://127.0.0.1:1/s")], adapt={},
                   extra='origins web { servers = { "http://127.0.0.1:1" } }\nlimit all { requests = "1000/s" }')
    with proxy.wire(reverse=True) as client:
        client.send(b'G"\nET / HTTP/1.1\r\nHost: x\r\n\r\n')
        client.read_to_end()
    proxy.fetch("X" * 50, "/text", host="www.example.com")
    plain, opened = list(parse_plain(scrape(proxy)[0])), list(parse_open(scrape(proxy, OPEN)[0]))
    for families in (plain, opened):
        names = [family.name for family in families]
        equal(sorted(set(names)), sorted(names), "each family once")
        equal([family.name for family in families if family.type == "unknown" or not family.documentation], [], "families without kind or help")
    equal({family.name for family in plain}, {family.name for family in opened}, "families in either format")
    methods = {sample.labels["method"] for family in opened if family.name == "retort_requests" for sample in family.samples}
    true(methods <= {"GET", "other"}, f"methods {methods}")


def test_names_follow_the_conventions(lab):
    if shutil.which("promtool") is None:
        raise Skip("promtool is not installed (tests/install.sh)")
    proxy = Retort(lab, services=[Service("s", "icap://127.0.0.1:1/s")], adapt={})
    done = subprocess.run(["promtool", "check", "metrics"], input=scrape(proxy)[0], capture_output=True, text=True, check=False)
    equal((done.returncode, done.stderr + done.stdout), (0, ""), "promtool check metrics")


def test_a_listener_keeps_its_numbers_over_a_reload(lab):
    origin = Origin(lab)
    proxy = Retort(lab, reverse={"/": origin.url("/")})
    name = "%s:%d" % proxy.reverse
    counted = lambda: value(scrape(proxy)[0], "retort_requests_total", listener=name)  # noqa: E731
    with proxy.wire(reverse=True) as client:
        for total in (1, 2, 3):
            client.send(wire.request("GET", "/text?say=a", host="www.example.com"))
            equal(client.response().status, 200, "status")
            until(lambda: counted() == total, 5 * lab.patience, f"{total} requests")
            equal(proxy.reload().status, 200, "reload")


def test_every_bound_that_refuses_says_so(lab):
    proxy = Retort(lab, client={"max_connections": 1})
    with proxy.wire() as first:
        first.send(b"GET")  # the kernel hands it over with its first bytes
        until(lambda: proxy.counter("client_connections_open") == 1, 5 * lab.patience, "the first connection")
        with proxy.wire() as second:
            second.send(b"GET")
            second.read_to_end()
        until(lambda: value(scrape(proxy)[0], "retort_bound_reached_total", option="client.max_connections") == 1,
              5 * lab.patience, "the connection that was refused")


def test_a_service_that_was_never_asked_is_not_down(lab):
    """It is asked at the start; what it is nobody knows before it has answered."""
    asked = threading.Event()
    icap = IcapServer(lab)
    icap.options_answer = lambda server, connection: asked.wait(20 * lab.patience) and server.send_options(connection)
    proxy = Retort(lab, services=[Service("slow", icap.uri()), Service("away", "icap://127.0.0.1:1/s")])

    def states():
        return {dict(labels)["service"]: dict(labels)["state"]
                for labels, found in samples(scrape(proxy)[0], "retort_icap_service_state").items() if found}

    def up():
        return {dict(labels)["service"]: found for labels, found in samples(scrape(proxy)[0], "retort_icap_service_up").items()}
    until(lambda: states() == {"slow": "unknown", "away": "down"}, 5 * lab.patience, "one to be down without a request")
    equal(up(), {"away": 0}, "whether they are up")
    asked.set()
    until(lambda: states() == {"slow": "up", "away": "down"}, 5 * lab.patience, "the other to be up without a request")
    equal(up(), {"slow": 1, "away": 0}, "whether they are up")


def test_inspections_are_counted(lab):
    origin, proxy = Origin(lab), Retort(lab)
    equal([value(scrape(proxy)[0], f"retort_{name}") for name in ("inspection_under_way", "inspected_transactions", "inspected_bytes")], [0, 0, 0], "before")
    equal(proxy.admin("POST", "/v1/inspect?transactions=2&seconds=60").status, 200, "status")
    equal(value(scrape(proxy)[0], "retort_inspection_under_way"), 1, "under way")
    for _ in range(3):
        proxy.get(origin.url("/bytes", n=5000, cc="no-store"))
    until(lambda: value(scrape(proxy)[0], "retort_inspections_taken_total") == 2, 5 * lab.patience, "both that were wanted")
    text = scrape(proxy)[0]
    equal([value(text, f"retort_{name}") for name in ("inspected_transactions", "inspections_evicted_total", "inspections_left_out_total")], [2, 0, 0], "kept, evicted, left out")
    true(2 * 5000 < value(text, "retort_inspected_bytes") < value(text, "retort_inspected_limit_bytes"), "bytes that they take")
    until(lambda: value(scrape(proxy)[0], "retort_inspection_under_way") == 0, 5 * lab.patience, "the end")


@memcheck
def test_how_long_handshakes_take(lab):
    """Each that was completed counts once, also one that a slow client makes long; one that breaks off does not."""
    port, ca, origin = ports.take(), Authority(lab), Origin(lab)
    leaf = ca.leaf("localhost")
    proxy = Retort(lab, reverse={"/": origin.url("/")},
                   extra=f'listen "127.0.0.1:{port}" {{ mode = reverse certificates = {{ "{leaf.both}" }} }}\n')
    context = ssl.create_default_context(cafile=ca.file)
    seen = lambda: value(scrape(proxy)[0], "retort_tls_handshake_seconds_count")  # noqa: E731
    for total in (1, 2):
        with socket.create_connection(("127.0.0.1", port), 10 * lab.patience) as raw, context.wrap_socket(raw, server_hostname="localhost"):
            until(lambda: seen() == total, 5 * lab.patience, f"{total} handshakes")
    with socket.create_connection(("127.0.0.1", port), 10 * lab.patience) as raw:
        raw.sendall(b"\x16\x03\x01\x00\x01\x00")  # no ClientHello yet
    until(lambda: proxy.counter("tls_failures_closed") == 1, 5 * lab.patience, "the end of the one that broke off")
    to_server, from_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    slow = context.wrap_bio(from_server, to_server, server_hostname="localhost")
    with socket.create_connection(("127.0.0.1", port), 10 * lab.patience) as raw:
        while True:
            try:
                slow.do_handshake()
                break
            except ssl.SSLWantReadError:
                raw.sendall(to_server.read())
                time.sleep(0.2)
                from_server.write(raw.recv(65536))
        time.sleep(0.2)
        raw.sendall(to_server.read())  # its Finished
        until(lambda: seen() == 3, 5 * lab.patience, "the slow one")
    text = scrape(proxy)[0]
    took = value(text, "retort_tls_handshake_seconds_sum")
    true(0.2 <= took <= 0.5 + 20 * lab.patience, f"seconds of three handshakes, one of which waited: {took}")
    equal(value(text, "retort_tls_handshakes_total"), 3, "the counter")
    longer = value(text, "retort_tls_handshake_seconds_bucket", le="+Inf") - value(text, "retort_tls_handshake_seconds_bucket", le="0.131072")
    between(longer, 1, 1 if lab.patience == 1 else 3, "handshakes of more than an eighth of a second")


def test_how_long_the_disk_takes(lab):
    """Each hit that is read from disk counts once; a hit in memory does not."""
    bench = Bench(lab)
    versions = bench.fill(names("d", 5), 3000)
    bench.on_disk(5)
    count = lambda: value(scrape(bench.proxy)[0], "retort_disk_read_seconds_count")  # noqa: E731
    equal(count(), 0, "reads before the restart")
    bench.proxy.restart()
    bench.expect_hits(versions, 3000)
    equal((count(), bench.proxy.counter("cache_disk_hits")), (5, 5), "reads, hits from disk")
    bench.expect_hits(versions, 3000)
    equal((count(), bench.proxy.counter("cache_hits")), (5, 10), "reads, hits")
    took = value(scrape(bench.proxy)[0], "retort_disk_read_seconds_sum")
    true(0 < took < 5 * 5 * lab.patience, f"seconds of five reads: {took}")


def test_every_limit_has_a_metric_that_is_there(lab):
    """docs/METRICS.md lists them; a unit test holds the list to the options."""
    with open(os.path.join(SOURCE, "docs/METRICS.md"), encoding="utf-8") as file:
        listed = re.findall(r"^\| ([^|`]+) \| `(retort_\w+)` \| (yes)? ?\|$", file.read(), re.M)
    true(len(listed) > 70, f"limits with a metric: {len(listed)}")
    proxy = Bench(lab, services=[Service("s", "icap://127.0.0.1:1/s")]).proxy
    text = scrape(proxy)[0]
    equal([option for option, metric, _ in listed if f"\n# TYPE {metric} counter\n" not in text], [], "limits whose metric is not in /metrics")
    equal({dict(labels)["option"] for labels in samples(text, "retort_bound_reached_total")}, {option for option, _, marked in listed if marked}, "marked limits")


def test_what_is_too_large_is_counted(lab):
    origin = Origin(lab)
    proxy = Retort(lab, client={"max_head": "2KB"}, cache={"max_object": "10KB", "max_variants": 2}, origin={"max_head": "2KB"})
    counted = lambda: [proxy.counter(name) for name in ("client_heads_too_large", "origin_heads_too_large", "cache_too_large")]  # noqa: E731
    equal(proxy.fetch("GET", origin.url("/text", say="a"), {"X": "y" * 5000}).status, 431, "status")
    large = RawOrigin(lab, lambda connection, _request: connection.send(b"HTTP/1.1 200 OK\r\nX: " + b"y" * 5000 + b"\r\nContent-Length: 0\r\n\r\n"))
    equal(proxy.get(large.url()).status, 502, "status")
    for path in ("/bytes", "/chunked"):
        equal(proxy.get(origin.url(path, n=20000, cc="max-age=60")).status, 200, "status")
    until(lambda: counted() == [1, 1, 2], 5 * lab.patience, f"{counted()} heads and bodies that were too large")
    for number in range(3):
        proxy.fetch("GET", origin.url("/text", say="b", cc="max-age=60", vary="X"), {"X": str(number)})
    until(lambda: value(scrape(proxy)[0], "retort_cache_variants_dropped_total") == 1, 5 * lab.patience, "the variant that made room")


def test_what_certificates_depend_on_ends_one_day(lab):
    """Of each file that something is signed or verified with, what ends first; for listeners, interception and origins. A list
    that has ended counts less than 0."""
    root, own = Authority(lab, "root", days=400), Authority(lab, "own", path_length=0, days=300.5)
    middle = root.intermediate("middle", days=20.5)
    shown, clients = middle.leaf("a.test", days=90.5), Authority(lab, "clients", days=40.5)
    both = lab.write("both.pem", root.pem().decode() + clients.pem().decode())
    client = root.leaf("proxy", usage=CLIENT, days=12.5)
    tls = f'certificates = "{shown.both}"  client_certificate = optional  client_ca = "{both}"  client_crl = "{clients.crl(days=-0.5)}"'
    port = ports.take()
    proxy = Retort(lab, extra=f"""
listen "127.0.0.1:{port}" {{ mode = forward  {tls} }}
authority {{ certificate = "{own.file}"  key = "{own.key}" }}
intercept all {{ action = bump }}
origins one {{ servers = "https://127.0.0.1:1"  crl_file = "{root.crl(days=3.5)}"  ca_file = "{root.file}" }}
origins two {{ servers = "https://127.0.0.1:2" }}
""", origin={"certificate": client.file, "certificate_key": client.key})
    rows = {(one["kind"], one["place"], one["name"]): one["days"] for one in proxy.status()["trust"]}
    place = f"listen 127.0.0.1:{port}"
    equal({row: days for row, days in rows.items() if row[2] != "CN=root" or row[0] == "crl"},
          {("authority", "authority", "CN=own"): 300, ("issuer", place, "CN=middle"): 20, ("ca", place, "CN=clients"): 40,
           ("crl", place, "CN=clients"): 0, ("crl", "origins one", "CN=root"): 3, ("certificate", "origin", "CN=proxy"): 12,
           ("certificate", "origins one", "CN=proxy"): 12}, "rows of the status")
    found = {(labels["kind"], labels["place"], labels["name"]): left for labels, left in (
        (dict(labels), left) for labels, left in samples(scrape(proxy)[0], "retort_trust_expiry_seconds").items())}
    equal(set(found), set(rows), "rows of the metric")
    for row, low, high in ((("issuer", place, "CN=middle"), 20.4, 20.5), (("crl", place, "CN=clients"), -0.6, -0.5)):
        between(found[row], low * 86400, high * 86400, f"seconds of {row}")
    said = proxy.ctl("status")
    true(re.search(r"^crl +origins one +\S+ +3  /", said, re.M), said)
