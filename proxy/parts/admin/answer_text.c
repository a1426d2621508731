#include "admin/answer_text.h"

#include "admin/answer.h"
#include "admin/settings_text.h"
#include "base/assert.h"
#include "base/units.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DEPTH = 8, NAME_MAX_LENGTH = 40 };

static const char colour_end[] = "\033[m";

const char *answer_colour_code(enum answer_colour colour) {
    static const char *const codes[] = {
        [ANSWER_PLAIN] = "",       [ANSWER_HEADING] = "\033[1m", [ANSWER_GOOD] = "\033[32m",
        [ANSWER_BAD] = "\033[31m", [ANSWER_NOTE] = "\033[33m",
    };
    return codes[colour];
}

enum answer_colour answer_colour_of(const char *state) {
    static const struct {
        const char *word;
        enum answer_colour colour;
    } states[] = {{"up", ANSWER_GOOD},    {"running", ANSWER_GOOD},  {"idle", ANSWER_GOOD},
                  {"fresh", ANSWER_GOOD}, {"closed", ANSWER_GOOD},   {"busy", ANSWER_NOTE},
                  {"stale", ANSWER_NOTE}, {"draining", ANSWER_NOTE}, {"down", ANSWER_BAD},
                  {"open", ANSWER_BAD}};
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        if (strcmp(state, states[i].word) == 0)
            return states[i].colour;
    return ANSWER_PLAIN;
}

/* Functions of forms. */

static void answer_text_size(FILE *out, const struct answer_style *style, const json_t *value) {
    char text[UNITS_TEXT];
    (void)style;
    fputs(units_show_size(text, (uint64_t)json_integer_value(value)), out);
}

static void answer_text_duration(FILE *out, const struct answer_style *style, const json_t *value) {
    char text[UNITS_TEXT];
    (void)style;
    fputs(units_show_time(text, (uint64_t)json_number_value(value)), out);
}

static void answer_text_local_time(FILE *out, const struct answer_style *style,
                                   const json_t *value) {
    char text[40];
    struct tm local;
    time_t at = (time_t)(json_integer_value(value) + style->zone);
    if (gmtime_r(&at, &local) != NULL &&
        strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local) > 0)
        fputs(text, out);
}

/* ", 13.3 % of 15 lookups were hits" */
static void answer_text_hits(FILE *out, const struct answer_style *style, const json_t *counters) {
    json_int_t hits = json_integer_value(json_object_get(counters, "cache_hits"));
    json_int_t lookups = hits + json_integer_value(json_object_get(counters, "cache_misses")) +
                         json_integer_value(json_object_get(counters, "cache_revalidated"));
    (void)style;
    if (lookups > 0)
        fprintf(out, ", %.1f %% of %" JSON_INTEGER_FORMAT " lookups were hits",
                100.0 * (double)hits / (double)lookups, lookups);
}

static void answer_text_zeros(FILE *out, const struct answer_style *style, const json_t *counters) {
    const char *name;
    json_t *value;
    size_t zeros = 0;
    (void)style;
    json_object_foreach((json_t *)counters, name, value) zeros += json_integer_value(value) == 0;
    if (zeros > 0)
        fprintf(out, "(%zu more are 0)\n", zeros);
}

/* "0/16", of a pool of helpers */
static void answer_text_queue(FILE *out, const struct answer_style *style, const json_t *pool) {
    char text[48];
    (void)style;
    snprintf(text, sizeof text, "%" JSON_INTEGER_FORMAT "/%" JSON_INTEGER_FORMAT,
             json_integer_value(json_object_get(pool, "queued")),
             json_integer_value(json_object_get(pool, "queue")));
    fprintf(out, "%9s", text);
}

/* "verdict" of "verdict_seconds" */
static void answer_text_without_unit(FILE *out, const struct answer_style *style,
                                     const json_t *name) {
    const char *text = json_string_value(name), *unit = strstr(text, "_seconds");
    (void)style;
    fprintf(out, "%.*s", (int)(unit != NULL ? (size_t)(unit - text) : strlen(text)), text);
}

/* The secondary key contains one line for each field. answer_show has made its line ends visible. */
static void answer_text_vary(FILE *out, const struct answer_style *style, const json_t *value) {
    static const char line_end[] = "\\u000a";
    const char *end, *vary = json_is_string(value) ? json_string_value(value) : "";
    (void)style;
    for (; (end = strstr(vary, line_end)) != NULL; vary = end + sizeof line_end - 1)
        fprintf(out, "    varies by %.*s\n", (int)(end - vary), vary);
}

/* As it would be typed: without the quotes of JSON where it is one word. */
static void answer_text_typed(FILE *out, const struct answer_style *style, const json_t *value) {
    size_t i;
    json_t *element;
    (void)style;
    if (json_is_string(value))
        fputs(json_string_length(value) == 0 ? "-" : json_string_value(value), out);
    else if (json_is_null(value) || value == NULL)
        fputs("-", out);
    else if (!json_is_array(value))
        json_dumpf(value, out, JSON_ENCODE_ANY | JSON_REAL_PRECISION(10));
    json_array_foreach(value, i, element) {
        fputs(i > 0 ? ", " : "", out);
        if (json_is_string(element))
            fputs(json_string_value(element), out);
        else
            json_dumpf(element, out, JSON_ENCODE_ANY);
    }
}

