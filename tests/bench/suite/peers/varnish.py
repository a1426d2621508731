"""Varnish: malloc storage, its thread pools as they come, and nothing written to its log in memory."""

import os

from harness import ports

from ..server import Server
from .programs import there

VCL = """
vcl 4.1;
backend origin {{ .host = "127.0.0.1"; .port = "{origin}"; }}
"""

# Most of what a request leaves in the log in memory, which can not be switched off as a whole.
LOGGED = ("Begin End Link SessOpen SessClose Timestamp VCL_call VCL_return Hit ReqStart ReqMethod ReqURL ReqProtocol ReqHeader "
          "ReqUnset ReqAcct RespProtocol RespStatus RespHeader RespUnset RespReason BereqMethod BereqURL BereqProtocol "
          "BereqHeader BereqUnset BereqAcct BerespProtocol BerespStatus BerespHeader BerespReason BackendOpen BackendClose "
          "BackendReuse Fetch_Body Storage Length TTL Filters").split()


def start(bench, name="varnish"):
    there("varnishd")
    name, port = bench.lab.unique(name), ports.take()
    path = bench.lab.write(name + ".vcl", VCL.format(origin=bench.origin.port))
    command = ["varnishd", "-F", "-n", bench.lab.path(name), "-f", path, "-a", f"127.0.0.1:{port}", "-T", "none",
               "-s", "malloc,64m", "-p", "vsl_mask=" + ",".join("-" + tag for tag in LOGGED),
               "-p", "timeout_idle=600", "-p", "listen_depth=4096"]
    if os.getuid() != 0:
        command[1:1] = ["-j", "none"]
    return bench.opened(Server(bench.lab, "varnish", name, command, port))
