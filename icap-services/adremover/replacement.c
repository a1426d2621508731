#include "adremover/replacement.h"

#include "adremover/request.h"

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
