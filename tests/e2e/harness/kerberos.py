"""A Kerberos realm on loopback: a KDC of its own, principals, keytabs and tickets. Nothing of the machine's is used."""

import os
import shutil
import subprocess

from . import ports
from .checks import Skip
from .process import Process
from .wire import Wire

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


class Realm:
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
        self.process.wait_ready(self._answers)

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

    def _answers(self):
        try:
            Wire(("127.0.0.1", self.port), timeout=1).close()
            return True
        except OSError:
            return False

    def stop(self):
        self.process.stop()

    def findings(self):
        return self.process.findings()
