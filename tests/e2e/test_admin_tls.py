"""TLS on the admin plane: certificates, client certificates with roles, and who may not get in."""

import http.client
import json
import os
import socket
import ssl
import subprocess
import time

from harness import ports
from harness.certificates import CLIENT, Authority
from harness.checks import Skip, contains, equal, raises, true, until
from harness.process import Process
from harness.retort import Retort
from harness.suite import memcheck, seconds
from test_signals import accepts

TOKEN, READER = "t" * 40, "r" * 40


class Plane:
    """A proxy whose admin plane speaks TLS, and certificates of those who call it."""

    def __init__(self, lab, client="optional", tokens=True, more=""):
        self.lab = lab
        self.root, self.clients = Authority(lab, "servers"), Authority(lab, "clients")
        self.server = self.root.leaf("admin.example", "127.0.0.1", "localhost")
        self.people = {name: self.clients.leaf(cn=name, usage=CLIENT) for name in ("anna", "otto", "rita", "nobody")}
        self.address = ("127.0.0.1", ports.take())
        self.ca = lab.path("client-ca.pem")
        self.crl = lab.path("client-crl.pem")
        self.certificate = lab.path("admin.pem")
        self.copy(self.server.both, self.certificate)
        self.copy(self.clients.file, self.ca)
        self.copy(self.clients.crl(), self.crl)
        self.roles("anna admin CN=anna", "otto operate CN=otto", "rita read CN=rita")
        self.proxy = Retort(lab)
        self.proxy.stop()
        self.proxy.admin_path = self.address
        self.proxy.audit_path = lab.path("audit.log")
        self.proxy.write_tokens(f"deploy admin {TOKEN}\nlook read {READER}")
        self.proxy.write_config(self.config(client, tokens, more))
        self.proxy.start()

    def config(self, client="optional", tokens=True, more="", listen=None):
        asked = "" if client == "off" else (f'client_ca = "{self.ca}" client_crl = "{self.crl}" '
                                            f'certificate_roles = "{self.lab.path("roles")}"')
        admin = (f'admin {{ listen = "{listen or "%s:%d" % self.address}" certificates = "{self.certificate}" '
                 f'client_certificate = {client} {asked} audit_log = "{self.lab.path("audit.log")}" '
                 + (f'token_file = "{self.proxy.token_path}" ' if tokens else "") + more + " }\n")
        lines = self.proxy.text().splitlines(True)
        return "".join(line for line in lines if not line.startswith("admin")) + admin

    @staticmethod
    def copy(source, target):
        with open(source, "rb") as data, open(os.open(target + ".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
            out.write(data.read())
        os.rename(target + ".new", target)

    def roles(self, *lines):
        self.lab.write("roles", "# who\n" + "\n".join(lines) + "\n")
        os.chmod(self.lab.path("roles"), 0o644)

    def context(self, person=None, trusted=True):
        context = ssl.create_default_context(cafile=self.root.file if trusted else self.clients.file)
        if person:
            context.load_cert_chain(person.file, person.key)
        return context

    def connect(self, person=None):
        return http.client.HTTPSConnection(*self.address, context=self.context(person), timeout=20 * self.lab.patience)

    def ask(self, person=None, path="/v1/whoami", method="GET", token=None, connection=None, headers=None):
        """(status, what was answered) of one request."""
        used = connection or self.connect(person)
        used.request(method, path, headers={**(headers or {}), **({"Authorization": f"Bearer {token}"} if token else {})})
        answer = used.getresponse()
        body = answer.read()
        if not connection:
            used.close()
        return answer.status, json.loads(body) if body[:1] == b"{" else body.decode()

    def reload(self):
        status, said = self.ask(path="/v1/reload", method="POST", token=TOKEN)
        equal(status, 200, f"reload: {said}")

    def metric(self, name):
        status, text = self.ask(path="/v1/metrics", token=TOKEN)
        equal(status, 200, "metrics")
        for line in text.splitlines():
            if line.startswith(name + " "):
                return float(line.rsplit(" ", 1)[1])
        raise AssertionError(f"no metric {name}")

    def ended(self, end):
        return self.metric(f'retort_admin_handshakes_total{{end="{end}"}}')

    def refused(self, call):
        """The handshake, or what follows it, fails: with TLS 1.3 the client hears of it afterwards."""
        try:
            answer = call()
        except (ssl.SSLError, ConnectionError, http.client.HTTPException) as error:
            return str(error)
        raise AssertionError(f"was not refused: {answer}")

    def ctl(self, *words, **environment):
        return subprocess.run([self.lab.built("proxy/retortctl"), *words], capture_output=True, text=True, check=False,
                              timeout=30 * self.lab.patience, env={**os.environ, **self.lab.environment(), **environment})


def test_roles(lab):
    """A certificate gives the role of its line, a token goes before it, and both are in the audit log."""
    plane = Plane(lab)
    people = plane.people
    for name, role in (("anna", "admin"), ("otto", "operate"), ("rita", "read")):
        status, said = plane.ask(people[name])
        equal((status, said["name"], said["role"], said["certificate"]), (200, name, role, f"CN={name}"), "whoami")
    status, said = plane.ask(people["nobody"])
    equal(status, 401, "a good certificate without a line")
    contains(said["error"], 'certificate_roles has the subject "CN=nobody"', "reason")
    status, said = plane.ask()
    equal(status, 401, "neither token nor certificate")
    contains(said["error"], "--certificate", "reason")
    equal(plane.ask(people["rita"], token=TOKEN)[1]["role"], "admin", "role of the token that goes with a certificate")
    equal(plane.ask(people["anna"], token="x" * 40)[0], 401, "a wrong token with a good certificate")
    equal(plane.ask(people["rita"], "/v1/reload", "POST")[0], 403, "reload by a reader")
    equal(plane.ask(people["otto"], "/v1/reload", "POST")[0], 200, "reload by an operator")
    with open(plane.proxy.audit_path, encoding="utf-8") as lines:
        noted = [json.loads(line) for line in lines]
    equal([(line["who"], line["certificate"], line["status"]) for line in noted],
          [("rita", "CN=rita", 403), ("otto", "CN=otto", 200)], "audit log")
    contains(noted[1]["from"], "127.0.0.1:", "address in the audit log")


def test_required(lab):
    """Without a good certificate the handshake fails, whatever token would follow."""
    plane = Plane(lab, client="required")
    strangers = Authority(lab, "clients")  # has the name of ours
    refused = {
        "none": None,
        "of another authority": strangers.leaf(cn="anna", usage=CLIENT),
        "expired": plane.clients.leaf(cn="anna", usage=CLIENT, days=-1),
        "not valid yet": plane.clients.leaf(cn="anna", usage=CLIENT, days=(2, 30)),
        "of a server": plane.clients.leaf("anna", cn="anna"),
        "signed by itself": strangers.sign("anna"),
        "of a leaf": plane.people["anna"].leaf(cn="anna", usage=CLIENT),
    }
    alerts = {"of another authority": "ca", "expired": "expired"}
    for version, missing in ((ssl.TLSVersion.TLSv1_3, "certificate required"), (ssl.TLSVersion.TLSv1_2, "handshake failure")):
        alerts["none"] = missing
        for name, person in refused.items():
            def call():
                context = plane.context(person)
                context.minimum_version = context.maximum_version = version
                connection = http.client.HTTPSConnection(*plane.address, context=context, timeout=20 * lab.patience)
                return plane.ask(connection=connection, token=TOKEN)
            contains(plane.refused(call).lower().replace("_", " "), alerts.get(name, ""), f"what a client hears, {name}")
    equal(plane.ask(plane.people["anna"])[0], 200, "a good certificate")
    equal(plane.ask(plane.people["nobody"], token=TOKEN)[0], 200, "a good certificate and a token")
    status, text = plane.ask(plane.people["anna"], "/v1/metrics")
    contains(text, f'retort_admin_handshakes_total{{end="certificate"}} {2 * len(refused)}\n', "counted")
    said = plane.proxy.process.log()
    equal(said.count("admin: the certificate of 127.0.0.1:"), 1, f"warnings in {said}")


@memcheck
def test_revoked(lab):
    """A reload takes a role or a certificate away, on connections that are open as well."""
    plane = Plane(lab)
    anna, otto = plane.people["anna"], plane.people["otto"]
    first, second = plane.connect(anna), plane.connect(otto)
    equal((plane.ask(connection=first)[0], plane.ask(connection=second)[0]), (200, 200), "before")
    plane.roles("otto read CN=otto")
    plane.reload()
    equal(plane.ask(connection=first)[0], 401, "a line that is gone, on an open connection")
    equal(plane.ask(anna)[0], 401, "and on a new one")
    equal(plane.ask(connection=second)[1]["role"], "read", "a line that has changed")
    plane.copy(plane.clients.crl(otto), plane.crl)
    equal(plane.ask(connection=second)[0], 200, "before the reload")
    plane.reload()
    status, said = plane.ask(connection=second)
    equal(status, 401, "a certificate that is revoked, on an open connection")
    contains(said["error"], "connect again", "reason")
    contains(plane.refused(lambda: plane.ask(otto)), "REVOKED", "and on a new one")
    plane.roles()
    plane.reload()
    plane.roles("anna operate CN=anna", "anna2 read CN=anna")
    status, said = plane.ask(path="/v1/reload", method="POST", token=TOKEN)
    equal(status, 409, "reload with a bad file")
    contains(said["error"], "roles:3: an earlier line has the same subject", "reason")
    equal(plane.ask(anna)[0], 401, "the earlier file stays")


def test_certificates_that_end_while_a_connection_is_open(lab):
    """The client's certificate, the one of an authority between, or a list of revoked ones may end: a new handshake would fail, and
    so do requests of connections that are open."""
    plane = Plane(lab)
    plane.roles("anna admin CN=anna", "carl admin CN=carl", "long admin CN=long")
    soon = 4 + 2 * lab.patience  # less than the time that an idle connection has
    between, lasting = plane.clients.intermediate("between", days=soon / 86400), plane.clients.intermediate("lasting")
    people = {"leaf": plane.clients.leaf(cn="anna", usage=CLIENT, days=soon / 86400), "between": between.leaf(cn="carl", usage=CLIENT),
              "lasting": lasting.leaf(cn="long", usage=CLIENT)}
    lists = [plane.clients.crl(), between.crl(), lasting.crl()]

    def take(*files):
        with open(plane.crl, "wb") as out:
            for path in files:
                with open(path, "rb") as data:
                    out.write(data.read())
        plane.reload()
    take(*lists)
    until = time.time() + soon + 1
    open_ones = {name: plane.connect(person) for name, person in people.items()}
    equal({name: plane.ask(connection=connection)[0] for name, connection in open_ones.items()}, dict.fromkeys(people, 200), "before")
    time.sleep(max(0, until - time.time()))
    equal({name: plane.ask(connection=connection)[0] for name, connection in open_ones.items()},
          {"leaf": 401, "between": 401, "lasting": 200}, "after the end of two")
    take(*lists[:2], lasting.crl(days=(2 + lab.patience) / 86400))
    until = time.time() + 3 + lab.patience
    lasts = plane.connect(people["lasting"])
    equal(plane.ask(connection=lasts)[0], 200, "with a list that ends soon")
    time.sleep(max(0, until - time.time()))
    status, said = plane.ask(connection=lasts)
    equal(status, 401, "after the end of the list")
    contains(said["error"], "connect again", "reason")


def test_server_certificate(lab):
    """A reload shows the new certificate to new connections; a file that can't be used changes nothing."""
    plane = Plane(lab)
    open_before = plane.connect()
    equal(plane.ask(connection=open_before, token=READER)[0], 200, "before")
    new = Authority(lab, "servers")
    plane.copy(new.leaf("127.0.0.1", rsa=2048).both, plane.certificate)
    plane.reload()
    contains(plane.refused(plane.ask), "certificate verify failed", "under the old authority")
    plane.root = new
    equal(plane.ask(token=READER)[0], 200, "under the new one, with an RSA key")
    equal(plane.ask(connection=open_before, token=READER)[0], 200, "on a connection from before")
    plane.copy(plane.ca, plane.certificate)
    status, said = plane.ask(path="/v1/reload", method="POST", token=TOKEN)
    equal(status, 409, "reload without a key")
    contains(said["error"], "key", "reason")
    equal(plane.ask(token=READER)[0], 200, "after a reload that was refused")
    plane.copy(new.leaf("127.0.0.1").both, plane.certificate)
    clear = plane.proxy.text().replace("admin {", f'admin {{ token_file = "{plane.proxy.token_path}" ')
    plane.proxy.write_config(clear)  # on the same address, without TLS
    status, said = plane.ask(path="/v1/reload", method="POST", token=TOKEN)
    equal(status, 200, "reload without certificates")
    contains(json.dumps(said), "the admin plane still speaks TLS", "what waits")
    equal(plane.ask(token=READER)[0], 200, "TLS goes on")


def test_versions(lab):
    """TLS 1.2 has forward secrecy; nothing older works; min_version holds."""
    plane = Plane(lab, client="off")

    def version(most, least=ssl.TLSVersion.TLSv1_2, ciphers=None):
        context = plane.context()
        context.minimum_version, context.maximum_version = least, most
        if ciphers:
            context.set_ciphers(ciphers)
        with socket.create_connection(plane.address, timeout=20 * lab.patience) as plain:
            with context.wrap_socket(plain, server_hostname="admin.example") as secure:
                return secure.version(), secure.cipher()[0], secure.session_reused
    equal(version(ssl.TLSVersion.TLSv1_3)[0], "TLSv1.3", "version")
    old = version(ssl.TLSVersion.TLSv1_2)
    equal(old[0], "TLSv1.2", "version")
    true(old[1].startswith("ECDHE-ECDSA-"), old[1])
    for ciphers in ("AES128-SHA", "ECDHE-ECDSA-AES128-SHA@SECLEVEL=0", "AES128-GCM-SHA256"):
        plane.refused(lambda: version(ssl.TLSVersion.TLSv1_2, ciphers=ciphers))
    plane.refused(lambda: version(ssl.TLSVersion.TLSv1_1, ssl.TLSVersion.TLSv1, "ALL:@SECLEVEL=0"))
    plane.proxy.write_config(plane.config("off", more="min_version = tls1.3"))
    plane.reload()
    plane.refused(lambda: version(ssl.TLSVersion.TLSv1_2))
    equal(version(ssl.TLSVersion.TLSv1_3)[0], "TLSv1.3", "with min_version")
    true(plane.ended("other") >= 5, "handshakes without anything in common are counted")


def test_clear_text(lab):
    """Who speaks HTTP without TLS is told so; who speaks nothing known is closed."""
    plane = Plane(lab, client="off")
    for sent, expected in ((b"GET /v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n", b"write https://"), (b"\0" * 300, b""),
                           (b"\x16\x03\x01\xff\xff" + b"x" * 70000, b""), (b"\x16\x03\x01", None), (b"POST / HTTP/1.1\r\n" + b"x" * 9000, b"400 ")):
        with socket.create_connection(plane.address, timeout=20 * lab.patience) as plain:
            got = b""
            try:
                plain.sendall(sent)
                if expected is None:
                    continue  # leaves in the middle of a record
                while True:
                    piece = plain.recv(4096)
                    if not piece:
                        break
                    got += piece
            except ConnectionError:
                equal(expected, b"", "a reset takes the answer away")
            contains(got, expected, "answer")
    until(lambda: plane.ended("late") >= 1, 5 * lab.patience, "a client that has left is counted")
    equal(plane.ended("clear_text"), 2, "counted")
    done = plane.ctl("-s", "%s:%d" % plane.address, "status", RETORT_TOKEN=TOKEN)
    equal(done.returncode, 1, "exit status of retortctl without https://")
    contains(done.stderr, "https://", "what retortctl says")


def test_stalled_handshakes(lab):
    """Clients that begin handshakes and do not go on keep nobody out, and are closed for others."""
    plane = Plane(lab, client="off")
    admitted = plane.connect()
    equal(plane.ask(connection=admitted, token=READER)[0], 200, "before")
    slow = socket.create_connection(plane.address, timeout=20 * lab.patience)  # its handshake comes later
    stalled = []
    for number in range(150):
        from_elsewhere = socket.create_connection(plane.address, timeout=20 * lab.patience, source_address=("127.0.0.9", 0))
        from_elsewhere.sendall(b"\x16\x03\x01\x02\x00"[:number % 5 + 1])
        stalled.append(from_elsewhere)
    equal(plane.ask(connection=admitted, token=READER)[0], 200, "a connection from before")
    equal(plane.ask(token=READER)[0], 200, "a new connection")
    with plane.context().wrap_socket(slow, server_hostname="admin.example") as secure:
        secure.sendall(b"GET /v1/whoami HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer " +
                       READER.encode() + b"\r\n\r\n")
        contains(secure.recv(4096), b"200 OK", "a client that is slow, but not one of many")
    true(plane.metric("retort_admin_connections_closed_total") >= 80, "counted")
    for each in stalled:
        each.close()


def test_clients_that_leave(lab):
    """Clients that vanish, or go on sending what nobody takes, leave nothing behind."""
    plane = Plane(lab, client="off")

    def descriptors():
        return len(os.listdir(f"/proc/{plane.proxy.pid}/fd"))

    def begin(head, body=b""):
        plain = socket.socket()
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        plain.settimeout(20 * lab.patience)
        plain.connect(plane.address)
        secure = plane.context().wrap_socket(plain, server_hostname="admin.example", suppress_ragged_eofs=False)
        secure.sendall(head + b"\r\nHost: localhost\r\nAuthorization: Bearer " + TOKEN.encode() + b"\r\n" + body)
        return secure
    content = os.urandom(8 << 20)
    object_of = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(content) + content
    connection = plane.connect()
    connection.request("PUT", "/v1/cache/object?url=http://a.example/x&lifetime=60", body=object_of,
                       headers={"Authorization": f"Bearer {TOKEN}"})
    equal(connection.getresponse().status, 200, "inject")
    connection.close()
    until(lambda: plane.ended("done") >= 1, 5 * lab.patience, "the connection ends")
    before = descriptors()
    long_answer = b"GET /v1/cache/content?url=http://a.example/x HTTP/1.1"
    for number in range(30):
        secure = begin(long_answer, b"\r\n")
        equal(secure.recv(12), b"HTTP/1.1 200", "answer")
        if number % 3 == 0:
            secure.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # a reset
        secure.close()
    for number in range(20):
        begin(b"GET /v1/events HTTP/1.1", b"\r\n").close()
    for head in (b"POST /v1/drain HTTP/1.1", b"POST /v1/cache/purge?host=a.org HTTP/1.1", b"POST /v1/nothing HTTP/1.1"):
        secure = begin(head, b"Content-Length: 9000000\r\n\r\n")
        try:
            for _ in range(100):
                secure.sendall(b"x" * 65536)
        except OSError:
            pass  # the proxy takes no more
        got = secure.recv(12)
        true(got in (b"HTTP/1.1 413", b"HTTP/1.1 404", b"HTTP/1.1 400"), f"answer to a body that is too long: {got}")
        secure.close()
    equal(plane.ask(token=READER)[0], 200, "afterwards")
    until(lambda: descriptors() <= before, 40 * lab.patience, "descriptors are closed")


@seconds(180)
def test_patience(lab):
    """A handshake has its time from the first byte to the last, and a client that takes nothing is broken off."""
    plane = Plane(lab, client="off")
    until(lambda: plane.ended("late") >= 1, 5 * lab.patience, "the look of the lab whether it listens")
    late, begun = plane.ended("late"), time.monotonic()
    plain = socket.create_connection(plane.address, timeout=40 * lab.patience)
    silent = socket.create_connection(plane.address, timeout=40 * lab.patience)
    stuck = socket.socket()
    stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    stuck.connect(plane.address)
    secure = plane.context().wrap_socket(stuck, server_hostname="admin.example")
    one = b"GET /v1/openapi.json HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + READER.encode() + b"\r\n\r\n"
    secure.sendall(one * 200)  # more than the kernel keeps
    hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 32
    for number in range(60):
        try:
            plain.sendall(hello[number % len(hello):][:1] if number < len(hello) else b"\0")
            time.sleep(0.5 * lab.patience)
        except OSError:
            break
    else:
        raise AssertionError("the handshake goes on for ever")
    true(time.monotonic() - begun < 25 * lab.patience, "a handshake byte by byte ends in time")
    equal(silent.recv(1), b"", "a silent client is closed")
    until(lambda: plane.ended("late") == late + 2, 5 * lab.patience, "both are counted")
    until(lambda: gone(secure), 60 * lab.patience, "who takes nothing is broken off")


def gone(plain):
    """Has the other side broken the connection off?"""
    try:
        return plain.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] != 1  # TCP_ESTABLISHED
    except OSError:
        return True


def test_takeover(lab):
    """Another process takes the place of this one: requests go on, and those under way are answered."""
    plane = Plane(lab, client="required")
    plane.proxy.write_config(plane.config("required") + f'take_over_socket = "{lab.path("take-over")}"\ndrain_timeout = 5s\n')
    plane.proxy.restart()
    anna = plane.people["anna"]
    earlier = plane.connect(anna)
    pid = plane.ask(connection=earlier, path="/v1/status")[1]["pid"]
    successor = Process(lab, "successor", [plane.proxy.program, "--take-over", "-f", plane.proxy.config_path], stop_seconds=20)
    lab.opens(successor)

    def who():
        status, said = plane.ask(anna, "/v1/status")
        equal(status, 200, "a request meanwhile")
        return said["pid"]
    until(lambda: who() == successor.pid, 20 * lab.patience, "the successor answers")
    true(pid != successor.pid, "it is another process")
    equal(plane.proxy.process.wait(20), 0, "exit status of the old process")
    equal({who() for _ in range(5)}, {successor.pid}, "who answers behind it")
    successor.stop()


class Handshake:
    """A client's side of TLS, which sends what it has to say in the pieces that a test wants."""

    def __init__(self, wire, context, name):
        self.wire, self.to, self.fro = wire, ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.to, self.fro, server_hostname=name)

    def goes_on(self, step, *arguments):
        while True:
            try:
                return step(*arguments)
            except ssl.SSLWantReadError:
                self.flush()
                data = self.wire.recv(1 << 16)
                true(data, "the handshake goes on")
                self.to.write(data)

    def flush(self):
        self.wire.sendall(self.fro.read())

    def ask(self, message):
        self.goes_on(self.tls.do_handshake)
        self.tls.write(message)
        self.flush()
        return self.goes_on(self.tls.read, 4096)


