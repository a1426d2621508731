#include "lifetimes.h"

#include "service/url_pattern.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

void lifetimes_release(struct lifetimes *list) {
    for (unsigned i = 0; i < list->count; i++)
        free(list->rows[i].pattern);
    list->count = 0;
}

static bool lifetimes_add(struct lifetimes *list, struct slice line) {
    const char *end = line.base + line.length, *at = end;
    uint64_t seconds;
    while (at > line.base && at[-1] != ' ' && at[-1] != '\t')
        at--;
    struct slice pattern = slice_trim(slice_make(line.base, (size_t)(at - line.base)));
    if (pattern.length == 0 || !slice_to_uint64(slice_make(at, (size_t)(end - at)), &seconds) ||
        seconds > INT32_MAX || list->count == LIFETIMES_MOST)
        return false;
    list->rows[list->count++] = (struct lifetime){slice_dup(pattern), (int64_t)seconds};
    return true;
}

static void lifetimes_parse(struct lifetimes *list, struct slice text, const char *path,
                            char *error, size_t error_size) {
    unsigned number = 0;
    while (text.length > 0) {
        const char *newline = memchr(text.base, '\n', text.length);
        size_t length = newline == NULL ? text.length : (size_t)(newline - text.base);
        struct slice line = slice_trim(slice_make(text.base, length));
        size_t taken = newline == NULL ? length : length + 1;
        text = slice_make(text.base + taken, text.length - taken);
        number++;
        if (line.length > 0 && line.base[0] != '#' && !lifetimes_add(list, line))
            snprintf(
                error, error_size,
                "%s:%u: this is no line PATTERN SECONDS, or there are more than %d: it is left "
                "out",
                path, number, LIFETIMES_MOST);
    }
}

bool lifetimes_load(struct lifetimes *list, const char *path, char *error, size_t error_size) {
    struct stat now;
    error[0] = '\0';
    if (stat(path, &now) != 0 ||
        (now.st_size == list->size && now.st_mtim.tv_sec == list->modified.tv_sec &&
         now.st_mtim.tv_nsec == list->modified.tv_nsec))
        return false; /* a list that is not there for a moment stays as it was */
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    char *text = malloc(LIFETIMES_FILE);
    size_t length = text == NULL ? 0 : fread(text, 1, LIFETIMES_FILE, file);
    fclose(file);
    lifetimes_release(list);
    lifetimes_parse(list, slice_make(text, length), path, error, error_size);
    free(text);
    list->modified = now.st_mtim;
    list->size = now.st_size;
    return true;
}

bool lifetimes_find(const struct lifetimes *list, struct slice url, int64_t *seconds) {
    for (unsigned i = 0; i < list->count; i++)
        if (url_pattern_matches(slice_from(list->rows[i].pattern), url)) {
            *seconds = list->rows[i].seconds;
            return true;
        }
    return false;
}
