"""The configuration file: checked with file and line, re-read without losing anybody."""

import os
import socket
import subprocess
import threading
import time

from harness import ports, wire as wire_module
from harness.checks import contains, equal, lacks, true, until
from harness.origin import Origin
from harness.retort import Retort, Service, run_check
from harness.suite import memcheck
from harness.wire import request

# The text of the fixed part of the language, with a line that is wrong and what the message must name.
GOOD = """workers = 1
listen "127.0.0.1:3128" { mode = forward }
listen "127.0.0.1:8080" { mode = reverse }
map "http://www.example.com/" { origin = "http://127.0.0.1:9000/" }
map "/" { origin = "http://127.0.0.1:9000/" }
cache { memory = "512MB" }
access_log "/tmp/never-opened-by-a-check.log" { format = squid }
icap_service gray { uri = "icap://127.0.0.1:1344/gray"  point = respmod_precache  bypass = true  timeout = "5s" }
url_class images { path_regex = "\\\\.(jpe?g|gif|png)$" }
adapt images { services = { gray } }
"""

BAD = [
    ("section twice", 'cache { memory = "1MB" }', 11, "cache"),
    ("unknown option", "wrokers = 1", 11, "wrokers"),
    ("unknown section", 'frob "x" { }', 11, "frob"),
    ("unknown option in a section", 'client { max_haed = "1KB" }', 11, "max_haed"),
    ("bad number", "workers = many", 11, "workers"),
    ("number out of range", "workers = -3", 11, "workers"),
    ("bad size", 'client { max_head = "512 potatoes" }', 11, "max_head"),
    ("bad time", 'icap_service x { uri = "icap://h/x" point = respmod_precache timeout = "soon" }', 11, "timeout"),
    ("bad point", 'icap_service x { uri = "icap://h/x" point = sometime }', 11, "sometime"),
    ("bad URI", 'icap_service x { uri = "http://h/x" point = respmod_precache }', 11, "http://h/x"),
    ("missing URI", "icap_service x { point = respmod_precache }", 11, "uri"),
    ("bad mode", 'listen "127.0.0.1:1" { mode = sideways }', 11, "sideways"),
    ("bad address", 'listen "localhostess" { mode = forward }', 11, "localhostess"),
    ("bad port", 'listen "127.0.0.1:99999" { mode = forward }', 11, "99999"),
    ("bad regex", 'url_class c { path_regex = "(" }', 11, "path_regex"),
    ("unknown service", "adapt all { services = { grey } }", 11, "grey"),
    ("unknown class", "adapt pictures { services = { gray } }", 11, "pictures"),
    ("bad origin", 'map "/x" { origin = "ftp://h/" }', 11, "ftp://h/"),
    ("bad format", 'access_log "/tmp/x" { format = xml }', 11, "xml"),
    ("unclosed section", 'client { max_head = "1KB"', None, ""),
    ("garbage", "}}}", 11, ""),
]


@memcheck
def test_check_accepts_the_language(lab):
    status, said = run_check(lab, lab.write("good.conf", GOOD))
    equal(status, 0, f"exit status ({said})")


@memcheck
def test_check_names_file_and_line(lab):
    for what, line, number, word in BAD:
        path = lab.write("bad.conf", GOOD + line + "\n")
        status, said = run_check(lab, path)
        true(status not in (0, None) and status > 0, f"{what}: exit status {status} ({said})")
        if number is not None:
            contains(said, f"{path}:{number}:", f"{what}: message")
        contains(said, word, f"{what}: message")


def test_check_of_a_missing_file(lab):
    status, said = run_check(lab, lab.path("nowhere.conf"))
    true(status > 0, f"exit status {status}")
    contains(said, "nowhere.conf", "message")


