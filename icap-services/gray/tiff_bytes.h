/*
 * Reads numbers out of EXIF data and TIFF files (TIFF 6.0, section 2), in both byte orders, and
 * never past the end of the bytes.
 *
 *     struct tiff_bytes tiff = {bytes, length, .big_endian = bytes[0] == 'M'};
 *     uint32_t directory = tiff_number(&tiff, 4, 4);
 *
 * Ownership: the bytes stay the caller's. Threads: a function without state.
 */
#ifndef RETORT_GRAY_TIFF_BYTES_H
#define RETORT_GRAY_TIFF_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

#endif
