"""A helper that does what the parameters of its job say, mostly what no helper should."""

import os
import socket
import struct
import sys
import time

HEAD = struct.Struct("=IHHQQIIII24s")
jobs = socket.socket(fileno=0)


def result(number, text=b"", *, length=None, has_body=0, body_length=0, magic=0x52744a31, kind=2, status=0):
    return HEAD.pack(magic, 1, kind, number, body_length, status, 0, len(text) if length is None else length, has_body, b"") + text


def unsealed(text):
    body = os.memfd_create("body", os.MFD_ALLOW_SEALING)
    os.write(body, text)
    return body


def send(packet, *bodies):
    socket.send_fds(jobs, [packet], list(bodies))


while True:
    packet = jobs.recv(1 << 16)
    if not packet:
        sys.exit(0)
    number, what = HEAD.unpack(packet[:64])[3], packet[64:].decode()
    if what == "good":
        send(result(number, b"good"))
    elif what == "leaves":
        send(result(number, b"good"))
        os._exit(0)
    elif what == "crashes behind":
        send(result(number, b"good"))
        os.kill(os.getpid(), 11)
    elif what == "crashes":
        os.kill(os.getpid(), 11)
    elif what == "hangs":
        time.sleep(1000)
    elif what == "takes a while":
        time.sleep(0.5)
        send(result(number, b"good"))
    elif what == "closes":
        os.close(0)
        time.sleep(1000)
    elif what == "floods":
        for _ in range(2000):
            os.write(2, b"\x1b[31mnoise \xff\0" * 500)
        send(result(number, b"good"))
    elif what == "shouts":  # a thousand lines and one that is too long, and dies with a word of farewell
        os.write(2, b"a long line " + b"x" * 3000 + b"\n")
        for line in range(999):
            os.write(2, b"line %d\n" % line)
        os.write(1, b"last words")
        os.kill(os.getpid(), 11)
    elif what == "twice":
        send(result(number, b"good"))
        send(result(number, b"again"))
    elif what == "other job":
        send(result(number + 1, b"good"))
    elif what == "short":
        send(result(number, b"good", length=40))
    elif what == "long":
        send(result(number, b"x" * 20000))
    elif what == "tiny":
        send(b"x")
    elif what == "a job":
        send(result(number, b"good", kind=1))
    elif what == "status":
        send(result(number, b"good", status=77))
    elif what == "magic":
        send(result(number, b"good", magic=7))
    elif what == "no body":
        send(result(number, has_body=1, body_length=4))
    elif what == "secret body":
        send(result(number), unsealed(b"body"))
    elif what == "unsealed":
        send(result(number, has_body=1, body_length=4), unsealed(b"body"))
    elif what == "pipe":
        send(result(number, has_body=1, body_length=0), os.pipe()[0])
    elif what == "nothing":  # an empty packet, with descriptors
        send(b"", *(unsealed(b"body") for _ in range(4)))
    elif what == "many bodies":
        send(result(number, has_body=1, body_length=4), *(unsealed(b"body") for _ in range(10)))