def test_a_start_that_fails_says_what_to_do(lab):
    """What is not for the file to say: ports, addresses and sockets that can't be had."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = other.getsockname()[1]
        for lines, words in ((f'listen "127.0.0.1:{taken}" {{ mode = forward }}', ("Address already in use", "ss -ltnp")),
                             ('listen "192.0.2.1:3128" { mode = forward }', ("192.0.2.1:3128", "an address of this machine")),
                             (f'listen "127.0.0.1:{ports.take()}" {{ mode = forward }}\nadmin {{ listen = "/nowhere/retort.sock" }}',
                              ("/nowhere/retort.sock", "No such file or directory", "create its directory"))):
            done = subprocess.run([lab.built("proxy/retort"), "-f", lab.write("start.conf", lines + "\n")], capture_output=True,
                                  text=True, check=False, timeout=20 * lab.patience, env={**os.environ, **lab.environment()})
            equal(done.returncode, 1, f"{lines}: exit status; it said: {done.stderr}")
            for word in words:
                contains(done.stderr, word, lines)


def test_check_finds_what_a_start_refuses(lab):
    file, link, pipe, token = lab.write("file", "x"), lab.path("link"), lab.path("pipe"), lab.write("token", "tester admin " + "a" * 40 + "\n")
    os.chmod(token, 0o600)
    os.symlink(file, link)
    os.mkfifo(pipe)
    admin = 'admin {{ listen = "{}" }}\n'.format
    disk = 'cache {{ disk "{}" {{ size = "16MB" }} }}\n'.format
    listen = f'listen "127.0.0.1:{ports.take()}" {{ mode = forward }}\n'
    for lines, word in (('listen "192.0.2.1:3128" { mode = forward }\n', "192.0.2.1:3128"),
                        (listen + admin("/nowhere/x.sock"), "/nowhere"), (listen + admin(file), f"{file} "),
                        (listen + admin("192.0.2.1:3129").replace(" }", f' token_file = "{token}" }}'), "192.0.2.1:3129"),
                        (listen + 'take_over_socket = "/nowhere/x.sock"\n', "take_over_socket"),
                        (listen + f'take_over_socket = "{file}"\n', "take_over_socket"),
                        (listen + admin(lab.path("a.sock")) + f'take_over_socket = "{lab.path("a.sock")}"\n', "take_over_socket"),
                        (listen + disk("/nowhere/x"), "disk /nowhere/x"), (listen + disk(link), "disk " + link),
                        (listen + disk(pipe), "disk " + pipe)):
        path = lab.write("start.conf", lines)
        for arguments in ([], ["-t"]):
            done = subprocess.run([lab.built("proxy/retort"), *arguments, "-f", path], capture_output=True, text=True, check=False,
                                  timeout=20 * lab.patience, env={**os.environ, **lab.environment()})
            equal(done.returncode, 1, f"{arguments} {lines}: exit status; it said: {done.stderr}")
            contains(done.stderr, word, f"{arguments} {lines}")
    # An address that is in use may be that of the retort that runs: a warning, unless it is.
    with socket.create_server(("127.0.0.1", 0)) as other:
        status, said = run_check(lab, lab.write("used.conf", f'listen "127.0.0.1:{other.getsockname()[1]}" {{ mode = forward }}\n'))
        equal(status, 0, "exit status for an address in use")
        contains(said, "if retort runs already", "the warning")
    proxy = Retort(lab)
    lacks(proxy.check_config(proxy.text())[1], "if retort runs already", "beside the one that runs")


def test_logs_that_can_not_be_opened(lab):
    """They keep nobody from being served, and stand on standard error."""
    proxy = Retort(lab, extra='error_log = "/nowhere/error.log"\naccess_log "/nowhere/access.log" { format = squid }\n')
    for what in ("error_log /nowhere/error.log", "the log /nowhere/access.log"):
        said = f"cannot open {what}: No such file or directory"
        until(lambda: said in proxy.process.log(), 10 * lab.patience, f'"{said}" in the log')
    equal(proxy.process.log().count("create its directory"), 2, "sentences that say what to do")


def test_a_temporary_directory_that_is_not_there_is_told(lab):
    """At the start and at a reload, not by the first large body; without services it is not needed."""
    missing = 'temporary_directory = "/nowhere/at/all"\n'
    services = [Service("s", f"icap://127.0.0.1:{ports.take()}/s")]
    for given, count in (([], 0), (services, 1)):
        proxy = Retort(lab, services=given, extra=missing)
        equal(proxy.process.log().count("temporary_directory /nowhere/at/all: No such file"), count, "warnings at the start")
    equal(proxy.reload().status, 409, "reload")
    equal(proxy.process.log().count("temporary_directory /nowhere/at/all: No such file"), 2, "warnings")


def test_check_needs_a_listener(lab):
    status, said = run_check(lab, lab.write("none.conf", "workers = 1\n"))
    true(status > 0, f"exit status {status}")
    contains(said, "listen", "message")


def test_check_reads_only(lab):
    """-t opens no port and no log."""
    port = ports.take()
    log = lab.path("checked.log")
    text = f'listen "127.0.0.1:{port}" {{ mode = forward }}\naccess_log "{log}" {{ format = json }}\n'
    status, said = run_check(lab, lab.write("quiet.conf", text))
    equal(status, 0, f"exit status ({said})")
    true(not os.path.exists(log), "the access log was made by -t")


def test_bad_file_at_start(lab):
    path = lab.write("bad.conf", GOOD + "wrokers = 1\n")
    done = subprocess.run([lab.built("proxy/retort"), "-f", path], capture_output=True, text=True,
                          timeout=10 * lab.patience, check=False)
    true(done.returncode > 0, f"exit status {done.returncode}")
    contains(done.stdout + done.stderr, f"{path}:11:", "message")


def test_port_in_use_at_start(lab):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        path = lab.write("taken.conf", f'listen "127.0.0.1:{port}" {{ mode = forward }}\n')
        done = subprocess.run([lab.built("proxy/retort"), "-f", path], capture_output=True, text=True,
                              timeout=10 * lab.patience, check=False)
    true(done.returncode > 0, f"exit status {done.returncode}")
    contains(done.stdout + done.stderr, str(port), "message")


def reverse_text(proxy, origin, word):
    return proxy.text(reverse={"/": origin.url(f"/{word}/")})


def says(proxy, word):
    return proxy.get("/x", host="h", headers={"Cache-Control": "no-cache"}).text().startswith(f"/{word}/")


@memcheck
def test_hang_up_reads_again(lab):
    origin = Origin(lab)
    proxy = Retort(lab, reverse={"/": origin.url("/one/")})
    true(says(proxy, "one"), "the first configuration")
    proxy.write_config(reverse_text(proxy, origin, "two"))
    proxy.hang_up()
    until(lambda: says(proxy, "two"), 5 * lab.patience, "the new configuration to be used")


@memcheck
def test_hang_up_with_a_bad_file(lab):
    origin = Origin(lab)
    proxy = Retort(lab, reverse={"/": origin.url("/one/")})
    proxy.write_config(reverse_text(proxy, origin, "two") + "wrokers = 1\n")
    proxy.hang_up()
    until(lambda: "wrokers" in proxy.process.log(), 5 * lab.patience, "the refusal in the log")
    contains(proxy.process.log(), f"{proxy.config_path}:", "refusal")
    true(says(proxy, "one"), "the old configuration stays")
    proxy.write_config(reverse_text(proxy, origin, "three"))
    proxy.hang_up()
    until(lambda: says(proxy, "three"), 5 * lab.patience, "the next good configuration to be used")


def test_new_listener_by_reload(lab):
    origin, proxy = Origin(lab), Retort(lab)
    port = ports.take()
    proxy.write_config(proxy.text() + f'listen "127.0.0.1:{port}" {{ mode = forward  local_destinations = allow }}\n')
    equal(proxy.reload().status, 200, "POST /reload")
    answer = wire_module.fetch(("127.0.0.1", port), "GET", origin.url("/text", say="new"))
    equal(answer.text(), "new", "body through the new listener")


@memcheck
def test_a_reload_is_for_open_connections(lab):
    """What the file says of their listener is true for their next request."""
    origin, proxy = Origin(lab), Retort(lab)
    port, without = ports.take(), proxy.text()

    def status(listen):
        proxy.write_config(without + listen)
        equal(proxy.reload().status, 200, "POST /reload")
        wire.send(request("GET", origin.url("/text", say="open")))
        return wire.response().status
    listen = f'listen "127.0.0.1:{port}" {{ mode = forward  local_destinations = allow  %s }}\n'
    proxy.write_config(without + listen % "")
    equal(proxy.reload().status, 200, "POST /reload")
    with wire_module.Wire(("127.0.0.1", port), timeout=20 * lab.patience) as wire:
        equal(status(listen % ""), 200, "as it was")
        equal(status(listen % 'allow = { "10.0.0.0/8" }'), 403, "for others only")
        equal(status(listen % 'allow = { "127.0.0.0/8" }'), 200, "for this client as well")
        equal(status(""), 503, "removed")


def test_cache_survives_a_reload(lab):
    origin, proxy = Origin(lab), Retort(lab)
    url = origin.url("/kept", cc="max-age=60")
    proxy.get(url)
    equal(proxy.reload().status, 200, "POST /reload")
    proxy.get(url)
    equal(origin.count("/kept"), 1, "requests at the origin")


@memcheck
def test_reload_drops_no_request(lab):
    """20 reloads under load: no request fails, a slow download is not cut."""
    origin = Origin(lab)
    proxy = Retort(lab, workers=2, reverse={"/": origin.url("/one/")})
    slow = proxy.wire()
    slow.send(request("GET", origin.url("/drip", n=40000, piece=1000, delay=50, cc="no-store")))
    stop, failures, served = threading.Event(), [], [0]

    def load(keep):
        wire = None
        while not stop.is_set():
            try:
                wire = wire or proxy.wire(reverse=True)
                wire.send(request("GET", "/x?cc=no-store", host="h"))
                answer = wire.response()
                if answer.status != 200:
                    failures.append(answer.status)
                closing = (answer.header("Connection") or "").lower() == "close"
                if closing or not keep:
                    wire.close()
                    wire = None
                served[0] += 1
            except Exception as error:  # pylint: disable=broad-except
                failures.append(repr(error))
                wire = None
    threads = [threading.Thread(target=load, args=(keep,)) for keep in (True, True, False, False)]
    for thread in threads:
        thread.start()
    for turn in range(20):
        proxy.write_config(reverse_text(proxy, origin, f"r{turn}"))
        proxy.hang_up()
        time.sleep(0.1)
        until(lambda most=3 * (turn + 1): served[0] >= most or failures, 10 * lab.patience, "requests are served between reloads")
    stop.set()
    for thread in threads:
        thread.join()
    equal(failures[:3], [], f"failures among {served[0]} requests")
    true(served[0] > 50, f"only {served[0]} requests were served")
    equal(len(slow.response().body), 40000, "length of the slow download")
    until(lambda: says(proxy, "r19"), 5 * lab.patience, "the last configuration to be used")


def test_byte_order_marks_are_skipped(lab):
    """Unicode, 23.8: at the beginning of a file U+FEFF is no part of the text; some editors put it there."""
    mark = "\ufeff"
    status, said = run_check(lab, lab.write("mark.conf", mark + 'listen "127.0.0.1:3128" { mode = forward }\n'), "-T")
    equal(status, 0, f"exit status; it said: {said}")
    status, said = run_check(lab, lab.write("mark.conf", mark + 'listen "127.0.0.1:3128" { mood = forward }\n'), "-T")
    contains(said, "mark.conf:1: ", "the place of an error behind it")
    config = lab.write("helperd.conf", mark + 'pool a { command = { "/bin/true" } }\n')
    done = subprocess.run([lab.built("icap-services/retort-helperd"), "-T", "-f", config], capture_output=True, text=True, check=False,
                          timeout=20 * lab.patience, env={**os.environ, **lab.environment()})
    equal(done.returncode, 0, f"exit status; it said: {done.stdout}{done.stderr}")
    rules = lab.write("list.txt", mark + "[Adblock Plus 2.0]\n||ads.example^\n")
    done = subprocess.run([lab.built("proxy/retortctl"), "adlist", "check", rules], capture_output=True, text=True, check=True,
                          timeout=20 * lab.patience, env={**os.environ, **lab.environment()})
    contains(done.stdout, " 1 rule in use", "what is in the list")
    helper = subprocess.run([lab.built("icap-services/text-helper"), "--file", lab.write("texts", mark + "default\tx\n"), "--once", "10.1.2.3"],
                            capture_output=True, text=True, check=False, timeout=20 * lab.patience, env={**os.environ, **lab.environment()})
    equal((helper.returncode, helper.stdout.strip()), (0, "x"), f"the text; it said: {helper.stderr}")


def test_secrets_that_everybody_may_read(lab):
    path = lab.write("secret.conf", 'listen "127.0.0.1:3128" { mode = forward }\n'
                     'origins up { servers = "http://127.0.0.1:1"  credentials = "user:secret" }\nparent all { origins = up }\n')
    for mode, told in ((0o644, True), (0o640, False)):
        os.chmod(path, mode)
        status, said = run_check(lab, path, "-T")
        equal((status, "credentials is a secret" in said, "user:secret" in said), (0, told, False), f"{mode:o}: {said}")
