#include "gray/exif.h"

enum { TAG_ORIENTATION = 0x0112, TYPE_SHORT = 3, ENTRY = 12, HEADER = 8 };

struct tiff {
    const unsigned char *bytes;
    size_t length;
    bool big_endian;
};

/* The number of `size` bytes; 0 beyond the end. */
static uint32_t number_at(const struct tiff *tiff, size_t at, unsigned size) {
    uint32_t number = 0;
    if (at > tiff->length || tiff->length - at < size)
        return 0;
    for (unsigned i = 0; i < size; i++)
        number |= (uint32_t)tiff->bytes[at + i] << 8 * (tiff->big_endian ? size - 1 - i : i);
    return number;
}

unsigned exif_orientation(struct slice bytes) {
    struct tiff tiff = {(const unsigned char *)bytes.base, bytes.length, false};
    tiff.big_endian = slice_starts_with(bytes, SLICE("MM\0*"));
    if (!tiff.big_endian && !slice_starts_with(bytes, SLICE("II*\0")))
        return EXIF_UPRIGHT;
    size_t directory = number_at(&tiff, 4, 4);
    unsigned count = number_at(&tiff, directory, 2);
    for (unsigned i = 0; i < count && directory + 2 + (size_t)i * ENTRY < tiff.length; i++) {
        size_t entry = directory + 2 + (size_t)i * ENTRY;
        unsigned value = number_at(&tiff, entry + 8, 2);
        if (number_at(&tiff, entry, 2) == TAG_ORIENTATION &&
            number_at(&tiff, entry + 2, 2) == TYPE_SHORT)
            return value >= 1 && value <= 8 ? value : EXIF_UPRIGHT;
    }
    return EXIF_UPRIGHT;
}

struct slice exif_minimal(unsigned orientation, char room[EXIF_MINIMAL]) {
    /* Header, one entry, no second directory. */
    static const char bytes[EXIF_MINIMAL] = "MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01";
    memcpy(room, bytes, sizeof bytes);
    room[HEADER + 2 + 8 + 1] = (char)orientation;
    return slice_make(room, EXIF_MINIMAL);
}

struct slice exif_stripped(struct slice bytes, char room[EXIF_MINIMAL]) {
    unsigned orientation = exif_orientation(bytes);
    return orientation == EXIF_UPRIGHT ? (struct slice){0} : exif_minimal(orientation, room);
}
