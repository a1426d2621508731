"""Who may call the admin plane, as what, and what is noted of it."""

import json
import os
import socket
import subprocess
import sys

from harness import ports, wire as wire_module
from harness.checks import Skip, contains, equal, true, until
from harness.icap import IcapServer, unchanged
from harness.origin import Origin
from harness.retort import Retort, Service
from harness.suite import memcheck
from harness.wire import request

READ, OPERATE, ADMIN = "r" * 40, "0" * 64, "Az09-._~+/=" * 4
TOKENS = f"""# of the test
prometheus\tread   {READ}

deploy operate {OPERATE}
anna   admin   {ADMIN}"""


def guarded(lab, **options):
    """On an address, with a token for each role and an audit log."""
    proxy = Retort(lab, admin=("127.0.0.1", ports.take()), **options)
    proxy.write_tokens(TOKENS + "\nlab admin " + proxy.token)
    proxy.audit_path = lab.path(f"{proxy.name}.audit.log")
    proxy.write_config(proxy.text().replace("token_file =", f'audit_log = "{proxy.audit_path}"  token_file ='))
    equal(proxy.reload().status, 200, "reload")
    return proxy


def audit(proxy):
    try:
        with open(proxy.audit_path, encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]
    except FileNotFoundError:
        return []


def metric(proxy, name):
    for line in proxy.admin("GET", "/v1/metrics").text().splitlines():
        if line.startswith(name + " "):
            return float(line.rsplit(" ", 1)[1])
    raise AssertionError(f"no metric {name}")


@memcheck
def test_roles(lab):
    """Every page, with every role: the table says who may; nobody may without a token."""
    proxy = guarded(lab)
    described = json.loads(proxy.admin("GET", "/v1/openapi.json").body)["paths"]
    order = ["read", "operate", "admin"]
    true(len(described) > 20, f"{len(described)} paths")
    for path, methods in described.items():
        for method, operation in methods.items():
            for token, role in ((READ, "read"), (OPERATE, "operate")):
                if order.index(role) >= order.index(operation["x-role"]):
                    continue
                for alias in (path, path[len("/v1"):]):
                    answer = proxy.admin(method.upper(), alias, b"", token=token)
                    equal(answer.status, 403, f"{method} {alias} as {role}")
                    contains(json.loads(answer.body)["error"], f"has the role {role}, and this needs", "the reason")
            answer = wire_module.fetch(proxy.admin_path, method.upper(), path, body=b"", host="localhost")
            equal((answer.status, answer.header("WWW-Authenticate")), (401, 'Bearer realm="retort admin"'), f"{method} {path}")
    equal(proxy.admin("GET", "/status", token=READ).status, 200, "the reader reads")
    equal(proxy.admin("POST", "/v1/cache/purge?all=yes", b"", token=OPERATE).status, 200, "the operator purges")
    equal(proxy.admin("POST", "/v1/icap/record?unmasked=yes", b"", token=OPERATE).status, 403, "secrets are the admin's")
    equal(proxy.admin("POST", "/v1/icap/record?unmasked=yes", b"", token=ADMIN).status, 200, "the admin records them")
    equal(proxy.status()["state"], "running", "nobody has drained it")
    true(metric(proxy, 'retort_admin_denied_total{reason="role"}') > 20, "denied for their role")
    true(metric(proxy, 'retort_admin_denied_total{reason="credentials"}') > 20, "denied for their credentials")


@memcheck
def test_wrong_credentials(lab):
    """Nothing that is almost a token is one, and nobody learns which pages there are."""
    proxy = guarded(lab)
    for value in ("", "Bearer", "Bearer ", f"Bearer {READ[:-1]}", f"Bearer {READ}r", f"Bearer {READ.upper()}", f"Basic {READ}",
                  f"Bearer {READ} {READ}", READ, "Bearer anna", f"Bearer anna {ADMIN}", "Bearer \x80" * 2, "Bearer " + "r" * 5000):
        for path in ("/status", "/v1/nothing"):
            answer = proxy.admin("GET", path, headers={"Authorization": value})
            equal(answer.status, 401, f"{value[:60]!r} for {path}")
            equal(answer.header("Connection"), "close", "Connection")
            true(ADMIN not in answer.text() and READ not in answer.text(), "a token in the answer")
    with wire_module.Wire(proxy.admin_path) as wire:
        wire.send(f"PUT /v1/cache/object?url=http://a/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: {60 << 20}\r\n\r\n".encode())
        equal(wire.response().status, 401, "before a body of 60 MB is taken")
    text = proxy.process.log()
    contains(text, "without a token or with a wrong one", "the log")
    equal(text.count("without a token or with a wrong one"), 1, "told once a minute")
    true(ADMIN not in text and READ not in text, "a token in the log")
    true(ADMIN not in proxy.admin("GET", "/settings").text(), "a token in the settings")


