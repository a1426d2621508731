#include "adremover/replacement.h"

#include "adremover/request.h"
#include "base/assert.h"
#include "base/failure.h"

#include <errno.h>
#include <stdio.h>

static const struct {
    unsigned types;
    struct slice name;
} kinds[] = {
#define KIND(types, name)                                                                          \
    {                                                                                              \
        types, {                                                                                   \
            name, sizeof name - 1                                                                  \
        }                                                                                          \
    }
    KIND(FILTER_TYPE_IMAGE, "blank.gif"),
    KIND(FILTER_TYPE_SCRIPT, "empty.js"),
    KIND(FILTER_TYPE_STYLESHEET, "empty.css"),
    KIND(FILTER_TYPE_SUBDOCUMENT | FILTER_TYPE_DOCUMENT, "empty.html"),
    KIND(FILTER_TYPE_MEDIA, "empty.mp4"),
};

const struct neutral *replacement_of(unsigned types, struct slice resource) {
    const struct neutral *neutral = resource.length > 0 ? neutral_find(resource) : NULL;
    if (neutral != NULL)
        return neutral;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if ((types & ~kinds[i].types) == 0)
            return neutral_find(kinds[i].name);
    return neutral_find(SLICE("empty.txt"));
}

bool replacement_is_picture(const struct neutral *neutral) {
    return slice_starts_with(neutral->type, SLICE("image/"));
}

static struct slice own_picture_type_of(struct slice body) {
    if (slice_starts_with(body, SLICE("GIF8")))
        return SLICE("image/gif");
    if (slice_starts_with(body, SLICE("\x89PNG\r\n")))
        return SLICE("image/png");
    if (slice_starts_with(body, SLICE("\xff\xd8\xff")))
        return SLICE("image/jpeg");
    if (slice_starts_with(body, SLICE("RIFF")) && body.length > 12 &&
        memcmp(body.base + 8, "WEBP", 4) == 0)
        return SLICE("image/webp");
    if (slice_starts_with(body, SLICE("<svg")) || slice_starts_with(body, SLICE("<?xml")))
        return SLICE("image/svg+xml");
    return SLICE("");
}

bool own_picture_load(struct own_picture *picture, const char *path, char *error,
                      size_t error_size) {
    *picture = (struct own_picture){SLICE(""), SLICE("")};
    if (path[0] == 0)
        return true;
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return failure(error, error_size, "Picture %s: %s", path, strerror(errno));
    char *bytes = xmalloc(OWN_PICTURE_MAX + 1);
    size_t length = fread(bytes, 1, OWN_PICTURE_MAX + 1, file);
    bool failed = ferror(file) != 0;
    fclose(file);
    picture->body = slice_make(bytes, length);
    picture->type = own_picture_type_of(picture->body);
    if (!failed && length <= OWN_PICTURE_MAX && picture->type.length > 0)
        return true;
    snprintf(error, error_size,
             "Picture %s: wants a GIF, PNG, JPEG, WebP or SVG of at most %d bytes", path,
             OWN_PICTURE_MAX);
    free(bytes);
    *picture = (struct own_picture){SLICE(""), SLICE("")};
    return false;
}

void own_picture_release(struct own_picture *picture) {
    if (picture->body.length > 0)
        free((char *)picture->body.base);
    *picture = (struct own_picture){SLICE(""), SLICE("")};
}
