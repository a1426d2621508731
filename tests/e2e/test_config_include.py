"""Configuration files that include others: read in their order, checked and reloaded as one."""

import json
import os

from harness.checks import contains, equal, lacks, true
from harness.retort import Retort, run_check
from harness.suite import memcheck

LISTEN = 'listen "127.0.0.1:3128" { mode = forward }\n'


def write_parts(lab, parts):
    os.makedirs(lab.path("parts.d"), exist_ok=True)
    for name, text in parts.items():
        lab.write(f"parts.d/{name}", text)


@memcheck
def test_included_files_are_in_use(lab):
    """By a start, by a reload, in what retortctl settings shows; a file that is gone is gone."""
    write_parts(lab, {"10-name.conf": "name = one\n", "20-class.conf": "url_class a { host = a }\n", ".hidden.conf": "}", "notes.txt": "}"})
    proxy = Retort(lab, extra=f'include = "{lab.path("parts.d")}/*.conf"\n')
    url = "http://127.0.0.1:1/"
    contains(proxy.get(url).text(), "one", "error page")
    write_parts(lab, {"10-name.conf": "name = two\n"})
    equal(proxy.reload().status, 200, "reload")
    contains(proxy.get(url).text(), "two", "error page behind the reload")
    write_parts(lab, {"30-more.conf": "name = three\n"})
    answer = proxy.reload()
    equal(answer.status, 409, "reload")
    contains(json.loads(answer.text())["error"], f"{lab.path('parts.d')}/30-more.conf:1: name is set twice; the first one is in {lab.path('parts.d')}/10-name.conf:1",
             "its reason")
    contains(proxy.get(url).text(), "two", "error page behind the refusal")
    os.remove(lab.path("parts.d/30-more.conf"))
    os.remove(lab.path("parts.d/10-name.conf"))
    equal(proxy.reload().status, 200, "reload")
    lacks(proxy.get(url).text(), "two", "error page of the default name")
    settings = json.loads(proxy.admin("GET", "/settings").text())
    equal([os.path.basename(path) for path in settings["files"]], [os.path.basename(proxy.config_path), "20-class.conf"], "files")


def test_secrets_of_included_files(lab):
    """A warning names the file with the secret that everybody may read, not the one around it."""
    write_parts(lab, {"up.conf": 'origins up { servers = "http://127.0.0.1:1"  credentials = "user:secret" }\nparent all { origins = up }\n'})
    path = lab.write("main.conf", LISTEN + 'include = "parts.d/*.conf"\n')
    os.chmod(path, 0o600)
    for mode, told in ((0o644, True), (0o640, False)):
        os.chmod(lab.path("parts.d/up.conf"), mode)
        status, said = run_check(lab, path, "-T")
        equal((status, "parts.d/up.conf:1: credentials is a secret" in said, "user:secret" in said), (0, told, False), said)


def test_a_directory_that_can_not_be_read(lab):
    """Its files may say what is forbidden, so that nothing is in use without them."""
    write_parts(lab, {"a.conf": ""})
    path = lab.write("main.conf", LISTEN + 'include = "parts.d/*.conf"\n')
    os.chmod(lab.path("parts.d"), 0)
    try:
        status, said = run_check(lab, path, "-T")
        true(os.geteuid() == 0 or (status > 0 and "a directory can not be read: Permission denied" in said), said)
    finally:
        os.chmod(lab.path("parts.d"), 0o700)
