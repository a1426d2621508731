#include "gray/picture_cost.h"

#include "gray/image_type.h"

/* The work for a pixel, in quarters of the work for a pixel of a PNG. */
enum {
    QUARTERS = 4,
    WORK_PNG = 4,
    WORK_JPEG = 1,      /* and as much for every JPEG_SCANS of its scans */
    WORK_JPEG_ANEW = 4, /* decoded and encoded */
    WORK_GIF_SCALED = 4,
    WORK_WEBP = 24,
    WORK_WEBP_LOSSLESS = 80,
    WORK_PROGRAMS = 6,
    JPEG_SCANS = 4,
};

/* Whoever asks waits for the answer, and a file may consist of nothing but headers. So no more than this
 * is looked at: chunks, blocks or markers, and bytes. Real pictures of LOOK_BYTES have a third of the
 * steps at most. */
enum { LOOK_STEPS = 1 << 18, LOOK_BYTES = 16 << 20 };

/* A picture with more steps is taken for one with too many pixels. */
static const struct picture_cost too_costly = {UINT64_MAX, UINT64_MAX};

/* Reads numbers out of a file; 0 beyond its end. */
struct reader {
    const unsigned char *bytes;
    size_t length;
};

static uint32_t big(struct reader reader, size_t at, unsigned size) {
    uint32_t number = 0;
    if (at > reader.length || reader.length - at < size)
        return 0;
    for (unsigned i = 0; i < size; i++)
        number = number << 8 | reader.bytes[at + i];
    return number;
}

static uint32_t little(struct reader reader, size_t at, unsigned size) {
    uint32_t number = 0;
    if (at > reader.length || reader.length - at < size)
        return 0;
    for (unsigned i = size; i-- > 0;)
        number = number << 8 | reader.bytes[at + i];
    return number;
}

static bool picture_cost_is_named(struct reader reader, size_t at, const char *name) {
    return at <= reader.length && reader.length - at >= 4 &&
           memcmp(reader.bytes + at, name, 4) == 0;
}

static struct picture_cost make_cost(uint64_t pixels, uint64_t quarters) {
    return (struct picture_cost){pixels, pixels * quarters / QUARTERS};
}

/* The cost of so many frames, each of which may be as large as the whole. */
static struct picture_cost times(struct picture_cost cost, uint64_t frames) {
    cost.work *= frames == 0 ? 1 : frames;
    return cost;
}

/* Only pictures with colours in their pixels are decoded, and those that are scaled. */
static struct picture_cost png_cost(struct reader png, const struct picture_options *options) {
    enum { FIRST_CHUNK = 8, CHUNK = 12, WIDTH = 16, HEIGHT = 20, COLOR = 25, RGB = 2, RGBA = 6 };
    uint64_t width = big(png, WIDTH, 4), height = big(png, HEIGHT, 4), frames = 1, steps = 0;
    unsigned color = big(png, COLOR, 1);
    bool decoded = color == RGB || color == RGBA || options->width > 0;
    for (size_t at = FIRST_CHUNK;
         png.length - at >= CHUNK && !picture_cost_is_named(png, at + 4, "IDAT");) {
        if (++steps == LOOK_STEPS)
            return too_costly;
        if (picture_cost_is_named(png, at + 4, "acTL"))
            frames = big(png, at + 8, 4);
        uint64_t length = (uint64_t)big(png, at, 4) + CHUNK;
        if (length > png.length - at)
            break;
        at += length;
    }
    return times(make_cost(width * height, decoded ? WORK_PNG : 0), frames);
}

static bool is_frame_header(unsigned marker) {
    return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
}

