#include "gray/image_type.h"

static const struct {
    struct slice bytes;
    enum image_type type;
} signatures[] = {
    {{"\xff\xd8\xff", 3}, IMAGE_JPEG},
    {{"GIF87a", 6}, IMAGE_GIF},
    {{"GIF89a", 6}, IMAGE_GIF},
    {{"\x89PNG\r\n\x1a\n", 8}, IMAGE_PNG},
    {{"BM", 2}, IMAGE_BMP},
    {{"II*\0", 4}, IMAGE_TIFF},
    {{"MM\0*", 4}, IMAGE_TIFF},
    {{"P3", 2}, IMAGE_PPM},
    {{"P6", 2}, IMAGE_PPM},
};

static const struct {
    struct slice media;
    enum image_type type;
} media_types[] = {
    {{"image/jpeg", 10}, IMAGE_JPEG},
    {{"image/jpg", 9}, IMAGE_JPEG},
    {{"image/pjpeg", 11}, IMAGE_JPEG},
    {{"image/gif", 9}, IMAGE_GIF},
    {{"image/png", 9}, IMAGE_PNG},
    {{"image/x-png", 11}, IMAGE_PNG},
    {{"image/bmp", 9}, IMAGE_BMP},
    {{"image/x-ms-bmp", 14}, IMAGE_BMP},
    {{"image/tiff", 10}, IMAGE_TIFF},
    {{"image/webp", 10}, IMAGE_WEBP},
    {{"image/x-portable-pixmap", 23}, IMAGE_PPM},
    {{"image/x-portable-anymap", 23}, IMAGE_PPM},
};

enum image_type image_type_of_bytes(struct slice bytes) {
    bool could = false;
    for (size_t i = 0; i < sizeof signatures / sizeof *signatures; i++) {
        struct slice signature = signatures[i].bytes;
        if (slice_starts_with(bytes, signature))
            return signatures[i].type;
        could |= bytes.length < signature.length && slice_starts_with(signature, bytes);
    }
    static const struct slice riff = {"RIFF", 4}, webp = {"WEBP", 4};
    enum { KIND_AT = 8 };
    if (bytes.length >= KIND_AT + webp.length)
        return slice_starts_with(bytes, riff) && memcmp(bytes.base + KIND_AT, webp.base, 4) == 0
                   ? IMAGE_WEBP
                   : IMAGE_UNKNOWN;
    could |= bytes.length < riff.length ? slice_starts_with(riff, bytes)
                                        : slice_starts_with(bytes, riff);
    return could ? IMAGE_TOO_SHORT : IMAGE_UNKNOWN;
}

enum image_type image_type_of_media(struct slice type) {
    for (size_t i = 0; i < sizeof media_types / sizeof *media_types; i++)
        if (slice_equal_nocase(type, media_types[i].media))
            return media_types[i].type;
    return IMAGE_UNKNOWN;
}

struct slice image_type_media(enum image_type type) {
    for (size_t i = 0; i < sizeof media_types / sizeof *media_types; i++)
        if (media_types[i].type == type)
            return media_types[i].media;
    return slice_make("", 0);
}

/* Many texts begin with "BM". In a BMP two zeros stand behind it, and a header has one of the known
 * sizes. */
static bool is_bmp(struct slice bytes) {
    enum { RESERVED = 6, SIZE = 14 };
    static const unsigned char sizes[] = {12, 40, 52, 56, 64, 108, 124};
    const char *at = bytes.base;
    return memcmp(at + RESERVED, "\0\0\0", 4) == 0 &&
           memchr(sizes, at[SIZE], sizeof sizes) != NULL && memcmp(at + SIZE + 1, "\0\0", 3) == 0;
}

enum image_type image_type_sniffed(struct slice bytes) {
    enum image_type type = image_type_of_bytes(bytes);
    switch (type) {
    case IMAGE_TOO_SHORT:
    case IMAGE_JPEG:
    case IMAGE_GIF:
    case IMAGE_PNG:
    case IMAGE_WEBP: return type;
    case IMAGE_BMP:
        return bytes.length < IMAGE_SIGNATURE ? IMAGE_TOO_SHORT
               : is_bmp(bytes)                ? IMAGE_BMP
                                              : IMAGE_UNKNOWN;
    default: return IMAGE_UNKNOWN;
    }
}
