"""conf/refresh-lists.sh: a list that is whole and new is taken, and all else leaves the old one where it is."""

import gzip
import hashlib
import os
import subprocess
import time

from harness.checks import contains, equal, true
from harness.raw_origin import RawOrigin

OLD = "".join(f"||old{n}.example^\n" for n in range(4)).encode()
NEW = "".join(f"||new{n}.example^\n" for n in range(5)).encode()
PAGE = b"\xef\xbb\xbf\n <!doctype html>\n<p>Log in to this network first</p>\n"


class Publisher:
    """An origin with one answer for all paths, but the checksum's; and what refreshes from it."""

    def __init__(self, lab, sources="own.txt URL/list\n"):
        self.lab, self.answer, self.sum, self.before_start = lab, b"", b"", None
        self.origin = RawOrigin(lab, self._answer)
        self.lists, self.told = lab.path("lists"), lab.path("told")
        self.path = os.path.join(self.lists, "own.txt")
        os.mkdir(self.lists)
        self.sources = lab.write("lists.conf", "# lists\n\n" + sources.replace("URL", self.origin.url("")))

    def _answer(self, connection, seen):
        connection.send(plain(self.sum) if seen.target == "/sum" else self.answer)
        return True

    def run(self, *arguments, **environment):
        script = self.lab.built("conf/refresh-lists.sh")
        return subprocess.run(["sh", script, *arguments, self.sources, self.lists], capture_output=True, text=True, check=False,
                              timeout=60 * self.lab.patience, preexec_fn=self.before_start, env={
                                  **os.environ, **self.lab.environment(), "ADLIST": self.lab.built("icap-services/retort-adlist"),
                                  "RELOAD": f"touch {self.told}", **environment})

    def refresh(self, answer, **environment):
        """The exit status, whether c-icap was told, the list as it is now, and what the script said."""
        self.answer = answer
        done = self.run(**environment)
        told = os.path.exists(self.told)
        if told:
            os.remove(self.told)
        return done.returncode, told, self.content(), done.stdout + done.stderr

    def content(self):
        if not os.path.exists(self.path):
            return None
        with open(self.path, "rb") as file:
            return file.read()

    def takes(self, answer, content, what, **environment):
        equal(self.refresh(answer, **environment)[:3], (0, True, content), what)

    def refuses(self, answer, words, **environment):
        before = self.content()
        *result, said = self.refresh(answer, **environment)
        equal(result, [1, False, before], words)
        contains(said, words, "what it says")
        equal([name for name in os.listdir(self.lists) if not name.endswith((".txt", ".installed", ".prom"))], [], "files left")


def plain(body, *fields, status="200 OK", length=None):
    head = [f"HTTP/1.1 {status}", f"Content-Length: {len(body) if length is None else length}", "Connection: close", *fields]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def moved(to):
    return plain(b"", f"Location: {to}", status="302 Found")


def test_what_is_taken(lab):
    publisher = Publisher(lab)
    publisher.takes(plain(OLD), OLD, "the first time")
    equal(publisher.refresh(plain(OLD))[:3], (0, False, OLD), "nothing new")
    publisher.takes(plain(gzip.compress(NEW), "Content-Encoding: gzip"), NEW, "with a content coding")
    publisher.takes(plain(gzip.compress(OLD), "Content-Type: application/gzip"), OLD, "a .gz file")
    publisher.takes(plain(NEW, "Content-Type: text/html"), NEW, "a list that its server calls HTML")
    fields = publisher.origin.requests[-1]
    contains(fields.header("Accept-Encoding"), "gzip", "what is asked for")


def test_what_is_refused(lab):
    publisher = Publisher(lab)
    publisher.refuses(plain(PAGE), "is a page, no list: there is no own.txt yet")
    publisher.takes(plain(OLD), OLD, "the first time")
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n" % (len(NEW), NEW)
    for answer, words in (
            (plain(NEW, length=len(NEW) + 100), "could not be fetched: the old list stays; it was last compared 0 days ago"),
            (chunked, "could not be fetched"),
            (plain(NEW[:-4]), "is cut off"),
            (plain(PAGE), "is a page, no list"),
            (plain(b"gone\n", status="404 Not Found"), "could not be fetched"),
            (plain(b"", status="500 Oh"), "could not be fetched"),
            (plain(b""), "is empty"),
            (plain(NEW + b"\0\n"), "is no text"),
            (plain(b"! nothing\n"), "has too few rules (0, and there were 4)"),
            (plain(b"||a.example^\n"), "has too few rules (1, and there were 4)"),
            (plain(gzip.compress(NEW)[:-9]), "can't be unpacked"),
            (b"no HTTP\r\n\r\n", "could not be fetched")):
        publisher.refuses(answer, words)
    publisher.origin.stop()
    publisher.refuses(b"", "could not be fetched")