/* "1 (2 at restart)" */
static void answer_text_option(FILE *out, const struct answer_style *style, const json_t *option) {
    const json_t *waits = json_object_get(option, "waits");
    answer_text_typed(out, style, json_object_get(option, "value"));
    if (waits == NULL)
        return;
    fputs(" (", out);
    answer_text_typed(out, style, waits);
    fputs(" at restart)", out);
}

static void answer_text_settings(FILE *out, const struct answer_style *style,
                                 const json_t *settings) {
    (void)style;
    settings_text_write(out, settings);
}

static const struct form_function {
    const char *name;
    void (*put)(FILE *out, const struct answer_style *style, const json_t *value);
} form_functions[] = {
    {"size", answer_text_size},        {"duration", answer_text_duration},
    {"local", answer_text_local_time}, {"hits", answer_text_hits},
    {"zeros", answer_text_zeros},      {"unitless", answer_text_without_unit},
    {"vary", answer_text_vary},        {"typed", answer_text_typed},
    {"option", answer_text_option},    {"settings", answer_text_settings},
    {"queue", answer_text_queue},
};

/* Forms. */

struct form {
    FILE *out;
    const struct answer_style *style;
    unsigned depth;
    struct {
        json_t *value, *key;
        bool next;
    } around[DEPTH];
    bool heading;
};

/* A name with what stands in front of it and behind it, as read from a form. */
struct place {
    bool not, present;
    char name[NAME_MAX_LENGTH];
};

static const char *place_read(const char *at, struct place *place) {
    *place = (struct place){.not = *at == '!'};
    at += place->not ;
    place->present = *at == '?';
    at += place->present;
    size_t length = 0;
    while (islower((unsigned char)at[length]) || isdigit((unsigned char)at[length]) ||
           at[length] == '_' || at[length] == '.')
        length++;
    ASSERT(length < sizeof place->name);
    memcpy(place->name, at, length);
    return at + length;
}

/* NULL: it is nowhere. */
static json_t *form_find(const struct form *form, const char *name) {
    const char *dot = strchr(name, '.');
    json_t *value = NULL;
    if (name[0] == '\0' || strcmp(name, ".") == 0)
        return form->around[form->depth].value;
    if (strcmp(name, ".key") == 0)
        return form->around[form->depth].key;
    if (dot != NULL) {
        char first[NAME_MAX_LENGTH];
        snprintf(first, sizeof first, "%.*s", (int)(dot - name), name);
        return json_object_get(form_find(form, first), dot + 1);
    }
    for (unsigned i = form->depth + 1; i-- > 0 && value == NULL;)
        value = json_object_get(form->around[i].value, name);
    return value;
}

static bool is_true(const json_t *value) {
    switch (value == NULL ? JSON_NULL : json_typeof(value)) {
    case JSON_NULL:
    case JSON_FALSE: return false;
    case JSON_INTEGER: return json_integer_value(value) != 0;
    case JSON_REAL: return json_real_value(value) > 0;
    case JSON_STRING: return json_string_length(value) > 0;
    case JSON_ARRAY: return json_array_size(value) > 0;
    case JSON_OBJECT: return json_object_size(value) > 0;
    default: return true;
    }
}

static void answer_text_plain(FILE *out, const json_t *value) {
    if (json_is_string(value))
        fputs(json_string_value(value), out);
    else if (json_is_integer(value))
        fprintf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
}

/* As `form_function` or as it is; the caller frees it. */
static char *text_of_value(const struct form *form, const struct form_function *function,
                           const json_t *value) {
    char *text;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    ASSERT(out != NULL);
    if (function != NULL)
        function->put(out, form->style, value);
    else
        answer_text_plain(out, value);
    ASSERT(fclose(out) == 0);
    return text;
}

/* Behind '%': "-24s", "6d", ".1f". */
static void put_formatted(const struct form *form, const char *at,
                          const struct form_function *function, const json_t *value,
                          double factor) {
    char *end;
    int width = (int)strtol(at, &end, 10), precision = 6;
    if (*end == '.')
        precision = (int)strtol(end + 1, &end, 10);
    if (*end == 'd') {
        fprintf(form->out, "%*" JSON_INTEGER_FORMAT, width, json_integer_value(value));
    } else if (*end == 'f') {
        fprintf(form->out, "%*.*f", width, precision, factor * json_number_value(value));
    } else {
        char *text = text_of_value(form, function, value);
        fprintf(form->out, "%*s", width, text);
        free(text);
    }
}

