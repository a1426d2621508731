#include "admin/answer.h"

#include "base/assert.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>

char *answer_put(char *at, struct slice *text) {
    uint32_t character;
    size_t length = text_decode(*text, &character);
    const char *bytes = text->base;
    size_t taken = length > 0 ? length : 1;
    *text = slice_make(bytes + taken, text->length - taken);
    if (length == 0) /* it is no UTF-8, and may control an old terminal */
        return at + sprintf(at, "\\x%02x", (unsigned char)bytes[0]);
    if (!text_is_hidden(character))
        return slice_put(at, slice_make(bytes, taken));
    if (character < 0x10000)
        return at + sprintf(at, "\\u%04x", character);
    return at +
           sprintf(at, "\\u%04x\\u%04x", 0xd7c0 + (character >> 10), 0xdc00 + (character & 0x3ff));
}

/* The caller frees it. */
static char *answer_shown(struct slice rest, size_t *length) {
    char *shown = xcalloc(rest.length + 1, ANSWER_SHOWN), *at = shown;
    while (rest.length > 0)
        at = answer_put(at, &rest);
    *length = (size_t)(at - shown);
    return shown;
}

static void answer_show_string(json_t *json) {
    size_t length;
    char *shown =
        answer_shown(slice_make(json_string_value(json), json_string_length(json)), &length);
    json_string_setn(json, shown, length);
    free(shown);
}

/* The names of members come from the other side as well. */
static void show_name(json_t *json, const char *name, json_t *value) {
    size_t length;
    char *shown = answer_shown(slice_from(name), &length);
    if (strcmp(shown, name) != 0) {
        json_object_set(json, shown, value);
        json_object_del(json, name);
    }
    free(shown);
}

void answer_show(json_t *json) {
    const char *name;
    size_t i;
    json_t *value;
    void *next;
    if (json_is_string(json))
        answer_show_string(json);
    json_array_foreach(json, i, value) answer_show(value);
    json_object_foreach(json, name, value) answer_show(value);
    json_object_foreach_safe(json, next, name, value) show_name(json, name, value);
}

json_t *answer_load(const char *body, size_t length) {
    json_t *json = json_loadb(body, length, 0, NULL);
    answer_show(json);
    return json;
}