def test_size(lab):
    """Neither a length that lies, nor a list that unpacks itself, fills the disk."""
    publisher, large = Publisher(lab), b"||a.example^\n" * 20_000
    publisher.takes(plain(OLD), OLD, "the first time")
    close = b"HTTP/1.1 200 OK\r\n\r\n" + large
    for answer, words in ((plain(large), "could not be fetched"), (close, "could not be fetched"),
                          (plain(gzip.compress(large), "Content-Encoding: gzip"), "could not be fetched"),
                          (plain(gzip.compress(large)), "can't be unpacked")):
        publisher.refuses(answer, words, LISTS_MAX_BYTES="100000")


def test_redirections(lab):
    publisher = Publisher(lab)
    target = RawOrigin(lab, lambda connection, seen: connection.send(plain(NEW)) or True)
    secret = lab.write("secret.txt", "||secret.example^\n")
    publisher.takes(moved(target.url("/elsewhere")), NEW, "to another server")
    publisher.refuses(moved(publisher.origin.url("/again")), "could not be fetched")
    publisher.refuses(moved(f"file://{secret}"), "could not be fetched")


def test_checksums(lab):
    right, wrong = hashlib.sha256(OLD).hexdigest(), hashlib.sha256(NEW).hexdigest()
    publisher = Publisher(lab, "own.txt URL/list sha256=URL/sum\n")
    publisher.refuses(plain(OLD), "does not have the sum")
    publisher.sum = f"{wrong}  list.txt\n".encode()
    publisher.refuses(plain(OLD), "does not have the sum")
    publisher.sum = f"{right.upper()}  list.txt\n".encode()
    publisher.takes(plain(OLD), OLD, "with its sum at a URL")
    lab.write("lists.conf", f"own.txt {publisher.origin.url('/list')} sha256={wrong}\n")
    publisher.takes(plain(NEW), NEW, "with its sum in lists.conf")
    lab.write("lists.conf", f"own.txt {publisher.origin.url('/list')} md5=1\n")
    publisher.refuses(plain(OLD), "does not have the sum that md5=1 says")


def test_versions(lab):
    """What has an entity tag is not sent twice; and a list that was refused is asked for again."""
    publisher = Publisher(lab)
    publisher.takes(plain(OLD, 'ETag: "one"'), OLD, "the first time")
    publisher.refuses(plain(PAGE, 'ETag: "two"'), "is a page")
    equal(publisher.refresh(b"HTTP/1.1 304 Not Modified\r\nConnection: close\r\n\r\n")[:3], (0, False, OLD), "not modified")
    equal(publisher.origin.requests[-1].header("If-None-Match"), '"one"', "the tag of the list that is there")


NOT_MODIFIED = b"HTTP/1.1 304 Not Modified\r\nConnection: close\r\n\r\n"


def test_no_version_of_another_list(lab):
    """A server may say that nothing has changed only of a file that came from the same URL, that is whole, and that has its sum."""
    publisher = Publisher(lab)
    right, wrong = hashlib.sha256(OLD).hexdigest(), hashlib.sha256(NEW).hexdigest()
    named = lambda: publisher.origin.requests[-1].header("If-None-Match")
    publisher.takes(plain(OLD, 'ETag: "one"'), OLD, "the first time")
    for words, line, status in (("with a sum that is wrong", f"own.txt URL/list sha256={wrong}\n", 1),
                                ("with the sum of what is there", f"own.txt URL/list sha256={right}\n", 0),
                                ("from another URL", "own.txt URL/other\n", 1), ("as at first", "own.txt URL/list\n", 0)):
        lab.write("lists.conf", line.replace("URL", publisher.origin.url("")))
        then = age_a_day(publisher)
        equal(publisher.refresh(NOT_MODIFIED)[:3], (status, False, OLD), words)
        equal((named(), os.stat(publisher.path).st_mtime == then), (None, True) if status else ('"one"', False), f"{words}: what was asked")
    with open(publisher.path, "ab") as file:
        file.write(b"||damage.example^\n")
    then = age_a_day(publisher)
    equal((publisher.refresh(NOT_MODIFIED)[0], named(), os.stat(publisher.path).st_mtime), (1, None, then), "a file that is damaged")
    publisher.takes(plain(OLD, 'ETag: "one"'), OLD, "it is fetched again")


