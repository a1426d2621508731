#include "gray/png_strip.h"

#include "gray/exif.h"

#include <png.h>
#include <zlib.h>

enum { SIGNATURE = 8, NAME = 4, HEAD = 8, CHECKSUM = 4, NO_DATA = HEAD + CHECKSUM };

static bool png_strip_is_called(const unsigned char *chunk, const char *name) {
    return memcmp(chunk + NAME, name, NAME) == 0;
}

static bool is_about_it(const unsigned char *chunk) {
    return png_strip_is_called(chunk, "tEXt") || png_strip_is_called(chunk, "zTXt") ||
           png_strip_is_called(chunk, "iTXt") || png_strip_is_called(chunk, "tIME");
}

/* Gives the chunk other data, with its length and checksum. Returns the length of the chunk. */
static size_t png_strip_fill(unsigned char *chunk, struct slice data) {
    png_save_uint_32(chunk, (png_uint_32)data.length);
    memcpy(chunk + HEAD, data.base, data.length);
    uLong sum = crc32(0, chunk + NAME, (uInt)(NAME + data.length));
    png_save_uint_32(chunk + HEAD + data.length, (png_uint_32)sum);
    return data.length + NO_DATA;
}

/* The length that the chunk shall have; 0: it goes. */
static size_t png_strip_keep(unsigned char *chunk, size_t length) {
    char room[EXIF_MINIMAL];
    if (is_about_it(chunk))
        return 0;
    if (!png_strip_is_called(chunk, "eXIf"))
        return length;
    struct slice exif =
        exif_stripped(slice_make((const char *)chunk + HEAD, length - NO_DATA), room);
    if (exif.length == 0)
        return 0;
    return exif.length < length - NO_DATA ? png_strip_fill(chunk, exif) : length;
}

size_t png_strip(unsigned char *bytes, size_t length) {
    unsigned char *at = bytes + SIGNATURE, *to = at, *end = bytes + length;
    while (end - at >= NO_DATA) {
        uint64_t whole = NO_DATA + (uint64_t)png_get_uint_32(at);
        if ((uint64_t)(end - at) < whole)
            break;
        size_t kept = png_strip_keep(at, (size_t)whole);
        memmove(to, at, kept);
        to += kept;
        at += whole;
    }
    memmove(to, at, (size_t)(end - at));
    return (size_t)(to - bytes) + (size_t)(end - at);
}
