"""Images made gray, and the programs that do it."""

import ctypes
import os
import random
import re
import struct
import subprocess
import zlib

from services.lab import REQUEST, every_way, head, helpers_only, send_photo
from services.pictures import netpbm, picture


def check_gray(kind, original, luma, shape=None, off_by=0):
    """A check for every_way: decoded, the result has to be gray and of the same luminance."""
    def check(answer, got):
        assert answer.status == 200, answer.status
        assert got != original and answer.header("content-length") == str(len(got))
        assert answer.header("etag") == 'W/"tag"'
        pixels = netpbm(luma, got)
        assert pixels[:2] == b"P5", pixels[:20]
        assert len(pixels) == len(expected), "another size"
        assert pixels == expected or max(abs(a - b) for a, b in zip(pixels, expected)) <= off_by, "other pixels"
    expected = netpbm(shape or luma + " | ppmtopgm", original)
    return check


def test_gray_jpeg(lab):
    for name in ("photo.jpg", "progressive.jpg", "small.jpg"):
        body = picture(name)
        every_way(lab, "gray", "image/jpeg", body, check_gray("jpeg", body, "djpeg", "djpeg -grayscale"))


def test_gray_gif(lab):
    body = picture("animated.gif")

    def check(answer, got):
        assert answer.status == 200 and len(got) == len(body) and got != body
        assert answer.header("content-length") == str(len(body))
        different = [i for i in range(len(body)) if got[i] != body[i]]
        assert len(different) <= 768 * 4 and min(different) >= 13
        assert netpbm("giftopnm -image=2", got)[:2] == b"P5"

    every_way(lab, "gray", "image/gif", body, check)


def frames_of(data):
    """Of each frame of a GIF: delay, disposal, rectangle, rows of luma and rows of what is drawn, by giftopnm."""
    at, control, found = 13 + (3 * (2 << (data[10] & 7)) if data[10] & 0x80 else 0), bytes(4), []
    while data[at:at + 1] != b";":
        is_frame = data[at:at + 1] == b","
        if is_frame:
            left, top, width, height, flags = struct.unpack("<HHHHB", data[at + 1:at + 10])
            found.append((control[1] | control[2] << 8, control[0] >> 2 & 7, (left, top, width, height)))
            at += 11 + (3 * (2 << (flags & 7)) if flags & 0x80 else 0)
            control = bytes(4)
        else:
            if data[at + 1] == 0xf9:
                control = data[at + 3:at + 7]
            at += 2
        while data[at]:
            at += data[at] + 1
        at += 1
    for number, (delay, disposal, place) in enumerate(found):
        width = place[2]

        def rows(command, number=number, width=width):
            pixels = netpbm(command % (number + 1), data).split(b"\n", 3)[3]
            return [pixels[at:at + width] for at in range(0, len(pixels), width)]
        # Gray already, and of maxval 255, so that nothing is rounded but by gray-helper.
        luma = rows("giftopnm -image=%d | ppmtopgm | pamdepth 255")
        drawn = rows("giftopnm -alphaout=- -image=%d | pamdepth 255")
        yield delay, disposal, place, luma, drawn


def shown_by(data):
    """The canvas after each frame, as rows of luma; None where nothing is drawn. And delay, disposal and rectangle."""
    width, height = struct.unpack("<HH", data[6:10])
    canvas = [[None] * width for _ in range(height)]
    for delay, disposal, place, luma, drawn in frames_of(data):
        before = [row[:] for row in canvas]
        for y, (values, mask) in enumerate(zip(luma, drawn)):
            for x in range(place[2]):
                if mask[x]:
                    canvas[place[1] + y][place[0] + x] = values[x]
        yield [row[:] for row in canvas], (delay, disposal, place)
        if disposal == 3:
            canvas = before
        elif disposal == 2:
            for y in range(place[1], place[1] + place[3]):
                canvas[y][place[0]:place[0] + place[2]] = [None] * place[2]


