"""HAProxy as the load balancer in front of the proxy, or as a server behind it.

    balancer = HAProxy(lab, "send-proxy-v2", ("127.0.0.1", 3128))          tcp mode
    balancer.address
"""

import os
import shutil

from . import ports
from .checks import Skip
from .process import Process

CONFIG = """
global
    maxconn 200
defaults
    timeout connect 10s
    timeout client 30s
    timeout server 30s
frontend front
    mode {mode}
    bind 127.0.0.1:{port} {bind}
    {front}
    default_backend back
backend back
    mode {mode}
    {server}
"""


class HAProxy:
    def __init__(self, lab, option="", to=None, mode="tcp", bind="", front=""):
        if shutil.which("haproxy") is None:
            raise Skip("haproxy is not installed")
        self.port = ports.take()
        self.address = ("127.0.0.1", self.port)
        name = lab.unique("haproxy")
        server = f"server one {to[0]}:{to[1]} {option}" if to else ""
        config = lab.write(f"{name}.cfg", CONFIG.format(port=self.port, mode=mode, bind=bind, front=front, server=server))
        self.process = Process(lab, name, [shutil.which("haproxy"), "-db", "-f", config])
        lab.opens(self)
        self.process.wait_listening(self.address)

    def stop(self):
        self.process.stop()

    @staticmethod
    def findings():
        return []
