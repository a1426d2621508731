"""Several services for a message: in order, by class, by what one of them says, and past one that died."""

from harness.adaptation import STEADY, dies_after, fetch, verdicts, whole_or_cut
from harness.checks import equal, lacks, same_bytes, true
from harness.icap import IcapServer, append, echo, unchanged
from harness.origin import Origin
from harness.retort import Retort, Service
from harness.suite import memcheck


@memcheck
def test_chain_order(lab):
    one, two = IcapServer(lab, append(b"1")), IcapServer(lab, append(b"2"))
    origin = Origin(lab)
    proxy = Retort(lab, services=[Service("one", one.uri()), Service("two", two.uri())], adapt={"all": ["two", "one"]})
    equal(proxy.get(origin.url("/text", say="x")).text(), "x21", "body")


def test_classes_choose_services(lab):
    one, two = IcapServer(lab, append(b"1")), IcapServer(lab, append(b"2"))
    origin = Origin(lab)
    proxy = Retort(lab, services=[Service("one", one.uri()), Service("two", two.uri())],
                   url_classes={"pages": {"path_regex": r"\.html$"}, "texts": {"content_type": "text/x"}},
                   adapt={"pages": ["one"], "texts": ["two"]})
    for path, kind, expected in (("/text/a.html", "a/b", "x1"), ("/text/b", "a/b", "x"), ("/text/c", "text/x", "x2"),
                                 ("/text/d.html", "text/x", "x12")):
        equal(proxy.get(origin.url(path, say="x", type=kind)).text(), expected, f"body of {path} as {kind}")


def reroutes(names, text):
    def behave(_icap, transaction):
        body = transaction.finish_body()
        transaction.send_200(transaction.response_head(), body + text, icap=b"X-Next-Services: " + names + b"\r\n")
    return behave


@memcheck
def test_next_services(lab):
    """A service that may do so names those that follow it."""
    origin = Origin(lab)
    others = [IcapServer(lab, append(text)) for text in (b"2", b"3")]
    for names, routing, expected in ((b"three", True, "x13"), (b"three, two", True, "x132"), (b"", True, "x1"),
                                     (b"three", False, "x12"), (b"nobody, three", True, "x13")):
        first = IcapServer(lab, reroutes(names, b"1"))
        proxy = Retort(lab, services=[Service("one", first.uri(), routing=routing), Service("two", others[0].uri()),
                                      Service("three", others[1].uri())], adapt={"all": ["one", "two"]})
        equal(proxy.get(origin.url("/text", say="x")).text(), expected, f"{names!r}, routing {routing}: body")
        proxy.stop()


def test_chain_goes_back_before_a_service_that_died(lab):
    """The first dies inside its body, which the second was to have whole: it gets the original instead."""
    def whole_first(_icap, transaction):
        body = transaction.finish_body()
        transaction.send_200(transaction.response_head(add=[("X-Two", "2")]), body + b" two")
    origin = Origin(lab)
    for length, size in ((100, 100), (5000, 5000), (30000, 300000)):
        one, two = IcapServer(lab, dies_after(length)), IcapServer(lab, whole_first)
        proxy = Retort(lab, services=[Service("one", one.uri(), bypass=True), Service("two", two.uri(), bypass=False)])
        answer = fetch(proxy, origin, size)
        equal((answer.status, answer.header("X-Evil"), answer.header("X-Two")), (200, None, "2"), f"{length}: head")
        same_bytes(answer.body, origin.body(size) + b" two", f"{length}: body")
        equal(verdicts(proxy, 1), [["BYPASSED", "MODIFIED"]], "verdicts")
        proxy.stop()


def test_chain_goes_back_past_services_that_changed_nothing(lab):
    """Those between the one that dies and the one that reads: one leaves the message alone, the other fails and is bypassed."""
    def whole_last(_icap, transaction):
        body = transaction.finish_body()
        transaction.send_200(transaction.response_head(), body + b" last")

    def closes(_icap, _transaction):
        return True
    origin, last = Origin(lab), IcapServer(lab, whole_last)
    for between_them in ((unchanged,), (closes,), (unchanged, closes, unchanged)):
        one, *others = (IcapServer(lab, behave) for behave in (dies_after(5000), *between_them))
        services = [Service(f"s{i}", icap.uri(), bypass=True, **STEADY) for i, icap in enumerate([one, *others])]
        proxy = Retort(lab, services=[*services, Service("last", last.uri(), bypass=False)])
        answer = fetch(proxy, origin, 100)
        case = [behave.__name__ for behave in between_them]
        equal((answer.status, answer.header("X-Evil")), (200, None), f"{case}: head")
        same_bytes(answer.body, origin.body(100) + b" last", f"{case}: body")
        names = {"unchanged": "UNMODIFIED", "closes": "BYPASSED"}
        equal(verdicts(proxy, 1), [["BYPASSED", *(names[name] for name in case), "MODIFIED"]], "verdicts")
        proxy.stop()


def test_chain_does_not_go_back_without_bypass(lab):
    origin = Origin(lab)
    one, two = IcapServer(lab, dies_after(100)), IcapServer(lab, echo)
    proxy = Retort(lab, services=[Service("one", one.uri(), bypass=False), Service("two", two.uri(), bypass=True)])
    answer = whole_or_cut(proxy, origin.url("/bytes", n=5000, cc="no-store"))
    true(answer is None or answer.status == 502, "an error, or a cut")
    if answer is not None:
        lacks(answer.body, b"half a body", "error page")
