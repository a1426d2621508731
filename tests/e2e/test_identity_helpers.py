"""Users that others know: Squid's helpers run by retort-helperd, an LDAP directory, a Kerberos realm; and helpers that fail."""

import base64
import hashlib
import os
import subprocess
import sys

from harness import ports
from harness.checks import Skip, contains, equal, lacks, one_of, true, until
from harness.directory import Directory
from harness.helperd import Helperd
from harness.kerberos import REALM, Login, Realm
from harness.origin import Origin
from harness.process import children_of
from harness.raw_origin import RawOrigin
from harness.retort import Retort, run_check
from harness.suite import memcheck
from harness.wire import request

SQUID = "/usr/lib/squid"
SECRET = "S3cret of joe"
# A helper for squid_basic: what the user's name says.
LINES = r"""
import os, sys, time
for line in sys.stdin:
    name = line.split()[0]
    if name == "hangs":
        time.sleep(1000)
    elif name == "dies":
        os._exit(1)
    elif name == "joe":
        asked = open(sys.argv[1], "a"); asked.write("x"); asked.close()
    answers = {"joe": "OK", "mapped": "OK user=Somebody group=staff group=\"the others\"", "no": "ERR", "broken": "BH message=x",
               "newline": "OK user=joe%0Aroot", "twice": "OK\nOK", "many": "OK" + " group=g" * 70, "nobody": "OK user=%20",
               "hidden": "OK user=joe%E2%80%AEx", "bad.utf8": "OK user=%FF%FE"}
    os.write(1, (answers.get(name.lower().replace("%20", ""), "OK") + "\n").encode())
"""


def squid_helper(name):
    path = os.path.join(SQUID, name)
    if not os.path.exists(path):
        raise Skip(f"{path} is not installed (tests/install.sh)")
    return path


def pool(name, protocol, *command, **options):
    options = {"processes": 1, "nice": 0, "deadline": '"5s"', "breaker": 0, **options}
    text = " ".join(f"{key} = {value}" for key, value in options.items())
    words = ", ".join('"%s"' % word for word in command[1:])
    arguments = f"arguments = {{ {words} }}" if words else ""
    return f'pool {name} {{ protocol = {protocol} command = "{command[0]}" {arguments} {text} }}\n'


def helperd(lab, *pools):
    return Helperd(lab, 'socket = "{socket}"\n' + "".join(pools))


def basic(user, password):
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def proxy_of(lab, authenticators, rules="", **options):
    """Everybody has to prove himself with one of the authenticators, which are sections by their names."""
    text = "".join(f"authenticator {name} {{ {section} }}\n" for name, section in authenticators.items())
    names = ", ".join(authenticators)
    return Retort(lab, extra=f"{text}{rules}access all {{ action = authenticate  with = {{ {names} }} }}\n", **options)


def asked(proxy, url, user=None, password=SECRET, method="GET"):
    """The status."""
    headers = {"Proxy-Authorization": basic(user, password)} if user is not None else {}
    return proxy.fetch(method, url, headers).status


def users_of(proxy, count):
    return [entry.get("user") for entry in proxy.log(count)]


def no_secrets(lab, *texts):
    """The passwords stand in nothing that was written."""
    wanted = (SECRET, SECRET.replace(" ", "%20"), base64.b64encode(f"joe:{SECRET}".encode()).decode())
    for folder, _, names in os.walk(lab.directory):
        for name in names:
            if name.endswith((".log", ".out")):
                with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
                    texts += (file.read(),)
    for text in texts:
        for secret in wanted:
            true(secret not in text, "a password in " + text[-2000:])


def lines_proxy(lab, timeout="30s", rules="", **options):
    script, counted = lab.write("lines.py", LINES), lab.path("asked")
    helpers = helperd(lab, pool("lines", "squid_basic", sys.executable, script, counted, **options),
                      pool("groups", "squid_external_acl", sys.executable, script, counted))
    section = f'type = basic  helper = lines  helpers = "{helpers.socket}"  helper_timeout = "{timeout}"'
    return helpers, proxy_of(lab, {"lines": section}, rules), counted


