"""retort-service-test: it finds each promise that a service breaks, and our services break none."""

import json
import os
import re
import shutil
import subprocess

from harness.checks import Skip, contains, equal, lacks, true
from harness.icap import IcapServer, unchanged
from harness.lab import SOURCE
from harness.origin import Origin
from harness.retort import Retort, Service
from test_record import Recording

KEPT, BROKEN, NOT_RUN = 0, 1, 2
TEXT = b"hello there, this is a text of forty b.\n"
PAGE = b"<html><head><title>A page</title></head><body class=a><p>Text</p><img src=a.png></body></html>\n"
REQUEST = b"GET http://%s/a HTTP/1.1\nHost: test.example\nAccept-Encoding: gzip\n\n"

# What the service "bad" (faults/bad.c) does wrong: the kinds of findings, and words of the first one.
FAULTS = {
    "start_thread": ("call", "start made a thread"),
    "start_socket": ("call", "start opened a socket"),
    "fingerprint": ("differs", "two starts with the same settings make two fingerprints"),
    "descriptor": ("descriptor", "descriptors are open that were not before"),
    "long": ("length", "the body has 39 bytes, and it has 40: a receiver would lose the others"),
    "short": ("length", "the body has 41 bytes, and it has 40: a receiver would wait for the others"),
    "length_later": ("length", "changes exchange->body_length after its verdict"),
    "by_pieces": ("differs", 'the body differs at byte 1: here comes "ELLO THERE'),
    "by_preview": ("differs", 'the body differs at byte 0: here comes "'),
    "static": ("differs", "the body differs at byte "),
    "dangling": ("differs", r"\xdb"),
    "overread": ("crash", "in push (0 bytes of the body in, 0 bytes out)"),
    "overwrite": ("crash", "in pull (40 bytes of the body in, 0 bytes out)"),
    "took": ("call", "took more of the body than there was: 41"),
    "got": ("call", "gave more than there was room for, or an unknown answer: 65537"),
    "crash": ("crash", "in begin"),
    "exit": ("crash", "ends the process with exit status 3 in begin"),
    "never": ("stuck", "takes no input, gives no output and waits for nothing (0 bytes in"),
    "endless": ("stuck", "bytes for 40, and does not come to an end"),
    "hold": ("stuck", "it has the whole body, gives nothing and waits for nothing (40 bytes in"),
    "past_deadline": ("stuck", "goes on waiting past its own deadline"),
    "closed": ("call", "waits for descriptor 900, which is not open"),
    "skip_body": ("differs", "said SKIP, but the body differs from the original at byte 0"),
    "skip_head": ("head", "says SKIP, and has changed the head"),
    "late_head": ("head", "changes the head after its verdict ADAPT"),
    "heap_head": ("head", "a value in the head changed after the verdict"),
    "split_head": ("head", "the end of a line in it"),
    "framing": ("head", "adds Transfer-Encoding"),
    "counter": ("call", "adds to counter 1, and has 1"),
    "member": ("call", "changes exchange->arguments, which is the host's"),
    "request": ("head", "changes the head of the request of a response"),
    "verdict": ("call", "an unknown verdict: 7"),
    "flow": ("call", "an unknown answer: 9"),
    "answer": ("call", "answered a response"),
    "loses": ("length", "the body has 40 bytes, and it has 0"),
    "unable": ("failed", "the service says that it can't adapt: tired"),
    "watch": ("call", "calls service_watch, and is neither in timer nor in descriptor"),
    "keeps_soon": ("call", "sets keeps_body after it has taken"),
    "keeps_part": ("call", "sets keeps_body after it has taken"),
    "keeps_late": ("call", "sets keeps_body after it has taken"),
    "keeps_length": ("length", "keeps the body of 40 bytes, and the head says 5"),
    "empty": ("length", "the body has 0 bytes, and it has 40"),
    "watch_closed": ("call", "which is not open: it has to end the watch"),
    "deaf": ("stuck", "and what it watches is still ready"),
    "also": ("call", "waits for descriptor 900, which is not open"),
    "also_alone": ("call", "names a second descriptor to wait for (exchange->also) and no first one"),
    "address": ("call", "address 1 that resolved wants is none of those that it was given"),
    "addresses": ("call", "resolved returns 4 addresses of 3"),
    "id": ("call", "changes exchange->transaction_id, which is the host's"),
    "timer": ("crash", "in timer"),
}