def test_the_end_waits_for_a_handshake(lab):
    """A process that ends answers who has begun a handshake."""
    plane = Plane(lab)
    anna = plane.people["anna"]
    with socket.create_connection(plane.address, 20 * lab.patience) as wire:
        early = Handshake(wire, plane.context(anna), "admin.example")
        raises(ssl.SSLWantReadError, early.tls.do_handshake, "the first step of a handshake")
        hello = early.fro.read()
        wire.sendall(hello[:100])
        plane.ask(anna)  # so the connection from before is accepted
        plane.proxy.terminate()
        until(lambda: not accepts(plane.proxy), 20 * lab.patience, "the listener to close")
        time.sleep(0.1)
        wire.sendall(hello[100:])
        true(early.ask(b"GET /v1/whoami HTTP/1.1\r\nHost: admin.example\r\n\r\n").startswith(b"HTTP/1.1 200 "), "it is answered")
    equal(plane.proxy.wait_exit(5), 0, "exit status")


def test_hosts_and_origins(lab):
    """A request names a host of the certificate, and pages of others stay refused, with a certificate too."""
    plane = Plane(lab)
    anna = plane.people["anna"]
    port = plane.address[1]
    for headers, expected in (({"Host": "admin.example"}, 200), ({"Host": f"ADMIN.example:{port}"}, 200), ({"Host": "localhost"}, 200),
                              ({"Host": "127.0.0.1"}, 200), ({"Host": "evil.example"}, 403), ({"Host": "192.0.2.1"}, 403),
                              ({"Host": "[2001:db8::1]"}, 403), ({"Host": ""}, 403), ({"Host": "admin"}, 403),
                              ({"Host": "admin.example", "Origin": "https://admin.example"}, 200),
                              ({"Host": "admin.example", "Origin": "http://admin.example"}, 403),
                              ({"Host": "admin.example", "Origin": "https://evil.example"}, 403),
                              ({"Host": "admin.example", "Origin": "null"}, 403),
                              ({"Host": "admin.example", "Sec-Fetch-Site": "cross-site"}, 403),
                              ({"Host": "admin.example", "Via": "1.1 proxy"}, 403)):
        equal(plane.ask(anna, headers=headers)[0], expected, f"status with {headers}")