@memcheck
def test_helpers_that_say_who_a_user_is(lab):
    """Good, wrong, other names, groups; asked once and remembered; nothing else is ever a name."""
    origin = RawOrigin(lab)
    helpers, proxy, counted = lines_proxy(lab)
    url = origin.url("/a")
    equal(asked(proxy, url), 407, "nobody")
    equal([asked(proxy, url, "joe") for _ in range(3)], [200] * 3, "joe")
    equal(asked(proxy, url, "mapped"), 200, "mapped")
    equal(asked(proxy, url, "JOE2"), 200, "in capitals")
    equal(asked(proxy, url, "no"), 407, "a wrong password")
    equal(asked(proxy, url, "joe", ""), 407, "an empty password")
    equal(users_of(proxy, 8), [None] + ["joe"] * 3 + ["Somebody", "joe2", None, None], "users in the log")
    with open(counted, encoding="ascii") as file:
        equal(file.read(), "x", "questions about joe")
    for name in ("newline", "twice", "many"):
        equal(asked(proxy, url, name), 503, name)
    for name in ("broken", "nobody", "hidden", "bad.utf8"):
        equal(asked(proxy, url, name), 407, name)
    equal(proxy.counter("identity_helper_broken"), 1, "answers BH")
    true(429 in [asked(proxy, url, "broken", f"guess {number}") for number in range(7)], "guesses that are answered with BH are counted")
    equal(len(origin.requests), 5, "requests at the origin")
    true(all(seen.header("Proxy-Authorization") is None for seen in origin.requests), "credentials at the origin")
    no_secrets(lab, proxy.ctl("status"), helpers.process.log())


def test_spellings_of_a_name_count_as_one(lab):
    """A directory takes them for one user, so whoever tries a password with each has tried that many passwords of the user."""
    origin = RawOrigin(lab)
    _, proxy, _ = lines_proxy(lab, rules='authentication { attempts = 3  wait_min = "60s" }\n')
    tries = [asked(proxy, origin.url("/a"), name, "guess") for name in ("no", "NO", "No", "nO", "n o")]
    equal(tries, [407] * 3 + [429] * 2, "spellings")


def test_helpers_that_do_not_answer(lab):
    """One that hangs, dies or is not there lets nobody in, in bounded time; afterwards all is well."""
    origin = RawOrigin(lab)
    helpers, proxy, _ = lines_proxy(lab, timeout=f"{int(400 * lab.patience)}ms")
    url = origin.url("/a")
    for name in ("hangs", "dies"):
        equal(asked(proxy, url, name), 503, name)
        until(lambda: asked(proxy, url, "joe" + name) == 200, 10 * lab.patience, "the helper after " + name)
    with proxy.wire() as wire:  # the client leaves while the helper hangs
        wire.send(request("GET", url, {"Proxy-Authorization": basic("hangs", "left")}))
        until(lambda: proxy.counter("identity_helper_questions") >= 5, 10 * lab.patience, "the question")
    until(lambda: asked(proxy, url, "again") == 200, 10 * lab.patience, "the helper after a client that left")
    helpers.kill()
    equal(asked(proxy, url, "late"), 503, "without retort-helperd")
    equal(asked(proxy, url, "joehangs"), 200, "who is remembered")
    contains(proxy.process.log(), "a helper could not say", "the log")
    true(proxy.counter("identity_helper_failures") >= 2, "failures counted")
    os.unlink(helpers.socket)
    helpers.start()
    until(lambda: asked(proxy, url, "late") == 200, 10 * lab.patience, "retort-helperd again")


