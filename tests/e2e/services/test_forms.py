"""Pictures in the forms that their kinds allow and hardly anybody uses: what comes out is right, or the original."""

import random
import struct
import zlib

from services.lab import helpers_only
from services.pictures import netpbm
from services.test_gray import by_hand
from services.test_shares import chunk

WIDTH, HEIGHT = 53, 31


def colours(seed=4):
    """Rows of pixels, each red, green, blue: neighbours that differ, so that rows in a wrong place are seen."""
    chance = random.Random(seed)
    return [[(chance.randrange(256), (x * 5) & 255, (y * 8) & 255) for x in range(WIDTH)] for y in range(HEIGHT)]


def luma(pixel):
    return (299 * pixel[0] + 587 * pixel[1] + 114 * pixel[2] + 500) // 1000


def padded(row, size=4):
    return row + bytes(-len(row) % size)


def scaled(value, mask):
    """A byte in the bits of a mask, and what is left of it."""
    shift = (mask & -mask).bit_length() - 1
    most = mask >> shift
    small = (value * most + 127) // 255 if most else 0
    return small << shift, (small * 255 + most // 2) // most if most else 0


def bmp(bits, header=40, compression=0, masks=(), from_above=False, palette=None, pixels=None, rows=None, gap=0):
    rows = rows if rows is not None else b"".join(padded(row) for row in (pixels if from_above else reversed(pixels)))
    height = -HEIGHT if from_above else HEIGHT
    behind = b"".join(struct.pack("<I", mask) for mask in masks)
    if header == 12:
        head = struct.pack("<IHHHH", 12, WIDTH, HEIGHT, 1, bits)
    elif header == 16:
        head = struct.pack("<IIIHH", 16, WIDTH, HEIGHT, 1, bits)
    else:
        head = struct.pack("<IiiHHIIiiII", header, WIDTH, height, 1, bits, compression, len(rows), 2835, 2835,
                           len(palette or ()), 0)
        if header > 40:
            head, behind = (head + behind + bytes(header))[:header], b""
    table = b"".join(bytes((blue, green, red) + (() if header == 12 else (0,))) for red, green, blue in palette or ())
    at = 14 + len(head) + len(behind) + len(table) + gap
    return b"BM" + struct.pack("<IHHI", at + len(rows), 0, 0, at) + head + behind + table + bytes(gap) + rows


def masked(pixels, bits, masks):
    """Rows in those masks, and the pixels as they are left by that."""
    rows, left = [], []
    for line in pixels:
        row, kept = b"", []
        for pixel in line:
            parts = [scaled(value, mask) for value, mask in zip(pixel + (255,), masks)]
            row += sum(part[0] for part in parts).to_bytes(bits // 8, "little")
            kept.append(tuple(part[1] for part in parts[:3]))
        rows.append(row)
        left.append(kept)
    return rows, left


def expect(lab, name, data, pixels, off_by=0):
    status, gray = by_hand(lab, data)
    assert status == 0 and gray != data, name
    shown = netpbm("bmptopnm", gray)
    kind, size, most, rest = shown.split(b"\n", 3)
    assert (kind, size, most) == (b"P5", b"%d %d" % (WIDTH, HEIGHT), b"255"), (name, shown[:20])
    wanted = bytes(luma(pixel) for row in pixels for pixel in row)
    far = max(abs(a - b) for a, b in zip(wanted, rest))
    assert len(rest) == len(wanted) and far <= off_by, (name, far)


@helpers_only
def test_bmp_with_masks(lab):
    """Of 16 and 32 bits, in any order, in headers of all sizes, from below and from above."""
    pixels = colours()
    five, six = (0x7c00, 0x3e0, 0x1f), (0xf800, 0x7e0, 0x1f)
    eight, other, wide = (0xff0000, 0xff00, 0xff), (0xff, 0xff00, 0xff0000), (0x3ff00000, 0xffc00, 0x3ff)
    high = (0xff000000, 0xff0000, 0xff00)
    for from_above in (False, True):
        for bits, masks in ((16, five), (16, six), (32, eight), (32, other), (32, wide), (32, high), (16, (0xf00, 0xf0, 0xf)),
                            (32, eight + (0xff000000,)), (16, five + (0x8000,))):
            rows, left = masked(pixels, bits, masks)
            for header in (40, 52, 56, 108, 124):
                if header < 56 and len(masks) == 4:
                    continue
                data = bmp(bits, header, 3, masks, from_above, pixels=rows)
                expect(lab, (bits, masks, header, from_above), data, left)
        rows, left = masked(pixels, 16, five)
        expect(lab, "555", bmp(16, from_above=from_above, pixels=rows), left)
        rows, left = masked(pixels, 32, eight)
        expect(lab, "xrgb", bmp(32, from_above=from_above, pixels=rows, gap=7), left)
        expect(lab, "rgb", bmp(24, from_above=from_above, pixels=[row_of(line) for line in pixels]), pixels)
    expect(lab, "OS/2", bmp(24, 12, pixels=[row_of(line) for line in pixels]), pixels)


def row_of(line):
    return b"".join(bytes((blue, green, red)) for red, green, blue in line)


@helpers_only
def test_bmp_with_palettes(lab):
    """Of 1, 4 and 8 bits, of OS/2 and of Windows, run-length coded: all but the palette stays."""
    chance = random.Random(9)
    for bits in (1, 4, 8):
        palette = [tuple(chance.randrange(256) for _ in range(3)) for _ in range(1 << bits)]
        indices = [[chance.randrange(1 << bits) for _ in range(WIDTH)] for _ in range(HEIGHT)]
        rows = [int("".join(format(i, "0%db" % bits) for i in line).ljust((WIDTH * bits + 7) // 8 * 8, "0"), 2).to_bytes(
            (WIDTH * bits + 7) // 8, "big") for line in indices]
        pixels = [[palette[i] for i in line] for line in indices]
        for header in (12, 16, 40, 64, 124):
            for from_above in (False, True)[:1 + (header in (40, 124))]:
                expect_palette(lab, bmp(bits, header, from_above=from_above, palette=palette, pixels=rows), pixels, header in (12, 16, 64))
    runs = b"".join(b"".join(bytes((1, i)) for i in line) + b"\0\0" for line in reversed(indices)) + b"\0\1"
    expect_palette(lab, bmp(8, 40, 1, palette=palette, rows=runs), pixels, True)


def expect_palette(lab, data, pixels, by_hand_alone):
    status, gray = by_hand(lab, data)
    changed = [i for i in range(len(data)) if gray[i] != data[i]]
    assert status == 0 and len(gray) == len(data) and changed and max(changed) < struct.unpack("<I", data[10:14])[0]
    assert by_hand(lab, gray) == (0, gray), "what is gray stays"
    if by_hand_alone:  # netpbm reads not all of these
        return
    shown = netpbm("bmptopnm | pamdepth 255 | pnmtopnm -plain", gray)
    values = [int(word) for word in shown.split()[4 if shown[:2] != b"P1" else 3:]]
    each = 3 if shown[:2] == b"P3" else 1
    wanted = [luma(pixel) for row in pixels for pixel in row]
    assert values[::each] == wanted, (values[:9], wanted[:9])


@helpers_only
def test_bmp_that_is_transparent(lab):
    """Keeps its alpha: each pixel is made gray in its place."""
    masks = (0xff0000, 0xff00, 0xff, 0xff000000)
    pixels = colours()
    rows = [b"".join(bytes((blue, green, red, (x * 3) & 255)) for x, (red, green, blue) in enumerate(line)) for line in pixels]
    data = bmp(32, 124, 3, masks, pixels=rows)
    status, gray = by_hand(lab, data)
    at = struct.unpack("<I", data[10:14])[0]
    assert status == 0 and gray[:at] == data[:at] and gray[at + 3::4] == data[at + 3::4]
    wanted = [luma(pixel) for line in reversed(pixels) for pixel in line]
    assert all(list(gray[at + i::4]) == wanted for i in range(3))


@helpers_only
def test_bmp_that_is_refused(lab):
    """Pictures of other kinds inside, masks that are none, and what is cut: the original goes out."""
    rows, _ = masked(colours(), 32, (0xff0000, 0xff00, 0xff))
    good = bmp(32, pixels=rows)
    for name, data in (("jpeg", bmp(0, 40, 4, rows=b"\xff\xd8\xff")), ("png", bmp(0, 40, 5, rows=b"\x89PNG")),
                       ("holes", bmp(32, 40, 3, (0xf0f000, 0xf00, 0xff), pixels=rows)), ("cut", good[:-1]), ("header", good[:40]),
                       ("bits", bmp(2, palette=[(1, 2, 3)] * 4, pixels=rows)), ("facsimile", bmp(32, 64, 3, pixels=rows)),
                       ("elsewhere", good[:10] + b"\xff\xff\xff\x7f" + good[14:])):
        assert by_hand(lab, data) == (1, b""), name


def tiff(pixels, bits=8, photometric=2, order="<", planar=1, following=0, **more):
    """One strip, or one for each sample; `more` are other tags by their numbers, as t274=6."""
    count = len(pixels[0][0])
    samples = order + {8: "B", 16: "H", 32: "I"}.get(bits, "B")
    planes = [range(count)] if planar == 1 else [[c] for c in range(count)]
    strips = [b"".join(struct.pack(samples, pixel[c]) for row in pixels for pixel in row for c in plane) for plane in planes]
    tags = {256: (3, [len(pixels[0])]), 257: (3, [len(pixels)]), 258: (3, [bits] * count), 259: (3, [1]), 262: (3, [photometric]),
            273: (4, strips), 277: (3, [count]), 278: (3, [len(pixels)]), 279: (4, [len(strip) for strip in strips]), 284: (3, [planar])}
    tags.update((int(name[1:]), (3, value if isinstance(value, list) else [value])) for name, value in more.items())
    at, directory, behind = 8 + 2 + 12 * len(tags) + 4, struct.pack(order + "H", len(tags)), b""
    tags[273] = (4, [at + sum(len(strip) for strip in strips[:i]) for i in range(len(strips))])
    behind = b"".join(strips)
    for tag, (kind, values) in sorted(tags.items()):
        raw = b"".join(struct.pack(order + ("H" if kind == 3 else "I"), value) for value in values)
        if len(raw) > 4:
            raw, behind = struct.pack(order + "I", at + len(behind)), behind + raw
        directory += struct.pack(order + "HHI", tag, kind, len(values)) + raw.ljust(4, b"\0")
    return (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "I", 8) + directory + struct.pack(order + "I", following) + behind


SHOWN = {1: lambda rows: rows, 2: lambda rows: [row[::-1] for row in rows], 3: lambda rows: [row[::-1] for row in rows[::-1]],
         4: lambda rows: rows[::-1]}


@helpers_only
def test_tiff_in_all_forms(lab):
    """Right, or the original goes out; a recipe of the operator's may do more."""
    pixels = colours()
    neutral = [[(pixel[0],) * 3 for pixel in row] for row in pixels]

    def wide(rows, factor=257):
        return [[tuple(value * factor for value in pixel) for pixel in row] for row in rows]

    cmyk = [[pixel + (x,) for x, pixel in enumerate(row)] for row in pixels]
    inks = [[tuple((255 - c) * (255 - pixel[3]) // 255 for c in pixel[:3]) for pixel in row] for row in cmyk]
    gray = [[pixel[:1] for pixel in row] for row in pixels]
    with_alpha = [[pixel + (128,) for pixel in row] for row in pixels]
    grays = [(v << 8 | v) & 0xffff for v in range(256)]
    for order in "<>":
        for name, data, shown in (
                ("rgb", tiff(pixels, order=order), pixels), ("rgb 16", tiff(wide(pixels), 16, order=order), pixels),
                ("planes", tiff(pixels, order=order, planar=2), pixels), ("planes 16", tiff(wide(pixels), 16, order=order, planar=2), pixels),
                ("gray", tiff(gray, photometric=1, order=order), neutral), ("gray 16", tiff(wide(gray), 16, 1, order), neutral),
                ("negative", tiff([[(255 - p[0],) for p in row] for row in gray], photometric=0, order=order), neutral),
                ("palette", tiff(gray, photometric=3, order=order, t320=grays + grays[::-1] + grays),
                 [[(p[0], 255 - p[0], p[0]) for p in row] for row in gray]),
                ("cmyk", tiff(cmyk, photometric=5, order=order), inks), ("cmyk planes", tiff(cmyk, photometric=5, order=order, planar=2), inks),
                *(("orientation %d" % o, tiff(pixels, order=order, t274=o), turn(pixels)) for o, turn in SHOWN.items())):
            status, got = by_hand(lab, data, arguments="larger")
            assert status == 0 and got != data, (order, name)
            kind, size, most, rest = netpbm("tifftopnm | pamdepth 255", got).split(b"\n", 3)
            assert (kind, size, most) == (b"P5", b"%d %d" % (WIDTH, HEIGHT), b"255"), (order, name)
            wanted = [luma(pixel) for row in shown for pixel in row]
            far = max(abs(a - b) for a, b in zip(wanted, rest))
            assert far <= 1, (order, name, far)
        for name, data in (
                *(("orientation %d" % o, tiff(pixels, order=order, t274=o)) for o in (5, 6, 7, 8, 9)),
                ("cmyk 16", tiff(wide(cmyk), 16, 5, order)), ("cmyk 16 planes", tiff(wide(cmyk), 16, 5, order, planar=2)),
                ("alpha", tiff(with_alpha, order=order, t338=2)), ("premultiplied", tiff(with_alpha, order=order, t338=1)),
                ("32 bits", tiff(wide(pixels, 0x1010101), 32, order=order)), ("float", tiff(gray, 32, 1, order, t339=3)),
                ("signed", tiff(gray, photometric=1, order=order, t339=2)), ("lab", tiff(pixels, photometric=8, order=order)),
                ("ycbcr", tiff(pixels, photometric=6, order=order)), ("other inks", tiff(cmyk, photometric=5, order=order, t332=2)),
                ("bits the other way", tiff(gray, photometric=1, order=order, t266=2)), ("sizes", tiff(pixels, order=order, t258=[8, 8, 16])),
                ("two pages", tiff(pixels, order=order, following=8)), ("cut", tiff(pixels, order=order)[:60]), ("nothing", b"II*\0")):
            assert by_hand(lab, data, arguments="larger") == (1, b""), (order, name)
    turned = tiff(pixels, t274=6)
    assert by_hand(lab, turned, "--recipe", "image/tiff=cat", arguments="larger") == (0, turned)


SIGNATURE = b"\x89PNG\r\n\x1a\n"


def png_pixels(rows, depth):
    return zlib.compress(b"".join(b"\0" + b"".join(struct.pack(">B" if depth == 8 else ">H", value) for pixel in row for value in pixel)
                                  for row in rows))


def apng(frames, depth=8, more=b"", hidden=False):
    """Each frame: left, top, rows of pixels. `hidden`: the picture for those who know no animations is none of them."""
    width, height, channels = len(frames[0][2][0]), len(frames[0][2]), len(frames[0][2][0][0])
    data = SIGNATURE + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, {3: 2, 4: 6}[channels], 0, 0, 0))
    data += chunk(b"acTL", struct.pack(">II", len(frames), 3)) + more
    if hidden:
        data += chunk(b"IDAT", png_pixels(frames[0][2], depth))
    sequence = 0
    for number, (left, top, rows) in enumerate(frames):
        data += chunk(b"fcTL", struct.pack(">IIIIIHHBB", sequence, len(rows[0]), len(rows), left, top, 4 + number, 100, number % 3, number % 2))
        sequence += 1
        pixels = png_pixels(rows, depth)
        for piece in (pixels[:len(pixels) // 2], pixels[len(pixels) // 2:]):
            first = number == 0 and not hidden
            data += chunk(b"IDAT" if first else b"fdAT", (b"" if first else struct.pack(">I", sequence)) + piece)
            sequence += not first
    return data + chunk(b"tEXt", b"Comment\0hello") + chunk(b"IEND", b"")


def chunks_of(data):
    """Names and contents; checksums and lengths are right."""
    assert data[:8] == SIGNATURE
    at = 8
    while at < len(data):
        length, name = struct.unpack(">I4s", data[at:at + 8])
        content = data[at + 8:at + 8 + length]
        assert chunk(name, content) == data[at:at + 12 + length], name
        yield name, content
        at += 12 + length


def frames_of(data):
    """Of each frame its fcTL without the number, and a PNG of its own; sequence numbers go up by one."""
    sequence, control, pixels, header, more = 0, None, b"", b"", b""
    for name, content in chunks_of(data):
        if name in (b"fcTL", b"fdAT"):
            assert struct.unpack(">I", content[:4])[0] == sequence, sequence
            sequence += 1
        if name == b"IHDR":
            header = content
        elif name in (b"tRNS", b"gAMA"):
            more += chunk(name, content)
        elif name in (b"fcTL", b"IEND"):
            if pixels:
                size = header[:8] if control is None else control[:8]
                yield control, SIGNATURE + chunk(b"IHDR", size + header[8:]) + more + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
            control, pixels = content[4:], b""
        elif name == b"IDAT":
            pixels += content
        elif name == b"fdAT":
            pixels += content[4:]


@helpers_only
def test_animated_png_becomes_gray(lab):
    """Frame by frame, with places, times and ways to go, for those who know animations and those who do not."""
    whole, part = colours(1), [row[5:30] for row in colours(2)[3:20]]
    clear = [[pixel + ((x * 4) & 255,) for x, pixel in enumerate(row)] for row in whole]
    for name, data in (
            ("rgb", apng([(0, 0, whole), (7, 2, part), (0, 0, colours(3))])), ("hidden", apng([(0, 0, whole), (1, 1, part)], hidden=True)),
            ("rgba", apng([(0, 0, clear), (3, 4, [row[:9] for row in clear[:9]])])), ("one", apng([(0, 0, whole)])),
            ("16 bits", apng([(0, 0, [[tuple(v * 257 for v in p) for p in row] for row in whole])] * 2, depth=16)),
            ("a colour that is transparent", apng([(0, 0, whole), (7, 2, part)], more=chunk(b"tRNS", struct.pack(">HHH", *whole[0][0])))),
            ("gamma", apng([(0, 0, whole), (7, 2, part)], more=chunk(b"gAMA", struct.pack(">I", 100000))))):
        status, gray = by_hand(lab, data, arguments="larger")
        assert status == 0 and gray != data, name
        before, after = list(frames_of(data)), list(frames_of(gray))
        assert [control for control, _ in before] == [control for control, _ in after], name
        assert (chunk(b"tEXt", b"Comment\0hello") in gray) and dict(chunks_of(gray))[b"acTL"] == dict(chunks_of(data))[b"acTL"]
        for (_, coloured), (_, made) in zip(before, after):
            wanted, got = netpbm("pngtopnm | ppmtopgm", coloured), netpbm("pngtopnm", made)
            assert got[:2] == b"P5" and len(wanted) == len(got), name
            assert max(abs(a - b) for a, b in zip(wanted, got)) <= (257 if name == "16 bits" else 1), name
            assert netpbm("pngtopnm -alpha", coloured) == netpbm("pngtopnm -alpha", made), name
        assert by_hand(lab, gray, arguments="larger") == (0, gray), "what is gray stays"
        assert b"hello" not in by_hand(lab, data, arguments="larger&strip")[1]
    data = apng([(0, 0, whole), (7, 2, part)])
    for name, bad in (("cut", data[:-1]), ("an fdAT of no frame", data.replace(b"fcTL", b"fcTl")), ("damaged", data[:400] + b"xxxx" + data[404:]),
                      ("too many pixels", data), ("a frame cut", apng([(0, 0, whole), (7, 2, part)])[:-40] + chunk(b"IEND", b""))):
        options = ("--pixels", "4K") if name == "too many pixels" else ()
        assert by_hand(lab, bad, *options, arguments="larger") == (1, b""), name
