"""A helper that speaks Squid's lines and does what the name in a question says, mostly what no helper should."""

import os
import sys
import time

channels = "channels" in sys.argv
for line in sys.stdin:
    words = line.split()
    front = words.pop(0) + " " if channels else ""
    what = words[0]
    if what == "good":
        os.write(1, (front + "OK user=good\n").encode())
    elif what == "echo":
        os.write(1, (front + "OK echo=%s\n" % "|".join(words[1:])).encode())
    elif what == "environment":
        os.write(1, (front + "OK group=%d core=%d\n" % (len(os.listdir("/proc/self/fd")),
                                                       __import__("resource").getrlimit(4)[1])).encode())
    elif what == "wrong":
        os.write(1, (front + "ERR Wrong password\r\n").encode())
    elif what == "broken":
        os.write(1, (front + "BH message=\"%s\"\n" % words[-1]).encode())
    elif what == "pieces":
        for piece in (front, "OK us", "er=", "good", "\n"):
            os.write(1, piece.encode())
            time.sleep(0.01)
    elif what == "hangs":
        time.sleep(1000)
    elif what == "unfinished":
        os.write(1, (front + "OK").encode())
        time.sleep(1000)
    elif what == "leaves":
        os.write(1, (front + "OK").encode())
        os._exit(0)
    elif what == "twice":
        os.write(1, (front + "OK\n" + front + "OK\n").encode())
    elif what == "again":  # the second answer comes when nobody has asked
        os.write(1, (front + "ERR\n").encode())
        time.sleep(0.1)
        os.write(1, (front + "OK\n").encode())
    elif what == "huge":
        os.write(1, (front + "OK user=" + "x" * 100000 + "\n").encode())
    elif what == "binary":
        os.write(1, front.encode() + b"OK \x00\x01\x02\n")
    elif what == "newline":
        os.write(1, (front + "OK user=joe%0Aroot\n").encode())
    elif what == "channel":
        os.write(1, b"4711 OK\n")
    elif what == "no.channel":
        os.write(1, b"OK\n")
    elif what == "word":
        os.write(1, (front + "YES\n").encode())
    elif what == "crashes":
        os.kill(os.getpid(), 11)
