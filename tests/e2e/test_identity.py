"""Who users are: passwords of a file, tokens, certificates; how guessing is slowed down, and where users' names appear."""

import base64
import hashlib
import hmac
import json
import os
import subprocess
import time
import warnings

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from harness import wire
from harness.certificates import CLIENT, Authority
from harness.checks import contains, equal, lacks, true
from harness.icap import IcapServer, unchanged
from harness.interception import Interception
from harness.raw_origin import RawOrigin
from harness.retort import Retort, Service
from harness.suite import memcheck
from test_tls_listeners import Site, trusting

warnings.filterwarnings("ignore", category=DeprecationWarning)

SECRET = "s3cret: \u00fc"


def made(*command, text=None):
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True, timeout=60).stdout.strip()


def hash_lines():
    """A user for each kind of hash, by the programs that operators use."""
    lines = [made("htpasswd", "-nbBC", "4", "bcrypt", SECRET), made("htpasswd", "-nbm", "apr1", SECRET),
             made("htpasswd", "-nbs", "sha", SECRET), made("htpasswd", "-nb5", "sha512", SECRET),
             "apr1b:" + made("openssl", "passwd", "-apr1", "-stdin", text=SECRET),
             "sha256:" + made("openssl", "passwd", "-5", "-stdin", text=SECRET),
             "yescrypt:" + made("perl", "-e", "print crypt($ARGV[0], $ARGV[1])", SECRET, "$y$j75$abcdefghabcdefghijklm.")]
    return lines


def users_file(lab, *lines):
    path = lab.path("users")
    with open(path, "w", encoding="utf-8") as file:
        file.write("".join(line + "\n" for line in lines))
    os.chmod(path, 0o600)
    return path


def sha(user, password=SECRET):
    """A line that is compared fast."""
    return f"{user}:{{SHA}}" + base64.b64encode(hashlib.sha1(password.encode()).digest()).decode()


def staff(path, more=""):
    return f'authenticator staff {{ type = basic  file = "{path}"  realm = \'Staff "1"\'  {more} }}\naccess all {{ action = authenticate  with = staff }}\n'


def basic(user, password=SECRET):
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def proxied(user, password=SECRET):
    return {"Proxy-Authorization": basic(user, password)}


def from_address(proxy, source, url, headers):
    with wire.Wire(proxy.forward, source=source) as client:
        client.send(wire.request("GET", url, headers))
        return client.response()


@memcheck
def test_each_kind_of_hash(lab):
    lines = hash_lines()
    origin = RawOrigin(lab)
    proxy = Retort(lab, extra=staff(users_file(lab, *lines)))
    asked = proxy.get(origin.url("/"))
    equal(asked.status, 407, "without credentials")
    equal(asked.header("Proxy-Authenticate"), 'Basic realm="Staff \\"1\\"", charset="UTF-8"', "the challenge")
    for line in lines:
        user = line.split(":")[0]
        equal(proxy.get(origin.url("/"), proxied(user)).status, 200, user)
        equal(proxy.get(origin.url("/"), proxied(user, SECRET + "x")).status, 407, f"{user}, wrong password")
        equal(proxy.get(origin.url("/"), proxied(user)).status, 200, f"{user}, again")
    for value in ("Basic", "Basic !", "Bearer abc", "Basic " + base64.b64encode(b"apr1").decode(), basic("apr1\x01"), basic("apr1\x00"),
                  "Basic =", basic("", SECRET), basic("apr1", "x" * 2000), "Basic " + base64.b64encode(b"\xff:x").decode()):
        equal(proxy.get(origin.url("/"), {"Proxy-Authorization": value}).status, 407, value[:40])
    equal({entry.get("user") for entry in proxy.log(3 * len(lines))}, {None, *(line.split(":")[0] for line in lines)}, "users in the log")
    equal(proxy.counter("identity_proven"), len(lines), "checks; the rest was remembered")
    equal(proxy.counter("identity_remembered"), len(lines), "remembered")
    for request in origin.requests:
        equal(request.header("Proxy-Authorization"), None, "what the origin sees")
    two = f"GET {origin.url('/')} HTTP/1.1\r\nHost: {origin.authority}\r\n" + 2 * f"Proxy-Authorization: {basic('apr1')}\r\n"
    with proxy.wire() as client:
        client.send(two.encode() + b"\r\n")
        true(client.response().status in (400, 407), "two fields")


