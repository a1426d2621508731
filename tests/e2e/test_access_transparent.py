"""Access in transparent mode: TLS connections have the name that they ask for, and nobody can be asked who he is."""

import ssl

from harness.checks import equal
from harness.transparent import Scene
from harness.wire import Silence, Truncated

RULES = ("url_class lessons { domain = \"www.test\" }\nurl_class far { destination = \"10.99.2.3\" }\n"
         "access far { action = deny }\naccess lessons { action = allow }\n")


def share(lab):
    return Scene(lab)


def reaches(scene, address, name, port=None):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with scene.connect(address, port or scene.tls.port) as wire:
        try:
            with context.wrap_socket(wire.socket, server_hostname=name) as tls:
                return tls.version() is not None
        except OSError:
            return False


def test_a_list_of_servers(lab, shared):
    """Allowed are the names on the list, by http and https, and no addresses."""
    shared.redirect()
    proxy = shared.proxy(lab, more=RULES)
    for host, status in (("www.test", 200), ("other.test", 403), (shared.v4, 403)):
        equal(shared.get(shared.v4, host=host).status, status, f"http {host}")
    for name, good in (("www.test", True), ("sub.www.test", True), ("other.test", False), (None, False)):
        equal(reaches(shared, shared.v4, name), good, f"TLS {name}")
    equal(reaches(shared, "10.99.2.3", "www.test"), False, "a name on the list at an address that is denied")
    equal(shared.get("10.99.2.3", host="www.test").status, 403, "the same by http")
    equal(sorted(str(entry.get("access")) for entry in proxy.log(9)[3:]), ["None", "None", "far", "far", "lessons", "lessons"], "sections in the log")


def test_other_connections_have_only_an_address(lab, shared):
    shared.redirect()
    for rules, good in ((RULES, False), (RULES + "access all { action = allow }\n", True)):
        proxy = shared.proxy(lab, "other = tunnel  silent = tunnel  silent_after = \"200ms\"", rules + 'interception { hello_timeout = "500ms" }\n')
        with shared.connect(shared.v4, shared.greeter.port) as wire:
            try:
                equal(wire.socket.recv(5) == b"220 h", good, "the server's greeting")
            except (OSError, Truncated, Silence):
                equal(good, False, "cut")
        proxy.stop()