def test_each_request_of_a_connection_is_proved(lab):
    """On one connection: nobody, joe, nobody, a wrong password, joe, two lines, another user; pipelined as well."""
    origin = RawOrigin(lab)
    _, proxy, _ = lines_proxy(lab)
    url = origin.url("/a")
    joe, no, other = ({"Proxy-Authorization": basic(name, SECRET)} for name in ("joe", "no", "mapped"))
    expected = ((None, 407), (joe, 200), (None, 407), (no, 407), (joe, 200), ({"Authorization": joe["Proxy-Authorization"]}, 407),
                (other, 200), ({"Proxy-Authorization": joe["Proxy-Authorization"].lower()}, 407))
    with proxy.wire() as wire:
        for headers, status in expected:
            wire.send(request("GET", url, headers))
            equal(wire.response().status, status, str(headers))
    with proxy.wire() as wire:
        wire.send(b"".join(request("GET", url, headers) for headers, _ in expected))
        equal([wire.response().status for _ in expected], [status for _, status in expected], "pipelined")
    both = request("GET", url, joe).replace(b"\r\n\r\n", b"\r\nProxy-Authorization: " + no["Proxy-Authorization"].encode() + b"\r\n\r\n")
    with proxy.wire() as wire:
        wire.send(both)
        one_of(wire.response().status, (400, 407), "two lines of credentials")
    users = [entry.get("user") for entry in proxy.log(17) if entry["status"] == 200]
    equal(users, ["joe", "joe", "Somebody"] * 2, "users in the log")


def test_a_pool_of_another_protocol(lab):
    """A password is never taken for a group, though the configuration names the wrong pool."""
    origin = RawOrigin(lab)
    helpers, proxy, _ = lines_proxy(lab)
    proxy.write_config(proxy.text().replace("helper = lines", "helper = groups"))
    equal(proxy.reload().status, 200, "reload")
    equal(asked(proxy, origin.url("/a"), "joe"), 503, "asked of the wrong pool")
    proxy.write_config(proxy.text().replace("helper = lines", "helper = nowhere"))
    equal(proxy.reload().status, 200, "reload")
    equal(asked(proxy, origin.url("/a"), "joe"), 503, "asked of no pool")
    contains(proxy.process.log(), "the job is no question of the pool's protocol", "the log")
    for wrong, why in (("helper = lines  file = \"/x\"", "has a helper and a file"), ("helper = " + "x" * 24, "at most 23 bytes"),
                       ("helper = lines  keytab = \"/x\"", "keytab belongs to type = negotiate"),
                       ('type = negotiate  keytab = "/nonexistent/keytab"', "/nonexistent/keytab")):
        section = wrong if "type" in wrong else "type = basic  " + wrong
        found = proxy.check_config(proxy.text() + f"\nauthenticator wrong {{ {section} }}\n")
        contains(found[1], why, "-t about " + wrong)
    true(helpers.process.running(), "retort-helperd")