def test_pages_of_others(lab):
    """What a web page can make a browser send: a form, text/plain, an image, under a name of its own. With a token and without."""
    proxy, unix = guarded(lab), Retort(lab)
    for admin in (proxy, unix):
        for fields in ({"Origin": "http://evil.example", "Content-Type": "text/plain"}, {"Origin": "null"},
                       {"Origin": "http://127.0.0.1:%d" % proxy.admin_path[1]},
                       {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, {"Sec-Fetch-Site": "same-site"}):
            for method, path in (("POST", "/drain"), ("POST", "/v1/reload"), ("POST", "/v1/settings"), ("GET", "/v1/status")):
                equal(admin.admin(method, path, b"x=1", headers=fields).status, 403, f"{method} {path} with {fields}")
    for host in ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "10.0.0.1", "0.0.0.0", "[::ffff:10.0.0.1]", "127.0.0.1@evil"):
        answer = wire_module.fetch(proxy.admin_path, "GET", "/v1/status", {"Authorization": f"Bearer {READ}"}, host=host)
        true(answer.status in (400, 403), f"Host: {host}: {answer.status}")
    own = {"Origin": "http://evil:9000", "Sec-Fetch-Site": "same-origin"}
    for host in ("evil:9000", "evil", "unix", "retort", "localhost.evil"):
        for fields in ({}, own, {"Referer": f"http://{host}/"}):
            answer = wire_module.fetch(unix.admin_path, "POST", "/v1/drain", fields, body=b"", host=host)
            equal(answer.status, 403, f"{host} through ssh -L to the Unix socket, with {fields}")
    for host in ("localhost", "LOCALHOST:9000", "127.0.0.1:9000", "[::1]:9000", "127.8.9.10"):
        equal(wire_module.fetch(unix.admin_path, "GET", "/v1/status", host=host).status, 200, f"{host} names this machine")
    true(metric(proxy, 'retort_admin_denied_total{reason="web_page"}') >= 15, "denied as web pages")
    equal((proxy.status()["state"], unix.status()["state"]), ("running", "running"), "states")


@memcheck
def test_audit(lab):
    """Each change has a line, and so has each that a role forbade; what only looks has none."""
    origin, proxy = Origin(lab), guarded(lab)
    before = len(audit(proxy))  # the reload of guarded() was written as the configuration before it said
    proxy.get(origin.url("/text", say="x", cc="max-age=60"))
    proxy.admin("GET", "/v1/status", token=READ)
    proxy.admin("POST", "/v1/cache/purge?host=a%22%0a%ff.org&soft=yes", b"", token=OPERATE)
    proxy.admin("POST", "/drain", b"", token=READ)
    proxy.admin("POST", "/v1/cache/purge?nonsense=1", b"", token=ADMIN)
    lines = audit(proxy)[before:]
    equal([(line["who"], line["role"], line["did"], line["status"]) for line in lines],
          [("deploy", "operate", "POST /cache/purge", 200), ("prometheus", "read", "POST /drain", 403),
           ("anna", "admin", "POST /cache/purge", 400)], "the lines")
    equal(lines[0]["arguments"], {"host": 'a"\n?.org', "soft": "yes"}, "the arguments")
    contains(lines[1]["error"], "needs the role admin", "why it was refused")
    true(all(line["from"].startswith("127.0.0.1:") and line["time"].endswith("Z") for line in lines), f"from and time of {lines}")
    equal(os.stat(proxy.audit_path).st_mode & 0o137, 0, "others may not read it")
    os.rename(proxy.audit_path, proxy.audit_path + ".1")
    proxy.admin("POST", "/v1/cache/purge?all=yes", b"", token=OPERATE)
    equal(len(audit(proxy)), 1, "lines of the new file")


