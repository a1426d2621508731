#include "naive.h"

#include "base/assert.h"

#include <ctype.h>

static bool is_blank(char c) {
    return c == ' ' || c == '\t';
}

static void add(struct naive_list *list, const char *from, const char *to) {
    while (from < to && is_blank(*from))
        from++;
    while (to > from && is_blank(to[-1]))
        to--;
    ASSERT(list->count < NAIVE_ELEMENTS_MAX);
    if (to > from)
        list->elements[list->count++] = slice_make(from, (size_t)(to - from));
}

void naive_list_of(struct naive_list *list, struct slice value) {
    enum { PLAIN, QUOTED, ESCAPED } state = PLAIN;
    const char *begin = value.base;
    list->count = 0;
    for (size_t i = 0; i < value.length; i++) {
        const char *at = value.base + i;
        switch (state) {
        case PLAIN:
            if (*at == '"')
                state = QUOTED;
            if (*at != ',')
                break;
            add(list, begin, at);
            begin = at + 1;
            break;
        case QUOTED: state = *at == '"' ? PLAIN : *at == '\\' ? ESCAPED : QUOTED; break;
        case ESCAPED: state = QUOTED; break;
        }
    }
    if (value.length > 0)
        add(list, begin, value.base + value.length);
}

bool naive_balanced(struct slice value) {
    bool quoted = false;
    for (size_t i = 0; i < value.length; i++) {
        if (quoted && value.base[i] == '\\')
            i++;
        else if (value.base[i] == '"')
            quoted = !quoted;
    }
    return !quoted;
}

__int128 naive_number(struct slice text, __int128 most) {
    __int128 number = 0;
    for (size_t i = 0; i < text.length; i++) {
        if (text.base[i] < '0' || text.base[i] > '9')
            return -1;
        number = number * 10 + (text.base[i] - '0');
        if (number > most)
            number = most;
    }
    return text.length == 0 ? -1 : number;
}

bool naive_equal_nocase(struct slice a, struct slice b) {
    if (a.length != b.length)
        return false;
    for (size_t i = 0; i < a.length; i++)
        if (tolower((unsigned char)a.base[i]) != tolower((unsigned char)b.base[i]))
            return false;
    return true;
}
