#include "base/text.h"

/* The smallest character that a sequence of 1, 2, 3 or 4 bytes may encode. */
static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};

static size_t text_length_of(unsigned char first) {
    return first < 0x80   ? 1
           : first < 0xc2 ? 0
           : first < 0xe0 ? 2
           : first < 0xf0 ? 3
           : first < 0xf5 ? 4
                          : 0;
}

size_t text_decode(struct slice text, uint32_t *character) {
    const unsigned char *bytes = (const unsigned char *)text.base;
    size_t length = text_length_of(bytes[0]);
    if (length <= 1) {
        *character = bytes[0];
        return length;
    }
    if (length > text.length)
        return 0;
    uint32_t value = bytes[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((bytes[i] & 0xc0) != 0x80)
            return 0;
        value = value << 6 | (bytes[i] & 0x3fu);
    }
    if (value < least[length] || (value >= 0xd800 && value <= 0xdfff) || value > 0x10ffff)
        return 0;
    *character = value;
    return length;
}

bool text_is_hidden(uint32_t character) {
    static const struct {
        uint32_t first, last;
    } hidden[] = {{0, 0x1f},        {0x7f, 0x9f},     {0xad, 0xad},      {0x61c, 0x61c},
                  {0x180e, 0x180e}, {0x200b, 0x200f}, {0x2028, 0x202e},  {0x2060, 0x206f},
                  {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f}};
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++)
        if (character >= hidden[i].first && character <= hidden[i].last)
            return true;
    return false;
}

struct slice text_without_mark(struct slice text) {
    static const struct slice mark = {"\xef\xbb\xbf", 3};
    if (!slice_starts_with(text, mark))
        return text;
    return slice_make(text.base + mark.length, text.length - mark.length);
}
