/*
 * Error pages and other texts with variables (text/text_template.h). Lines: the number of an
 * escape, the text of an operator, what its variables stand for.
 *
 * Whatever the variables stand for, the text has no more markup, control characters, ends of
 * strings or separators of a URL than the operator has written; the text is no longer than its
 * escapes allow; and the name of a field is one, and not one that carries credentials.
 */
#include "base/assert.h"
#include "lines.h"
#include "text/text_template.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LONGEST_ESCAPE = 6 };

struct values {
    struct slice value; /* of each variable */
    unsigned asked;
};

static bool is_credentials(struct slice name) {
    return slice_equal_nocase(name, SLICE("Authorization")) ||
           slice_equal_nocase(name, SLICE("Proxy-Authorization")) ||
           slice_equal_nocase(name, SLICE("Cookie")) ||
           slice_equal_nocase(name, SLICE("Set-Cookie"));
}

static struct slice value_of(void *arg, enum variable variable, struct slice field) {
    struct values *values = arg;
    bool is_field =
        (int)variable == VARIABLE_REQUEST_FIELD || (int)variable == VARIABLE_RESPONSE_FIELD;
    ASSERT(is_field == (field.length > 0) && !is_credentials(field));
    for (size_t i = 0; i < field.length; i++)
        ASSERT((unsigned char)field.base[i] > ' ' && strchr("\x7f{}:\"<>", field.base[i]) == NULL);
    values->asked++;
    return values->value;
}

static size_t count_of(struct slice text, const char *bytes) {
    size_t count = 0;
    for (size_t i = 0; i < text.length; i++)
        count += text.base[i] != '\0' && strchr(bytes, text.base[i]) != NULL;
    return count;
}

static size_t count_controls(struct slice text) {
    size_t count = 0;
    for (size_t i = 0; i < text.length; i++)
        count += (unsigned char)text.base[i] < ' ' || text.base[i] == '\x7f';
    return count;
}

/* Quotation marks that no backslash stands before. */
static size_t count_quotes(struct slice text) {
    size_t count = 0;
    for (size_t i = 0; i < text.length; i++) {
        if (text.base[i] == '\\')
            i++;
        else
            count += text.base[i] == '"';
    }
    return count;
}

static void check_kept(enum text_escape escape, struct slice bare, struct slice full) {
    static const char *const meant[] = {[TEXT_AS_IS] = "\r\n\v\f",
                                        [TEXT_URL] = " <>\"\\^`{|}#\r\n",
                                        [TEXT_HTML] = "<>\"'\r\n",
                                        [TEXT_JSON] = "<>&\r\n"};
    ASSERT(count_of(full, meant[escape]) == count_of(bare, meant[escape]));
    ASSERT(count_controls(full) == count_controls(bare));
    /* A backslash of the operator's before a variable would belong to what it stands for. */
    if (escape == TEXT_JSON && count_of(bare, "\\") == 0)
        ASSERT(count_quotes(full) == count_quotes(bare));
}

static void check_text(const struct text_template *text, enum text_escape escape,
                       struct slice value, struct arena *arena) {
    struct values none = {.asked = 0}, some = {.value = value};
    struct slice bare = text_template_write(text, value_of, &none, escape, arena);
    struct slice full = text_template_write(text, value_of, &some, escape, arena);
    ASSERT(none.asked == some.asked && none.asked <= TEXT_TEMPLATE_VARIABLES);
    ASSERT(full.base[full.length] == '\0' && full.length >= bare.length);
    ASSERT(full.length - bare.length <= value.length * LONGEST_ESCAPE * some.asked);
    check_kept(escape, bare, full);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct lines lines = lines_of(data, size);
    enum text_escape escape = (enum text_escape)(lines_number(&lines) % 4);
    struct slice line = lines_next(&lines), value = lines_next(&lines);
    char error[600], *text = slice_dup(line);
    struct arena arena;
    arena_init(&arena);
    struct text_template *template =
        lines_number(&lines) % 2 == 0 ? text_template_new(text, error, sizeof error)
                                      : text_template_new_for_groups(text, 9, error, sizeof error);
    if (template != NULL)
        check_text(template, escape, value, &arena);
    text_template_free(&template);
    free(text);
    arena_release(&arena);
    return 0;
}
