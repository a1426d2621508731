"""Certificates, OCSP responses and CRLs made for a test.

    root = Authority(lab)                              root.file: its certificate in PEM
    middle = root.intermediate("middle")
    www = middle.leaf("www.example.com", "*.example.com", "192.0.2.1")     names and addresses of the SAN
    www.file   certificate and intermediates in PEM    www.key    the private key in PEM
    www.both   the two in one file                     www.alone  the certificate without its chain
    www.der    bytes of the certificate                www.lab.write(...) for whatever else

    root.leaf(cn="only.example.com")                   no SAN
    root.leaf("a.example", days=-1)                    expired yesterday; days=(2, 30): valid only in two days
    root.leaf("a.example", rsa=1024)                   RSA in place of P-256; curve=ec.SECP384R1(): another curve
    Authority(lab, rsa=2048).leaf("a.example", digest="sha1")              or md5; only authorities with RSA sign so
    root.leaf("a.example", must_staple=True, ocsp="http://…", issuers="http://…", crl="http://…")
    root.leaf("a.example").leaf("b.example")           signed by a certificate that is no CA
    self_signed(lab, "a.example")
    root.ocsp(www)                                     an OCSP response in DER: good
    root.ocsp(www, revoked=True, days=-1, signer=root.leaf(usage=OCSP_SIGNING))
    root.crl(www, other, days=7)                       a file in PEM that revokes the two
"""

import datetime
import functools
import ipaddress
import itertools
import os
import warnings

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa as rsa_keys
from cryptography.x509 import ocsp as ocsp_forms
from cryptography.x509.oid import AuthorityInformationAccessOID, ExtendedKeyUsageOID, NameOID

SERVER, CLIENT, OCSP_SIGNING = ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.OCSP_SIGNING
PEM, DER = serialization.Encoding.PEM, serialization.Encoding.DER
numbers = itertools.count()


def after(days):
    return datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=days)


def validity(days):
    """From which day to which: `days` is the last one, or both."""
    first, last = days if isinstance(days, tuple) else (min(0, days) - 1, days)
    return after(first), after(last)


def subject(name):
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)] if name else [])


def general_name(text):
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.UniformResourceIdentifier(text) if "://" in text else x509.DNSName(text)


def new_key(rsa, curve=None):
    if not rsa:
        return ec.generate_private_key(curve or ec.SECP256R1())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the size may be the point
        return rsa_keys.generate_private_key(public_exponent=65537, key_size=rsa)


def url_fields(ocsp, issuers):
    methods = ((AuthorityInformationAccessOID.OCSP, ocsp), (AuthorityInformationAccessOID.CA_ISSUERS, issuers))
    return [x509.AccessDescription(method, x509.UniformResourceIdentifier(url)) for method, url in methods if url]


def authority_usage():
    """RFC 5280 §4.2.1.3 demands it of an authority, and so does Python from 3.13 on."""
    others = dict.fromkeys(("content_commitment", "key_encipherment", "data_encipherment", "key_agreement", "encipher_only", "decipher_only"), False)
    return x509.KeyUsage(digital_signature=True, key_cert_sign=True, crl_sign=True, **others)