static const struct form_function *function_named(const char *name, size_t length) {
    for (size_t i = 0; i < sizeof form_functions / sizeof *form_functions; i++)
        if (strlen(form_functions[i].name) == length &&
            strncmp(form_functions[i].name, name, length) == 0)
            return &form_functions[i];
    ASSERT(!"a form names a function that is not there");
    return NULL;
}

/* "/one/more}" */
static void put_word_for(const struct form *form, const char *at, const json_t *value) {
    const char *more = strchr(at + 1, '/');
    if (json_integer_value(value) == 1)
        fprintf(form->out, "%.*s", (int)(more - at - 1), at + 1);
    else
        fprintf(form->out, "%.*s", (int)strcspn(more + 1, "}"), more + 1);
}

/* Behind '{'. Returns what stands behind '}'. */
static const char *form_put(const struct form *form, const char *at) {
    struct place place;
    const struct form_function *function = NULL;
    at = place_read(at, &place);
    const char *end = strchr(at, '}') + 1;
    const json_t *value = form_find(form, place.name);
    bool coloured = *at == '!' && form->style->colours, thousand;
    if (*at == '/') {
        put_word_for(form, at, value);
        return end;
    }
    at += *at == '!';
    thousand = *at == '*';
    at += thousand;
    if (*at == ':') {
        size_t length = strcspn(at + 1, "%}");
        function = function_named(at + 1, length);
        at += 1 + length;
    }
    if (coloured && json_is_string(value))
        fputs(answer_colour_code(answer_colour_of(json_string_value(value))), form->out);
    put_formatted(form, *at == '%' ? at + 1 : "s", function, value, thousand ? 1000 : 1);
    if (coloured)
        fputs(colour_end, form->out);
    return end;
}

static const char *form_run(struct form *form, const char *at, bool shown);

/* Behind '['. Returns what stands behind ']'. */
static const char *form_choose(struct form *form, const char *at, bool shown) {
    struct place place;
    at = place_read(at, &place);
    const json_t *value = form_find(form, place.name);
    bool is = strcmp(place.name, ".next") == 0 ? form->around[form->depth].next
              : place.present                  ? value != NULL && !json_is_null(value)
                                               : is_true(value);
    if (*at == '=') {
        size_t length = strcspn(at + 1, " ");
        char *text = text_of_value(form, NULL, value);
        is = strlen(text) == length && strncmp(text, at + 1, length) == 0;
        free(text);
        at += 1 + length;
    }
    ASSERT(*at == ' ');
    return form_run(form, at + 1, shown && is != place.not );
}

/* Shows one element, or nothing but where it ends. */
static const char *form_element(struct form *form, const char *at, json_t *value, const char *key,
                                bool next) {
    json_t *name = key == NULL ? NULL : json_string(key);
    ASSERT(form->depth + 1 < DEPTH);
    form->depth++;
    form->around[form->depth].value = value;
    form->around[form->depth].key = name;
    form->around[form->depth].next = next;
    at = form_run(form, at, value != NULL);
    form->depth--;
    json_decref(name);
    return at;
}

/* Behind '<'. Returns what stands behind '>'. */
static const char *form_repeat(struct form *form, const char *at, bool shown) {
    struct place place;
    const char *key;
    size_t i;
    bool next = false;
    json_t *element;
    at = place_read(at, &place) + 1;
    json_t *list = shown ? form_find(form, place.name) : NULL;
    json_array_foreach(list, i, element) form_element(form, at, element, NULL, i > 0);
    json_object_foreach(list, key, element) {
        form_element(form, at, element, key, next);
        next = true;
    }
    return form_element(form, at, NULL, NULL, false);
}

static void form_heading(struct form *form) {
    form->heading = !form->heading;
    if (form->style->colours)
        fputs(form->heading ? answer_colour_code(ANSWER_HEADING) : colour_end, form->out);
    if (!form->heading)
        fputc('\n', form->out);
}

/* Up to the end of the form, or of the part that it is in; returns what stands behind it. */
static const char *form_run(struct form *form, const char *at, bool shown) {
    while (*at != '\0' && *at != ']' && *at != '>') {
        char character = *at++;
        if (character == '[')
            at = form_choose(form, at, shown);
        else if (character == '<')
            at = form_repeat(form, at, shown);
        else if (character == '{')
            at = shown ? form_put(form, at) : strchr(at, '}') + 1;
        else if (character == '^' && shown)
            form_heading(form);
        else if (character == '\\')
            character = *at++, shown ? fputc(character, form->out) : 0;
        else if (shown)
            fputc(character, form->out);
    }
    return *at == '\0' ? at : at + 1;
}

void answer_text_write(FILE *out, const char *text, const struct answer_style *style,
                       json_t *json) {
    struct form form = {.out = out, .style = style};
    form.around[0].value = json;
    answer_show(json);
    form_run(&form, text, true);
}

void answer_text_refuse(FILE *out, json_t *json) {
    const struct answer_style style = {.colours = false};
    answer_text_write(out, "<errors ! {.}\n>[!errors ! {error}\n]", &style, json);
}