def test_a_reverse_listener_consumes_authorization(lab):
    origin = RawOrigin(lab, lambda connection, request: connection.send(
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nCache-Control: max-age=60\r\n\r\nok"))
    path = users_file(lab, sha("alice"), sha("bob"))
    proxy = Retort(lab, extra=staff(path), reverse={"/": origin.url("/")})

    def ask(path, user=None):
        with proxy.wire(reverse=True) as client:
            client.send(wire.request("GET", path, {"Authorization": basic(user)} if user else {}, host="a.test"))
            return client.response()

    equal(ask("/a").header("WWW-Authenticate"), 'Basic realm="Staff \\"1\\"", charset="UTF-8"', "401")
    equal([ask("/a", "alice").status, ask("/a", "bob").status, ask("/a").status, ask("/a", "eve").status], [200, 200, 401, 401],
          "the stored response is for those who prove themselves")
    equal(len(origin.requests), 1, "requests at the origin")
    equal(origin.requests[0].header("Authorization"), None, "what the origin sees")
    proxy.write_config(proxy.text(extra=staff(path, "forward_credentials = true")))
    equal(proxy.reload().status, 200, "reload")
    equal(ask("/b", "alice").status, 200, "forwarded")
    equal(origin.requests[-1].header("Authorization"), basic("alice"), "what the origin sees")
    equal(ask("/b").status, 401, "nobody gets it without proof")


def test_a_reload_reads_users_again(lab):
    origin = RawOrigin(lab)
    path = users_file(lab, sha("alice"), sha("bob"))
    proxy = Retort(lab, extra=staff(path))

    def status(user, password=SECRET):
        return proxy.get(origin.url("/"), proxied(user, password)).status

    equal([status("alice"), status("bob")], [200, 200], "before")
    for half in (sha("alice"), sha("alice") + "\nbob:{SHA}abc\n", sha("alice") + "\ncarol:plain\n"):
        with open(path, "w", encoding="utf-8") as file:
            file.write(half)
        answer = proxy.reload()
        true(answer.status >= 400, "a file that is half written is refused")
        lacks(answer.text(), "plain:", "the error")
        equal([status("alice"), status("bob")], [200, 200], "the old users stay")
    users_file(lab, sha("alice", "new"), sha("carol"))
    equal(proxy.reload().status, 200, "reload")
    equal([status("alice"), status("alice", "new"), status("bob"), status("carol")], [407, 200, 407, 200], "after")


def test_guessing_is_slowed_down(lab):
    origin = RawOrigin(lab)
    limits = 'authentication { attempts = 3  attempts_client = 8  wait_min = "30s" }\n'
    proxy = Retort(lab, extra=limits + staff(users_file(lab, sha("alice"), sha("bob"))))

    def ask(user, password, source="127.0.0.1"):
        return from_address(proxy, source, origin.url("/"), proxied(user, password))

    equal(ask("bob", SECRET).status, 200, "bob is known here")
    equal([ask("alice", "same").status for _ in range(6)], [407] * 6, "a wrong password that is repeated counts once")
    equal([ask("alice", f"guess{n}").status for n in range(3)], [407, 407, 429], "guesses")
    slowed = ask("alice", SECRET)
    equal(slowed.status, 429, "even the right password has to wait")
    true(25 <= int(slowed.header("Retry-After")) <= 30, "Retry-After")
    equal(ask("alice", SECRET, "127.0.0.2").status, 200, "from elsewhere the right password is good at once")
    equal(ask("alice", SECRET).status, 429, "and guesses against what is remembered have to wait as well")
    equal(ask("bob", SECRET).status, 200, "another user of the same client")
    equal([ask(f"name{n}", "x").status for n in range(5)], [407] * 5, "names that do not exist")
    equal(ask("carol", "x").status, 429, "the client has tried too many names")
    equal(ask("bob", SECRET).status, 200, "who was proved here goes on")
    equal([ask("bob", f"guess{n}").status for n in range(3)] + [ask("bob", SECRET).status], [429] * 4, "guesses at what is remembered")
    true(proxy.counter("identity_slowed") >= 8, "counted")


def token(key, algorithm, claims, **header):
    def part(value):
        return base64.urlsafe_b64encode(value).rstrip(b"=").decode()

    text = part(json.dumps({"alg": algorithm, **header}).encode()) + "." + part(json.dumps(claims).encode())
    if algorithm.startswith("HS"):
        signature = hmac.digest(key, text.encode(), "sha256")
    elif algorithm == "RS256":
        signature = key.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256())
    elif algorithm == "PS256":
        signature = key.sign(text.encode(), padding.PSS(padding.MGF1(hashes.SHA256()), 32), hashes.SHA256())
    elif algorithm == "ES256":
        r, s = decode_dss_signature(key.sign(text.encode(), ec.ECDSA(hashes.SHA256())))
        signature = r.to_bytes(32, "big") + s.to_bytes(32, "big")
    else:
        signature = b""
    return f"{text}.{part(signature)}"


def public_pem(key):
    return key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def test_tokens(lab):
    rsa_key, ec_key, other = rsa.generate_private_key(65537, 2048), ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    path = lab.path("tokens.pem")
    pem = public_pem(rsa_key) + public_pem(ec_key)
    with open(path, "wb") as file:
        file.write(pem)
    origin = RawOrigin(lab)
    proxy = Retort(lab, extra=f'authenticator api {{ type = bearer  key_file = "{path}"  issuer = "us"  audience = proxy  group_claim = groups'
                              '  leeway = "1s" }\nurl_class admins { group = admins }\naccess admins { action = deny  status = 451 }\n'
                              "access all { action = authenticate  with = api }\n")
    now = int(time.time())
    good = {"sub": "alice", "iss": "us", "aud": ["x", "proxy"], "exp": now + 600, "groups": ["staff"]}

    def status(text):
        return proxy.get(origin.url("/"), {"Proxy-Authorization": "Bearer " + text}).status

    for key, algorithm in ((rsa_key, "RS256"), (rsa_key, "PS256"), (ec_key, "ES256")):
        equal(status(token(key, algorithm, good)), 200, algorithm)
        equal(proxy.last(1)["user"], "alice", "user")
    equal(status(token(ec_key, "ES256", {**good, "groups": ["admins", "x"]})), 451, "a class with the group")
    bad = {"alg none": token(None, "none", good), "alg None": token(None, "None", good),
           "the public key as a secret": token(pem, "HS256", good), "one of the keys as a secret": token(public_pem(rsa_key), "HS256", good),
           "another key": token(other, "ES256", good), "expired": token(ec_key, "ES256", {**good, "exp": now - 5}),
           "never expires": token(ec_key, "ES256", {k: v for k, v in good.items() if k != "exp"}),
           "not yet": token(ec_key, "ES256", {**good, "nbf": now + 60}), "another issuer": token(ec_key, "ES256", {**good, "iss": "them"}),
           "another audience": token(ec_key, "ES256", {**good, "aud": "y"}), "no user": token(ec_key, "ES256", {**good, "sub": 1}),
           "a user with a line break": token(ec_key, "ES256", {**good, "sub": "a\r\nb"}),
           "critical extension": token(ec_key, "ES256", good, crit=["b64"], b64=False),
           "a key in the token": token(other, "ES256", good, jwk={"kty": "EC"}, jku="http://127.0.0.1/"),
           "another payload": token(ec_key, "ES256", good).replace(".", ".e30.", 1).rsplit(".", 2)[0] + "." + token(ec_key, "ES256", good).split(".")[2]}
    for why, text in bad.items():
        true(status(text) in (407, 429), why)
    asked = proxy.get(origin.url("/"), {"Proxy-Authorization": "Bearer " + bad["expired"]})
    equal(asked.header("Proxy-Authenticate"), 'Bearer realm="retort", error="invalid_token"', "the challenge")
    short = {**good, "exp": int(time.time()) + 1}
    text = token(ec_key, "ES256", short)
    equal(status(text), 200, "before it expires")
    end = time.monotonic() + 10
    while status(text) == 200:
        true(time.monotonic() < end, "a token is not remembered for longer than it is valid")
        time.sleep(0.2)


def test_bad_tokens_lock_nobody_out(lab):
    """Nobody guesses a signature. So bad tokens make their sender wait, and neither those who send good ones from the same
    address nor those who have a password; Negotiate likewise."""
    path, users = lab.path("tokens.secret"), users_file(lab, sha("alice"))
    with open(path, "w", encoding="ascii") as file:
        file.write("0123456789abcdef" * 3)
    os.chmod(path, 0o600)
    origin = RawOrigin(lab)
    proxy = Retort(lab, reverse={"/": origin.url("/")},
                   extra='authentication { attempts_client = 4  wait_min = "30s" }\n'
                         f'authenticator api {{ type = bearer  key_file = "{path}" }}\n'
                         f'authenticator staff {{ type = basic  file = "{users}" }}\n'
                         "access all { action = authenticate  with = { api, staff } }\n")

    def signed(user, key=b"0123456789abcdef" * 3):
        return "Bearer " + token(key, "HS256", {"sub": user, "exp": int(time.time()) + 600})

    def ask(value, reverse=False):
        with proxy.wire(reverse=reverse) as client:
            client.send(wire.request("GET", "/" if reverse else origin.url("/"), {("" if reverse else "Proxy-") + "Authorization": value},
                                     host="a.test" if reverse else None))
            return client.response()

    known = signed("known")
    equal(ask(known).status, 200, "before")
    equal([ask(signed("eve", b"%32d" % number)).status for number in range(6)], [407] * 4 + [429] * 2, "bad tokens")
    true(25 <= int(ask(signed("eve", b"%32d" % 9)).header("Retry-After")) <= 30, "Retry-After")
    for reverse in (False, True):
        equal(ask(known, reverse).status, 200, "a token that is remembered")
        equal(ask(signed(f"new{reverse}"), reverse).status, 200, "a good token that nobody has seen")
        equal(ask(signed("eve", b"%31d-" % reverse), reverse).status, 429, "a bad one")
        equal(ask(basic("alice"), reverse).status, 200, "a password")


def test_who_has_proved_himself_is_known_longer_than_remembered(lab):
    """While somebody else keeps an address waiting, its users are proved again whenever the result of a check is forgotten."""
    origin = RawOrigin(lab)
    proxy = Retort(lab, extra='authentication { attempts = 3  attempts_client = 4  wait_min = "60s" }\n'
                              + staff(users_file(lab, sha("alice"), sha("bob")), 'remember = "0s"'))

    def status(user, password=SECRET):
        return proxy.get(origin.url("/"), proxied(user, password)).status

    equal(status("alice"), 200, "before")
    equal([status(f"name{n}", "x") for n in range(5)], [407] * 4 + [429], "names that somebody makes up")
    equal([status("alice") for _ in range(3)], [200] * 3, "who was proved here is proved again")
    equal(status("bob"), 429, "who was not has to wait, as whoever tries one password with many names")
    equal([status("alice", f"guess{n}") for n in range(3)] + [status("alice")], [429] * 4, "guesses at a known user's password count")


def test_a_certificate_is_a_user(lab):
    root, ca = Authority(lab), Authority(lab, "clients")
    leaf = root.leaf("a.test")
    alice = ca.sign("alice", usage=CLIENT)
    rules = {"client_ca": f'"{ca.file}"', "client_certificate": "optional"}
    site = Site(lab, ("reverse", [leaf.both], rules))
    site.proxy.write_config(site.proxy.text() + "authenticator cert { type = certificate }\naccess all { action = authenticate  with = cert }\n")
    equal(site.proxy.reload().status, 200, "reload")

    def status(certificate):
        with site.connect("a.test", 0, trusting(certificate=certificate)) as connection:
            connection.sendall(b"GET /text HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n")
            return int(connection.recv(65536).split()[1])

    equal(status(alice), 200, "with a certificate")
    equal(site.proxy.last(1)["user"], "alice", "user")
    true(status(None) in (401, 403), "without one")


def test_the_user_of_a_tunnel_is_the_user_inside(lab):
    icap = IcapServer(lab, unchanged, methods="REQMOD")
    names = ["X-Client-Username", "X-Authenticated-User", "X-Authenticated-Groups"]
    groups = lab.path("groups")
    with open(groups, "w", encoding="utf-8") as file:
        file.write("staff: alice\nad,mins: alice\n")
    path = users_file(lab, sha("alice"))
    site = Interception(lab, "www.example.com", extra=staff(path, f'group_file = "{groups}"'),
                        services=[Service("s", icap.uri(), point="reqmod_precache", include=names)])
    with site.tunnel(headers=proxied("alice")) as tunnel:
        tunnel.socket = site.context().wrap_socket(tunnel.socket, server_hostname="www.example.com")
        tunnel.send(wire.request("GET", "/a", {"Host": site.host("www.example.com"), "Proxy-Authorization": basic("mallory")}))
        equal(tunnel.response().status, 200, "inside")
    equal(site.proxy.entries("/a")[0]["user"], "alice", "user in the log")
    for transaction in icap.transactions:
        header = transaction.request.header
        equal(header("X-Client-Username"), "alice", "X-Client-Username")
        equal(base64.b64decode(header("X-Authenticated-User")), b"Local://alice", "X-Authenticated-User")
        equal(base64.b64decode(header("X-Authenticated-Groups")), b"Local://ad%2Cmins,Local://staff", "X-Authenticated-Groups")
        equal(transaction.http_request.header("Proxy-Authorization"), None, "what the service sees")
    equal(len(icap.transactions), 2, "the CONNECT and the request inside")
    with wire.Wire(site.proxy.forward) as client:
        where = f"{site.origin.host}:{site.origin.port}"
        client.send(wire.request("CONNECT", where, host=where))
        equal(client.response("CONNECT").status, 407, "without credentials")


def test_the_user_of_what_is_refused_inside_a_tunnel(lab):
    """The page of a denied host, and requests that get no further: the log and the events say whose they were."""
    page = lab.write("page.html", "<p>for %{user}</p>")
    path = users_file(lab, sha("alice"))
    rules = f"""authenticator staff {{ type = basic  file = "{path}" }}
        url_class denied {{ domain = "denied.example" }}
        url_class alices {{ domain = "denied.example"  user = alice }}
        access alices {{ action = deny }}
        access all {{ action = authenticate  with = staff }}
        error_page denied {{ status = 403  file = "{page}" }}"""
    site = Interception(lab, "denied.example", "www.example.com", extra=rules)

    def asked(name, path, host=None, to=None):
        with site.tunnel(to, headers=proxied("alice")) as tunnel:
            tunnel.socket = site.context().wrap_socket(tunnel.socket, server_hostname=name)
            tunnel.send(wire.request("GET", path, {"Host": site.host(host or name)}))
            return tunnel.response()

    answer = asked("denied.example", "/denied", to=("denied.example", site.origin.port))
    equal((answer.status, answer.text().strip()), (403, "<p>for alice</p>"), "the page")
    equal(asked("www.example.com", "/elsewhere", "other.example").status, 421, "a request for another host")
    for path in ("/denied", "/elsewhere"):
        equal(site.proxy.entries(path)[0].get("user"), "alice", f"user of {path}")


def test_passwords_appear_nowhere(lab):
    origin = RawOrigin(lab)
    password = "correct-horse-battery"
    path = users_file(lab, sha("alice", password))
    proxy = Retort(lab, extra="log_level = debug\n" + staff(path))
    for each in (password, password + "-wrong"):
        proxy.get(origin.url("/"), proxied("alice", each))
    equal([entry["status"] for entry in proxy.log(2)], [200, 407], "log")
    encoded = [basic("alice", each).split()[1] for each in (password, password + "-wrong")]
    texts = [proxy.admin("GET", "/settings").text(), "\n".join(proxy.log_lines()), proxy.process.log()]
    for text in texts:
        for secret in [password, *encoded, sha("alice", password).split("}")[1]]:
            lacks(text, secret, "what the proxy tells")
    contains(texts[1], "alice", "the log")