def age_a_day(publisher):
    then = int(time.time()) - 86400
    os.utime(publisher.path, (then, then))
    return then


def test_an_order_that_failed_is_repeated(lab):
    publisher = Publisher(lab)
    status, told, content, said = publisher.refresh(plain(OLD), RELOAD="false")
    equal((status, told, content), (1, False, OLD), "a reload that fails")
    contains(said, "the next run repeats the order", "what is said")
    equal(publisher.refresh(plain(OLD), RELOAD="false")[0], 1, "it fails again")
    equal(publisher.refresh(plain(OLD))[:3], (0, True, OLD), "it works then, though nothing is new")
    equal(publisher.refresh(plain(OLD))[:3], (0, False, OLD), "once")
    # kill -9 between the file and the order: the shell that is the script's parent ends itself.
    equal(publisher.refresh(plain(NEW), RELOAD="eval kill -9 $$")[:3], (-9, False, NEW), "killed")
    equal(publisher.refresh(plain(NEW))[:3], (0, True, NEW), "the next run")


def test_metrics_that_can_not_be_written(lab):
    publisher = Publisher(lab)
    os.mkdir(os.path.join(publisher.lists, "lists.prom.new"))
    status, told, content, said = publisher.refresh(plain(OLD))
    equal((status, told, content), (1, True, OLD), "the list itself is taken")
    contains(said, "lists.prom can't be written", "what is said")


def test_sources(lab):
    """Names that lead elsewhere, or that the ad remover would not read, stop only themselves."""
    publisher = Publisher(lab, "../evil.txt URL/list\n.hidden.txt URL/list\nown.list URL/list\nown.txt URL/list\n")
    status, told, content, said = publisher.refresh(plain(OLD))
    equal((status, told, content), (1, True, OLD), "the good one")
    for words in ("../evil.txt is no file name", ".hidden.txt is no file name", "own.list does not end in .txt"):
        contains(said, words, "what it says")
    true(not os.path.exists(lab.path("evil.txt")), "a file beside the directory")
    os.remove(publisher.sources)
    contains(publisher.refresh(plain(OLD))[3], "lists.conf can't be read", "without lists.conf")


def test_age(lab):
    publisher = Publisher(lab)
    done = publisher.run("--status")
    equal((done.returncode, done.stdout), (1, "own.txt: missing\n"), "before the first time")
    publisher.takes(plain(OLD), OLD, "the first time")
    equal((publisher.run("--status").returncode, publisher.run("--status").stdout), (0, "own.txt: 4 rules, last compared 0 days ago\n"), "now")
    path, then = os.path.join(publisher.lists, "own.txt"), int(time.time()) - 8 * 86400 - 60
    os.utime(path, (then, then))
    done = publisher.run("--status")
    equal((done.returncode, done.stdout), (1, "own.txt: 4 rules, last compared 8 days ago\n"), "later")
    equal(publisher.run("--status", LISTS_MAX_AGE="9").returncode, 0, "with another age")
    contains(publisher.refresh(plain(PAGE))[3], "last compared 8 days ago", "what a refusal says")
    with open(os.path.join(publisher.lists, "lists.prom"), encoding="ascii") as file:
        metrics = file.read()
    contains(metrics, f'retort_list_compared_timestamp_seconds{{list="own.txt"}} {then}\n', "metrics")
    contains(metrics, 'retort_list_rules{list="own.txt"} 4\n', "metrics")
    equal(publisher.refresh(plain(OLD))[:3], (0, False, OLD), "compared again")
    contains(publisher.run("--status").stdout, "0 days ago", "then")
