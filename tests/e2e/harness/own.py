"""Bodies that no other answer has (/own of the origin), and the check that a response is what it says.

    own = Own(origin)
    url = own.url("/own/7", n=5000)
    version = own.check("/own/7", 5000, proxy.get(url))

Every byte is told by the path, the request's X-Kind, the version and its place. A wrong byte, a part
taken for the whole, a head with another's body: all raise Wrong.
"""

import zlib

from . import wire
from .raw_origin import pattern

PATTERN = 65537


class Wrong(AssertionError):
    pass


class Own:
    def __init__(self, origin, largest=8 << 20):
        self.origin = origin
        self.text = pattern(PATTERN) * (largest // PATTERN + 3)

    def url(self, path, n, cc="max-age=36000", **arguments):
        return self.origin.url(path, n=n, cc=cc, **arguments)

    def version(self):
        """That of the newest answer there has been."""
        return int(wire.fetch(self.origin.address, "GET", "/version").body)

    def body(self, path, n, version, kind="-"):
        line = f"{path} {kind} {version}\n".encode()[:n]
        rotation = zlib.crc32(f"{path} {kind} {version}\n".encode()) % PATTERN
        return line + self.text[rotation + len(line):rotation + n]

    def check(self, path, n, response, kind="-"):
        """The version of a whole response (200)."""
        if response.status != 200:
            raise Wrong(f"{path}: status {response.status}: {response.body[:200]!r}")
        version = self.check_head(path, response)
        self.check_bytes(path, self.body(path, n, version, kind), response.body)
        return version

    def check_head(self, path, response):
        """The version by the head alone."""
        version = int(response.header("X-Origin-Count") or -1)
        if response.header("ETag") != f'"v-{version}"':
            raise Wrong(f"{path}: version {version} has the ETag {response.header('ETag')}")
        return version

    @staticmethod
    def check_bytes(path, expected, seen):
        if seen == expected:
            return
        shorter = min(len(seen), len(expected))
        at = next((i for i in range(shorter) if seen[i] != expected[i]), shorter)
        raise Wrong(f"{path}: {len(seen)} bytes of {len(expected)}, the first wrong one is {at}: "
                    f"{bytes(seen[at:at + 40])!r} instead of {bytes(expected[at:at + 40])!r}; "
                    f"it begins with {bytes(seen[:60])!r}")