def test_ncsa_and_ldap(lab):
    """Debian's basic_ncsa_auth, basic_ldap_auth and ext_ldap_group_acl as they are."""
    ncsa, ldap, groups = (squid_helper(name) for name in ("basic_ncsa_auth", "basic_ldap_auth", "ext_ldap_group_acl"))
    directory = Directory(lab, {"anna": "pass word*", "joe": SECRET}, {"the staff": ["anna"], "staff": ["joe"], "banned": ["joe"]})
    origin = RawOrigin(lab)
    hashed = subprocess.run(["openssl", "passwd", "-apr1", "--", SECRET], capture_output=True, text=True, check=True).stdout
    helpers = helperd(
        lab, pool("ncsa", "squid_basic", ncsa, lab.write("users", "file user:x\njoe:" + hashed)),
        pool("ldap", "squid_basic", ldap, "-b", directory.people, "-f", "uid=%s", "-H", directory.url, processes=2),
        pool("ldap_groups", "squid_external_acl", groups, "-b", directory.groups,
             "-f", "(&(cn=%g)(memberUid=%u))", "-H", directory.url))
    rules = ("url_class staff { group = { \"the staff\", \"staff\" } }\nurl_class banned { path_regex = '^/banned'  group = { \"banned\" } }\n"
             "access banned { action = deny }\n")
    with_groups = f'type = basic  helpers = "{helpers.socket}"  helper = ldap  group_helper = ldap_groups'
    proxy = proxy_of(lab, {"ldap": with_groups}, rules + "access staff { action = allow }\n")
    url = origin.url("/a")
    equal([asked(proxy, url, "anna", "pass word*"), asked(proxy, url, "joe"), asked(proxy, url, "Joe")], [200] * 3, "in the directory")
    equal(asked(proxy, origin.url("/banned"), "anna", "pass word*"), 200, "who is not banned")
    equal(asked(proxy, origin.url("/banned"), "joe"), 403, "who is banned")
    equal(users_of(proxy, 5), ["anna", "joe", "joe", "anna", "joe"], "users in the log")
    for user, password in (("anna", "pass word"), ("anna", ""), ("*", SECRET), ("joe)(uid=anna", SECRET), ("nobody", SECRET),
                           ("anna\\2a", "pass word*")):
        one_of(asked(proxy, url, user, password), (407, 429), f"{user}:{password}")
    plain = proxy_of(lab, {"ncsa": f'type = basic  helpers = "{helpers.socket}"  helper = ncsa'}, name="ncsa")
    equal([asked(plain, url, "joe"), asked(plain, url, "joe", "x"), asked(plain, url, "anna", "pass word*")], [200, 407, 407], "the file")
    directory.process.kill()
    equal(asked(proxy, url, "joe"), 200, "remembered")
    one_of(asked(proxy, url, "joe", "other"), (407, 503), "without the directory")
    no_secrets(lab, proxy.ctl("status"))


def test_kerberos(lab):
    """curl with tickets of a realm of the test's own; what is no ticket, or one for another service, or shown twice."""
    host, services = "localhost", ("HTTP/localhost", "HTTP/other.test")
    realm = Realm(lab, {"anna": "annapw"}, services)
    origin = RawOrigin(lab)
    section = f'type = negotiate  keytab = "{realm.keytab}"  principal = "HTTP/localhost"'
    proxy = proxy_of(lab, {"krb": section}, "log_level = debug\n", environment=realm.environment)
    anna = realm.log_in("anna", "annapw")
    url = origin.url("/a")

    def curl(environment, *arguments):
        return realm.run("curl", "-s", "-o", "/dev/null", "-w", "%{http_code} %{num_connects}", "--max-time", "20", *arguments,
                         environment=environment, expect=None).stdout

    through = ("-x", f"http://{host}:{proxy.forward[1]}", "--proxy-negotiate", "-U", ":")
    contains(curl(anna, *through, url), "200", "with a ticket")
    contains(curl({}, *through, url), "407", "without a ticket")
    equal(users_of(proxy, 2), [f"anna@{REALM}", None], "users in the log")
    proxy.write_config(proxy.text().replace("type = negotiate", "type = negotiate  strip_realm = true"))
    equal(proxy.reload().status, 200, "reload")
    equal(curl(anna, *through, url, "-o", "/dev/null", url), "200 1200 0", "two requests on one connection")
    equal(users_of(proxy, 4)[2:], ["anna", "anna"], "users without their realm")
    answer = proxy.get(url)
    equal((answer.status, answer.header("Proxy-Authenticate")), (407, "Negotiate"), "the challenge")
    ntlm = base64.b64encode(b"NTLMSSP\0\1\0\0\0" + b"\0" * 24).decode()
    for token in (ntlm, "YWJj", "====", "", "a" * 20000, base64.b64encode(b"\x60\x82\xff\xff").decode()):
        one_of(proxy.get(url, {"Proxy-Authorization": "Negotiate " + token}).status, (400, 407, 431), "token " + token[:20])
    malformed = [proxy.get(url, {"Proxy-Authorization": f"Negotiate {number:05d}"}).status for number in range(40)]
    equal((malformed[0], malformed[-1]), (407, 429), "what can be no ticket")
    contains(curl(anna, *through, url), "200", "a ticket from the same address")
    os.unlink(realm.keytab)
    contains(curl(anna, *through, url), "503", "without the keytab")


