"""The four services as a whole: helperd with its pools, and a host of our modules: c-icap, or the proxy itself.

The host is what `host` says: "icap", "inside", or by default what the environment variable RETORT_HOST says, "icap" without it.

    services = Services(lab)
    proxy = Retort(lab, services=services.for_proxy(), adapt={"all": ["adremover", "gray", "inject", "gzip"]})
"""

import glob
import os

from .checks import Skip
from .cicap import Cicap, Module
from .helperd import Helperd
from .retort import Inside, Service

HELPERD = """
socket = "{{socket}}"
pool gray {{ command = {{ "{gray}" }}  processes = {gray_processes}  nice = 10  queue = 16  deadline = "{deadline}"  {gray_more} }}
pool text {{ command = {{ "{text}", "--file", "{texts}"{text_more} }}  processes = 1  nice = 5  queue = 16  deadline = "{deadline}" }}
"""

INJECTED = '<meta name="retort-test" content="%{ip}">'
ADS = """! What the tests take for ads
||ads.example^
||127.0.0.1^*/ads/
/banner/*/img^
-ad-300x250.
@@||127.0.0.1^*/ads/allowed
"""


class Services:
    """`scope` is inject's: "shared" lets its pages be cached for all, "client" does not."""

    def __init__(self, lab, *, scope="shared", gray_processes=2, gray_more="", text_more="", deadline=None,
                 children=1, threads=30, ads=ADS, text=INJECTED, gray="", adremover="", host=None, names=("adremover", "gray", "inject", "gzip")):
        self.lab = lab
        deadline = deadline or f"{8 * lab.patience}s"
        gray = gray or f"gray.Deadline {10 * lab.patience}s"
        texts = lab.write(lab.unique("texts.txt"), f"default\t{text}\n")
        self.helperd = Helperd(lab, HELPERD.format(
            gray=lab.built("icap-services/gray-helper"), text=lab.built("icap-services/text-helper"),
            texts=texts, gray_processes=gray_processes, gray_more=gray_more, text_more=text_more, deadline=deadline))
        ads_path = ads if isinstance(ads, str) and ads.startswith("/") else lab.write(lab.unique("ads.txt"), ads)
        options = {
            "adremover": f"adremover.List {ads_path}\n{adremover}",
            "gray": f"gray.Helperd {self.helperd.socket}\n{gray}",
            "inject": f"inject.Helperd {self.helperd.socket}\ninject.Scope {scope}",
            "gzip": "",
        }
        self.host = host or os.environ.get("RETORT_HOST", "icap")
        self.names, self.directives, self.outside = names, options, None
        if self.host == "icap":
            modules = [Module(name, module_path(lab, name), options[name]) for name in names]
            self.outside = Cicap(lab, modules, children=children, threads=threads, memcheck=True)

    @property
    def cicap(self):
        """For what only c-icap has: its logs, its children, other clients of it."""
        if self.outside is None:
            raise Skip("this is about c-icap, and the services run inside the proxy")
        return self.outside

    def count(self):
        """How many messages c-icap has been asked about; 0 where the services are inside: the proxy's log tells the same."""
        return self.outside.wait_entries(1) and self.outside.count() if self.outside else 0

    def for_proxy(self, **options):
        """The icap_service or service sections."""
        return [self._section(name, "reqmod_precache" if name == "adremover" else "respmod_precache", {"timeout": "20s", **options})
                for name in self.names]

    def _section(self, name, point, options):
        if self.outside:
            arguments = options.pop("arguments", "")
            return Service(name, self.outside.uri(name) + (arguments and "?" + arguments), point, **options)
        return Inside(name, module_path(self.lab, name, ""), point, settings=settings_of(name, self.directives[name]), **options)


def settings_of(name, directives):
    """The settings of a service section that c-icap's directives stand for. OptionsTTL is c-icap's own."""
    settings = {}
    for line in directives.splitlines():
        option, _, value = line.strip().partition(" ")
        if option and not option.endswith(".OptionsTTL"):
            settings.setdefault(option.removeprefix(name + "."), []).append(value.strip().strip('"'))
    return settings


def module_path(lab, name, prefix="srv_"):
    """Where the build tree keeps a service's module."""
    for pattern in (f"icap-services/.libs/{prefix}{name}.so", f"icap-services/{prefix}{name}.so"):
        found = glob.glob(os.path.join(lab.builddir, pattern))
        if found:
            return found[0]
    raise AssertionError(f"no module {prefix}{name}.so in {lab.builddir}/icap-services")
