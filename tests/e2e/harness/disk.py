"""The file of a volume, read and damaged by tests; its layout stands in proxy/parts/disk/record.h.

    volume = DiskFile(path)
    at = volume.find(b"/own/7 - 3\\n")
    volume.flip(at)
"""

import os
import struct

HEADER = 8192  # bytes of the volume's
PURGES_AT = 40  # in the header of the volume: where the purges stand, and the size of each area
SEGMENTS_AT = 2 << 20
ALIGN = 512
SEAL_AT = 512
RECORDS_AT = 1024


class DiskFile:
    def __init__(self, path):
        self.path = path

    def size(self):
        return os.stat(self.path).st_size

    def read(self, at, length):
        with open(self.path, "rb") as file:
            return os.pread(file.fileno(), length, at)

    def write(self, at, data):
        fd = os.open(self.path, os.O_WRONLY)
        try:
            while data:
                done = os.pwrite(fd, data, at)
                data, at = data[done:], at + done
        finally:
            os.close(fd)

    def purges(self):
        """Where each of two areas and its twin begin."""
        at, size = struct.unpack("QQ", self.read(PURGES_AT, 16))
        return [at + number * size for number in range(4)]

    def flip(self, at, bit=4):
        byte = self.read(at, 1)[0]
        self.write(at, bytes([byte ^ (1 << bit)]))

    def find_all(self, text):
        """Every place where the bytes stand."""
        found, overlap = [], len(text) - 1
        step = 8 << 20
        for start in range(0, self.size(), step):
            piece = self.read(start, step + overlap)
            at = piece.find(text)
            while at >= 0:
                found.append(start + at)
                at = piece.find(text, at + 1)
        return found

    def find(self, text):
        """The last place where they stand."""
        found = self.find_all(text)
        if not found:
            raise AssertionError(f"{text!r} is not on {self.path}")
        return found[-1]

    def segment_size(self):
        return struct.unpack_from("<IIQQ", self.read(0, 64), 16)[3]

    def segments(self):
        """(offset, sequence) of every segment that was written to."""
        size, found = self.segment_size(), []
        for at in range(SEGMENTS_AT, self.size() - size + 1, size):
            magic, _, _, sequence = struct.unpack("<QQQQ", self.read(at, 32))
            if magic and sequence:
                found.append((at, sequence))
        return found

    def contents_at(self, segment):
        """Where a sealed segment has its table of contents, None when it isn't sealed."""
        seal = self.read(segment + SEAL_AT, 64)
        magic, _, _, sequence, at, _, _, count, _ = struct.unpack("<QQQQQQQII", seal)
        header = struct.unpack("<QQQQ", self.read(segment, 32))
        return segment + at if magic and sequence == header[3] and count else None

    def forget_pages(self):
        """Makes the kernel drop what it keeps of the file in memory."""
        fd = os.open(self.path, os.O_RDONLY)
        try:
            os.fdatasync(fd)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(fd)


def gauge(proxy, name):
    """What /status says of the disks: objects, writes, writes_dropped, errors, corrupt,
    segments_reclaimed."""
    return proxy.status()["disk"]["disk_" + name]


def volume_of(directory):
    """The file of the volume in a directory."""
    return DiskFile(os.path.join(directory, "retort.cache"))