def test_audit_that_can_not_be_written(lab):
    """Whoever makes the file unusable does not get changes that nobody sees."""
    origin, proxy = Origin(lab), guarded(lab)
    url = origin.url("/text", say="x", cc="max-age=60")
    proxy.get(url)
    if os.path.exists(proxy.audit_path):
        os.unlink(proxy.audit_path)
    os.mkdir(proxy.audit_path)
    answer = proxy.admin("POST", "/v1/cache/purge?all=yes", b"", token=OPERATE)
    equal(answer.status, 503, "status")
    contains(json.loads(answer.body)["error"], "nothing was changed or shown", "the reason")
    proxy.get(url)
    equal(proxy.counter("cache_hits"), 1, "it was not purged")
    contains(proxy.process.log(), "admin.audit_log", "the log")
    true(metric(proxy, "retort_admin_audit_lost_total") >= 1, "counted")
    lost = metric(proxy, "retort_admin_audit_lost_total")
    equal(proxy.admin("POST", "/drain", b"", token=READ).status, 403, "status of what a role forbids")
    equal(metric(proxy, "retort_admin_audit_lost_total"), lost + 1, "a denied change that has no line")
    os.rmdir(proxy.audit_path)
    os.symlink("/dev/full", proxy.audit_path)
    equal(proxy.admin("POST", "/v1/cache/purge?all=yes", b"", token=OPERATE).status, 200, "status when the disk is full")
    until(lambda: "it lacks this line: {" in proxy.process.log(), 5 * lab.patience, "the line in the error log")


def test_on_a_unix_socket(lab):
    """The kernel says who calls. A token narrows what its bearer may do there too."""
    proxy = Retort(lab)
    equal(proxy.admin("POST", "/v1/cache/purge?all=yes", b"").status, 200, "without a token")
    contains(proxy.process.log(), f'"who":"uid {os.getuid()}","role":"admin","from":"unix","did":"POST /cache/purge"', "the log")
    equal(proxy.admin("GET", "/v1/status", token=READ).status, 401, "a token where there are none")
    proxy.write_tokens(TOKENS)
    proxy.write_config(proxy.text().replace("admin {", f'admin {{ token_file = "{proxy.token_path}" '))
    equal(proxy.reload().status, 200, "reload")
    equal(proxy.admin("GET", "/v1/status", token=READ).status, 200, "the reader reads")
    equal(proxy.admin("POST", "/v1/drain", b"", token=READ).status, 403, "and does no more")


def test_another_user_on_a_unix_socket(lab):
    """A socket that everybody can open, as systemd makes it, lets nobody in without a token except root and the proxy's user."""
    if os.geteuid() != 0:
        raise Skip("only root can become another user")
    proxy = Retort(lab)
    proxy.write_tokens(TOKENS)
    proxy.write_config(proxy.text().replace("admin {", f'admin {{ token_file = "{proxy.token_path}" '))
    equal(proxy.reload().status, 200, "reload by the proxy's user")
    directory, name = os.path.split(proxy.admin_path)
    os.chmod(proxy.admin_path, 0o666)
    mode = os.stat(directory).st_mode & 0o7777
    code = ("import os, socket, sys; os.setgroups([]); os.setgid(65534); os.setuid(65534); s = socket.socket(socket.AF_UNIX);"
            " s.settimeout(20); s.connect(sys.argv[1]); s.sendall(sys.stdin.buffer.read()); print(s.recv(65536).decode())")

    def asked(method, path, token=None):
        fields = {"Connection": "close", **({"Authorization": f"Bearer {token}"} if token else {})}
        done = subprocess.run([sys.executable, "-c", code, name], input=request(method, path, fields, b"", host="localhost"),
                              capture_output=True, check=False, cwd=directory)
        equal(done.returncode, 0, f"{done.stderr.decode()[-300:]}; exit status")
        return done.stdout.decode()

    os.chmod(directory, mode | 0o011)
    try:
        for method, path in (("GET", "/v1/status"), ("POST", "/drain"), ("POST", "/v1/nothing")):
            answer = asked(method, path)
            contains(answer, "HTTP/1.1 401 ", f"{method} {path} without a token")
            contains(answer, "only root and the proxy's user need no token", "the reason")
        contains(asked("GET", "/v1/status", READ), "HTTP/1.1 200 ", "with a token")
        contains(asked("POST", "/v1/drain", READ), "HTTP/1.1 403 ", "with a token of another role")
    finally:
        os.chmod(directory, mode)
    contains(proxy.process.log(), "a request from uid 65534 without a token", "the log")
    equal(proxy.status()["state"], "running", "state")


