#include "gray/exif.h"

#include "gray/tiff_bytes.h"

enum { TAG_ORIENTATION = 0x0112, TYPE_SHORT = 3, ENTRY = 12, HEADER = 8 };

unsigned exif_orientation(struct slice bytes) {
    struct tiff_bytes tiff = {(const unsigned char *)bytes.base, bytes.length, false};
    tiff.big_endian = slice_starts_with(bytes, SLICE("MM\0*"));
    if (!tiff.big_endian && !slice_starts_with(bytes, SLICE("II*\0")))
        return EXIF_UPRIGHT;
    size_t directory = tiff_number(&tiff, 4, 4);
    unsigned count = tiff_number(&tiff, directory, 2);
    for (unsigned i = 0; i < count && directory + 2 + (size_t)i * ENTRY < tiff.length; i++) {
        size_t entry = directory + 2 + (size_t)i * ENTRY;
        unsigned value = tiff_number(&tiff, entry + 8, 2);
        if (tiff_number(&tiff, entry, 2) == TAG_ORIENTATION &&
            tiff_number(&tiff, entry + 2, 2) == TYPE_SHORT)
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
