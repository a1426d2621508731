/* Lists in files, and the values of classes that have a grammar: the first byte chooses which. What
 * is taken is found again. */
#include "base/assert.h"
#include "http/url.h"
#include "lists/list_file.h"
#include "lists/url_set.h"
#include "match/class_conditions.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct lines {
    enum class_list_kind kind;
    struct url_set *urls;
};

static bool take_line_of_list(void *arg, struct slice line, char *error, size_t error_size) {
    const struct lines *lines = arg;
    ASSERT(line.length > 0 && line.length <= LIST_FILE_LINE_MAX);
    error[0] = '\0';
    bool good = class_list_check_line(lines->kind, line, error, error_size);
    ASSERT(good || error[0] != '\0');
    if (lines->kind == CLASS_LIST_URLS)
        ASSERT(url_set_add(lines->urls, line, error, error_size) == good);
    return good;
}

/* Whole URLs, which need not be guessed. */
static bool find_line_again(void *arg, struct slice line, char *error, size_t error_size) {
    const struct lines *lines = arg;
    struct url url;
    (void)error;
    (void)error_size;
    if (line.base[line.length - 1] == '*' || !url_parse(&url, line))
        return true;
    size_t room = url_room(&url);
    char *text = xmalloc(room);
    ASSERT(url_set_has(lines->urls, slice_make(text, url_normalise(&url, text, room))));
    free(text);
    return true;
}

static void check_list(enum class_list_kind kind, struct slice text) {
    struct lines lines = {kind, url_set_new()};
    char error[600] = "";
    size_t line;
    bool good = list_file_parse(text, take_line_of_list, &lines, &line, error, sizeof error);
    ASSERT(good || error[0] != '\0');
    url_set_seal(lines.urls);
    url_set_has(lines.urls, text);
    if (good && kind == CLASS_LIST_URLS)
        ASSERT(list_file_parse(text, find_line_again, &lines, &line, error, sizeof error));
    url_set_free(&lines.urls);
}

static void check_hours(const char *text) {
    struct class_hours hours, again;
    char error[400] = "";
    class_hours_clear(&hours);
    again = hours;
    if (!class_hours_add(&hours, text, error, sizeof error)) {
        ASSERT(error[0] != '\0' && memcmp(&hours, &again, sizeof hours) == 0);
        return;
    }
    ASSERT(memcmp(&hours, &again, sizeof hours) != 0);
    ASSERT(class_hours_add(&again, text, error, sizeof error));
    ASSERT(memcmp(&hours, &again, sizeof hours) == 0);
}

static void check_field(char *text) {
    char error[400] = "";
    struct class_fields fields;
    struct http_head head;
    if (!class_fields_check(text, error, sizeof error)) {
        ASSERT(error[0] != '\0');
        return;
    }
    class_fields_compile(&fields, (char *[]){text, NULL});
    http_head_init(&head);
    http_head_add(&head, slice_make(text, strcspn(text, ":")), slice_from(text));
    class_fields_find(&fields, &head);
    class_fields_release(&fields);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    enum { HOURS = CLASS_LIST_URLS + 1, FIELD, CHOICES };
    if (size == 0)
        return 0;
    struct slice text = slice_make((const char *)data + 1, size - 1);
    unsigned choice = data[0] % CHOICES;
    if (choice <= CLASS_LIST_URLS) {
        check_list((enum class_list_kind)choice, text);
        return 0;
    }
    char *copy = text.length == 0 ? xstrdup("") : slice_dup(text);
    if (choice == HOURS)
        check_hours(copy);
    else
        check_field(copy);
    free(copy);
    return 0;
}