def test_the_check_asks_for_the_helpers(lab):
    """retort -t says when retort-helperd does not answer, and is good all the same: it may start later."""
    helpers = helperd(lab, pool("lines", "squid_basic", sys.executable, lab.write("lines.py", LINES), lab.path("asked")))
    text = """listen "127.0.0.1:%d" { mode = forward }
authenticator one { type = basic  helper = lines  helpers = "%s" }
authenticator two { type = basic  helper = lines  group_helper = lines  helpers = "%s" }
access all { action = authenticate  with = { one, two } }
"""
    port = ports.take()
    status, said = run_check(lab, lab.write("check.conf", text % (port, helpers.socket, helpers.socket)))
    true(status == 0 and "nobody can prove" not in said, f"a socket that answers: {said}")
    helpers.kill()
    missing = lab.path("none.sock")
    for socket, word in ((missing, "No such file or directory"), (helpers.socket, "start retort-helperd"), (lab.write("file", ""), "start retort-helperd")):
        status, said = run_check(lab, lab.write("check.conf", text % (port, socket, socket)))
        true(status == 0 and said.count("nobody can prove who he is until it answers") == 1 and word in said, f"{socket}: {said}")
        lacks(run_check(lab, lab.path("check.conf"), "-T")[1], "nobody can prove", "-T looks at the file alone")


def kerberos_proxy(lab):
    """For anna with a ticket and joe with a password; /echo wants a password, and /never is for nobody."""
    realm = Realm(lab, {"anna": "annapw"}, ["HTTP/localhost"])
    origin = Origin(lab)
    users = lab.write("users", "joe:{SHA}" + base64.b64encode(hashlib.sha1(SECRET.encode()).digest()).decode() + "\n")
    os.chmod(users, 0o600)
    proxy = proxy_of(lab, {"krb": f'type = negotiate  keytab = "{realm.keytab}"', "staff": f'type = basic  file = "{users}"'},
                     "url_class alone { path_regex = '^/echo' }\naccess alone { action = authenticate  with = { staff } }\n"
                     "url_class never { path_regex = '^/never' }\naccess never { action = deny }\n"
                     f"connect_ports = {{ {origin.port} }}\n", reverse={"/": origin.url("/")}, environment=realm.environment)
    return origin, proxy, realm, realm.log_in("anna", "annapw")


def with_ticket(proxy, anna, target, field, headers=None):
    """The response to a request with a new ticket, and the login that can tell whether its token is for it."""
    with Login(anna, "HTTP@localhost") as login:
        yield login, proxy.get(target, {field: "Negotiate " + login.token, **(headers or {})})


def proves_itself(proxy, anna, target, asks, answers):
    """Whoever answers, and from wherever: the one token in the response is for this client. It is in no other response."""
    challenge = 401 if answers == "WWW-Authenticate" else 407
    tokens = []
    for path, status, headers in ((target, 200, {}), (target, 200, {}), (target, 304, {"If-None-Match": '"1"'}),
                                  (target.replace("/text", "/never"), 403, {})):
        for login, got in with_ticket(proxy, anna, path, asks, headers):
            equal(got.status, status, path)
            equal(login.believes(got.header(answers)), "complete", f"{path} {status}: {got.header(answers)}")
            tokens.append(got.header(answers))
    equal(len(set(tokens)), 4, "different tokens")
    for login, got in with_ticket(proxy, anna, target, asks):
        true(login.believes(tokens[0]) != "complete", "the token for another client is believed")
    for _, got in with_ticket(proxy, anna, target.replace("/text", "/echo"), asks):
        equal(got.status, challenge, "where anna must show a password")
        lacks(got.header(answers), "Negotiate", "the challenge for a password")
    equal(proxy.get(target).status, challenge, "nobody")
    got = proxy.get(target, {asks: basic("joe", SECRET)})
    equal((got.status, got.header(answers)), (200, None), "what joe gets")