/* The markers up to the first scan tell the size. Behind it, the scans are counted. */
static struct picture_cost jpeg_cost(struct reader jpeg, const struct picture_options *options) {
    enum { START_OF_SCAN = 0xda, SIGNATURE = 2 };
    uint64_t pixels = 0, scans = 0, steps = 0;
    size_t at = SIGNATURE;
    for (unsigned marker = 0; jpeg.length - at >= 4 && marker != START_OF_SCAN;) {
        marker = jpeg.bytes[at + 1];
        if (jpeg.bytes[at] != 0xff)
            break;
        if (is_frame_header(marker))
            pixels = (uint64_t)big(jpeg, at + 5, 2) * big(jpeg, at + 7, 2);
        size_t step = marker == 0xff ? 1 : 2 + (size_t)big(jpeg, at + 2, 2);
        if (marker == START_OF_SCAN || step > jpeg.length - at)
            break;
        if (++steps == LOOK_STEPS)
            return too_costly;
        at += step;
    }
    while (jpeg.length - at >= 2) {
        const unsigned char *found = memchr(jpeg.bytes + at, 0xff, jpeg.length - at - 1);
        if (found == NULL)
            break;
        if (++steps == LOOK_STEPS)
            return too_costly;
        scans += found[1] == START_OF_SCAN;
        at = (size_t)(found - jpeg.bytes) + 1;
    }
    if (options->width > 0 || options->quality > 0)
        return make_cost(pixels, WORK_JPEG_ANEW + scans / JPEG_SCANS);
    return make_cost(pixels, WORK_JPEG + scans / JPEG_SCANS);
}

/* The place behind the sub-blocks at `at`. */
static size_t skip_blocks(struct reader gif, size_t at, unsigned *steps) {
    for (; at < gif.length && gif.bytes[at] != 0 && *steps < LOOK_STEPS; ++*steps)
        at += (size_t)gif.bytes[at] + 1;
    ++*steps;
    return at + 1;
}

static size_t table_size(unsigned flags) {
    return (flags & 0x80) != 0 ? (size_t)3 * 2 << (flags & 7) : 0;
}

/* A GIF is decoded only if it is scaled, and only if that is not too much for the helper. */
static struct picture_cost gif_cost(struct reader gif, const struct picture_options *options) {
    enum { HEADER = 13, FLAGS = 10, DESCRIPTOR = 10, IMAGE = ',', EXTENSION = '!' };
    uint64_t pixels = 0;
    unsigned steps = 0;
    size_t at = HEADER + table_size(big(gif, FLAGS, 1));
    while (at < gif.length && gif.length - at >= DESCRIPTOR) {
        if (gif.bytes[at] == IMAGE) {
            pixels += (uint64_t)little(gif, at + 5, 2) * little(gif, at + 7, 2);
            at = skip_blocks(gif, at + DESCRIPTOR + table_size(gif.bytes[at + 9]) + 1, &steps);
        } else if (gif.bytes[at] == EXTENSION)
            at = skip_blocks(gif, at + 2, &steps);
        else
            break;
        if (steps >= LOOK_STEPS)
            return too_costly;
    }
    uint64_t work = make_cost(pixels, options->width > 0 ? WORK_GIF_SCALED : 0).work;
    return (struct picture_cost){0, work};
}

/* LOOK_STEPS: there are at least so many. */
static uint64_t webp_frames(struct reader webp) {
    enum { CHUNKS = 12, CHUNK = 8 };
    uint64_t frames = 0, steps = 0;
    for (size_t at = CHUNKS; at < webp.length && webp.length - at >= CHUNK;) {
        if (++steps == LOOK_STEPS)
            return LOOK_STEPS;
        uint64_t length = little(webp, at + 4, 4);
        frames += picture_cost_is_named(webp, at, "ANMF");
        if (length > webp.length - at - CHUNK)
            break;
        at += CHUNK + length + (length & 1);
    }
    return frames == 0 ? 1 : frames;
}

