/*
 * Texts with variables, and rules for fields. Lines: the number of an action, a rule, what a
 * variable stands for; then the fields of a head.
 */
#include "base/assert.h"
#include "lines.h"
#include "rewrite/field_rules.h"

#include <jansson.h>
#include <stdlib.h>

static struct slice value_of(void *arg, enum variable variable, struct slice field) {
    (void)variable;
    (void)field;
    return *(struct slice *)arg;
}

static bool has_any(struct slice text, const char *bytes) {
    for (size_t i = 0; i < text.length; i++)
        if (text.base[i] != '\0' && strchr(bytes, text.base[i]) != NULL)
            return true;
    return false;
}

static bool has_controls(struct slice text) {
    for (size_t i = 0; i < text.length; i++)
        if (((unsigned char)text.base[i] < 0x20 && text.base[i] != '\t') || text.base[i] == 0x7f)
            return true;
    return false;
}

static void check_json(struct slice text) {
    json_t *value = json_loadb(text.base, text.length, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    ASSERT(value != NULL && json_is_string(value));
    json_decref(value);
}

/* Whatever the value is, it stays in its place. */
static void check_escapes(struct slice value, struct arena *arena) {
    char error[500];
    struct text_template *plain = text_template_new("%{user}", error, sizeof error);
    struct text_template *quoted = text_template_new("\"%{user}\"", error, sizeof error);
    ASSERT(plain != NULL && quoted != NULL);
    ASSERT(!has_controls(text_template_write(plain, value_of, &value, TEXT_AS_IS, arena)));
    ASSERT(!has_any(text_template_write(plain, value_of, &value, TEXT_HTML, arena), "<>\"'"));
    ASSERT(!has_any(text_template_write(plain, value_of, &value, TEXT_URL, arena),
                    " <>\"'?#/&=:@;\\\r\n"));
    check_json(text_template_write(quoted, value_of, &value, TEXT_JSON, arena));
    text_template_free(&plain);
    text_template_free(&quoted);
}

static struct slice framing_of(const struct http_head *head, struct arena *arena) {
    return arena_concat(arena, http_head_joined_value(head, HTTP_CONNECTION, arena), SLICE("|"),
                        http_head_joined_value(head, HTTP_CONTENT_LENGTH, arena), SLICE("|"),
                        http_head_joined_value(head, HTTP_TRANSFER_ENCODING, arena), SLICE("|"),
                        http_head_joined_value(head, HTTP_HOST, arena));
}

static void check_rule(const struct field_rules *rules, struct http_head *head, struct slice value,
                       struct arena *arena) {
    struct field_changes changes = {.value = value_of, .arg = &value, .arena = arena};
    struct slice framing = framing_of(head, arena);
    field_changes_begin(&changes, head);
    field_rules_apply(rules, &changes);
    ASSERT(!has_any(field_changes_lines(&changes), "\v\f\b") && changes.added->field_count <= 1);
    if (!field_changes_join(&changes))
        return;
    ASSERT(slice_equal(framing, framing_of(head, arena)));
    for (unsigned i = 0; i < head->field_count; i++)
        ASSERT(!has_controls(head->fields[i].value));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct http_head head, changed;
    struct arena arena;
    struct lines lines = lines_of(data, size);
    enum field_action action = (enum field_action)(lines_number(&lines) % 4);
    struct slice rule = lines_next(&lines), value = lines_next(&lines);
    struct field_rules *rules = field_rules_new();
    char error[600], *text = slice_dup(rule);
    lines_head(&lines, &head);
    arena_init(&arena);
    http_head_assign(&changed, &head);
    check_escapes(value, &arena);
    if (field_rules_add(rules, action, FIELD_OF_RESPONSE, text, error, sizeof error))
        check_rule(rules, &changed, value, &arena);
    field_rules_free(&rules);
    free(text);
    arena_release(&arena);
    lines_head_free(&head);
    return 0;
}