def test_the_proxy_proves_itself_to_the_client(lab):
    """In each response to a ticket, from the origin, from the cache and of the proxy's own; what an origin forges is not stored."""
    origin, proxy, _, anna = kerberos_proxy(lab)
    page = {"h": ["Cache-Control: max-age=60", 'ETag: "1"', "Proxy-Authenticate: Negotiate AAAA", "Proxy-Authentication-Info: x"]}
    proves_itself(proxy, anna, origin.url("/text", **page), "Proxy-Authorization", "Proxy-Authenticate")
    equal(origin.count("/text"), 1, "requests at the origin; the others were hits")
    stored = proxy.ctl("cache", "get", origin.url("/text", **page))
    contains(stored, "max-age=60", "what is stored")
    lacks(stored, "Authent", "what is stored")
    proves_itself(proxy, anna, Origin.target("/text", say="site", **page), "Authorization", "WWW-Authenticate")
    equal(origin.count("/text"), 2, "requests at the origin; the others were hits")


def test_tickets_for_tunnels_and_sites(lab):
    """The answer to a CONNECT has the token; curl logs in to a reverse listener."""
    origin, proxy, realm, anna = kerberos_proxy(lab)
    with Login(anna, "HTTP@localhost") as login, proxy.wire() as wire:
        wire.send(f"CONNECT {origin.authority} HTTP/1.1\r\nHost: {origin.authority}\r\n"
                  f"Proxy-Authorization: Negotiate {login.token}\r\n\r\n".encode())
        got = wire.head()
        equal((got.status, login.believes(got.header("Proxy-Authenticate"))), (200, "complete"), "CONNECT")
    site = f"http://localhost:{proxy.reverse[1]}/text?say=hello"
    for environment, expected in ((anna, "200"), ({}, "401")):
        done = realm.run("curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "--negotiate", "-u", ":", "--max-time", "20", site,
                         environment=environment, expect=None)
        equal(done.stdout, expected, "curl to the reverse listener")
    users = [(entry["status"], entry.get("user")) for entry in proxy.entries("hello", 2)]
    contains(users, (200, f"anna@{REALM}"), "users in the log")
    contains(users, (401, None), "users in the log")


def test_pam(lab):
    """Debian's basic_pam_auth with a PAM service of the test's own, which asks a script."""
    program, service = squid_helper("basic_pam_auth"), f"retort-helper-test-{os.getpid()}"
    if os.getuid() != 0 or not os.path.isdir("/etc/pam.d"):
        raise Skip("only root can write a PAM service into /etc/pam.d, as this test does for a moment")
    script = lab.write("pam.sh", '#!/bin/sh\nread -r password\n[ "$PAM_USER:$password" = "joe:%s" ]\n' % SECRET)
    os.chmod(script, 0o755)
    place = PamService(f"/etc/pam.d/{service}", f"auth required pam_exec.so quiet expose_authtok {script}\naccount required pam_permit.so\n")
    lab.opens(place)
    origin = RawOrigin(lab)
    helpers = helperd(lab, pool("pam", "squid_basic", program, "-n", service))
    proxy = proxy_of(lab, {"pam": f'type = basic  helper = pam  helpers = "{helpers.socket}"'})
    url = origin.url("/a")
    equal([asked(proxy, url, "joe"), asked(proxy, url, "joe", "wrong"), asked(proxy, url, "root")], [200, 407, 407], "PAM")
    place.stop()
    one_of(asked(proxy, url, "joe", "other"), (407, 503), "without the service")
    no_secrets(lab, proxy.ctl("status"))


class PamService:
    """A file in /etc/pam.d, of a name that no program has, for as long as the test runs."""

    def __init__(self, path, text):
        self.path = path
        with open(path, "x", encoding="ascii") as file:
            file.write(text)

    def stop(self):
        if os.path.exists(self.path):
            os.unlink(self.path)

    @staticmethod
    def findings():
        return []
