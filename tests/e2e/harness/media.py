"""Judges images by decoding them with libjpeg's and netpbm's programs, and GIFs by their structure."""

import subprocess

from . import checks


def run(command, data):
    done = subprocess.run(command, input=data, capture_output=True, timeout=60, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(command)} refused the image: {done.stderr.decode('utf-8', 'replace')[:300]}")
    return done.stdout


def jpeg_pixels(data, gray=False):
    return run(["djpeg", "-pnm"] + (["-grayscale"] if gray else []), data)


def gif_pixels(data):
    return run(["giftopnm", "-image=all", "-quiet"], data)


def png_pixels(data):
    return run(["pngtopnm", "-quiet"], data)


def is_gray_pnm(pnm):
    """Portable graymaps and bitmaps have one value a pixel; a pixmap may still hold only grays."""
    if pnm[:2] in (b"P5", b"P4"):
        return True
    magic, width, height, maximum, pixels = split_pnm(pnm)
    checks.equal(magic, b"P6", "magic of the decoded image")
    step = 2 if maximum > 255 else 1
    size = width * height * step * 3
    pixels = pixels[:size]
    if step == 1:
        return pixels[0::3] == pixels[1::3] == pixels[2::3]
    return all(pixels[i:i + 2] == pixels[i + 2:i + 4] == pixels[i + 4:i + 6] for i in range(0, len(pixels), 6))


def split_pnm(pnm):
    """(magic, width, height, maximum, pixels)"""
    fields, at = [], 0
    while len(fields) < 4:
        while pnm[at:at + 1].isspace():
            at += 1
        if pnm[at:at + 1] == b"#":
            at = pnm.index(b"\n", at) + 1
            continue
        start = at
        while not pnm[at:at + 1].isspace():
            at += 1
        fields.append(pnm[start:at])
    return fields[0], int(fields[1]), int(fields[2]), int(fields[3]), pnm[at + 1:]


class Gif:
    """Frames, colour tables and flags of a GIF, read from its blocks."""

    def __init__(self, data):
        checks.one_of(data[:6], (b"GIF87a", b"GIF89a"), "GIF signature")
        self.width, self.height = int.from_bytes(data[6:8], "little"), int.from_bytes(data[8:10], "little")
        self.tables, self.frames, self.delays, self.transparent = [], [], [], []
        self.loop = None
        at = self._table(data, 13, data[10])
        while data[at] != 0x3B:
            if data[at] == 0x21:
                at = self._extension(data, at)
            else:
                checks.equal(data[at], 0x2C, "GIF block")
                at = self._image(data, at)

    def _table(self, data, at, flags):
        if not flags & 0x80:
            return at
        length = 3 * (2 << (flags & 7))
        self.tables.append(data[at:at + length])
        return at + length

    def _extension(self, data, at):
        label, at = data[at + 1], at + 2
        first = data[at + 1:at + 1 + data[at]]
        if label == 0xF9:
            self.delays.append(int.from_bytes(first[1:3], "little"))
            self.transparent.append(first[3] if first[0] & 1 else None)
        if label == 0xFF and first == b"NETSCAPE2.0":
            self.loop = bytes(data[at + 12:at + 16])
        return self._skip(data, at)[0]

    def _image(self, data, at):
        geometry, flags = data[at + 1:at + 9], data[at + 9]
        at = self._table(data, at + 10, flags)
        end, length = self._skip(data, at + 1)
        self.frames.append((bytes(geometry), bool(flags & 0x40), length, bytes(data[at:end])))
        return end

    @staticmethod
    def _skip(data, at):
        length = 0
        while data[at]:
            length += data[at]
            at += data[at] + 1
        return at + 1, length

    def is_gray(self):
        return all(table[0::3] == table[1::3] == table[2::3] for table in self.tables)

    def shape(self):
        """All that must survive when only colours change."""
        return (self.width, self.height, self.frames, self.delays, self.transparent, self.loop,
                [len(table) for table in self.tables])


def grays_of(table):
    """A colour table's luminance by ITU-R BT.601, the weights of JPEG."""
    return [(19595 * table[i] + 38470 * table[i + 1] + 7471 * table[i + 2] + 32768) >> 16
            for i in range(0, len(table), 3)]
