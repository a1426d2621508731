"""The certificates that clients of intercepted connections get, as other libraries judge them, and what is remembered of origins."""

import subprocess
import threading

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from harness import wire
from harness.certificates import Authority, self_signed
from harness.checks import contains, equal, one_of, true
from harness.hello import RSA_SCHEMES, RSA_SUITES, Hello, say_hello
from harness.interception import Interception, Refused
from harness.raw_origin import ok
from harness.suite import memcheck

NAME, LONG = "www.example.com", ".".join(["a" * 60] * 3) + ".example.com"


def share(lab):
    return Interception(lab, NAME, LONG, "127.0.0.1", interception="refusals = 0")


def chain_for(site, name, **options):
    with site.tunnel() as plain:
        flight = say_hello(plain, Hello(name, **options))
    true(flight.certificates, f"a leaf for {name!r}; the alert is {flight.alert}")
    return [x509.load_der_x509_certificate(each) for each in flight.certificates]


def judge(lab, *command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    equal(done.returncode, 0, f"{command}: {done.stdout} {done.stderr}")
    return done.stdout


def check_by_others(lab, site, name, leaf):
    path = lab.write("leaf.pem", leaf.public_bytes(serialization.Encoding.PEM).decode())
    judge(lab, "openssl", "verify", "-purpose", "sslserver", "-verify_hostname", name, "-CAfile", site.authority.file, path)
    said = judge(lab, "certtool", "--verify", "--verify-profile=medium", "--load-ca-certificate", site.authority.file,
                 f"--verify-hostname={name}", "--infile", path)
    contains(said, "The certificate is trusted", f"certtool of {name}")


@memcheck
def test_leaves_convince_other_libraries(lab, site):
    serials = set()
    for name in (NAME, LONG):
        leaf, *chain = chain_for(site, name.encode())
        equal(chain, [], "certificates behind the leaf of a root")
        check_by_others(lab, site, name, leaf)
        true(isinstance(leaf.public_key(), ec.EllipticCurvePublicKey), "an EC key")
        serials.add(leaf.serial_number)
        own, issuer = (leaf.extensions.get_extension_for_class(kind).value for kind in (x509.SubjectKeyIdentifier, x509.AuthorityKeyIdentifier))
        equal(own, x509.SubjectKeyIdentifier.from_public_key(leaf.public_key()), "SKI")
        equal(issuer.key_identifier, x509.SubjectKeyIdentifier.from_public_key(site.authority.private.public_key()).digest, "AKI")
    equal(len(leaf.subject.rdns), 0, "the subject of a long name")
    equal(len(serials), 2, "serials")
    equal(site.get(NAME).status, 200, "Python")


def test_clients_without_ecdsa_get_rsa(lab, site):
    for options in ({"suites": RSA_SUITES}, {"schemes": RSA_SCHEMES}):
        leaf = chain_for(site, NAME.encode(), **options)[0]
        true(isinstance(leaf.public_key(), rsa.RSAPublicKey), f"an RSA key for {options}")
        check_by_others(lab, site, NAME, leaf)
    again = chain_for(site, NAME.encode(), suites=RSA_SUITES)[0]
    equal(again.serial_number, leaf.serial_number, "the leaf is found again")


def test_an_address_has_a_leaf(_lab, site):
    leaf = chain_for(site, None)[0]
    equal([str(each.value) for each in leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value], ["127.0.0.1"], "SAN")


@memcheck
def test_hosts_that_are_no_names(_lab, site):
    """The host of a CONNECT without SNI: too long for any name, or no name; the proxy survives it and makes no leaf."""
    port = site.origin.port
    for host in ("a" * 3000, "a" * 300 + ".test", "127.1", "a..b", "*", "x" * 64 + ".test"):
        for sni in (None, NAME.encode()):
            try:
                with site.tunnel(to=(host, port)) as plain:
                    say_hello(plain, Hello(sni))
            except (Refused, OSError, wire.Truncated):
                pass
    equal(site.get(NAME).status, 200, "afterwards")


def test_an_intermediate_goes_with_its_leaves(lab):
    site = Interception(lab, NAME)
    middle = site.authority = Authority(lab, "top").intermediate("middle")
    file = lab.write("chain.pem", b"".join(each.pem() for each in (middle, middle.issuer)).decode())
    before = site.proxy.text()
    old = chain_for(site, NAME.encode())[0]
    section = before[before.index("authority {"):before.index("}", before.index("authority {")) + 1]
    site.proxy.write_config(before.replace(section, f'authority {{ certificate = "{file}"  key = "{middle.key}" }}'))
    equal(site.proxy.reload().status, 200, "reload")
    leaf, *chain = chain_for(site, NAME.encode())
    true(leaf.issuer == middle.certificate.subject and leaf.serial_number != old.serial_number, "a leaf of the new authority")
    equal([each.subject for each in chain], [middle.certificate.subject], "behind the leaf")
    context = site.context(trusts=middle.issuer.file)
    with site.bumped(NAME, context=context) as client:
        client.send(wire.request("GET", "/", {"Host": site.host(NAME)}))
        equal(client.response().status, 200, "a client that has only the root")


def test_mirrored_errors_are_refused(lab):
    for mirror, expected in (("false", True), ("true", False)):
        site = Interception(lab, NAME, interception=f"mirror_errors = {mirror}", certificate=self_signed(lab, NAME))
        leaf = chain_for(site, NAME.encode())[0]
        equal(leaf.issuer == site.authority.certificate.subject, expected, f"the issuer with mirror_errors = {mirror}")
        if expected:
            equal(site.get(NAME).status, 502, "the page")


def test_a_leaf_ends_with_the_origins_certificate(lab):
    root = Authority(lab, "root")
    site = Interception(lab, certificate=root.leaf(NAME, days=3), origin={"ca_file": root.file})
    leaf = chain_for(site, NAME.encode())[0]
    equal(leaf.not_valid_after, site.certificate.certificate.not_valid_after, "the end of the leaf")


def test_many_first_connections_verify_once(lab):
    site = Interception(lab, NAME, answer=ok, workers=2, interception="refusals = 0")
    results, count = [], 20

    def ask():
        results.append(chain_for(site, NAME.encode())[0].issuer)
    threads = [threading.Thread(target=ask) for _ in range(count)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    equal(len(results), count, "leaves")
    equal(len(site.origin.names), 1, "handshakes with the origin")
    equal(site.proxy.counter("intercept_identity_misses"), 1, "misses")
    metrics = dict(line.split() for line in site.proxy.admin("GET", "/metrics").text().splitlines() if line.startswith("retort_intercept_"))
    true(1 <= float(metrics["retort_intercept_leaves_minted_total"]) <= 2, "certificates made")
    equal(metrics["retort_intercept_identities"], "1", "servers that are known")