def test_every_address(lab):
    """On 0.0.0.0 too, no client of the proxy reaches the admin plane."""
    plane = Plane(lab)
    plane.proxy.stop()
    plane.proxy.write_config(plane.config(listen="0.0.0.0:%d" % plane.address[1]))
    plane.proxy.start()
    equal(plane.ask(token=READER)[0], 200, "directly")
    with plane.proxy.wire() as tunnel:
        tunnel.send(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % (plane.address[1], plane.address[1]))
        equal(tunnel.response("CONNECT").status, 403, "through the proxy")


def test_events_and_bodies(lab):
    """Long answers, long bodies and the event stream over TLS."""
    plane = Plane(lab)
    otto, anna = plane.people["otto"], plane.people["anna"]
    stream = plane.connect(otto)
    stream.request("GET", "/v1/events")
    events = stream.getresponse()
    equal(events.status, 200, "event stream")
    for number in range(30):
        plane.proxy.get(f"http://127.0.0.1:1/{number}")
    seen = b""
    while b"127.0.0.1:1/29" not in seen:
        seen += events.read1(65536)
    body = os.urandom(3 << 20)
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body)
    connection = plane.connect(anna)
    connection.request("PUT", "/v1/cache/object?url=http://a.example/x&lifetime=60", body=head + body)
    answer = connection.getresponse()
    equal((answer.status, answer.read()[:1]), (200, b"{"), "inject")
    connection.request("GET", "/v1/cache/content?url=http://a.example/x")
    answer = connection.getresponse()
    true(answer.read().endswith(body), "the body comes back")
    for each in (connection, stream):
        each.close()


