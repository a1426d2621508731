"""The compressor."""

import random
import threading
import time

from harness.codings import DECODERS, decode
from services.lab import REQUEST, accepting, digits, every_way, head


def test_gzip_every_way(lab):
    def check(answer, got):
        assert answer.status == 200, answer.status
        assert decode(coding, got) == body, "not the original"
        assert answer.header("content-encoding") == coding and answer.header("content-length") in (None, str(len(got)))
        assert answer.header("vary") == "Accept-Encoding" and answer.header("etag") == 'W/"tag"'
        assert answer.header("accept-ranges") is None

    for coding in DECODERS:
        request = accepting(coding)
        for size in (256, 1024, 5000, 100000):
            body = (b"some text, again and again; " * (size // 28 + 1))[:size]
            every_way(lab, "gzip", "text/plain; charset=utf-8", body, check, request=request)
    body, coding = digits(random.Random(1), 300000), "gzip"
    every_way(lab, "gzip", "text/plain", body, check)


def test_gzip_chooses(lab):
    body = b"some text, again and again; " * 100
    for value, coding in (("gzip, deflate, br, zstd", "br"), ("gzip, zstd", "zstd"), ("gzip", "gzip"), ("*", "gzip"),
                          ("br;q=0.5, gzip", "gzip"), ("br;q=0, zstd;q=0.1, gzip;q=0.2", "gzip"), ("BR", "br"),
                          ("deflate", None), ("br;q=0", None), ("*;q=0, zstd", "zstd"), ("x-gzip", "gzip"),
                          ("gzip;q=0.9, br;q=0.9, zstd;q=0.8", "br")):
        answer = lab.respmod("gzip", request=accepting(value), response=head("text/html", len(body)), body=body)
        assert answer.header("content-encoding") == coding, (value, answer.header("content-encoding"))
        assert decode(coding, answer.body) == body and answer.header("vary") == "Accept-Encoding", value


def test_gzip_of_what_varies_already(lab):
    """An origin that names Accept-Encoding and sends what is not compressed. RFC 9110, 12.5.5: Vary "might depend on whether the
    request contained" the field; it stays, and has the name once. 8.8.3.3: another coding is another strong ETag."""
    body = b"some text, again and again; " * 100
    for vary in ("Vary: Accept-Encoding\n", "Vary: Cookie, accept-encoding\n", "Vary: Cookie\nVary: ACCEPT-ENCODING\n",
                 "Vary: Accept-Encoding, Accept-Encoding\n"):
        for preview in (None, 0, 1024):
            answer = lab.respmod("gzip", request=accepting("br, gzip"), response=head("text/html", len(body), vary), body=body,
                             preview=preview)
            assert answer.header("content-encoding") == "br" and decode("br", answer.body) == body, (vary, preview)
            assert "\n".join("Vary: " + value for value in answer.http_headers["vary"]) + "\n" == vary, answer.http_headers["vary"]
            assert answer.header("etag") == 'W/"tag"', answer.header("etag")


def test_gzip_levels_by_arguments(lab):
    chance = random.Random(4)
    words = [digits(chance, 2 + number % 9) for number in range(3000)]
    body = b" ".join(chance.choice(words) for _ in range(30000))
    for coding, low, high in (("gzip", "1", "9"), ("br", "0", "11"), ("zstd", "1", "19")):
        sizes = []
        for level in (low, high, "99"):  # what is no level changes nothing
            answer = lab.respmod("gzip?%s=%s" % (coding, level), request=accepting(coding),
                             response=head("text/plain", len(body)), body=body, preview=1024)
            assert decode(coding, answer.body) == body
            sizes.append(len(answer.body))
        assert sizes[1] < sizes[0], (coding, sizes)


def test_gzip_leaves_alone(lab):
    body = b"x" * 2000
    cases = [
        (REQUEST.replace("GET", "POST"), head("text/html", 2000)),
        (REQUEST, head("text/html", 2000, status="404 Not Found")),
        (REQUEST, head("text/html", 2000, "Content-Encoding: br\n")),
        (accepting("identity"), head("text/html", 2000, "Vary: Accept-Encoding\n")),
        (REQUEST, head("text/html", 2000, "Vary: Accept-Encoding\nCache-Control: no-transform\n")),
        (REQUEST, head("text/html", 2000, "Vary: Accept-Encoding, *\n")),
        (REQUEST, head("text/html", 2000, "Vary: *\n")),
        (REQUEST, head("text/html", 2000, "Cache-Control: max-age=1, no-transform\n")),
        (REQUEST, head("text/event-stream", 2000)),
        (REQUEST, head("image/jpeg", 2000)),
        (REQUEST, head("text/html", 100)),
        (REQUEST, "HTTP/1.1 200 OK\n"),
        (REQUEST.replace("origin.example/a", "secret.example/a"), head("text/html", 2000)),
        (REQUEST.replace("http://origin.example/a", "/login?next=/").replace("Host: origin", "Host: any"),
         head("text/html", 2000)),
    ]
    for request, response in cases:
        for preview in (None, 1024):
            for allow in (False, True):
                sent = body[:100] if response == head("text/html", 100) else body
                answer = lab.respmod("gzip", request=request, response=response, body=sent, preview=preview, allow204=allow)
                assert answer.status == 204 or answer.body == sent, (request, response)
                if answer.status == 200:
                    assert answer.header("content-encoding") in (None, "br"), response
    answer = lab.respmod("gzip", request=REQUEST, response=head("text/html"), body=b"short", preview=1024)
    assert answer.status == 204


def test_gzip_leaves_alone_what_does_not_shrink(lab):
    """Whether the client accepts it or not: everybody gets the same, so there is nothing to vary."""
    for size in (300, 1000, 1024, 100000):
        body = random.Random(size).randbytes(size)
        for request in (REQUEST, accepting("identity")):
            answer = lab.respmod("gzip", request=request, response=head("text/html", size), body=body, preview=1024)
            assert answer.status == 204, (size, answer.status)


def test_gzip_not_accepted(lab):
    """The body stays, but caches must know that others may get another."""
    def check(answer, got):
        assert answer.status == 200 and got == body
        assert answer.header("vary") == "Accept-Encoding" and answer.header("content-encoding") is None
        # A proxy takes it for another representation, whoever has adapted it.
        assert answer.header("etag") == '"tag"' or (not lab.host.is_icap and answer.header("etag") == 'W/"tag"')
        assert answer.header("content-length") in (None, str(len(body)))

    for request in (accepting("gzip;q=0"), REQUEST.replace("Accept-Encoding: gzip\n", "")):
        for size in (300, 1024, 100000):
            body = digits(random.Random(size), size)
            every_way(lab, "gzip", "text/html", body, check, request=request)
            for preview in (0, 1024, 200000) * lab.host.is_icap:
                connection = lab.connect()
                for _ in range(3):
                    answer = connection.call("RESPMOD", "gzip", request=request, response=head("text/html", size),
                                             body=body, preview=preview, allow206=True)
                    assert answer.status == 206 and answer.body == b"" and answer.original == 0, answer.status
                    assert answer.header("vary") == "Accept-Encoding"
                    assert answer.header("content-length") == str(size)
                connection.close()


def test_gzip_streams(lab):
    """Output has to come while input is still to come, and little is kept inside."""
    for coding in DECODERS:
        arrived, chance = threading.Event(), random.Random(2)

        def pieces():
            for _ in range(100):
                yield digits(chance, 16384)
            assert arrived.wait(20 * lab.patience), "nothing came out of a megabyte"
            for _ in range(20):
                yield digits(chance, 16384)

        answer = lab.respmod("gzip", request=accepting(coding), response=head("text/plain"), pieces=pieces(),
                         on_data=lambda data: arrived.set())
        again = random.Random(2)
        assert decode(coding, answer.body) == b"".join(digits(again, 16384) for _ in range(120)), coding


def test_gzip_lets_out_what_is_inside_when_the_sender_pauses(lab):
    """A page that drips: what was sent can be read before more is sent."""
    for coding in DECODERS:
        sent, seen, more = [], b"", threading.Event()

        def pieces():
            for number in range(8):
                sent.append(b"<p>line %d</p>" % number)
                more.clear()
                yield sent[-1]
                assert more.wait(20 * lab.patience), "%s: line %d did not come out" % (coding, number)
                time.sleep(0.03)  # the credit of a flush, at least

        def on_data(data):
            nonlocal seen
            seen += data
            if decode(coding, seen, whole=False) == b"".join(sent):
                more.set()

        answer = lab.respmod("gzip", request=accepting(coding), response=head("text/html"), pieces=pieces(),
                         on_data=on_data)
        assert decode(coding, answer.body) == b"".join(sent), coding


def test_gzip_lets_out_the_end_of_many_small_pieces(lab):
    """They come faster than the flushes that are allowed; then the sender pauses, and the last of them has to come out all the same."""
    for coding in DECODERS:
        sent, seen, more = [], b"", threading.Event()

        def pieces():
            yield b"x" * 2000  # the preview
            sent.append(b"x" * 2000)
            for number in range(30):
                sent.append(b"<p>line %d</p>" % number)
                yield sent[-1]
                time.sleep(0.003)
            assert more.wait(10 * lab.patience), "%s: the last line did not come out" % coding

        def on_data(data):
            nonlocal seen
            seen += data
            if decode(coding, seen, whole=False).endswith(b"<p>line 29</p>"):
                more.set()

        answer = lab.respmod("gzip", request=accepting(coding), response=head("text/html"), pieces=pieces(),
                             on_data=on_data)
        assert decode(coding, answer.body) == b"".join(sent), coding
