"""What operators are told of a service: numbers, times, its own words."""

import threading

import time

from harness.adaptation import HEAD, account, fetch, start
from harness.checks import between, contains, equal, true, until
from harness.icap import IcapServer
from harness.origin import Origin
from harness.retort import Retort, Service
from harness.suite import memcheck


def test_account_of_a_service(lab):
    """What was answered, how often, how many bytes both ways, how long it took."""
    turn = [0]

    def behave(_icap, transaction):
        turn[0] += 1
        if turn[0] == 1:
            transaction.send_204()
        elif turn[0] == 2:
            transaction.send_200(HEAD, b"n" * 5000)
        else:
            transaction.send_head(HEAD, status=b"206 Partial Content")
            transaction.send(b"0; use-original-body=0\r\n\r\n")
    icap = IcapServer(lab, behave, Allow="204, 206")
    icap.options_answer = lambda server, connection: time.sleep(0.3) or server.send_options(connection)
    origin, _, proxy = start(lab, server=icap, bypass=False)
    for _ in range(3):
        fetch(proxy, origin, 3000)
    seen = account(proxy)
    numbers = seen["account"]
    equal([numbers[n] for n in ("requests", "unmodified", "modified", "partial", "satisfied", "bypassed")],
          [3, 1, 1, 1, 0, 0], "requests and verdicts")
    between(numbers["bytes_in"], 5000, 6000, "bytes_in")
    between(numbers["bytes_out"], 3 * 1024, 3 * 3000, "bytes_out")
    equal(numbers["bytes_saved"], 2 * (3000 - 1024 + 3000), "bytes that a 204 and a 206 spared")
    equal((seen["times"]["verdict_seconds"]["count"], seen["times"]["last_byte_seconds"]["count"]), (3, 3), "times")
    true(seen["times"]["verdict_seconds"]["p99"] > 0, "a quantile")
    equal((numbers["queued"], seen["times"]["queue_seconds"]["count"]), (1, 1), "the first has waited for OPTIONS")
    metrics = proxy.ctl("metrics")
    contains(metrics, 'retort_icap_service_requests_total{service="s"} 3', "metrics")
    contains(metrics, 'retort_service_requests_total{service="s",kind="icap"} 3', "metrics under the names of both kinds")
    contains(metrics, 'retort_service_verdict_seconds_bucket{service="s",kind="icap",le="+Inf"} 3', "metrics under the names of both kinds")
    contains(metrics, 'retort_icap_service_verdict_seconds_count{service="s"} 3', "metrics")
    contains(metrics, 'retort_icap_service_verdict_seconds_bucket{service="s",le="+Inf"} 3', "metrics")


@memcheck
def test_account_over_reloads(lab):
    """It goes on under the same name, also with what began before; another name begins anew."""
    go_on = threading.Event()

    def behave(_icap, transaction):
        if "slow" in transaction.http_request.start:
            go_on.wait(20 * lab.patience)
        transaction.send_204()
    icap = IcapServer(lab, behave)
    origin, _, proxy = start(lab, server=icap, timeout="40s")
    for _ in range(3):
        fetch(proxy, origin, 3000)
    slow = threading.Thread(target=lambda: proxy.get(origin.url("/bytes", n=3000, slow=1)))
    slow.start()
    until(lambda: icap.count >= 4, 10 * lab.patience, "the slow one")

    def counted(name="s"):
        numbers = account(proxy, name)
        return [numbers["account"]["requests"], numbers["account"]["unmodified"], numbers["times"]["verdict_seconds"]["count"]]
    for _ in range(2):
        equal(proxy.reload().status, 200, "reload")
    equal(counted(), [4, 3, 3], "numbers behind two reloads")
    fetch(proxy, origin, 3000)
    go_on.set()
    slow.join()
    until(lambda: counted() == [5, 5, 5], 10 * lab.patience, "numbers of the new and of the old")
    proxy.write_config(proxy.text(services=[Service("t", icap.uri())], adapt={"all": ["t"]}))
    equal(proxy.reload().status, 200, "reload")
    fetch(proxy, origin, 3000)
    equal(counted("t"), [1, 1, 1], "numbers of another name")
    proxy.write_config(proxy.text())
    equal(proxy.reload().status, 200, "reload")
    equal(counted(), [5, 5, 5], "numbers of a name that has come back")


def test_what_the_service_says_of_itself(lab):
    icap = IcapServer(lab, Service="Tester 1.0", ISTag='"abc"')
    origin, _, proxy = start(lab, server=icap)
    fetch(proxy, origin, 10)
    seen = account(proxy)
    equal((seen["service"], seen["istag"], seen["state"]), ("Tester 1.0", '"test-1"', "up"), "Service, ISTag, state")
    contains(proxy.ctl("services"), "Tester 1.0", "retortctl services")


def test_notice_to_operators(lab):
    """A service's own words: bounded, without control characters, of the latest OPTIONS, and of each endpoint."""
    icap = IcapServer(lab, Options_TTL=0, X_Operator_Notice="a \x1b[2J\t\x9b\xff\u202e\"<b> %s \\n " + "f" * 3000)
    quiet = IcapServer(lab, Options_TTL=0)
    origin = Origin(lab)
    proxy = Retort(lab, services=[Service("s", icap.uri()), Service("q", [quiet.uri(), icap.uri("other")])])

    def notices(name="s"):
        return [endpoint.get("notice") for endpoint in account(proxy, name)["endpoints"]]
    equal(notices(), [None], "before the first OPTIONS")
    fetch(proxy, origin, 10)
    seen = notices()[0]
    # The parser of heads takes no control characters, so the OPTIONS fail as a whole.
    equal(seen, None, "of a head with an escape character")
    icap.options["X-Operator-Notice"] = "a \t\x9b\xff\u202e\"<b> %s \\n " + "f" * 3000
    until(lambda: fetch(proxy, origin, 10) and notices()[0], 20 * lab.patience, "the notice")
    seen = notices()[0]
    true(seen.startswith('a ?') and '"<b> %s \\n fff' in seen and seen.endswith("f..."), f"notice: {seen}")
    equal(len(seen), 511, "length")
    text = proxy.ctl("services")
    contains(text, "notice: a ?", "retortctl services")
    for output in (text, proxy.ctl("--json", "services")):
        true(all(c == "\n" or " " <= c <= "~" for c in output), "visible characters only")
    until(lambda: fetch(proxy, origin, 10) and notices("q")[1], 20 * lab.patience, "the notice of the second endpoint")
    equal(notices("q")[0], None, "of the first endpoint")
    icap.options["X-Operator-Notice"] = "another"
    until(lambda: fetch(proxy, origin, 10) and notices() == ["another"], 20 * lab.patience, "the next OPTIONS")
    icap.options["X-Operator-Notice"] = None
    until(lambda: fetch(proxy, origin, 10) and notices() == [None], 20 * lab.patience, "OPTIONS without a notice")