static struct picture_cost webp_cost(struct reader webp) {
    enum { KIND = 12, EXTENDED_SIZE = 24, LOSSLESS_SIZE = 21, LOSSY_SIZE = 26, SIDE = 0x3fff };
    if (picture_cost_is_named(webp, KIND, "VP8X")) {
        uint64_t width = little(webp, EXTENDED_SIZE, 3) + 1;
        uint64_t height = little(webp, EXTENDED_SIZE + 3, 3) + 1;
        uint64_t frames = webp_frames(webp);
        bool lossless = memmem(webp.bytes, webp.length, "VP8L", 4) != NULL;
        if (frames == LOOK_STEPS)
            return too_costly;
        return times(make_cost(width * height, lossless ? WORK_WEBP_LOSSLESS : WORK_WEBP), frames);
    }
    if (picture_cost_is_named(webp, KIND, "VP8L")) {
        uint32_t size = little(webp, LOSSLESS_SIZE, 4);
        return make_cost((uint64_t)((size & SIDE) + 1) * ((size >> 14 & SIDE) + 1),
                         WORK_WEBP_LOSSLESS);
    }
    return make_cost((uint64_t)(little(webp, LOSSY_SIZE, 2) & SIDE) *
                         (little(webp, LOSSY_SIZE + 2, 2) & SIDE),
                     WORK_WEBP);
}

static uint64_t magnitude(uint32_t number) {
    return number > INT32_MAX ? (uint64_t)UINT32_MAX + 1 - number : number;
}

/* In older headers the sizes have 16 bits. */
static struct picture_cost bmp_cost(struct reader bmp) {
    enum { HEADER_SIZE = 14, WIDTH = 18, OLD_HEADER = 12 };
    bool old = little(bmp, HEADER_SIZE, 4) == OLD_HEADER;
    uint64_t width = old ? little(bmp, WIDTH, 2) : magnitude(little(bmp, WIDTH, 4));
    uint64_t height = old ? little(bmp, WIDTH + 2, 2) : magnitude(little(bmp, WIDTH + 4, 4));
    return make_cost(width * height, WORK_PROGRAMS);
}

static struct picture_cost tiff_cost(struct reader tiff) {
    enum { ENTRY = 12, WIDTH = 256, HEIGHT = 257, SHORT = 3 };
    uint32_t (*number)(struct reader, size_t, unsigned) = big(tiff, 0, 1) == 'M' ? big : little;
    uint64_t width = 0, height = 0;
    size_t directory = number(tiff, 4, 4);
    unsigned count = number(tiff, directory, 2);
    for (unsigned i = 0; i < count && directory + 2 + (size_t)i * ENTRY < tiff.length; i++) {
        size_t entry = directory + 2 + (size_t)i * ENTRY;
        uint64_t value = number(tiff, entry + 8, number(tiff, entry + 2, 2) == SHORT ? 2 : 4);
        if (number(tiff, entry, 2) == WIDTH)
            width = value;
        if (number(tiff, entry, 2) == HEIGHT)
            height = value;
    }
    return make_cost(width * height, WORK_PROGRAMS);
}

static struct picture_cost cost_by_type(struct slice bytes, const struct picture_options *options) {
    struct reader reader = {(const unsigned char *)bytes.base,
                            bytes.length < LOOK_BYTES ? bytes.length : LOOK_BYTES};
    switch (image_type_of_bytes(bytes)) {
    case IMAGE_PNG: return png_cost(reader, options);
    case IMAGE_JPEG: return jpeg_cost(reader, options);
    case IMAGE_GIF: return gif_cost(reader, options);
    case IMAGE_WEBP: return webp_cost(reader);
    case IMAGE_BMP: return bmp_cost(reader);
    case IMAGE_TIFF: return tiff_cost(reader);
    default: return (struct picture_cost){0, 0};
    }
}

struct picture_cost picture_cost_of(struct slice bytes, const struct picture_options *options) {
    struct picture_cost cost = cost_by_type(bytes, options);
    if (cost.work < bytes.length)
        cost.work = bytes.length;
    return cost;
}
