"""Without verification nothing proves who answers at an address that the client chose itself."""

from harness.checks import equal
from harness.interception import Interception


def numbered(connection, request):
    numbered.count += 1
    body = b"answer %d\n" % numbered.count
    connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nCache-Control: max-age=600\r\n\r\n" % len(body) + body)


numbered.count = 0


def test_no_verification_no_storing(lab):
    """Otherwise a client could connect to a server of its own, say the name of a bank in its ClientHello, and choose what all
    other clients get from that bank."""
    site = Interception(lab, "evil.example.net", answer=numbered, origin={"verify": "off"})
    for count in (1, 2):
        equal(site.get("www.bank.example", "/").body, b"answer %d\n" % count, "the answer")
