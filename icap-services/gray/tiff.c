#include "gray/tiff.h"

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

/* TIFF 6.0, section 8 and following. */
enum tag {
    BITS_PER_SAMPLE = 258,
    PHOTOMETRIC = 262,
    FILL_ORDER = 266,
    ORIENTATION = TAG_ORIENTATION,
    SAMPLES_PER_PIXEL = 277,
    INK_SET = 332,
    EXTRA_SAMPLES = 338,
    SAMPLE_FORMAT = 339,
};

enum { TYPE_LONG = 4, SAMPLES_MAX = 4 };
enum { WHITE_IS_ZERO = 0, BLACK_IS_ZERO = 1, RGB = 2, PALETTE = 3, SEPARATED = 5 };

struct form {
    uint32_t bits, photometric, fill_order, orientation, samples, ink_set, extra, format;
    bool mixed; /* samples of several sizes or formats */
};

/* Reads the first of an entry's numbers. False when the others differ, or are not of that kind. */
static bool read_numbers(const struct tiff_bytes *tiff, size_t entry, uint32_t *first) {
    unsigned type = tiff_number(tiff, entry + 2, 2), size = type == TYPE_SHORT ? 2 : 4;
    uint32_t count = tiff_number(tiff, entry + 4, 4);
    if ((type != TYPE_SHORT && type != TYPE_LONG) || count == 0 || count > SAMPLES_MAX)
        return false;
    size_t at = count * size <= 4 ? entry + 8 : tiff_number(tiff, entry + 8, 4);
    *first = tiff_number(tiff, at, size);
    for (uint32_t i = 1; i < count; i++)
        if (tiff_number(tiff, at + (size_t)i * size, size) != *first)
            return false;
    return true;
}

static void tiff_form_read_entry(const struct tiff_bytes *tiff, size_t entry, struct form *form) {
    uint32_t *place = NULL;
    switch (tiff_number(tiff, entry, 2)) {
    case BITS_PER_SAMPLE: place = &form->bits; break;
    case PHOTOMETRIC: place = &form->photometric; break;
    case FILL_ORDER: place = &form->fill_order; break;
    case ORIENTATION: place = &form->orientation; break;
    case SAMPLES_PER_PIXEL: place = &form->samples; break;
    case INK_SET: place = &form->ink_set; break;
    case EXTRA_SAMPLES: form->extra = 1; break;
    case SAMPLE_FORMAT: place = &form->format; break;
    default: break;
    }
    if (place != NULL && !read_numbers(tiff, entry, place))
        form->mixed = true;
}

static bool tiff_form_is_known(const struct form *form) {
    bool few = form->bits == 1 || form->bits == 2 || form->bits == 4;
    switch (form->photometric) {
    case WHITE_IS_ZERO:
    case BLACK_IS_ZERO: return form->samples == 1 && (few || form->bits == 8 || form->bits == 16);
    case RGB: return form->samples == 3 && (form->bits == 8 || form->bits == 16);
    case PALETTE: return form->samples == 1 && (few || form->bits == 8);
    case SEPARATED: return form->samples == 4 && form->bits == 8 && form->ink_set == 1;
    default: return false;
    }
}

const char *tiff_refusal(struct slice bytes) {
    struct tiff_bytes tiff = {(const unsigned char *)bytes.base, bytes.length, false};
    struct form form = {1, UINT32_MAX, 1, EXIF_UPRIGHT, 1, 1, 0, 1, false};
    tiff.big_endian = slice_starts_with(bytes, SLICE("MM\0*"));
    if (!tiff.big_endian && !slice_starts_with(bytes, SLICE("II*\0")))
        return "not a TIFF";
    size_t directory = tiff_number(&tiff, 4, 4), end = directory + 2;
    unsigned count = tiff_number(&tiff, directory, 2);
    for (unsigned i = 0; i < count && end < tiff.length; i++, end += ENTRY)
        tiff_form_read_entry(&tiff, end, &form);
    if (end > tiff.length || tiff.length - end < 4)
        return "not a whole TIFF";
    if (tiff_number(&tiff, end, 4) != 0)
        return "a TIFF of several pages";
    if (form.orientation >= EXIF_TURNED)
        return "a TIFF with an orientation from 5 to 8";
    if (form.mixed || form.format != 1 || form.fill_order != 1 || form.extra != 0 ||
        !tiff_form_is_known(&form))
        return "a TIFF in a form that the programs of its recipe convert wrongly";
    return NULL;
}
