"""Pictures of all kinds, made once for a run, and netpbm to read them with."""

import os
import subprocess

from services import SOURCE

folder = None  # pylint: disable=invalid-name


def picture(name):
    return open(os.path.join(folder, name), "rb").read()


def netpbm(command, data):
    return subprocess.run(command, shell=True, input=data, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          check=True).stdout


def make_pictures(directory):
    """Of a photo where tests/data/fetch.sh has brought one, else of a made one; always the same kinds."""
    global folder  # pylint: disable=global-statement,invalid-name
    folder = directory
    photo = os.path.join(directory, "photo.ppm")
    real = os.path.join(SOURCE, "tests/data/cache/photos/china.jpg")
    command = "djpeg %s" % real if os.path.exists(real) else "ppmpat -camo -randomseed=1 400 300"
    with open(photo, "wb") as file:
        file.write(netpbm(command, b""))
    data = open(photo, "rb").read()
    small = netpbm("pnmscale -xysize 60 40", data)
    made = {
        "photo.jpg": netpbm("cjpeg -quality 85", data),
        "progressive.jpg": netpbm("cjpeg -progressive -sample 2x2", data),
        "small.jpg": netpbm("cjpeg", small),
        "coarse.jpg": netpbm("cjpeg -quality 20", data),
        "photo.png": netpbm("pnmtopng -interlace", data),
        "small.png": netpbm("pnmtopng -interlace", small),
        "photo.bmp": netpbm("ppmtobmp -bpp=24", small),
    }
    with open(os.path.join(directory, "mask.pgm"), "wb") as file:
        file.write(netpbm("ppmtopgm", small))
    made["alpha.png"] = netpbm("pnmtopng -alpha=%s/mask.pgm" % directory, small)
    first = netpbm("pnmquant 32 2>/dev/null | ppmtogif", small)
    second = netpbm("pnmflip -lr | pnmquant 16 2>/dev/null | ppmtogif", small)
    made["animated.gif"] = animate(first, second)
    for name, contents in made.items():
        with open(os.path.join(directory, name), "wb") as file:
            file.write(contents)


def animate(first, second):
    """Two GIFs become one of two frames, the second with a local colour table."""
    def parts(data):
        size = 3 * (2 << (data[10] & 7)) if data[10] & 0x80 else 0
        return data[:13 + size], data[13:13 + size], data[13 + size:-1], data[10] & 7

    start, _, frame, _ = parts(first)
    _, table, other, bits = parts(second)
    at = other.index(b",")
    descriptor = bytearray(other[at:at + 10])
    descriptor[9] = 0x80 | bits
    return (start + b"!\xff\x0bNETSCAPE2.0\x03\x01\0\0\0" + frame + b"!\xf9\x04\x04\x0a\0\0\0"
            + bytes(descriptor) + table + other[at + 10:] + b";")
