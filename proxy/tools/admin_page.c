#include "tools/admin_page.h"

#include "admin/answer.h"
#include "base/assert.h"
#include "tools/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

const char *admin_page_text(const json_t *object, const char *name) {
    const char *text = json_string_value(json_object_get(object, name));
    return text != NULL ? text : "";
}

long long admin_page_number(const json_t *object, const char *name) {
    return (long long)json_integer_value(json_object_get(object, name));
}

static void admin_page_put_encoded(FILE *out, const char *text) {
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     strchr("-._~/:", c) != NULL;
        fprintf(out, plain ? "%c" : "%%%02X", c);
    }
}

void admin_page_put(FILE *out, const char *name, const char *value) {
    if (value == NULL)
        return;
    fprintf(out, "%s=", name);
    admin_page_put_encoded(out, value);
    fputc('&', out);
}

/* The page that the command names: its own row, or another one. */
static const struct call *page_of(const struct call *command) {
    const struct call *page = commands;
    while (page->body_max == 0 || strcmp(page->path, command->path) != 0 ||
           strcmp(page->method, command->method) != 0)
        page++;
    return page;
}

static void admin_page_put_words(FILE *out, const struct command_line *line) {
    const char *name = line->command->of_words;
    for (char **word = line->words; name != NULL && *word != NULL; word++) {
        char parameter[40];
        size_t length = strcspn(name, " ");
        snprintf(parameter, sizeof parameter, "%.*s", (int)length, name);
        admin_page_put(out, parameter, *word);
        name = name[length] == '\0' ? NULL : name + length + 1;
    }
}

char *admin_page_target(const struct command_line *line, const char *skip) {
    char *target;
    size_t length;
    const struct call_parameter *parameter = page_of(line->command)->parameters;
    FILE *out = open_memstream(&target, &length);
    ASSERT(out != NULL);
    fprintf(out, "%s?", line->command->path);
    admin_page_put_words(out, line);
    for (; parameter->name != NULL; parameter++) {
        const char *value = command_line_option(line, parameter->name);
        if (value == NULL || (skip != NULL && strstr(skip, parameter->name) != NULL))
            continue;
        admin_page_put(out, parameter->name, parameter->type == CALL_FLAG ? "yes" : value);
    }
    ASSERT(fclose(out) == 0);
    target[length - 1] = '\0'; /* the last & or the ? */
    return target;
}

int admin_page_refused(const struct http_answer *answer) {
    json_t *json = answer_load(answer->body, answer->length);
    const char *reason = json_string_value(json_object_get(json, "error"));
    if (reason != NULL)
        fprintf(stderr, "retortctl: %s\n", reason);
    else
        fprintf(stderr, "retortctl: retort answered with status %u\n", answer->status);
    json_decref(json);
    return EXIT_FAILURE;
}

/* The length of a code for colours that the text begins with; 0: it begins with none. */
static size_t colour_length(struct slice text) {
    for (int colour = ANSWER_HEADING; colour <= ANSWER_NOTE; colour++) {
        struct slice code = slice_from(answer_colour_code((enum answer_colour)colour));
        if (slice_starts_with(text, code))
            return code.length;
    }
    return slice_starts_with(text, SLICE("\033[m")) ? strlen("\033[m") : 0;
}

/* Who answers may be no retort: nothing of it controls the terminal, but for colours that were asked for. The caller frees it. */
static char *safe_line(struct slice line, size_t *length) {
    bool colours = terminal_has_colours(stdout);
    char *safe = xcalloc(line.length + 1, ANSWER_SHOWN), *at = safe;
    while (line.length > 0) {
        size_t code = colours ? colour_length(line) : 0;
        if (code == 0) {
            at = answer_put(at, &line);
            continue;
        }
        at = slice_put(at, slice_make(line.base, code));
        line = slice_make((const char *)line.base + code, line.length - code);
    }
    *at++ = '\n';
    *length = (size_t)(at - safe);
    return safe;
}

/* Complaints go to stderr, all else to `print`. */
static void admin_page_take_text(const struct http_answer *answer,
                                 void (*print)(void *arg, const char *text, size_t length),
                                 void *arg) {
    struct slice rest = slice_make(answer->body, answer->length), line;
    while (slice_next_line(&rest, &line)) {
        size_t length;
        char *safe = safe_line(line, &length);
        if (strncmp(safe, "! ", 2) == 0)
            fprintf(stderr, "retortctl: %.*s", (int)(length - 2), safe + 2);
        else
            print(arg, safe, length);
        free(safe);
    }
}

static bool send_for_text(struct http_answer *answer, const char *where,
                          const struct http_request *request) {
    char error[HTTP_CALL_ERROR], headers[160];
    struct http_request with = *request;
    struct tm local = {.tm_gmtoff = 0};
    const time_t now = time(NULL);
    localtime_r(&now, &local);
    snprintf(headers, sizeof headers, "Accept: text/plain;%szone=%ld\r\n%s",
             terminal_has_colours(stdout) ? "colours=yes;" : "", local.tm_gmtoff,
             request->headers == NULL ? "" : request->headers);
    with.headers = headers;
    if (http_call_send(answer, where, &with, error))
        return true;
    fprintf(stderr, "retortctl: %s\n", error);
    return false;
}

int admin_page_ask_for(const char *where, const struct http_request *request,
                       void (*print)(void *arg, const char *text, size_t length), void *arg) {
    struct http_answer answer;
    if (!send_for_text(&answer, where, request))
        return EXIT_FAILURE;
    int status = answer.status == 200 && answer.is_text ? EXIT_SUCCESS : EXIT_FAILURE;
    if (answer.is_text)
        admin_page_take_text(&answer, print, arg);
    else if (answer.status != 200)
        admin_page_refused(&answer);
    else
        fputs("retortctl: the answer is not a text: is this retort's admin.listen?\n", stderr);
    http_answer_release(&answer);
    return status;
}

static void print_part(void *arg, const char *text, size_t length) {
    fwrite(text, 1, length, arg);
}

/* The cache's answers are printed as they are, and a refusal is a message. */
static int ask_for_json(const char *where, const struct http_request *request) {
    struct http_answer answer;
    char error[HTTP_CALL_ERROR];
    if (!http_call_send(&answer, where, request, error)) {
        fprintf(stderr, "retortctl: %s\n", error);
        return EXIT_FAILURE;
    }
    bool raw = strncmp(request->target, "/cache/", strlen("/cache/")) == 0;
    bool good = answer.status == 200;
    if (raw && !good)
        admin_page_refused(&answer);
    else
        fwrite(answer.body, 1, answer.length, stdout);
    if (!raw && answer.length > 0 && answer.body[answer.length - 1] != '\n')
        putchar('\n');
    http_answer_release(&answer);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

int admin_page_ask(const char *where, bool json, const struct http_request *request) {
    return json ? ask_for_json(where, request)
                : admin_page_ask_for(where, request, print_part, stdout);
}

int admin_page_command(const char *where, const struct command_line *line) {
    char *target = admin_page_target(line, NULL);
    const struct http_request request = {.method = line->command->method, .target = target};
    int status = admin_page_ask(where, line->json, &request);
    free(target);
    return status;
}