def test_audit_shows_what_was_done(lab):
    """No argument is there twice, so the page can not use one while the log shows another. Names count in any case, as to the page."""
    origin, proxy = Origin(lab), guarded(lab)
    url = origin.url("/text", say="x", cc="max-age=60")
    proxy.get(url)
    host = url.split("/")[2].split(":")[0]
    for path in ("/cache/purge", "/v1/cache/purge"):
        for query in (f"host={host}&host=decoy.test", f"HOST={host}&host=decoy.test", f"host=decoy.test&x=1&hosT={host}"):
            answer = proxy.admin("POST", f"{path}?{query}", b"", token=OPERATE)
            equal(answer.status, 400, f"{path}?{query}")
            equal(audit(proxy)[-1]["status"], 400, "in the log")
    contains(json.loads(proxy.admin("POST", "/cache/purge?host=a&host=b", b"", token=OPERATE).body)["error"], "twice", "the reason")
    proxy.get(url)
    equal(proxy.counter("cache_hits"), 1, "nothing was purged")
    equal(json.loads(proxy.admin("POST", f"/cache/purge?host={host}&x=1&x=2", b"", token=OPERATE).body)["purged"], 1, "what the page ignores")


def test_taking_a_recording_with_secrets(lab):
    """Its number is easily guessed: who may not begin it may not take it either. Who takes exchanges is noted, who finds none is not."""
    icap = IcapServer(lab, unchanged, preview=1024)
    origin, proxy = Origin(lab), guarded(lab, services=[Service("s", icap.uri())])

    def begin(query):
        return json.loads(proxy.admin("POST", f"/v1/icap/record?exchanges=1{query}", b"", token=ADMIN).body)["recording"]

    def take(number, token, path="/v1/icap/record/take"):
        return proxy.admin("POST", f"{path}?recording={number}", b"", token=token)

    def recorded(count):
        proxy.get(origin.url("/text", say="x"), {"Cookie": "a=secret-of-anna", "Cache-Control": "no-cache"})
        until(lambda: proxy.counter("icap_recorded") == count, 10 * lab.patience, "an exchange")

    number = begin("&unmasked=yes")
    lines = len(audit(proxy))
    equal([take(number, ADMIN).body for _ in range(3)], [b""] * 3, "before there is an exchange")
    equal(len(audit(proxy)), lines, "lines when nothing was taken")
    recorded(1)
    for path in ("/v1/icap/record/take", "/icap/record/take"):
        answer = take(number, OPERATE, path)
        equal(answer.status, 403, path)
        contains(json.loads(answer.body)["error"], "deploy has the role operate, and this needs the role admin", "the reason")
    contains(take(number, ADMIN).body, b"secret-of-anna", "what the admin takes")
    equal([(line["who"], line["did"], line["status"]) for line in audit(proxy)[lines:]],
          [("deploy", "POST /icap/record/take", 403)] * 2 + [("anna", "POST /icap/record/take", 200)], "the lines")
    number = begin("")
    recorded(2)
    body = take(number, OPERATE).body
    true(len(body) > 100 and b"secret-of-anna" not in body, "a masked recording is for an operator")
    equal((audit(proxy)[-1]["who"], audit(proxy)[-1]["arguments"]), ("deploy", {"recording": str(number)}), "the line")


@memcheck
def test_tokens_are_read_again(lab):
    proxy = guarded(lab)
    proxy.write_tokens("lab admin " + proxy.token + "\nnew read " + "n" * 32)
    equal(proxy.admin("GET", "/v1/status", token=READ).status, 200, "before the reload")
    equal(proxy.reload().status, 200, "reload")
    equal(proxy.admin("GET", "/v1/status", token=READ).status, 401, "one that was removed")
    equal(proxy.admin("GET", "/v1/status", token="n" * 32).status, 200, "a new one")
    proxy.write_tokens("anna admin short")
    answer = proxy.reload()
    equal(answer.status, 409, "reload of a bad file")
    contains(json.loads(answer.body)["error"], f"{proxy.token_path}:1: a token has 32 to 256 characters", "the reason")
    equal(proxy.admin("GET", "/v1/status", token="n" * 32).status, 200, "the old tokens stay")


def test_a_body_that_comes_after_the_token_was_removed(lab):
    """Who may call is decided again when a body has taken its time."""
    proxy = guarded(lab)
    body = json.dumps({"drain_timeout": "7s"}).encode()
    head = (f"POST /v1/settings HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {ADMIN}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n").encode()
    removed, kept = (wire_module.Wire(proxy.admin_path) for _ in range(2))
    kept.send(head.replace(ADMIN.encode(), proxy.token.encode()) + body[:3])
    removed.send(head + body[:3])
    proxy.write_tokens("lab admin " + proxy.token)
    equal(proxy.reload().status, 200, "reload")
    removed.send(body[3:])
    equal(removed.response().status, 401, "whose token is gone")
    equal(json.loads(proxy.admin("GET", "/v1/settings/changes").body)["changes"], [], "what was changed")
    kept.send(body[3:])
    equal(kept.response().status, 200, "whose token stays")
    for wire in (removed, kept):
        wire.close()


