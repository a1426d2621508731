"""Services before the cache: what is stored is what they made, and nothing that they should have changed."""

from harness import ports
from harness.adaptation import start
from harness.checks import equal, lacks, same_bytes
from harness.icap import IcapServer, append
from harness.origin import Origin
from harness.retort import Retort, Service
from harness.suite import memcheck


@memcheck
def test_adapted_response_is_what_the_cache_stores(lab):
    origin, icap, proxy = start(lab, append(b" adapted"))
    url = origin.url("/text", say="page", cc="max-age=60")
    for _ in range(3):
        equal(proxy.get(url).text(), "page adapted", "body")
    equal((origin.count("/text"), icap.count), (1, 1), "origin requests, ICAP transactions")
    equal(proxy.results("/text", 3), ["MISS", "HIT", "HIT"], "results")


def test_revalidated_objects_stay_adapted(lab):
    origin, icap, proxy = start(lab, append(b" adapted"))
    url = origin.url("/text", say="page", cc="max-age=0", etag='"v"')
    for _ in range(3):
        equal(proxy.get(url).text(), "page adapted", "body")
    lacks([t.http_response.start.split()[1] for t in icap.transactions], "304", "statuses that were adapted")


def test_what_was_bypassed_is_not_stored(lab):
    """Else the unadapted body would be served as long as it is fresh, with the service long back."""
    origin = Origin(lab)
    proxy = Retort(lab, services=[Service("gone", f"icap://127.0.0.1:{ports.take()}/s", bypass=True,
                                          connect_timeout="500ms")])
    for _ in range(2):
        same_bytes(proxy.get(origin.url("/b", cc="max-age=60")).body, b"/b 1\n" if _ == 0 else b"/b 2\n", "body")
    equal(proxy.results("/b", 2), ["MISS", "MISS"], "results")


def test_reqmod_on_hits_too(lab):
    """The precache request point comes before the lookup."""
    icap = IcapServer(lab, methods="REQMOD")
    origin, _, proxy = start(lab, server=icap, point="reqmod_precache")
    url = origin.url("/text", say="x", cc="max-age=60")
    for _ in range(3):
        proxy.get(url)
    equal((origin.count("/text"), icap.count), (1, 3), "origin requests, ICAP transactions")
