"""The four services as a whole: helperd with its pools, and c-icap with our modules.

    services = Services(lab)
    proxy = Retort(lab, services=services.for_proxy(), adapt={"all": ["adremover", "gray", "inject", "gzip"]})
"""

import glob
import os

from .cicap import Cicap, Module
from .helperd import Helperd
from .retort import Service

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
                 children=1, threads=30, ads=ADS, text=INJECTED, gray="", adremover="", names=("adremover", "gray", "inject", "gzip")):
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
        modules = [Module(name, module_path(lab, name), options[name]) for name in names]
        self.cicap = Cicap(lab, modules, children=children, threads=threads, memcheck=True)

    def for_proxy(self, **options):
        """The icap_service sections."""
        return [Service(module.name, self.cicap.uri(module.name),
                        "reqmod_precache" if module.name == "adremover" else "respmod_precache",
                        **{"timeout": "20s", **options}) for module in self.cicap.modules]


def module_path(lab, name):
    """Where the build tree keeps a service's module."""
    for pattern in (f"icap-services/.libs/srv_{name}.so", f"icap-services/srv_{name}.so",
                    f"icap-services/{name}/.libs/srv_{name}.so"):
        found = glob.glob(os.path.join(lab.builddir, pattern))
        if found:
            return found[0]
    raise AssertionError(f"no module srv_{name}.so in {lab.builddir}/icap-services")
