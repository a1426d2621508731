"""A c-icap on the load's core with the services that the cases ask for.

    echo      c-icap's own srv_echo: answers with 200 and with 204 in turn, preview of 1024 bytes
    adremover ours: looks at each request, with EasyList
    gzip      ours: 204 in the preview to what it does not compress; a changed head where the client
              does not take it; else a smaller body
    inject    ours: a line inserted into pages, with the help of a helper process
"""

from harness.cicap import Cicap, Module
from harness.helperd import Helperd
from harness.services import module_path

HELPERD = """
socket = "{{socket}}"
pool text {{ command = {{ "{text}", "--file", "{texts}" }}  processes = 1  nice = 0  queue = 256  deadline = "5s" }}
"""
INJECTED = '<meta name="bench">'


class IcapServer:
    def __init__(self, lab, threads=250):
        texts = lab.write("texts.txt", f"default\t{INJECTED}\n")
        self.helperd = Helperd(lab, HELPERD.format(text=lab.built("icap-services/text-helper"), texts=texts))
        modules = [Module("echo", "srv_echo.so"), Module("gzip", module_path(lab, "gzip")),
                   Module("adremover", module_path(lab, "adremover"), f"adremover.List {lab.data('lists/easylist.txt')}"),
                   Module("inject", module_path(lab, "inject"), f"inject.Helperd {self.helperd.socket}\ninject.Scope shared")]
        self.cicap = Cicap(lab, modules, threads=threads, access_log=False)

    def uri(self, service):
        return self.cicap.uri(service)

    def section(self, service, point="respmod_precache"):
        """The icap_service section of Retort's configuration, called s."""
        return (f'icap_service s {{ uri = "{self.uri(service)}"  point = {point}  bypass = false  timeout = "5s"  '
                f'preview = "1KB"  max_connections = 64 }}\n')

    def stop(self):
        self.cicap.kill()  # it takes its time otherwise, and is not what is tested
        self.helperd.stop()