def composed_gif():
    """Frames of all ways of going away, with parts of pictures, local tables, interlaced and transparent."""
    def part(left, top, width, height, *options):
        command = "bmptopnm | pamcut -left %d -top %d -width %d -height %d | pnmquant 60 2>/dev/null | ppmtopgm | ppmtogif %s"
        gif = netpbm(command % (left, top, width, height, " ".join(options)), picture("photo.bmp"))
        size = 3 * (2 << (gif[10] & 7))
        at = gif.index(b",", 13 + size)
        return gif[13:13 + size], gif[10] & 7, gif[at + 9] & 0x40, gif[at + 10:-1]

    whole = b"GIF89a" + struct.pack("<HHBBB", 60, 40, 0, 0, 0) + b"!\xff\x0bNETSCAPE2.0\x03\x01\x02\0\0"
    for number, (place, source, disposal, options) in enumerate((
            ((0, 0, 60, 40), (0, 0), 1, ()), ((7, 5, 20, 17), (30, 10), 1, ("-interlace",)), ((31, 3, 11, 30), (0, 5), 3, ()),
            ((20, 20, 25, 20), (10, 0), 2, ()), ((0, 0, 60, 40), (0, 0), 3, ("-interlace",)), ((1, 1, 1, 1), (9, 9), 0, ()))):
        table, bits, interlaced, pixels = part(*source, *place[2:], *options)
        whole += b"!\xf9\x04" + struct.pack("<BHB", disposal << 2, 5 + number, 0) + b"\0"
        whole += b"," + struct.pack("<HHHHB", *place, 0x80 | interlaced | bits) + table + pixels
    return whole + b";"


def test_gray_gif_scaled(lab):
    """Each frame shows what it showed, scaled as netpbm scales it; delays, disposal and repetitions stay."""
    for body in (composed_gif(), picture("animated.gif")):
        for width, height in ((23, 15), (60, 40), (1, 1)):
            answer = lab.respmod("gray?larger&width=%d" % width, request=REQUEST, response=head("image/gif", len(body)),
                             body=body, preview=1024)
            if width == 60:
                assert answer.status == 204 or len(answer.body) == len(body)
                continue
            assert answer.status == 200 and struct.unpack("<HH", answer.body[6:10]) == (width, height)
            assert (b"NETSCAPE2.0\x03\x01\x02" in answer.body) == (b"NETSCAPE2.0\x03\x01\x02" in body)
            original, scaled = list(shown_by(body)), list(shown_by(answer.body))
            assert len(original) == len(scaled)
            for number, ((canvas, terms), (small, small_terms)) in enumerate(zip(original, scaled)):
                assert terms[:2] == small_terms[:2], (number, terms, small_terms)
                if any(None in row for row in canvas):
                    continue  # pamscale knows no transparency; the unit tests have it
                pgm = b"P5 %d %d 255\n" % (len(canvas[0]), len(canvas)) + b"".join(map(bytes, canvas))
                wanted = netpbm("pamscale -linear -xsize %d -ysize %d" % (width, height), pgm)[-width * height:]
                far = max(abs(a - b) for a, b in zip(wanted, b"".join(map(bytes, small))))
                assert far <= 2, (width, number, far)


def test_gray_png(lab):
    body = picture("small.png")
    every_way(lab, "gray", "image/png", body, check_gray("png", body, "pngtopnm", off_by=1))
    body = picture("alpha.png")

    def check(answer, got):
        assert answer.status == 200 and got != body
        assert netpbm("pngtopnm -alpha", got) == netpbm("pngtopnm -alpha", body), "other transparency"
        pixels, expected = netpbm("pngtopnm", got), netpbm("pngtopnm | ppmtopgm", body)
        assert len(pixels) == len(expected) and max(abs(a - b) for a, b in zip(pixels, expected)) <= 1, "other pixels"

    every_way(lab, "gray", "image/png", body, check)
    body = picture("photo.bmp")
    every_way(lab, "gray", "image/bmp", body, check_gray("bmp", body, "bmptopnm | ppmtopgm", off_by=1))


def by_hand(lab, data, *options, arguments=""):
    """gray-helper --once: its exit status and what it wrote."""
    done = subprocess.run([lab.build + "/icap-services/gray-helper", *options, "--once", arguments], input=data,
                          env={**os.environ, "TMPDIR": lab.dir}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=60 * lab.patience, check=False)
    return done.returncode, done.stdout


@helpers_only
def test_gray_by_hand(lab):
    photo = picture("photo.jpg")
    status, gray = by_hand(lab, photo)
    assert status == 0 and netpbm("djpeg", gray) == netpbm("djpeg -grayscale", photo)
    assert by_hand(lab, gray) == (0, gray), "what is gray stays"
    assert by_hand(lab, b"no picture") == (1, b"")
    assert by_hand(lab, photo, "--file", "1K") == (1, b""), "its limit is no signal"
    assert by_hand(lab, picture("photo.bmp"))[0] == 0
    text = subprocess.run([lab.build + "/icap-services/text-helper", "--file", lab.path("texts.tsv"), "--once", "10.1.2.3"],
                          stdout=subprocess.PIPE, check=True).stdout
    assert text == b"<b>ten 10.1.2.3</b>", text