def test_retortctl(lab):
    """retortctl verifies the server, shows its certificate, and says what is wrong with either."""
    plane = Plane(lab, client="required", tokens=False)
    where = "https://localhost:%d" % plane.address[1]
    anna, rita = plane.people["anna"], plane.people["rita"]

    def ctl(person, *words, address=where, ca=plane.root.file, **environment):
        own = ("--certificate", person.file, "--key", person.key) if person else ()
        return plane.ctl("--address", address, "--ca-file", ca, *own, *words, **environment)
    for done in (ctl(anna, "status"), ctl(anna, "status", address=where + "/"),
                 ctl(anna, "reload", address="https://127.0.0.1:%d" % plane.address[1]),
                 plane.ctl("-s", where, "--cert", anna.both, "get", "cache.memory", RETORT_CA_FILE=plane.root.file),
                 plane.ctl("get", RETORT_ADMIN=where, RETORT_CA_FILE=plane.root.file, RETORT_CERTIFICATE=anna.file, RETORT_KEY=anna.key)):
        equal(done.returncode, 0, done.stderr)
    page = ctl(anna, "page").stdout
    contains(page, where + "/", "what the page command says")
    true("http://" not in page, page)
    expired = plane.clients.leaf(cn="anna", usage=CLIENT, days=-1)
    for done, expected in ((ctl(None, "status"), "demands a client certificate"), (ctl(rita, "reload"), "rita has the role read"),
                           (ctl(expired, "status"), "refused the client certificate"),
                           (ctl(anna, "status", ca=plane.clients.file), "--ca-file"),
                           (ctl(anna, "status", ca="/nowhere"), "--ca-file /nowhere can't be used"),
                           (plane.ctl("-s", where, "status"), "--ca-file"),
                           (plane.ctl("-s", where, "--ca-file", plane.root.file, "--cert", anna.file, "--key", rita.key, "status"),
                            "--key"),
                           (ctl(anna, "status", address="https://localhost"), "has no port"),
                           (ctl(anna, "status", address="https://no.invalid:3129"), "no.invalid:3129: the host has no address")):
        equal(done.returncode, 1, f"exit status: {done.stdout}{done.stderr}")
        contains(done.stderr, expected, "message")
    plane.copy(plane.root.leaf("127.0.0.1").both, plane.certificate)
    equal(ctl(anna, "reload").returncode, 0, "reload")
    contains(ctl(anna, "status").stderr, "a name that the certificate is for", "message about another name")


def test_curl(lab):
    """What the manual writes works with curl."""
    plane = Plane(lab, client="required")
    anna = plane.people["anna"]
    try:
        done = subprocess.run(["curl", "-sS", "--cacert", plane.root.file, "--cert", anna.file, "--key", anna.key,
                               "https://localhost:%d/v1/whoami" % plane.address[1]], capture_output=True, text=True, check=False,
                              timeout=30 * lab.patience)
    except FileNotFoundError as error:
        raise Skip("there is no curl") from error
    equal(done.returncode, 0, done.stderr)
    equal(json.loads(done.stdout)["role"], "admin", "role")