class Tester:
    def __init__(self, lab):
        self.lab = lab
        self.program = lab.built("icap-services/retort-service-test")
        self.bad = lab.built("tests/e2e/faults/.libs/bad.so")

    def run(self, *arguments, expect=KEPT):
        done = subprocess.run([self.program, *arguments], capture_output=True, timeout=110, check=False,
                              env={**os.environ, **self.lab.environment(), "TMPDIR": self.lab.directory})
        out, errors = done.stdout.decode(), done.stderr.decode("utf-8", "replace")
        equal(done.returncode, expect, f"retort-service-test {' '.join(arguments)}:\n{out}{errors}\nexit status")
        return out, errors

    def json(self, *arguments, expect=KEPT):
        return json.loads(self.run("--json", *arguments, expect=expect)[0])

    def module(self, name):
        return self.lab.built(f"icap-services/.libs/{name}.so")

    def helper(self, pool, program, *arguments):
        command = " ".join([self.lab.built(f"icap-services/{program}"), *arguments])
        return ["--helperd", self.lab.built("icap-services/retort-helperd"), "--helper", f"{pool}={command}"]

    def message(self, name, body, kind=b"text/plain", length=True, extra=b""):
        told = b"Content-Length: %d\n" % len(body) if length else b""
        return self.lab.write(name, REQUEST % b"test.example" + b"HTTP/1.1 200 OK\nContent-Type: " + kind + b"\n" + told + extra
                              + b"\n" + body)


def found(report, kind):
    return [finding for finding in report["findings"] if finding["kind"] == kind]


def test_each_fault_is_found(lab):
    tester = Tester(lab)
    text = tester.message("text.http", TEXT)
    report = tester.json(tester.bad, text)
    equal((report["kept"], report["findings"]), (True, []), "a service that keeps its promises")
    true(report["messages"][0]["runs"] > 100, f"the message was run in many ways: {report['messages']}")
    for fault, (kind, words) in FAULTS.items():
        if lab.asan and fault == "heap_head":
            kind = "crash"  # it ends the process when the host reads the value
        report = tester.json("--set", f"Fault={fault}", tester.bad, text, expect=BROKEN)
        finding = found(report, kind)
        equal(len(finding), 1, f"{fault}: findings of the kind {kind} in {report['findings']}")
        if not (lab.asan and kind == "crash"):  # AddressSanitizer ends the process in its own way
            contains(finding[0]["text"], words, fault)


def test_a_service_that_never_comes_back(lab):
    tester = Tester(lab)
    texts = [tester.message("one.http", TEXT), tester.message("two.http", TEXT)]
    out, _ = tester.run("--deadline", "1", "--set", "Fault=loop", tester.bad, *texts, expect=BROKEN)
    for text in texts:  # the second is tested too
        contains(out, f"BROKEN (time): {text}, in push\n", "a call that takes too long")
    contains(out, "does not come back within 1 seconds in push (0 bytes of the body in, 0 bytes out)", "what was found")


def test_lost_memory(lab):
    if lab.asan:
        raise Skip("AddressSanitizer counts memory in its own way")
    tester = Tester(lab)
    text = tester.message("text.http", TEXT)
    for fault, words in (("leak", "after each 12 exchanges"), ("start_leak", "after each 12 starts and stops")):
        finding = found(tester.json("--set", f"Fault={fault}", tester.bad, text, expect=BROKEN), "memory")
        equal(len(finding), 1, f"{fault}: findings")
        contains(finding[0]["text"], words, fault)


def test_under_valgrind(lab):
    if lab.asan:
        raise Skip("valgrind can't run programs with AddressSanitizer")
    tester = Tester(lab)
    text = tester.message("text.http", TEXT)
    few = ["--valgrind", "--cuts", "4"]
    for fault, words in (("unwritten", "depends on uninitialised value"), ("leak", "are definitely lost")):
        out, _ = tester.run(*few, "--set", f"Fault={fault}", tester.bad, text, expect=BROKEN)
        contains(out, f"BROKEN (memory): the service\n    memcheck: ", fault)
        contains(out, words, fault)
        true(re.search(r"(bad_begin|bad_pull) \(bad\.c:\d+\)", out), f"{fault}: the place in the service:\n{out}")
    page = tester.message("page.http", PAGE, b"text/html")
    contains(tester.run(*few, "--set", "MinSize=0", tester.module("gzip"), page)[0], "under memcheck: all promises were kept", "gzip")
    equal([name for name in os.listdir(lab.directory) if "memcheck" in name], [], "logs of valgrind that were left")


