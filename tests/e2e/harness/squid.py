"""Squid as a foreign ICAP client of our services."""

import os
import shutil
import stat
import subprocess
import sys

from . import ports, wire
from .process import Process

CONFIG = """
http_port 127.0.0.1:{port}
pid_filename {directory}/squid.pid
cache_log {directory}/cache.log
access_log stdio:{directory}/access.log
coredump_dir {directory}
{user}
cache_mem 32 MB
cache deny all
acl all_clients src all
{access}
icp_port 0
visible_hostname squid.test
shutdown_lifetime 0 seconds
pinger_enable off
netdb_filename none
icap_enable on
icap_preview_enable on
icap_persistent_connections on
adaptation_send_client_ip on
{icap}
"""


class Squid:
    """`services` are pairs of a point ("reqmod_precache" ...) and an ICAP URI, asked in that order.
    `credentials`: "USER:PASSWORD", without which nobody is let in."""

    def __init__(self, lab, services, credentials=None):
        self.port = ports.take()
        self.address = ("127.0.0.1", self.port)
        self.directory = lab.path(lab.unique("squid"))
        os.makedirs(self.directory)
        if os.getuid() == 0:
            shutil.chown(self.directory, "proxy")
            os.chmod(lab.directory, os.stat(lab.directory).st_mode | stat.S_IXOTH)
        access = "http_access allow all_clients"
        if credentials is not None:
            access = wants_credentials(lab.write(os.path.basename(self.directory) + "/passwords", hashed(credentials)))
        config = lab.write(os.path.basename(self.directory) + "/squid.conf", CONFIG.format(
            port=self.port, directory=self.directory, access=access,
            user="cache_effective_user proxy" if os.getuid() == 0 else "", icap=icap_lines(services)))
        self.process = Process(lab, os.path.basename(self.directory), ["squid", "-N", "-f", config],
                               environment={"XDG_RUNTIME_DIR": self.directory}, stop_seconds=20)
        lab.opens(self)
        self.process.wait_ready(self._answers, 20)

    def _answers(self):
        """It accepts connections before it serves them: only an answer counts, if only an error page."""
        try:
            return wire.fetch(self.address, "GET", f"http://127.0.0.1:{self.port}/squid-internal-mgr/info",
                              timeout=2).status > 0
        except (OSError, wire.Truncated):
            return False

    def get(self, url, headers=None, **options):
        """Asks again, once, where Squid closed the connection instead of answering, as any client of it would."""
        try:
            return wire.fetch(self.address, "GET", url, headers, **options)
        except wire.Truncated as first:
            print(f"Squid closed the connection to {url}: {first}\n{self._cache_log()}", file=sys.stderr)
        try:
            return wire.fetch(self.address, "GET", url, headers, **options)
        except wire.Truncated as second:
            raise AssertionError(f"Squid, twice, to {url}: {second}; its cache.log:\n{self._cache_log()}") from None

    def _cache_log(self):
        with open(os.path.join(self.directory, "cache.log"), encoding="utf-8", errors="replace") as log:
            return log.read()[-3000:]

    def stop(self):
        self.process.stop()

    def findings(self):
        return self.process.findings()


def hashed(credentials):
    user, _, password = credentials.partition(":")
    done = subprocess.run(["openssl", "passwd", "-apr1", "-stdin"], input=password, capture_output=True, text=True, check=True)
    return f"{user}:{done.stdout}"


def wants_credentials(passwords):
    os.chmod(passwords, 0o644)
    return f"""auth_param basic program /usr/lib/squid/basic_ncsa_auth {passwords}
auth_param basic realm test
acl known proxy_auth REQUIRED
http_access allow known"""


def icap_lines(services):
    lines, chains = [], {}
    for number, (point, uri) in enumerate(services):
        lines.append(f"icap_service service{number} {point} bypass=off {uri}")
        chains.setdefault(point, []).append(f"service{number}")
    for point, names in chains.items():
        if len(names) > 1:
            lines.append(f"adaptation_service_chain {point} {' '.join(names)}")
        lines.append(f"adaptation_access {point if len(names) > 1 else names[0]} allow all_clients")
    return "\n".join(lines)