class Certificate:
    """One certificate with its key, and what can be signed with that key."""

    def __init__(self, lab, label, private, certificate, issuer):
        self.lab, self.private, self.certificate, self.issuer = lab, private, certificate, issuer
        self.label = f"{label.replace('*', 'star').replace('/', '-')[:60]}-{next(numbers)}"

    def chain(self):
        """From this one up, without a root."""
        return [self] + (self.issuer.chain() if self.issuer and self.issuer.issuer else [])

    def pem(self):
        return self.certificate.public_bytes(PEM)

    def key_pem(self):
        return self.private.private_bytes(PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())

    @property
    def der(self):
        return self.certificate.public_bytes(DER)

    @functools.cached_property
    def file(self):
        return self._write("pem", *(each.pem() for each in self.chain()))

    @functools.cached_property
    def alone(self):
        return self._write("alone.pem", self.pem())

    @functools.cached_property
    def key(self):
        return self._write("key", self.key_pem())

    @functools.cached_property
    def both(self):
        return self._write("both.pem", *(each.pem() for each in self.chain()), self.key_pem())

    def _write(self, ending, *parts):
        path = self.lab.path(f"{self.label}.{ending}")
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(b"".join(parts))
        return path

    def intermediate(self, name, **options):
        return self.sign(name, ca=True, **options)

    def leaf(self, *names, cn="", **options):
        return self.sign(cn or (names[0] if names else ""), names, **{"usage": SERVER, **options})

    def sign(self, cn, names=(), **options):
        return make(self.lab, cn, names, self, **options)

    def ocsp(self, certificate, revoked=False, days=7, signer=None, unknown=False):
        """`signer`: another one than this authority, whose certificate goes with the response."""
        first, last = validity(days)
        status = ocsp_forms.OCSPCertStatus
        builder = ocsp_forms.OCSPResponseBuilder().add_response(
            cert=certificate.certificate, issuer=self.certificate, algorithm=hashes.SHA1(),
            cert_status=status.REVOKED if revoked else status.UNKNOWN if unknown else status.GOOD,
            this_update=first, next_update=last, revocation_time=after(-3) if revoked else None,
            revocation_reason=x509.ReasonFlags.key_compromise if revoked else None)
        if signer:
            builder = builder.certificates([signer.certificate])
        signer = signer or self
        builder = builder.responder_id(ocsp_forms.OCSPResponderEncoding.HASH, signer.certificate)
        return builder.sign(signer.private, hashes.SHA256()).public_bytes(DER)

    def crl(self, *revoked, days=7):
        first, last = validity(days)
        builder = x509.CertificateRevocationListBuilder().issuer_name(self.certificate.subject)
        builder = builder.last_update(first).next_update(last)
        builder = builder.add_extension(x509.CRLNumber(next(numbers)), critical=False)
        for each in revoked:
            builder = builder.add_revoked_certificate(x509.RevokedCertificateBuilder().serial_number(
                each.certificate.serial_number).revocation_date(after(-3)).build())
        return self._write(f"{next(numbers)}.crl.pem", builder.sign(self.private, hashes.SHA256()).public_bytes(PEM))


def make(lab, cn, names, issuer, ca=False, days=30, rsa=0, curve=None, digest="sha256", must_staple=False, ocsp=None, issuers=None,
         crl=None, usage=None, path_length=None, private=None):
    """`names` may hold x509 names in place of texts. `private`: a key to use again."""
    private = private or new_key(rsa, curve)
    first, last = validity(days)
    signer = issuer or Certificate(lab, cn, private, None, None)
    signer_name = issuer.certificate.subject if issuer else subject(cn)
    builder = x509.CertificateBuilder().subject_name(subject(cn)).issuer_name(signer_name).public_key(private.public_key())
    builder = builder.serial_number(x509.random_serial_number()).not_valid_before(first).not_valid_after(last)

    def extend(extension, wanted=True, critical=False):
        nonlocal builder
        if wanted:
            builder = builder.add_extension(extension, critical)
    extend(x509.BasicConstraints(ca, path_length if ca else None), critical=True)
    extend(authority_usage(), ca, critical=True)
    extend(x509.SubjectKeyIdentifier.from_public_key(private.public_key()))
    extend(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.private.public_key()), issuer)
    if names:
        extend(x509.SubjectAlternativeName([general_name(each) if isinstance(each, str) else each for each in names]),
               critical=not cn)
    if usage:
        extend(x509.ExtendedKeyUsage([usage]))
    if ocsp or issuers:
        extend(x509.AuthorityInformationAccess(url_fields(ocsp, issuers)))
    if must_staple:
        extend(x509.TLSFeature([x509.TLSFeatureType.status_request]))
    if crl:
        extend(x509.CRLDistributionPoints([x509.DistributionPoint([x509.UniformResourceIdentifier(crl)], None, None, None)]))
    made = Certificate(lab, cn or "nameless", private, builder.sign(signer.private, hashes.SHA256()), issuer)
    if digest != "sha256":
        made.certificate = signed_again(made.certificate, signer, digest)
    return made


def signed_again(certificate, signer, digest):
    """With a digest that the Python library makes no certificates with. `signer` has an RSA key, so that all lengths stay."""
    last, algorithm = {"sha1": (b"\x05", hashes.SHA1()), "md5": (b"\x04", hashes.MD5())}[digest]
    with_rsa = bytes.fromhex("06092a864886f70d0101")  # and one byte more: the digest (RFC 8017 A.2.4)
    tbs = certificate.tbs_certificate_bytes
    weak = tbs.replace(with_rsa + b"\x0b", with_rsa + last, 1)
    whole = certificate.public_bytes(DER).replace(tbs, weak).replace(with_rsa + b"\x0b", with_rsa + last)
    signature = signer.private.sign(weak, padding.PKCS1v15(), algorithm)
    return x509.load_der_x509_certificate(whole.replace(certificate.signature, signature))


def Authority(lab, name="root", **options):  # noqa: N802: used like a class
    return make(lab, name, (), None, ca=True, **options)


def self_signed(lab, *names, **options):
    return make(lab, names[0], names, None, **{"usage": SERVER, **options})