def test_gray_as_the_uri_says(lab):
    for name, kind, decoder in (("photo.jpg", "jpeg", "djpeg"), ("photo.png", "png", "pngtopnm")):
        body = picture(name)
        answer = lab.respmod("gray?width=100&quality=50&strip", request=REQUEST,
                         response=head("image/" + kind, len(body)), body=body, preview=1024)
        magic, width, _ = netpbm(decoder, answer.body).split(None, 2)
        assert (magic, width) == (b"P5", b"100") and len(answer.body) < len(body) / 10, (magic, width)


def test_gray_is_never_larger(lab):
    """Unless that is wanted: nobody gains by an image that takes longer."""
    photo = picture("coarse.jpg")
    for service, wanted in (("gray?quality=100", False), ("gray?quality=100&larger", True)):
        answer = lab.respmod(service, request=REQUEST, response=head("image/jpeg", len(photo)), body=photo, preview=1024)
        assert (answer.body != photo) == wanted, (service, len(answer.body))


@helpers_only
def test_gray_recipes(lab):
    """Programs without a shell, which may not write, nor reach others over the network."""
    bmp, mark = picture("photo.bmp"), lab.path("mark")
    status, gray = by_hand(lab, bmp, "--recipe", "image/bmp=bmptopnm | pamscale 0.5 | ppmtopgm | ppmtobmp")
    assert status == 0 and netpbm("bmptopnm", gray).split()[1] == b"30"
    assert by_hand(lab, bmp, "--recipe", "image/bmp=cat | no-such-program") == (1, b"")
    assert by_hand(lab, bmp, "--recipe", "image/bmp=false") == (1, b"")
    status, text = by_hand(lab, bmp, "--recipe", "image/bmp=echo $HOME;ls `ls` *")
    assert (status, text) == (0, b"$HOME;ls `ls` *\n"), text
    assert by_hand(lab, bmp, "--recipe", "image/bmp=")[0] == 1
    if lab.options.valgrind or sandbox_of(lab) != "2":
        return
    assert by_hand(lab, bmp, "--recipe", "image/bmp=touch " + mark)[0] == 1 and not os.path.exists(mark)
    for code, allowed in (("print()", True), ("__import__('socket').socket()", False)):
        status, _ = by_hand(lab, bmp, "--recipe", "image/bmp=/usr/bin/python3 -c " + code)
        assert (status == 0) == allowed, code
    assert by_hand(lab, bmp, "--programs-write", "--recipe", "image/bmp=touch " + mark)[0] == 0 and os.path.exists(mark)


def has_landlock():
    LANDLOCK_CREATE_RULESET, VERSION = 444, 1
    return ctypes.CDLL(None).syscall(LANDLOCK_CREATE_RULESET, None, 0, VERSION) > 0


def test_gray_tiff(lab):
    """Its program needs a file for a moment; it can make one in a place of its own, and nowhere else."""
    body, mark = netpbm("bmptopnm | pamtotiff -lzw -truecolor", picture("photo.bmp")), lab.path("tiff-mark")
    answer = lab.respmod("gray", request=REQUEST, response=head("image/tiff", len(body)), body=body, preview=1024)
    if not lab.options.valgrind and sandbox_of(lab) == "2" and not has_landlock():
        assert answer.body == body
        return
    assert netpbm("tifftopnm", answer.body)[:2] == b"P5" and len(answer.body) < len(body)
    assert netpbm("tifftopnm", answer.body) == netpbm("tifftopnm | ppmtopgm", body)
    if lab.options.valgrind or sandbox_of(lab) != "2":
        return
    lab.write("kept", "kept")
    for words in ("rm " + lab.path("kept"), "cp /etc/hostname " + mark, "cp /etc/hostname " + lab.path("kept"), "mkdir " + mark,
                  "ln -s /etc " + mark, "mkfifo " + mark, "truncate -s 0 " + lab.path("kept"), "mv %s %s" % (lab.path("kept"), mark)):
        assert by_hand(lab, body, "--recipe", "image/tiff=" + words)[0] == 1, words
    assert not os.path.lexists(mark) and open(lab.path("kept"), encoding="ascii").read() == "kept"
    assert by_hand(lab, body, "--recipe", "image/tiff=mktemp")[0] == 0


def sandbox_of(lab):
    """The kind of seccomp that a helper runs under, as the kernel tells: "2" is a filter."""
    with open("/proc/%d/status" % lab.workers("gray")[0], encoding="ascii") as status:
        return re.search(r"^Seccomp:\s*(\d)", status.read(), re.M).group(1)


