"""The proxy that the golden files come from: each kind of section, peers that answer the same each time, and a fixed row of requests.

    site = Site(lab)            starts everything, and sends the requests
    site.names                  [(what stands in texts, what stands for it)]: paths and ports, for masks.py
    site.proxy, site.ctl("cache", "show", site.page)
"""

import base64
import hashlib
import os
import ssl
import subprocess

from harness import ports, wire
from harness.certificates import Authority
from harness.checks import equal, until
from harness.dns import NameServer
from harness.nginx import Nginx
from harness.otlp import Collector
from harness.retort import Inside, Retort, Service
from harness.services import Services, module_path
from harness.tls_origin import TlsOrigin
from masks import renamed

TOKENS = {"read": "r" * 32, "operate": "o" * 32, "admin": "a" * 32}
FORMATS = ("squid", "combined", "json", "squid_extended", "combined_extended")
OWN = '"%>a %>Hs %Ss %rm %ru %<st %mt \\"%{User-Agent}>h\\" %un %{Content-Type}<h"'
PAGE = "<!doctype html><html><head><title>page</title></head><body><p>" + "golden " * 300 + "</p></body></html>\n"

CONFIG = """
name = golden
take_over_socket = "{dir}/take-over.sock"
saved_settings = "{dir}/saved.conf"
connect_ports = {{ {nginx}, {tls} }}
listen "127.0.0.1:{secure}" {{ mode = forward  name = secure  certificates = "{certificate}"  local_destinations = allow }}
origins web {{ servers = {{ "http://127.0.0.1:{nginx} weight=2", "http://127.0.0.1:{closed} backup" }}  balance = round_robin  max_connections = 100 }}
origins fallen {{ servers = {{ "http://127.0.0.1:{closed}" }}  max_failures = 1  down_min = "1h"  down_max = "1h" }}
origins upper {{ servers = {{ "http://127.0.0.1:{nginx}" }}  balance = consistent_hash }}
url_class pages {{ path_regex = '\\.html$' }}
url_class typed {{ content_type = "image/*" }}
url_class denied {{ domain = "denied.test" }}
url_class members {{ path_regex = '^/members/' }}
url_class elsewhere {{ domain = "elsewhere.test" }}
url_class old {{ path_regex = '^/old/' }}
url_class inside_pages {{ path_regex = '^/inside/' }}
url_class banks {{ domain = "bank.test" }}
authenticator staff {{ type = basic  file = "{users}"  realm = "Staff" }}
authentication {{ attempts = 5 }}
access denied {{ action = deny  status = 451 }}
access members {{ action = authenticate  with = staff }}
access elsewhere {{ action = allow  log_only = true }}
access all {{ action = allow }}
policy typed {{ ttl = "1h" }}
policy pages {{ query_drop = {{ "utm_*" }}  negative_ttl = "1m" }}
parent elsewhere {{ origins = upper }}
forwarding {{ forwarded = append }}
request_headers all {{ set = "X-Golden: yes"  remove = "Referer" }}
response_headers pages {{ set = "X-Content-Type-Options: nosniff" }}
rewrite old {{ match = '^(http://[^/]*)/old/(.*)'  to = "$1/$2" }}
error_page denied {{ status = 451  file = "{denied}" }}
pac {{ proxy = "PROXY proxy.test:3128"  direct = "corp.test" }}
authority {{ certificate = "{authority}"  key = "{authority_key}" }}
intercept banks {{ action = splice }}
intercept all {{ action = bump }}
interception {{ refusals = 3 }}
limit all {{ requests = "1000/s"  burst = 1000 }}
limit banks {{ by = user  concurrent = 20 }}
limits {{ entries = 1000 }}
tracing {{ collector = "http://{collector}/v1/traces"  sample = 1  service_name = "golden" }}
icap_log "{dir}/icap.log" {{ format = icap_squid }}
icap_log "{dir}/icap-own.log" {{ format = "{icap_own}" }}
"""


def sha(user, password):
    return f"{user}:{{SHA}}" + base64.b64encode(hashlib.sha1(password.encode()).digest()).decode() + "\n"


