/*
 * The orientation of a photo: the only thing in its EXIF data that changes how it looks.
 *
 *     unsigned orientation = exif_orientation(bytes);       1..8; 1 when the data does not say
 *     struct slice exif = exif_minimal(orientation, room);  EXIF data with the orientation alone
 *     struct slice exif = exif_stripped(bytes, room);       as exif_minimal of the orientation in
 *                                                           `bytes`; empty if it is upright
 *     if (orientation >= EXIF_TURNED)                       shown on its side
 *
 * `bytes` are the TIFF structure behind "Exif\0\0". Threads: pure.
 */
#ifndef RETORT_GRAY_TIFF_H
#define RETORT_GRAY_TIFF_H

#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EXIF_UPRIGHT = 1, EXIF_TURNED = 5, EXIF_MINIMAL = 26 };

unsigned exif_orientation(struct slice bytes);
struct slice exif_minimal(unsigned orientation, char room[EXIF_MINIMAL]);
struct slice exif_stripped(struct slice bytes, char room[EXIF_MINIMAL]);

/*
 * Reads numbers out of EXIF data and TIFF files (TIFF 6.0, section 2), in both byte orders, and
 * never past the end of the bytes.
 *
 *     struct tiff_bytes tiff = {bytes, length, .big_endian = bytes[0] == 'M'};
 *     uint32_t directory = tiff_number(&tiff, 4, 4);
 *
 * Ownership: the bytes stay the caller's. Threads: a function without state.
 */

struct tiff_bytes {
    const unsigned char *bytes;
    size_t length;
    bool big_endian;
};

/* The number of `size` bytes (4 at most); 0 beyond the end. */
static inline uint32_t tiff_number(const struct tiff_bytes *tiff, size_t at, unsigned size) {
    uint32_t number = 0;
    if (at > tiff->length || tiff->length - at < size)
        return 0;
    for (unsigned i = 0; i < size; i++)
        number |= (uint32_t)tiff->bytes[at + i] << 8 * (tiff->big_endian ? size - 1 - i : i);
    return number;
}

/*
 * Tells whether netpbm's tifftopnm reads a TIFF of this form right. For some forms tifftopnm fails.
 * For others it gives a wrong picture: those turned on their side, CMYK of 16 bits, those with
 * transparency, and those whose samples are no integers.
 *
 *     const char *why = tiff_refusal(bytes);       NULL: it reads the form; else why not
 *
 * These forms are known to be read right: bilevel and gray of 1 to 16 bits, RGB of 8 and 16 bits,
 * palettes, and CMYK of 8 bits, each of one page, and upright, turned by half or mirrored.
 * Threads: pure.
 */

const char *tiff_refusal(struct slice bytes);

#endif
