#include "ctl/admin_page.h"

#include "base/assert.h"
#include "ctl/answer.h"
#include "ctl/argument.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

const char *admin_page_text(const json_t *object, const char *name) {
    const char *text = json_string_value(json_object_get(object, name));
    return text != NULL ? text : "";
}

long long admin_page_number(const json_t *object, const char *name) {
    return (long long)json_integer_value(json_object_get(object, name));
}

char *admin_page_path(const char *begin, ...) {
    char *path;
    size_t length;
    va_list arguments;
    const char *name;
    FILE *out = open_memstream(&path, &length);
    ASSERT(out != NULL);
    fputs(begin, out);
    va_start(arguments, begin);
    while ((name = va_arg(arguments, const char *)) != NULL)
        argument_put(out, name, va_arg(arguments, const char *));
    va_end(arguments);
    ASSERT(fclose(out) == 0);
    return path;
}

void admin_page_print(const struct http_answer *answer) {
    fwrite(answer->body, 1, answer->length, stdout);
    if (answer->length > 0 && answer->body[answer->length - 1] != '\n')
        putchar('\n');
}

int admin_page_refused(const struct http_answer *answer) {
    json_t *json = answer_load(answer->body, answer->length);
    const char *reason = json_string_value(json_object_get(json, "error"));
    size_t i;
    json_t *line, *errors = json_object_get(json, "errors");
    json_array_foreach(errors, i, line) fprintf(stderr, "retortctl: %s\n", json_string_value(line));
    if (json_array_size(errors) == 0 && reason != NULL)
        fprintf(stderr, "retortctl: %s\n", reason);
    if (reason == NULL)
        fprintf(stderr, "retortctl: retort answered with status %u\n", answer->status);
    json_decref(json);
    return EXIT_FAILURE;
}

static int admin_page_show(const struct admin_page *page, const struct http_answer *answer) {
    json_t *json = answer_load(answer->body, answer->length);
    int status = EXIT_FAILURE;
    if (json_is_object(json))
        status = page->show(json);
    else
        fputs("retortctl: the answer is not JSON: is this retort's admin.listen?\n", stderr);
    json_decref(json);
    return status;
}

int admin_page_ask(const char *where, bool json, const struct admin_page *page) {
    struct http_answer answer;
    char error[HTTP_CALL_ERROR];
    const struct http_request request = {
        .method = page->method,
        .target = page->path,
        .headers = page->body == NULL ? NULL : "Content-Type: application/json\r\n",
        .body = page->body,
        .length = page->body == NULL ? 0 : strlen(page->body),
    };
    if (!http_call_send(&answer, where, &request, error)) {
        fprintf(stderr, "retortctl: %s\n", error);
        return EXIT_FAILURE;
    }
    bool good = answer.status == 200;
    int status = good ? EXIT_SUCCESS : EXIT_FAILURE;
    if (json)
        admin_page_print(&answer);
    else if (good || answer.status == page->shown_status)
        status = admin_page_show(page, &answer);
    else
        admin_page_refused(&answer);
    http_answer_release(&answer);
    return status;
}
