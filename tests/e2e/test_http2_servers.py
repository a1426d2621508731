"""HTTP/2 toward origins that others wrote: nginx, nghttpd and h2o."""

import os
import shutil

from harness import ports
from harness.certificates import Authority
from harness.checks import Skip, equal, same_bytes, true, until
from harness.http2_origin import at_once
from harness.nginx import Nginx
from harness.process import Process
from harness.raw_origin import pattern
from harness.retort import Retort

LARGE = 5_000_000
SIZES = (0, 1, 100, 16384, 70_000, LARGE)


def share(lab):
    authority = Authority(lab)
    root = lab.path("content")
    os.makedirs(root)
    for size in SIZES:
        with open(os.path.join(root, f"{size}.bin"), "wb") as out:
            out.write(pattern(size))
    os.chmod(root, 0o755)
    return {"leaf": authority.leaf("127.0.0.1", "localhost"), "ca": {"ca_file": authority.file}, "root": root}


def program(name, package):
    path = shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin")
    if path is None:
        raise Skip(f"{name} is missing: apt-get install {package}")
    return path


def nginx(lab, shared, extra=""):
    leaf = shared["leaf"]
    return Nginx(lab, shared["root"], tls=" ssl http2", extra=f"ssl_certificate {leaf.file}; ssl_certificate_key {leaf.key}; {extra}")


def nghttpd(lab, shared, *options, tls=True):
    port = ports.take()
    command = [program("nghttpd", "nghttp2-server"), "-a", "127.0.0.1", "-d", shared["root"], *options]
    command += [str(port), shared["leaf"].key, shared["leaf"].file] if tls else ["--no-tls", str(port)]
    process = Process(lab, lab.unique("nghttpd"), command, expected_status=-15)
    lab.opens(process)
    process.wait_listening(("127.0.0.1", port))
    return port


def h2o(lab, shared):
    port = ports.take()
    config = lab.write(lab.unique("h2o") + ".conf", f"""
num-threads: 1
listen: {{ host: 127.0.0.1, port: {port}, ssl: {{ certificate-file: {shared["leaf"].file}, key-file: {shared["leaf"].key} }} }}
hosts: {{ default: {{ paths: {{ "/": {{ file.dir: {shared["root"]} }} }} }} }}
""")
    process = Process(lab, lab.unique("h2o"), [program("h2o", "h2o"), "-c", config])
    lab.opens(process)
    process.wait_listening(("127.0.0.1", port))
    return port


def before(lab, shared, port, tls=True, **options):
    origin = {**(shared["ca"] if tls else {"http2": "on"}), **options}
    return Retort(lab, reverse={"/": f"{'https' if tls else 'http'}://127.0.0.1:{port}/"}, origin=origin)


def check_files(proxy):
    """Files of all sizes, in turn and at the same time, fetched from the origin and from the cache."""
    for size in SIZES:
        for _ in range(2):
            same_bytes(proxy.get(f"/{size}.bin").body, pattern(size), f"{size} bytes")

    def fetch(index):
        size = SIZES[index % (len(SIZES) - 1)]
        return proxy.get(f"/{size}.bin?{index}").body == pattern(size)
    equal(at_once(60, fetch), [True] * 60, "files at the same time")
    equal(proxy.counter("origin_requests"), proxy.counter("origin_http2_requests"), "all by HTTP/2")
    equal(proxy.counter("origin_failures"), 0, "failures")


def test_nginx(lab, shared):
    proxy = before(lab, shared, nginx(lab, shared).port)
    check_files(proxy)
    equal(proxy.counter("origin_http2_connections"), 1, "connections")


def test_nghttpd(lab, shared):
    for tls in (True, False):
        proxy = before(lab, shared, nghttpd(lab, shared, tls=tls), tls)
        check_files(proxy)
        equal(proxy.counter("origin_http2_connections"), 1, "connections")


def test_h2o(lab, shared):
    check_files(before(lab, shared, h2o(lab, shared)))


def test_few_streams_at_a_time(lab, shared):
    proxy = before(lab, shared, nghttpd(lab, shared, "-m", "2"), http2_connections=3)
    check_files(proxy)
    true(proxy.counter("origin_http2_connections") <= 3, "connections")
    equal(proxy.counter("origin_http2_refused"), 0, "requests beyond what the server allows")


def test_uploads(lab, shared):
    proxy = before(lab, shared, nghttpd(lab, shared, "--echo-upload"))

    def upload(index):
        body = pattern(LARGE // 10 * (index % 3) + index)
        return proxy.fetch("POST", "/up", body=body, timeout=60).body == body
    equal(at_once(12, upload), [True] * 12, "uploads come back")


def logged(server):
    with open(server.access_log, encoding="ascii") as lines:
        return sum("/100.bin" in line for line in lines)


def test_a_server_that_ends_connections(lab, shared):
    """nginx says GOAWAY behind so many requests: no request is lost, and each is asked once."""
    server = nginx(lab, shared, "keepalive_requests 7;")
    proxy = before(lab, shared, server.port)
    asked = 0
    for _ in range(5):
        equal(set(at_once(40, lambda index: proxy.get(f"/100.bin?{index}", {"Cache-Control": "no-cache"}).status)),
              {200}, "statuses")
        asked += 40
    until(lambda: logged(server) >= asked, 10 * lab.patience, "nginx to write its last line")
    equal(logged(server), asked, "requests at the server")
    true(proxy.counter("origin_http2_goaways") > 5, "connections ended")