def test_bombs(lab):
    """Small files that want a lot: the original goes out, and other images go on."""
    chance = random.Random(6)
    photo = bytearray(picture("photo.jpg"))
    frame = photo.index(b"\xff\xc0")
    photo[frame + 5:frame + 9] = struct.pack(">HH", 65500, 65500)
    png = bytearray(picture("photo.png"))
    png[16:24] = struct.pack(">II", 65500, 65500)
    png[29:33] = struct.pack(">I", zlib.crc32(png[12:29]))
    progressive = picture("progressive.jpg")
    scan = progressive.index(b"\xff\xda")
    end = progressive.index(b"\xff\xc4", scan)
    scans = progressive[:end] + progressive[scan:end] * min(5000, (1 << 20) // (end - scan)) + progressive[end:]
    small = bytearray(picture("small.jpg"))
    bombs = [("image/jpeg", bytes(photo)), ("image/png", bytes(png)), ("image/jpeg", scans)]
    for _ in range(20):
        damaged = bytearray(small)
        for _ in range(8):
            damaged[chance.randrange(2, len(damaged))] = chance.randrange(256)
        bombs.append(("image/jpeg", bytes(damaged)))
    for number, (kind, body) in enumerate(bombs):
        answer = lab.respmod("gray", request=REQUEST, response=head(kind, len(body)), body=body, preview=1024)
        got = body if answer.status == 204 else answer.body
        assert number > 2 or got == body, "bomb %d of %s was changed" % (number, kind)
    frame = b"!\xf9\x04\x04\x01\0\0\0,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0"
    body = b"GIF89a\x01\0\x01\0\x80\0\0\xff\0\0\0\xff\0" + frame * 10000 + b";"
    answer = lab.respmod("gray", request=REQUEST, response=head("image/gif", len(body)), body=body)
    assert answer.status == 200 and answer.body == body[:13] + b"LLL\x96\x96\x96" + body[19:], answer.body[:40]
    assert send_photo(lab).status == 200


def test_gray_leaves_alone(lab):
    def check(answer, got):
        assert got == body, "changed"
        assert answer.status == 204 or answer.header("etag") == '"tag"'

    gray = netpbm("djpeg -grayscale | cjpeg", picture("photo.jpg"))

    def half(name):
        return picture(name)[:len(picture(name)) // 2]

    for kind, body in (("image/jpeg", gray), ("image/jpeg", half("photo.jpg")), ("image/gif", half("animated.gif")),
                       ("image/png", half("photo.png")), ("image/jpeg", b"<html>" * 500),
                       ("image/jpeg", b"\xff"), ("image/gif", b"GIF8"), ("image/svg+xml", b"<svg/>"),
                       ("text/html", picture("small.jpg"))):
        every_way(lab, "gray", kind, body, check)


def test_gray_too_large(lab):
    def check(answer, got):
        assert got == body, "changed or cut: %d of %d bytes" % (len(got), len(body))

    body = picture("small.jpg") + random.Random(3).randbytes(3 << 20)
    every_way(lab, "gray", "image/jpeg", body, check)
    body = body[:(2 << 20) + 1]
    every_way(lab, "gray", "image/jpeg", body, check)


def test_gray_looks_at_what_has_no_type(lab):
    """As browsers do: what no type is told of, or one that tells nothing. Nothing else is taken for a picture."""
    types = ("", "Content-Type: application/octet-stream\n", "Content-Type: binary/octet-stream; x=y\n", "Content-Type: */*\n",
             "Content-Type:\n")
    plain = "HTTP/1.1 200 OK\n%s"
    pictures = [picture(name) for name in ("small.jpg", "small.png", "animated.gif", "photo.bmp")]
    for told in types:
        previews = (None, 0, 5, 1024) if told == "" else (1024,)
        for body in pictures:
            for preview in previews:
                answer = lab.respmod("gray", request=REQUEST, response=plain % told, body=body, preview=preview)
                assert answer.status == 200 and answer.body != body, (told, body[:4], preview)
        for body in (b"", b"B", b"BMW has cars for sale " * 9, b"P6 is a name", b"II*\0" + bytes(500), b"<html>" * 500, bytes(5000)):
            for preview in previews:
                answer = lab.respmod("gray", request=REQUEST, response=plain % told, body=body, preview=preview)
                assert answer.status == 204 or answer.body == body, (told, body[:4])
    for field in ("X-Content-Type-Options: nosniff\n", "Content-Disposition: attachment; filename=a\n", "Content-Type: text/plain\n"):
        answer = lab.respmod("gray", request=REQUEST, response=plain % field, body=pictures[0], preview=1024)
        assert answer.status == 204, field
