"""An LDAP directory (slapd) on loopback, with users and groups, for a test alone."""

import os
import shutil
import subprocess

from . import ports
from .checks import Skip
from .process import Daemon, Process

SUFFIX = "dc=retort,dc=test"
CONFIG = """
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/nis.schema
include /etc/ldap/schema/inetorgperson.schema
pidfile {directory}/slapd.pid
argsfile {directory}/slapd.args
modulepath /usr/lib/ldap
moduleload back_mdb
database mdb
maxsize 1048576
suffix "{suffix}"
rootdn "cn=admin,{suffix}"
directory {directory}/data
"""


class Directory(Daemon):
    """`users` has passwords by name, `groups` has lists of names by group."""

    def __init__(self, lab, users, groups):
        program = shutil.which("slapd", path="/usr/sbin:/usr/local/sbin:" + os.environ["PATH"])
        if program is None or not os.path.exists("/etc/ldap/schema/core.schema"):
            raise Skip("slapd is not installed (tests/install.sh)")
        self.port = ports.take()
        self.url = f"ldap://127.0.0.1:{self.port}"
        self.people, self.groups = f"ou=people,{SUFFIX}", f"ou=groups,{SUFFIX}"
        name = lab.unique("slapd")
        self.directory = lab.path(name + ".dir")
        os.makedirs(os.path.join(self.directory, "data"))
        config = lab.write(name + ".conf", CONFIG.format(directory=self.directory, suffix=SUFFIX))
        entries = lab.write(name + ".ldif", self._entries(users, groups))
        added = subprocess.run([program, "-T", "add", "-q", "-f", config, "-l", entries], capture_output=True, text=True, timeout=60,
                               check=False)
        if added.returncode != 0:
            raise AssertionError("slapadd: " + added.stderr[-1000:])
        self.process = Process(lab, name, [program, "-h", self.url, "-f", config, "-d", "0"])
        lab.opens(self)
        self.process.wait_listening(("127.0.0.1", self.port))

    def _entries(self, users, groups):
        entries = [f"dn: {SUFFIX}\nobjectClass: dcObject\nobjectClass: organization\no: Retort\ndc: retort"]
        entries += [f"dn: {unit}\nobjectClass: organizationalUnit\nou: {unit[3:unit.index(',')]}" for unit in (self.people, self.groups)]
        entries += [f"dn: uid={user},{self.people}\nobjectClass: inetOrgPerson\nuid: {user}\ncn: {user}\nsn: {user}\n"
                    f"userPassword: {password}" for user, password in users.items()]
        for number, (group, members) in enumerate(groups.items()):
            entries.append(f"dn: cn={group},{self.groups}\nobjectClass: posixGroup\ncn: {group}\ngidNumber: {1000 + number}\n"
                           + "\n".join(f"memberUid: {member}" for member in members))
        return "\n\n".join(entries) + "\n"