class Site:
    def __init__(self, lab):
        self.lab = lab
        self.names = []
        self.root = Authority(lab, "root")
        self.authority = Authority(lab, "authority", path_length=0)
        self.nginx = Nginx(lab, self.content(), extra="etag off;")
        self.resolver = NameServer(lab)
        for name in ("site.test", "denied.test", "elsewhere.test"):
            self.resolver.set(name, "127.0.0.1", ttl=3600)
        self.tls = TlsOrigin(lab, self.root.leaf("shop.test", "127.0.0.1"))
        self.collector = Collector(lab)
        self.closed, self.secure = ports.take(), ports.take()
        self.services = Services(lab, host="icap", names=("gray", "inject"))
        self.proxy = self.start()
        self.page, self.picture = self.nginx.url("/page.html"), self.nginx.url("/picture.png")
        self.name_ports()

    def content(self):
        root = self.lab.path("root")
        os.makedirs(os.path.join(root, "members"))
        for name in ("page.html", "a.html", "b.html", "c.html", "members/page.html", "site.txt"):
            self.lab.write(os.path.join("root", name), PAGE.replace("page", name) if name != "page.html" else PAGE)
        self.lab.write("root/picture.png", base64.b64decode(
            "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="))
        for folder, _, files in os.walk(root):
            for file in files:
                os.utime(os.path.join(folder, file), (1700000000, 1700000000))
        return root

    def start(self):
        lab = self.lab
        os.makedirs(lab.path("volume"))
        os.chmod(lab.write("users", sha("anna", "secret")), 0o600)
        config = CONFIG.format(
            dir=lab.directory, nginx=self.nginx.port, tls=self.tls.port, secure=self.secure, closed=self.closed, collector=self.collector.authority,
            certificate=self.root.leaf("proxy.test").both, users=lab.path("users"), authority=self.authority.file,
            authority_key=self.authority.key, denied=lab.write("denied.html", "<h1>denied</h1>\n"), icap_own="%retort::service %retort::verdict %icap::Hs %icap::rm %icap::ru %ru")
        config += "".join(f'access_log "{lab.path(name)}.log" {{ format = {name} }}\n' for name in FORMATS)
        config += f'access_log "{lab.path("own")}.log" {{ format = {OWN}  class = pages }}\n'
        proxy_options = {
            "services": [*self.services.for_proxy(),
                         Service("away", f"icap://127.0.0.1:{self.closed}/away", failures_down=1, down_min="1h", down_max="1h"),
                         Inside("gzip_inside", module_path(lab, "gzip", ""), timeout="20s")],
            "adapt": {"pages": ["inject", "away"], "typed": ["gray"], "inside_pages": ["gzip_inside"]},
            "reverse": {"/": "web", "/fallen/": "fallen/"},
            "cache": {"memory": "32MB", "disk": {lab.path("volume") + "/retort.cache": {"size": "32MB"}}},
            "origin": {"ca_file": self.root.file, "dns_servers": [self.resolver.address], "dns_search": "none", "hosts_file": "none", "dns_ipv6": False},
            "admin_options": {"token_file": lab.path("retort.tokens"), "audit_log": lab.path("audit.log")},
            "client": {"idle_timeout": "60s"}, "extra": config,
        }
        with open(os.open(lab.path("retort.tokens"), os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as tokens:
            tokens.write("".join(f"{role} {role} {token}\n" for role, token in TOKENS.items()))
        return Retort(lab, **proxy_options)

    def name_ports(self):
        ports_of = {"NGINX": self.nginx.port, "FPORT": self.proxy.forward[1], "RPORT": self.proxy.reverse[1], "SPORT": self.secure,
                    "NAMES": self.resolver.port, "TLSPO": self.tls.port, "COLLE": self.collector.port, "CLOSE": self.closed,
                    "ICAPP": self.services.outside.port}
        self.names += [(str(port), name) for name, port in ports_of.items()]

    def get(self, url, *, status=200, headers=None, count=1):
        """By HTTP/1.0, so that no answer is in chunks, of which there are now more and now fewer."""
        for _ in range(count):
            fields = {"User-Agent": "golden", **({"Host": "localhost"} if url[0] == "/" else {}), **(headers or {})}
            equal(self.proxy.get(url, fields, version="1.0").status, status, url)

    def named(self, text):
        return renamed(text, self.names)

    def requests(self):
        """The same for each run, one behind another."""
        until(lambda: [one["state"] for one in self.proxy.status()["icap_services"] if one["name"] != "away"] == ["up"] * 3, 20, "services are up")
        self.get(self.page, count=2)
        self.get(self.picture, count=2)
        self.get(self.nginx.url("/old/a.html"), headers={"Referer": "http://from.test/"})
        self.get(self.nginx.url("/absent.html"), status=404)
        self.get(self.nginx.url("/members/page.html"), status=407)
        self.get(self.nginx.url("/members/page.html"), headers={"Proxy-Authorization": "Basic " + base64.b64encode(b"anna:secret").decode()})
        self.get(f"http://site.test:{self.nginx.port}/b.html?utm_source=x")
        self.get("http://denied.test/", status=451)
        self.get("http://elsewhere.test/c.html")
        self.get("http://unknown.test/", status=502)
        self.get(f"http://127.0.0.1:{self.closed}/", status=502)
        self.get("/site.txt", headers={"Cache-Control": "no-store"}, count=2)
        self.get("/fallen/x", status=502, count=2)
        with self.proxy.wire() as tunnel:
            tunnel.send(wire.request("CONNECT", f"127.0.0.1:{self.nginx.port}", host=self.nginx.authority))
            equal(tunnel.response("CONNECT").status, 200, "CONNECT")
            tunnel.send(b"no TLS")
            tunnel.at_end(10)
        self.refuse_certificate()
        self.proxy.log(18)

    def refuse_certificate(self):
        """A client that knows nothing of the proxy's authority."""
        with self.proxy.wire() as tunnel:
            tunnel.send(wire.request("CONNECT", f"127.0.0.1:{self.tls.port}", host=f"127.0.0.1:{self.tls.port}"))
            equal(tunnel.response("CONNECT").status, 200, "CONNECT")
            try:
                ssl.create_default_context().wrap_socket(tunnel.socket, server_hostname="shop.test")
            except ssl.SSLError:
                pass

    def ctl(self, *words, given=None, where=None, token=None, extra=()):
        done = subprocess.run([self.lab.built("proxy/retortctl"), "-s", where or self.proxy.admin_listen(), "-H", self.services.helperd.socket,
                               *extra, *words], capture_output=True, text=True, timeout=60 * self.lab.patience, check=False, input=given,
                              cwd=self.lab.directory, env={**os.environ, **self.lab.environment(), "RETORT_TOKEN": token or ""})
        return done
