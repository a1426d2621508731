"""The certificate authority for intercepted connections: `retortctl ca`, and what `retort -t` refuses."""

import os
import re
import stat
import subprocess

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization

from harness.certificates import Authority, self_signed
from harness.checks import contains, equal, true
from harness.retort import Retort, run_check
from harness.suite import memcheck


def ca(lab, *arguments, directory=None, good=True):
    directory = directory or lab.path("")
    files = ["--certificate", os.path.join(directory, "ca.pem"), "--key", os.path.join(directory, "ca.key")]
    done = subprocess.run([lab.built("proxy/retortctl"), "ca", arguments[0], *files, *arguments[1:]],
                          capture_output=True, timeout=60, check=False)
    equal(done.returncode == 0, good, f"ca {arguments}: {done.stdout} {done.stderr}")
    return done.stdout if good else done.stderr.decode()


def run(*command, given=None):
    done = subprocess.run(command, input=given, capture_output=True, timeout=60, check=False)
    equal(done.returncode, 0, f"{command}: {done.stdout} {done.stderr}")
    return done.stdout.decode()


@memcheck
def test_an_authority_is_made_once(lab):
    said = ca(lab, "create", "--name", "Höhle & Söhne").decode()
    pem, key = lab.path("ca.pem"), lab.path("ca.key")
    equal(stat.S_IMODE(os.stat(key).st_mode), 0o600, "mode of the key")
    equal(stat.S_IMODE(os.stat(pem).st_mode), 0o644, "mode of the certificate")
    contains(said, f'authority {{ certificate = "{pem}"  key = "{key}" }}', "what to write")
    before = open(pem, "rb").read(), open(key, "rb").read()
    contains(ca(lab, "create", good=False), "exists already", "a second one")
    os.unlink(key)
    contains(ca(lab, "create", good=False), "exists already", "where one file is left")
    true(not os.path.exists(key), "the key of a CA that was not made")
    equal(open(pem, "rb").read(), before[0], "the certificate")
    with open(os.open(key, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
        file.write(before[1])
    shown = ca(lab, "show").decode()
    certificate = x509.load_pem_x509_certificate(before[0])
    contains(shown, certificate.fingerprint(hashes.SHA256()).hex(), "the fingerprint")
    contains(shown, "Retort can use them", "the pair")


def test_the_certificate_is_one_of_a_root(lab):
    ca(lab, "create", "--years", "3")
    pem = lab.path("ca.pem")
    certificate = x509.load_pem_x509_certificate(open(pem, "rb").read())
    value = certificate.extensions.get_extension_for_class
    constraints, usage = value(x509.BasicConstraints), value(x509.KeyUsage)
    equal((constraints.critical, constraints.value.ca, constraints.value.path_length), (True, True, 0), "constraints")
    true(usage.critical and usage.value.key_cert_sign and not usage.value.digital_signature, "key usage")
    equal(value(x509.SubjectKeyIdentifier).value, x509.SubjectKeyIdentifier.from_public_key(certificate.public_key()), "SKI")
    equal(run("openssl", "x509", "-in", pem, "-noout", "-checkend", str((3 * 365 - 1) * 86400)), "Certificate will not expire\n", "3 years")
    contains(ca(lab, "show").decode(), "Retort can use them", "the pair")
    true(certificate.serial_number.bit_length() > 100, "a random serial")
    contains(run("openssl", "verify", "-x509_strict", "-CAfile", pem, pem), "OK", "openssl")
    contains(run("certtool", "--verify", "--load-ca-certificate", pem, "--infile", pem), "The certificate is trusted", "certtool")


def test_export(lab):
    ca(lab, "create")
    pem = open(lab.path("ca.pem"), "rb").read()
    der = x509.load_pem_x509_certificate(pem).public_bytes(serialization.Encoding.DER)
    equal(ca(lab, "export"), pem, "to stdout")
    equal(ca(lab, "export", "--der"), der, "in DER")
    said = ca(lab, "export", lab.path("retort-ca.crt")).decode()
    equal(open(lab.path("retort-ca.crt"), "rb").read(), pem, "to a file")
    for system in ("Debian", "Firefox", "Windows", "macOS", "Android"):
        contains(said, system, "hints")
    contains(ca(lab, "export", lab.path("retort-ca.crt"), good=False), "exists already", "again")
    os.unlink(lab.path("ca.key"))
    equal(ca(lab, "export"), pem, "without the key")
    true(b"PRIVATE" not in ca(lab, "export", "--hints"), "hints without a key")


def test_wrong_usage(lab):
    for arguments in (["--years", "0"], ["--years", "x"], ["--name", ""], ["--name", "x" * 65], ["--what"], ["extra"]):
        ca(lab, "create", *arguments, good=False)
    true(not os.path.exists(lab.path("ca.key")), "no key was made")
    contains(ca(lab, "create", "--owner", "nobody-of-that-name", good=False), "no user", "an owner that there is not")
    true(not os.path.exists(lab.path("ca.key")), "no key was left")
    contains(ca(lab, "create", directory=lab.path("missing"), good=False), "No such file", "a directory that there is not")
    contains(ca(lab, "show", good=False), "can't be read", "nothing to show")


def check_settings(lab, certificate, key):
    text = f'listen "127.0.0.1:3128" {{ mode = forward }}\nauthority {{ certificate = "{certificate}"  key = "{key}" }}\n'
    return run_check(lab, lab.write("ca.conf", text + "intercept all { action = bump }\n"))


def joined(lab, name, *parts):
    return lab.write(name, b"".join(part.pem() for part in parts).decode())


def private(path, mode=0o600):
    os.chmod(path, mode)
    return path


@memcheck
def test_check_accepts_authorities(lab):
    root = Authority(lab)
    old = Authority(lab, rsa=2048)
    middle = root.intermediate("middle")
    for what, certificate, key in (("a root", root.file, root.key), ("RSA", old.file, old.key),
                                   ("an intermediate", middle.alone, middle.key),
                                   ("an intermediate with its root", joined(lab, "chain.pem", middle, root), middle.key)):
        status, said = check_settings(lab, certificate, key)
        equal(status, 0, f"{what}: {said}")


@memcheck
def test_check_refuses_authorities(lab):
    root, other = Authority(lab), Authority(lab)
    leaf, middle = root.leaf("a.example"), root.intermediate("middle")
    weak, expired = Authority(lab, rsa=1024), root.intermediate("old", days=-1)
    later = root.intermediate("later", days=(2, 30))
    signer = root.intermediate("narrow", usage=x509.oid.ExtendedKeyUsageOID.EMAIL_PROTECTION)
    encrypted = lab.path("encrypted.key")
    run("openssl", "pkey", "-in", root.key, "-aes256", "-passout", "pass:x", "-out", encrypted)
    open_key = lab.write("open.key", root.key_pem().decode())
    bad = [
        ("no file", lab.path("no.pem"), root.key, "can't be read"),
        ("no key", root.file, lab.path("no.key"), "can't be read"),
        ("an open key", root.file, private(open_key, 0o644), "chmod 600"),
        ("a wrong pair", root.file, other.key, "does not belong"),
        ("a leaf", leaf.alone, leaf.key, "no CA"),
        ("a self-signed certificate", *(lambda own: (own.alone, own.key))(self_signed(lab, "a.example")), "no CA"),
        ("an expired CA", expired.alone, expired.key, "expired"),
        ("a CA of tomorrow", later.alone, later.key, "not valid yet"),
        ("a weak key", weak.file, weak.key, "1024"),
        ("another order", joined(lab, "order.pem", root, middle), root.key, "order"),
        ("another issuer", joined(lab, "issuer.pem", middle, other), middle.key, "order"),
        ("a CA for mail", signer.alone, signer.key, "serverAuth"),
        ("a key with a password", root.file, private(encrypted), "password"),
        ("a key as the certificate", root.key, root.key, "holds no certificate"),
        ("a certificate as the key", root.file, root.file, "no private key"),
    ]
    for what, certificate, key, word in bad:
        status, said = check_settings(lab, certificate, key)
        true(status not in (0, None) and status > 0, f"{what}: exit status {status} ({said})")
        contains(said, "ca.conf:2: authority: ", what)
        contains(said, word, what)


def test_check_of_extensions(lab):
    """What the certificate says of itself, made with openssl: no right to sign certificates, and a path that is too long."""
    key = private(lab.write("k.key", run("openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256")))
    cases = [("basicConstraints=critical,CA:TRUE", "keyUsage=critical,digitalSignature,cRLSign", "keyCertSign"),
             ("basicConstraints=critical,CA:FALSE", "keyUsage=critical,keyCertSign", "no CA")]
    for constraints, usage, word in cases:
        path = lab.path("k.pem")
        run("openssl", "req", "-x509", "-new", "-key", key, "-subj", "/CN=x", "-days", "9", "-out", path,
            "-addext", constraints, "-addext", usage)
        status, said = check_settings(lab, path, key)
        true(status > 0 and word in said, f"{constraints} {usage}: {status} {said}")
    run("openssl", "genpkey", "-algorithm", "ED25519", "-out", private(lab.write("ed.key", "")))
    run("openssl", "req", "-x509", "-new", "-key", lab.path("ed.key"), "-subj", "/CN=x", "-out", lab.path("ed.pem"))
    status, said = check_settings(lab, lab.path("ed.pem"), lab.path("ed.key"))
    true(status > 0 and "ED25519" in said, f"Ed25519: {status} {said}")


def test_interception_needs_an_authority(lab):
    for action, needed in (("bump", True), ("block", True), ("splice", False)):
        status, said = run_check(lab, lab.write("none.conf", 'listen "127.0.0.1:3128" { mode = forward }\n'
                                                             f"intercept all {{ action = {action} }}\n"))
        equal(status > 0, needed, f"{action}: {said}")
        if needed:
            contains(said, "none.conf:2: ", action)
            contains(said, "retortctl ca create", action)
    half = lab.write("half.conf", 'listen "127.0.0.1:3128" { mode = forward }\nauthority { key = "/x" }\n')
    status, said = run_check(lab, half)
    true(status > 0 and re.search(r"half\.conf:2: .*belong together", said), f"half: {status} {said}")


def paths_of_page(page):
    return re.findall(r'href="([^"]*)"', page)


@memcheck
def test_the_page_gives_the_certificate(lab):
    ca(lab, "create")
    pem, files = open(lab.path("ca.pem"), "rb").read(), f'certificate = "{lab.path("ca.pem")}"  key = "{lab.path("ca.key")}"'
    proxy = Retort(lab, extra=f"authority {{ {files} }}\ninterception {{ ca_page = true }}\n")
    page = proxy.get("http://retort.internal/ca")
    equal((page.status, page.header("content-type"), page.header("cache-control")), (200, "text/html; charset=utf-8", "no-store"), "page")
    fingerprint = x509.load_pem_x509_certificate(pem).fingerprint(hashes.SHA256()).hex()
    contains(page.body.decode(), fingerprint, "page")
    contains(page.body.decode(), "Privacy &amp; Security", "page")
    answers = [proxy.get("http://retort.internal" + path) for path in paths_of_page(page.body.decode())]
    equal([answer.status for answer in answers], [200, 200], "files")
    equal(answers[0].body, pem, "PEM")
    equal(answers[1].body, x509.load_pem_x509_certificate(pem).public_bytes(serialization.Encoding.DER), "DER")
    equal(answers[1].header("content-type"), "application/x-x509-ca-cert", "type of DER")
    true(not any(b"PRIVATE" in answer.body for answer in [page, *answers]), "no key")
    equal(proxy.get("http://retort.internal/ca/ca.key").status, 404, "the key")
    proxy.write_config(proxy.text().replace("ca_page = true", "ca_page = false"))
    proxy.reload()
    equal(proxy.get("http://retort.internal/ca").status, 404, "switched off")
    equal(proxy.get("http://retort.internal/ca/retort-ca.crt").status, 404, "a file, switched off")


def test_the_page_may_be_the_operators(lab):
    ca(lab, "create")
    files = f'certificate = "{lab.path("ca.pem")}"  key = "{lab.path("ca.key")}"'
    for language in ("de", "en"):
        lab.write(f"ca.{language}.html", f"<p>{language} %{{ca_fingerprint}} %{{ca_expiry}} %{{ca_subject}} %{{request.X-In}}")
    lab.write("ca.txt", "text")
    section = 'error_page all { for = authority  file = "ca.%{language}.html" }\n'
    proxy = Retort(lab, extra=f"authority {{ {files} }}\ninterception {{ ca_page = true }}\n{section}")
    certificate = x509.load_pem_x509_certificate(open(lab.path("ca.pem"), "rb").read())
    page = proxy.get("http://retort.internal/ca", {"Accept-Language": "de", "X-In": "<i>"})
    true(page.text().startswith(f"<p>de {certificate.fingerprint(hashes.SHA256()).hex()} {certificate.not_valid_after:%Y-%m-%d} CN="), page.text())
    contains(page.text(), "&lt;i&gt;", "page")
    equal([page.header(name) for name in ("Content-Language", "Vary", "Cache-Control")], ["de", "Accept-Language", "no-store"], "fields")
    true(proxy.get("http://retort.internal/ca/retort-ca.crt").body.startswith(b"-----BEGIN CERTIFICATE"), "the file stays")
    for option, word in (('file = "ca.txt"', "must end with .html"), ('file = "ca.en.html"  status = 403', "only pages for errors"),
                         ('file = "ca.en.html"  name = x', "only pages for errors")):
        status, said = run_check(lab, lab.write("bad.conf", 'listen ":1" { mode = forward }\nerror_page all { for = authority  ' + option + " }\n"))
        true(status > 0 and word in said, f"{option}: {said}")
