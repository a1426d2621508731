"""Content codings made and undone, by zlib and by the libraries that the build needs anyway.

    encode("br", body)     gzip, x-gzip, deflate, br, zstd; "raw-deflate" is deflate without its frame
    decode("br", body)     the original; ValueError when the stream is damaged or not whole
    decode("zstd", body, whole=False)     as far as it goes
"""

import ctypes
import zlib

_POINTER, _SIZE = ctypes.c_void_p, ctypes.c_size_t


class _Buffer(ctypes.Structure):
    """zstd's: where, how long, how far."""
    _fields_ = [("bytes", ctypes.c_void_p), ("size", _SIZE), ("position", _SIZE)]


def _gunzip(body, _room):
    stream = zlib.decompressobj(15 + 16)
    try:
        return stream.decompress(body), stream.eof and not stream.unused_data
    except zlib.error as error:
        raise ValueError(str(error)) from None


def _unbrotli(body, room):
    library = ctypes.CDLL("libbrotlidec.so.1")
    library.BrotliDecoderCreateInstance.restype = _POINTER
    library.BrotliDecoderCreateInstance.argtypes = [_POINTER] * 3
    library.BrotliDecoderDestroyInstance.argtypes = [_POINTER]
    library.BrotliDecoderDecompressStream.argtypes = [_POINTER] * 6
    source, out = ctypes.create_string_buffer(body, len(body) + 1), ctypes.create_string_buffer(room)
    left, at = _SIZE(len(body)), _POINTER(ctypes.addressof(source))
    free, to = _SIZE(room), _POINTER(ctypes.addressof(out))
    decoder = library.BrotliDecoderCreateInstance(None, None, None)
    result = library.BrotliDecoderDecompressStream(decoder, ctypes.byref(left), ctypes.byref(at), ctypes.byref(free),
                                                   ctypes.byref(to), None)
    library.BrotliDecoderDestroyInstance(decoder)
    if result == 0:
        raise ValueError("no brotli")
    return ctypes.string_at(out, room - free.value), result == 1 and left.value == 0


def _unzstd(body, room):
    library = ctypes.CDLL("libzstd.so.1")
    library.ZSTD_createDStream.restype = _POINTER
    library.ZSTD_freeDStream.argtypes = [_POINTER]
    library.ZSTD_decompressStream.restype = _SIZE
    library.ZSTD_decompressStream.argtypes = [_POINTER] * 3
    source, out = ctypes.create_string_buffer(body, len(body) + 1), ctypes.create_string_buffer(room)
    taken, given = _Buffer(ctypes.addressof(source), len(body), 0), _Buffer(ctypes.addressof(out), room, 0)
    decoder, left, before = library.ZSTD_createDStream(), 1, None
    while left != 0 and (taken.position, given.position) != before:
        before = (taken.position, given.position)
        left = library.ZSTD_decompressStream(decoder, ctypes.byref(given), ctypes.byref(taken))
        if library.ZSTD_isError(_SIZE(left)):
            break
    library.ZSTD_freeDStream(decoder)
    if left and library.ZSTD_isError(_SIZE(left)):
        raise ValueError("no zstd")
    return ctypes.string_at(out, given.position), left == 0 and taken.position == len(body)


DECODERS = {"gzip": _gunzip, "br": _unbrotli, "zstd": _unzstd}


def decode(coding, body, whole=True, room=4 << 20):
    if coding in (None, "identity"):
        return body
    original, complete = DECODERS[coding](body, room)
    if whole and not complete:
        raise ValueError(f"the {coding} stream is not whole")
    return original


def _deflate(window):
    def encode_so(body):
        stream = zlib.compressobj(6, zlib.DEFLATED, window)
        return stream.compress(body) + stream.flush()
    return encode_so


def _brotli(body):
    library = ctypes.CDLL("libbrotlienc.so.1")
    library.BrotliEncoderMaxCompressedSize.restype = _SIZE
    library.BrotliEncoderMaxCompressedSize.argtypes = [_SIZE]
    library.BrotliEncoderCompress.argtypes = [ctypes.c_int] * 3 + [_SIZE, ctypes.c_char_p, _POINTER, _POINTER]
    room = _SIZE(library.BrotliEncoderMaxCompressedSize(len(body)) or len(body) + 1000)
    out = ctypes.create_string_buffer(room.value)
    if not library.BrotliEncoderCompress(5, 22, 0, len(body), body, ctypes.byref(room), out):
        raise ValueError("no brotli")
    return out.raw[:room.value]


def _zstd(body):
    library = ctypes.CDLL("libzstd.so.1")
    library.ZSTD_compressBound.restype = library.ZSTD_compress.restype = _SIZE
    library.ZSTD_compressBound.argtypes = [_SIZE]
    library.ZSTD_compress.argtypes = [_POINTER, _SIZE, ctypes.c_char_p, _SIZE, ctypes.c_int]
    room = library.ZSTD_compressBound(len(body))
    out = ctypes.create_string_buffer(room)
    length = library.ZSTD_compress(out, room, body, len(body), 3)
    return out.raw[:length]


ENCODERS = {"gzip": _deflate(15 + 16), "x-gzip": _deflate(15 + 16), "deflate": _deflate(15),
            "raw-deflate": _deflate(-15), "br": _brotli, "zstd": _zstd}


def encode(coding, body):
    return ENCODERS[coding](body)