def test_no_token_in_clear_text(lab):
    """retortctl sends a token through TLS, or not over a network at all."""
    addresses = subprocess.run(["hostname", "-I"], capture_output=True, text=True, check=False).stdout.split()
    own = next((address for address in addresses if "." in address and not address.startswith("127.")), None)
    if own is None:
        raise Skip("this machine has no address but loopback ones")
    with socket.create_server((own, 0)) as listener:
        port = listener.getsockname()[1]
        done = subprocess.run([lab.built("proxy/retortctl"), "-s", f"{own}:{port}", "status"], capture_output=True, text=True, check=False,
                              timeout=20 * lab.patience, env={**os.environ, **lab.environment(), "RETORT_TOKEN": ADMIN})
        equal(done.returncode, 1, "exit status")
        contains(done.stderr, "the token would cross the network in clear text: write https://", "message")
        connection, _ = listener.accept()
        with connection:
            equal(connection.recv(65536), b"", "what was sent")


def test_token_files(lab):
    proxy = Retort(lab, admin=("127.0.0.1", ports.take()))
    for text, expected in (("", "has no token"), ("# only a remark", "has no token"), ("anna admin", ":1: a token has 32"),
                           (f"anna root {ADMIN}", ":1: write NAME ROLE TOKEN"), (f"anna {ADMIN}", ":1: write NAME ROLE TOKEN"),
                           (f"an,na read {ADMIN}", ":1: the name of a token"), (f"{'a' * 65} read {ADMIN}", ":1: the name of a token"),
                           (f"anna read {READ} {READ}", ":1: something follows"), (f"anna read {READ}é", ":1: a token consists of"),
                           (f"anna read {READ * 7}", ":1: a token has 32"),
                           (f"anna read {READ}\nanna admin {ADMIN}", ":2: an earlier line has the same name"),
                           (f"anna read {READ}\nbob admin {READ}", ":2: an earlier line has the same token")):
        proxy.write_tokens(text)
        status, said = proxy.check_config(proxy.text())
        equal(status, 1, f"exit status for {text!r}")
        contains(said, expected, "message")
        true(ADMIN not in said and READ not in said, "a token in the message")
    proxy.write_tokens(TOKENS)
    for mode in (0o644, 0o604, 0o602, 0o660, 0o620):
        os.chmod(proxy.token_path, mode)
        status, said = proxy.check_config(proxy.text())
        equal(status, 1, f"exit status with mode {mode:o}")
        contains(said, "chmod 640", "message")
    os.chmod(proxy.token_path, 0o640)
    equal(proxy.check_config(proxy.text())[0], 0, "exit status with mode 640")
    status, said = proxy.check_config(proxy.text().replace(f'  token_file = "{proxy.token_path}"', ""))
    equal(status, 1, "exit status without a token_file")
    contains(said, "every user of this machine can connect", "message")


def test_ctl_with_a_token(lab):
    """From a file or the environment, and only to the admin plane."""
    proxy = guarded(lab)
    path = lab.write("token", ADMIN + "\n")

    def ctl(*words, **environment):
        return subprocess.run([lab.built("proxy/retortctl"), "-s", proxy.admin_listen(), *words], capture_output=True, text=True,
                              check=False, timeout=20 * lab.patience, env={**os.environ, **lab.environment(), **environment})
    for done in (ctl("--token-file", path, "status"), ctl("status", RETORT_TOKEN=READ)):
        equal(done.returncode, 0, done.stderr)
    for done, expected in ((ctl("status"), "--token-file"), (ctl("drain", RETORT_TOKEN=READ), "prometheus has the role read"),
                           (ctl("-t", "/nowhere", "status"), "/nowhere: No such file"),
                           (ctl("status", RETORT_TOKEN="a b"), "the token has a blank")):
        equal(done.returncode, 1, "exit status")
        contains(done.stderr, expected, "message")
    listener = socket.create_server(("127.0.0.1", 0))
    child = subprocess.Popen([lab.built("proxy/retortctl"), "-t", path, "cache", "fetch", "--via", "127.0.0.1:%d" % listener.getsockname()[1],
                              "http://a.example/"], stderr=subprocess.DEVNULL, env={**os.environ, **lab.environment()})
    connection, _ = listener.accept()
    true(ADMIN.encode() not in connection.recv(65536), "a listener gets the token of the admin plane")
    connection.close()
    listener.close()
    child.wait(20 * lab.patience)
