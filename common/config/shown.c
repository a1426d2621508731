#include "config/shown.h"

#include "base/assert.h"
#include "base/slice.h"
#include "http/secret_field.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOT_SHOWN "(not shown)"

/* The text is "Name: value". */
static bool names_credentials(const char *text) {
    return secret_field(slice_trim(slice_make(text, strcspn(text, ":"))));
}

/* Between variables there may be signs, but no letters and digits. */
static bool has_only_variables(const char *value) {
    for (; *value != '\0'; value++) {
        const char *end = value[0] == '%' && value[1] == '{' ? strchr(value, '}') : NULL;
        bool sign = strchr(" \t;,=:/\"'()[]-", *value) != NULL;
        if (end == NULL && !sign)
            return false;
        value = end == NULL ? value : end;
    }
    return true;
}

/* "Name:", or the whole text where it has no name. */
static size_t shown_name_length(const char *text) {
    const char *colon = strchr(text, ':');
    return colon == NULL ? 0 : (size_t)(colon + 1 - text);
}

static bool hides_field(const struct option *option, const char *text) {
    if (option->secret == OPTION_SECRET_NAMED)
        return names_credentials(text) && text[shown_name_length(text)] != '\0';
    return option->secret == OPTION_SECRET_FIELD &&
           !has_only_variables(text + shown_name_length(text));
}

bool shown_is_credential(const struct option *option, const char *text) {
    return option->secret == OPTION_SECRET ||
           (hides_field(option, text) && names_credentials(text));
}

/* The user and the password of "://USER:PASSWORD@" in a text; NULL: it has none. */
static const char *find_userinfo(const char *text, size_t *length) {
    for (const char *at = strstr(text, "://"); at != NULL; at = strstr(at, "://")) {
        at += strlen("://");
        size_t authority = strcspn(at, "/?# ");
        const char *end = memrchr(at, '@', authority);
        *length = end == NULL ? 0 : (size_t)(end - at);
        if (end != NULL && memchr(at, ':', *length) != NULL)
            return at;
    }
    return NULL;
}

bool shown_hides(const struct option *option, const char *text) {
    size_t length;
    return option->secret == OPTION_SECRET || hides_field(option, text) ||
           find_userinfo(text, &length) != NULL;
}

char *shown_text(const char *text) {
    const char *secret;
    size_t length, secrets = 0;
    for (secret = find_userinfo(text, &length); secret != NULL;
         secret = find_userinfo(secret + length, &length))
        secrets++;
    char *shown = xcalloc(strlen(text) + secrets * strlen(NOT_SHOWN) + 1, 1), *at = shown;
    for (secret = find_userinfo(text, &length); secret != NULL;
         secret = find_userinfo(text, &length)) {
        at = slice_put(at, slice_make(text, (size_t)(secret - text)));
        at = slice_put(at, SLICE(NOT_SHOWN));
        text = secret + length;
    }
    slice_put(at, slice_from(text));
    return shown;
}

char *shown_value(const struct option *option, const char *text) {
    char *shown;
    if (option->secret == OPTION_SECRET)
        return xstrdup(NOT_SHOWN);
    if (hides_field(option, text)) {
        int name = (int)shown_name_length(text);
        ASSERT(asprintf(&shown, "%.*s%s" NOT_SHOWN, name, text, name > 0 ? " " : "") >= 0);
        return shown;
    }
    return shown_text(text);
}
