#include "spans/otlp_answer.h"

#include <jansson.h>

static uint64_t answer_number(const json_t *value) {
    uint64_t number = 0;
    if (json_is_integer(value) && json_integer_value(value) > 0)
        return (uint64_t)json_integer_value(value);
    if (json_is_string(value) &&
        !slice_to_uint64(slice_make(json_string_value(value), json_string_length(value)), &number))
        return 0;
    return number;
}

static void answer_text(const json_t *value, char why[OTLP_ANSWER_WHY]) {
    const char *text = json_string_value(value);
    size_t length = 0;
    for (; text != NULL && text[length] != '\0' && length < OTLP_ANSWER_WHY - 1; length++)
        why[length] = text[length] >= ' ' && text[length] <= '~' ? text[length] : '?';
    why[length] = '\0';
}

uint64_t otlp_answer_rejected(struct slice body, char why[OTLP_ANSWER_WHY]) {
    json_t *answer = json_loadb(body.base, body.length, 0, NULL);
    const json_t *partial = json_object_get(answer, "partialSuccess");
    uint64_t rejected = answer_number(json_object_get(partial, "rejectedSpans"));
    answer_text(json_object_get(partial, "errorMessage"), why);
    json_decref(answer);
    return rejected;
}