def test_our_services_keep_their_promises(lab):
    tester = Tester(lab)
    page = tester.message("page.http", PAGE, b"text/html")
    long = tester.message("long.http", b"".join(b"line %d\n" % i for i in range(800)), length=False)
    report = tester.json("--set", "MinSize=0", "--set", "MinGain=0", tester.module("gzip"), page, long)
    equal([message["outcome"] for message in report["messages"]], ["adapted", "adapted"], "gzip")
    for name, coding in (("br.http", b"br"), ("zstd.http", b"zstd")):
        text = lab.write(name, open(long, "rb").read().replace(b"Accept-Encoding: gzip", b"Accept-Encoding: " + coding))
        equal(tester.json(tester.module("srv_gzip"), text)["messages"][0]["outcome"], "adapted", name)  # c-icap's module

    request = lab.write("ad.http", REQUEST % b"ads.example")
    report = tester.json("--set", "Rule=||ads.example^", tester.module("adremover"), request, page)
    equal([message["outcome"] for message in report["messages"]], ["adapted", "foreign"], "adremover")

    lab.write("texts.tsv", "default\t<b>text for %{ip}</b>\n")
    report = tester.json(*tester.helper("text", "text-helper", "--file", lab.path("texts.tsv")), tester.module("inject"), page)
    message = report["messages"][0]
    equal((message["outcome"], message["bytes_out"]), ("adapted", len(PAGE) + len("<b>text for 192.0.2.1</b>")), "inject")


def test_gray_with_its_helper(lab):
    if shutil.which("cjpeg") is None or shutil.which("ppmpat") is None:
        raise Skip("cjpeg or netpbm is not installed")
    tester = Tester(lab)
    picture = subprocess.run("ppmpat -camo -randomseed=1 60 40 | cjpeg", shell=True, capture_output=True, check=True).stdout
    image = tester.message("image.http", picture, b"image/jpeg")
    report = tester.json(*tester.helper("gray", "gray-helper"), tester.module("gray"), image)
    message = report["messages"][0]
    equal((message["outcome"], message["failed_because"]), ("adapted", ""), "an image with a helper")
    true(message["bytes_out"] < len(picture), f"the gray image is smaller: {message}")

    arguments = ["--set", f"Helperd={lab.path('nobody.sock')}", tester.module("gray"), image]
    out, _ = tester.run(*arguments, expect=BROKEN)
    contains(out, "A service with helpers needs --helper", "without a helper")
    out, _ = tester.run("--may-fail", *arguments)
    contains(out, "could not be adapted", "what was accepted")
    _, errors = tester.run(*tester.helper("gray", "gray-helper")[:2], "--helper", "gray=", tester.module("gray"), image, expect=NOT_RUN)
    contains(errors, "does not start with the pools of --helper", "a pool without a command")
    equal([name for name in os.listdir(lab.directory) if re.fullmatch(r"retort-\w{6}", name)], [], "folders that were left")


def test_recordings(lab):
    """Messages that passed a proxy, as `retortctl icap record` keeps them."""
    tester, origin = Tester(lab), Origin(lab)
    server = IcapServer(lab, unchanged)
    proxy = Retort(lab, services=[Service("any", server.uri("any"), bypass=False)])
    recording = Recording(lab, proxy, "--exchanges", "3", "--body", "5000")
    for length, kind in ((100, "text/plain"), (3000, "text/html"), (20000, "text/plain")):
        equal(proxy.get(origin.url("/bytes", n=length, type=kind)).status, 200, "a response that is recorded")
    equal(recording.end()["exchanges"], 3, "recorded exchanges")
    report = tester.json("--set", "MinSize=0", tester.module("gzip"), recording.path)
    equal([message["bytes_in"] for message in report["messages"]], [100, 3000], "the bodies that the file has whole")
    equal(report["left_out"], 1, "the one that it has not")
    damaged = lab.write("damaged", open(recording.path, "rb").read()[:-400])
    contains(tester.run(tester.module("gzip"), damaged, expect=NOT_RUN)[1], "cut off", "a recording that is not whole")


