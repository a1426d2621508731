"""Answers that one client brings about with fields that are in no key: they are not stored for the others."""

from harness.checks import equal
from harness.raw_origin import RawOrigin
from harness.retort import Retort
from harness.suite import memcheck

# What brings it about, and what the origin says then.
ATTACKS = [({"If-Match": '"never"'}, 412), ({"If-Unmodified-Since": "Thu, 01 Jan 1970 00:00:00 GMT"}, 412),
           ({"Range": "bytes=99999-"}, 416), ({"X-Big": "x" * 5000}, 431), ({"X-Big": "x"}, 400), ({"Accept": "x/y"}, 406),
           ({"X-HTTP-Method-Override": "POST"}, 405), ({"X-HTTP-Method-Override": "FROB"}, 404), ({"X-HTTP-Method": "FROB"}, 501),
           ({"X-Method-Override": "POST"}, 200), ({"Content-Type": "x/y"}, 415), ({"Early-Data": "1"}, 425), ({"X-Rate": "1"}, 429),
           ({"X-Long": "1"}, 414), ({"X-Length": "1"}, 411), ({"X-Content": "1"}, 413), ({"X-Expect": "1"}, 417),
           ({"X-Misdirected": "1"}, 421), ({"X-Condition": "1"}, 428), ({"X-Portal": "1"}, 511)]
SAYS = [b"Cache-Control: public, max-age=600", b"Last-Modified: Mon, 01 Jan 2001 00:00:00 GMT", b"Expires: Fri, 31 Dec 2066 23:59:59 GMT",
        b'ETag: "a"\r\nCache-Control: s-maxage=600', b""]


@memcheck
def test_an_attackers_error_is_the_attackers_alone(lab):
    """Whatever it says of its freshness, and whatever the configuration says of errors."""
    said = {}

    def answer(connection, seen):
        attacked = said["fields"].items() <= dict(seen.fields).items()
        status, body = (said["status"], b"bad") if attacked else (200, b"good")
        connection.send(b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n%s\r\n\r\n%s" %
                        (status, len(body), said["says"] or b"X-Says: nothing", body))
    origin = RawOrigin(lab, answer)
    proxy = Retort(lab, reverse={"/": origin.url()}, cache={"memory": "32MB", "negative_ttl": ["4xx 5xx 1m"]},
                   extra='policy all { cache = always override = true negative_ttl = "4xx 1m" }')
    for number, (fields, status) in enumerate(ATTACKS):
        for variant, says in enumerate(SAYS):
            path = f"/{number}/{variant}"
            said.update(fields=fields, status=status, says=says)
            equal(proxy.get(path, fields).status, status, f"what the attacker gets of {status}")
            answer_to_others = proxy.get(path)
            equal((answer_to_others.status, answer_to_others.body), (200, b"good"), f"what others get of {status} with {says}")
    equal(proxy.get("/0/0").status, 200, "once more")
