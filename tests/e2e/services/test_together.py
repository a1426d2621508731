"""Many at once, and clients that misbehave."""

import gzip
import random
import socket
import threading
import traceback

from services.lab import PAGE, REQUEST, head, icap_only, send_photo, until
from services.pictures import picture
from services.test_gzip import test_gzip_every_way


def test_many_at_once(lab):
    photo, page = picture("small.jpg"), PAGE.replace(b"@", b"")
    failures = []

    def worker(number):
        try:
            connection = lab.connect(timeout=60 * lab.patience)
            for i in range(10):
                kind = (number + i) % 3
                if kind == 0:
                    answer = connection.call("RESPMOD", "gzip", request=REQUEST, response=head("text/html"), body=page)
                    assert gzip.decompress(answer.body) == page
                elif kind == 1:
                    answer = connection.call("RESPMOD", "inject", request=REQUEST, response=head("text/html"), body=page,
                                             preview=1024, client_ip="192.0.2.%d" % number)
                    assert b"<b>192.0.2.%d</b>" % number in answer.body
                else:
                    answer = connection.call("RESPMOD", "gray", request=REQUEST, response=head("image/jpeg", len(photo)),
                                             body=photo, preview=1024)
                    assert answer.status == 204 or len(answer.body) > 100
            connection.close()
        except Exception:  # pylint: disable=broad-except
            failures.append(traceback.format_exc())

    threads = [threading.Thread(target=worker, args=(n,)) for n in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]


def test_any_pieces(lab):
    """Bodies of any length in pieces of any length, on one connection, with any preview."""
    chance = random.Random(5)
    connection = lab.connect()
    for turn in range(400):
        noise = chance.random() < 0.5
        size = chance.choice((0, 1, 300, 1023, 1024, 1025, 4064, 4096, 8128, chance.randrange(200000)))
        body = chance.randbytes(size) if noise else b"<p>text</p>" * (size // 11) + b"x" * (size % 11)
        service, kind = chance.choice((("gzip", "text/css"), ("inject", "text/html"), ("gray", "image/jpeg")))
        if service == "gray":
            body = b"\xff\xd8\xff" + body  # no picture: held to its end, then given back
        elif service == "inject":
            body = body.replace(b"<", b"[")
        answer = connection.call(
            "RESPMOD", service, request=REQUEST + "Sec-Fetch-Dest: empty\n",  # no page, without its tags
            response=head(kind, len(body) if chance.random() < 0.5 else None),
            body=body, preview=chance.choice((None, 0, 1, 1024, 4096)), allow204=chance.random() < 0.5,
            piece=chance.choice((1 + chance.randrange(5000), 4064, 4096, 65536)))
        got = body if answer.status == 204 else answer.body
        if answer.header("content-encoding") == "gzip":
            got = gzip.decompress(got)
        assert answer.status in (200, 204) and got == body, (turn, service, len(body), len(got))
    connection.close()


@icap_only("is about clients of ICAP that leave; test_inside has those of the proxy")
def test_clients_that_leave(lab):
    page = PAGE.replace(b"@", b"")
    for service, kind, body in (("gzip", "text/html", page), ("inject", "text/html", page),
                                ("gray", "image/jpeg", picture("photo.jpg"))):
        block = (REQUEST.replace("\n", "\r\n") + "\r\n").encode()
        response = (head(kind, len(body)).replace("\n", "\r\n") + "\r\n").encode()
        text = ("RESPMOD icap://x/%s ICAP/1.0\r\nHost: x\r\nEncapsulated: req-hdr=0, res-hdr=%d, res-body=%d\r\n\r\n"
                % (service, len(block), len(block) + len(response))).encode()
        whole = text + block + response + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
        for cut in list(range(10, len(text) + len(block) + len(response), 37)) + [len(whole) - 50000, len(whole) - 3]:
            connection = socket.create_connection(("127.0.0.1", lab.port))
            connection.sendall(whole[:cut])
            connection.close()
    test_gzip_every_way(lab)
    assert send_photo(lab).body != picture("photo.jpg")


@icap_only("looks at the ISTag")
def test_istag(lab):
    """The same in every child, and another after a change of configuration."""
    tags = {service: {lab.host.options_of(service).headers["istag"][0] for _ in range(20)}
            for service in ("gzip", "gray", "inject", "adremover")}
    assert all(len(tag) == 1 for tag in tags.values()), tags
    lab.write("rules.txt", "||ads.example^\n/banner/*\n@@||good.example^\n0.0.0.0 exact.example\n||new.example^\n")
    with open(lab.path("c-icap.ctl"), "w", encoding="utf-8") as control:
        control.write("reconfigure")
    until(lambda: {lab.host.options_of("adremover").headers["istag"][0]} != tags["adremover"], 30 * lab.patience, "another ISTag")
    until(lambda: lab.reqmod("adremover", request="GET http://new.example/ HTTP/1.1\n", preview=0).status == 200,
          10 * lab.patience, "the new rule")
    assert {lab.host.options_of("gzip").headers["istag"][0]} == tags["gzip"]