def test_plans(lab):
    """A finding says how to meet it again."""
    tester = Tester(lab)
    text = tester.message("text.http", TEXT)
    fault = ["--set", "Fault=by_pieces", tester.bad, text]
    plan = found(tester.json(*fault, expect=BROKEN), "differs")[0]["plan"]
    report = tester.json("--plan", plan, *fault, expect=BROKEN)
    equal(found(report, "differs")[0]["plan"], plan, "the plan of the finding")
    equal(tester.json("--plan", "preview=none,in=all,out=7", *fault)["kept"], True, "a plan that does not show it")
    for wrong in ("in=0", "in=", "out=0", "preview=x", "nothing", "idle=1", "pull=now"):
        contains(tester.run("--plan", wrong, *fault, expect=NOT_RUN)[1], f'the plan has the part "{wrong}"', wrong)


def test_what_can_not_be_tested(lab):
    tester = Tester(lab)
    text = tester.message("text.http", TEXT)
    other, alien = lab.write("other.so", b"nothing"), lab.write("srv_alien.so", b"nothing")
    cases = (([other, text], "can't be loaded"), ([lab.path("none.so"), text], "none.so: No such file or directory; correct the path"),
             (["libc.so.6", text], "is no name of a module"), ([alien, text], "srv_NAME.so is for c-icap"), ([tester.module("gray"), lab.path("none.http")], "none.http can't be read"),
             (["--set", "Level=11", tester.module("gzip"), text], "the setting Level=11 is refused"),
             (["--set", "Lefel=1", tester.module("gzip"), text], 'has no setting "Lefel"'),
             (["--set", "Encodings=lzw", tester.module("gzip"), text], "the service does not start: Encodings"),
             ([tester.module("adremover"), text], "Nothing was tested: the service adremover adapts requests"),
             ([], "usage: retort-service-test"), (["--cuts", "x", tester.bad], "--cuts: give it a number from 1 to"),
             (["--completion", "csh"], "--completion: there are those for bash"))
    for arguments, words in cases:
        out, errors = tester.run(*arguments, expect=NOT_RUN)
        contains(out + errors, words, " ".join(arguments))
    for name, content, words in (("short.http", b"HTTP/1.1 200 OK\nContent-Length: 9\n\n12345678", "Content-Length is 9, but 8 bytes follow"),
                                 ("head.http", b"HTTP/1.1 200 OK\nContent-Type: a/b\n", "an empty line has to follow it"),
                                 ("bad.http", b"GET  http://a/ HTTP/1.1\n\n", "the head of the request can't be read"),
                                 ("more.http", b"GET http://a.example/ HTTP/1.1\nHost: a.example\n\nmore", "needs Content-Length"),
                                 ("empty.http", b"", "an empty line has to follow it")):
        contains(tester.run(tester.bad, lab.write(name, content), expect=NOT_RUN)[1], words, name)


def test_forms_of_messages(lab):
    tester = Tester(lab)
    curl = lab.write("curl.http", b"HTTP/2 200 \r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\nas curl -i writes it")
    post = lab.write("post.http", b"POST http://a.example/ HTTP/1.1\nHost: a.example\nContent-Length: 3\n\nabcHTTP/1.1 204 No Content\n\n")
    report = tester.json(tester.bad, curl, post)
    equal([(message["kind"], message["outcome"], message["bytes_in"]) for message in report["messages"]],
          [("response", "adapted", 20), ("response", "unchanged", 0)], "messages")
    form = lab.write("form.http", b"POST http://a.example/ HTTP/1.1\nHost: a.example\nContent-Length: 11\n\na=1&b=2&c=3")
    message = tester.json(tester.bad, form)["messages"][0]
    equal((message["kind"], message["outcome"], message["bytes_out"]), ("request", "adapted", 11), "the body of a request")
    made = tester.json("--set", "Rule=||test.example^", tester.module("adremover"))
    equal([message["outcome"] for message in made["messages"] if message["kind"] == "request"], ["unchanged", "answered"],
          "the messages that it has itself")


def test_completion_and_manual(lab):
    """The files in the tree are what the program prints, and the manual has all options."""
    tester = Tester(lab)
    names = {"bash": "retort-service-test", "zsh": "_retort-service-test", "fish": "retort-service-test.fish"}
    for shell, name in names.items():
        with open(os.path.join(SOURCE, "conf/completion", name), encoding="utf-8") as file:
            equal(tester.run("--completion", shell)[0], file.read(), f"conf/completion/{name}: run make docs")
    options = re.findall(r"--([a-z-]+)", tester.run("--help")[0])
    with open(os.path.join(SOURCE, "docs/retort-service-test.1"), encoding="utf-8") as file:
        manual = file.read().replace("\\-", "-")
    for option in options:
        contains(manual, f"--{option}", "the manual")
    lacks(manual, "--worker", "the manual")
