"""A Kerberos realm on loopback: a KDC of its own, principals, keytabs and tickets. Nothing of the machine's is used."""

import os
import shutil
import subprocess
import sys

from . import ports
from .checks import Skip
from .process import Daemon, Process

REALM = "RETORT.TEST"
CLIENT = """
[libdefaults]
default_realm = {realm}
dns_lookup_realm = false
dns_lookup_kdc = false
dns_canonicalize_hostname = false
rdns = false
[realms]
{realm} = {{
kdc = 127.0.0.1:{port}
}}
[dbmodules]
db = {{
db_library = db2
database_name = {directory}/principal
}}
"""
SERVER = """
[kdcdefaults]
kdc_listen = 127.0.0.1:{port}
kdc_tcp_listen = 127.0.0.1:{port}
[realms]
{realm} = {{
key_stash_file = {directory}/stash
acl_file = {directory}/kadm5.acl
database_module = db
max_life = 1h
}}
[logging]
kdc = FILE:{directory}/kdc.log
"""


class Login:
    """One attempt of somebody with a ticket, who insists that the other side proves itself too (gss_client.py)."""

    def __init__(self, environment, service):
        program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "gss_client.py")
        self.client = subprocess.Popen([sys.executable, program, service], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                       env={**os.environ, **environment})
        self.token = self.client.stdout.readline().strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.client.communicate(timeout=20)

    def believes(self, answer):
        """What GSSAPI says of a field's value: "complete" when the other side is who it should be."""
        scheme, _, token = (answer or "").partition(" ")
        if scheme != "Negotiate" or not token:
            return f"no token: {answer}"
        self.client.stdin.write(token + "\n")
        self.client.stdin.flush()
        return self.client.stdout.readline().strip()


class Realm(Daemon):
    """`users` has passwords by name, `services` are principals whose keys are in `keytab`."""

    def __init__(self, lab, users, services):
        path = "/usr/sbin:/usr/local/sbin:" + os.environ["PATH"]
        programs = {name: shutil.which(name, path=path) for name in ("krb5kdc", "kdb5_util", "kadmin.local", "kinit", "curl")}
        missing = [name for name, found in programs.items() if found is None]
        if missing:
            raise Skip(f"{', '.join(missing)} not installed (tests/install.sh)")
        self.programs, self.lab, self.port = programs, lab, ports.take()
        name = lab.unique("kdc")
        self.directory = lab.path(name + ".dir")
        os.makedirs(self.directory)
        values = {"realm": REALM, "port": self.port, "directory": self.directory}
        self.environment = {
            "KRB5_CONFIG": lab.write(name + ".krb5.conf", CLIENT.format(**values)),
            "KRB5_KDC_PROFILE": lab.write(name + ".kdc.conf", SERVER.format(**values)),
            "KRB5RCACHEDIR": self.directory,
        }
        self.keytab = self.path("http.keytab")
        self.run("kdb5_util", "create", "-s", "-r", REALM, "-P", "master")
        self.administer(*[f"addprinc -pw {password} {user}" for user, password in users.items()],
                        *[f"addprinc -randkey {service}" for service in services],
                        *[f"ktadd -k {self.keytab} {service}" for service in services])
        self.process = Process(lab, name, [programs["krb5kdc"], "-n", "-r", REALM, "-P", self.path("pid")],
                               environment=self.environment)
        lab.opens(self)
        self.process.wait_listening(("127.0.0.1", self.port))

    def path(self, name):
        return os.path.join(self.directory, name)

    def run(self, program, *arguments, stdin=None, expect=0, environment=None):
        done = subprocess.run([self.programs[program], *arguments], input=stdin, capture_output=True, text=True, timeout=60,
                              env={**os.environ, **self.environment, **(environment or {})}, check=False)
        if expect is not None and done.returncode != expect:
            raise AssertionError(f"{program} ended with {done.returncode}: {done.stdout[-500:]}{done.stderr[-500:]}")
        return done

    def administer(self, *commands):
        self.run("kadmin.local", "-r", REALM, stdin="\n".join(commands) + "\nquit\n")

    def log_in(self, user, password):
        """The environment of somebody with a ticket of that user."""
        environment = {**self.environment, "KRB5CCNAME": "FILE:" + self.path(user.replace("/", "_") + ".tickets")}
        self.run("kinit", user, stdin=password + "\n", environment=environment)
        return environment
