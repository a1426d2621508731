#include "service-test/message.h"

#include "base/assert.h"
#include "base/failure.h"
#include "http/head_parser.h"
#include "record/file.h"

#include <errno.h>
#include <stdio.h>

static void messages_keep(struct test_messages *messages, void *memory) {
    messages->memory =
        xrealloc(messages->memory, (messages->memory_count + 1) * sizeof *messages->memory);
    messages->memory[messages->memory_count++] = memory;
}

static void messages_add(struct test_messages *messages, const struct test_message *message) {
    messages->list = xrealloc(messages->list, (messages->count + 1) * sizeof *messages->list);
    messages->list[messages->count++] = *message;
}

/* The head as services see it. */
static struct slice cleaned_head(struct test_messages *messages, struct http_head *head,
                                 bool is_request) {
    http_head_remove_hop_by_hop(head);
    return http_head_text(head, is_request ? http_head_write_request : http_head_write_response,
                          &messages->arena);
}

/* ---- texts -------------------------------------------------------------------------------- */

/* The length of the lines up to and with the empty one; 0: there is none. */
static size_t head_length(struct slice text) {
    struct slice rest = text, line;
    while (slice_next_line(&rest, &line))
        if (line.length == 0 || (line.length == 1 && line.base[0] == '\r'))
            return (size_t)(rest.base - text.base);
    return 0;
}

/* Takes the lines of a head off the front of the text. The result has CRLF at the ends of its
 * lines, and HTTP/1.1 as its version, since curl writes "HTTP/2 200". Empty: there is no empty
 * line. */
static struct slice message_take_head(struct test_messages *messages, struct slice *text) {
    size_t length = head_length(*text);
    struct slice rest = slice_make(text->base, length), line;
    char *copy = arena_alloc(&messages->arena, 2 * length + 16), *at = copy;
    if (slice_starts_with(rest, SLICE("HTTP/2 "))) {
        at = slice_put(at, SLICE("HTTP/1.1"));
        rest = slice_make(rest.base + 6, rest.length - 6);
    }
    while (slice_next_line(&rest, &line)) {
        if (line.length > 0 && line.base[line.length - 1] == '\r')
            line.length--;
        at = slice_put(slice_put(at, line), SLICE("\r\n"));
    }
    *text = slice_make(text->base + length, text->length - length);
    return slice_make(copy, (size_t)(at - copy));
}

static bool head_complain(char error[TEST_MESSAGE_ERROR], const char *path, const char *what,
                          ssize_t used) {
    return failure(
        error, TEST_MESSAGE_ERROR, "%s: the head of the %s can't be read: %s", path, what,
        used < 0 ? http_error_text((enum http_error) - used) : "an empty line has to follow it");
}

static bool message_read_request(struct test_messages *messages, struct test_message *message,
                                 struct slice *text, const char *path,
                                 char error[TEST_MESSAGE_ERROR]) {
    struct http_head head;
    struct slice bytes = message_take_head(messages, text);
    ssize_t used = http_head_parse_request(&head, bytes.base, bytes.length, 0);
    if (used <= 0)
        return head_complain(error, path, "request", used);
    message->has_body =
        http_head_has(&head, HTTP_CONTENT_LENGTH) || http_head_has(&head, HTTP_TRANSFER_ENCODING);
    message->request = cleaned_head(messages, &head, true);
    /* The body of a request that stands in front of a response is not looked at. */
    uint64_t length;
    if (slice_to_uint64(http_head_value(&head, HTTP_CONTENT_LENGTH), &length) &&
        length < text->length &&
        slice_starts_with(slice_make(text->base + length, text->length - length), SLICE("HTTP/")))
        *text = slice_make(text->base + length, text->length - length);
    return true;
}

static bool read_response(struct test_messages *messages, struct test_message *message,
                          struct slice *text, const char *path, char error[TEST_MESSAGE_ERROR]) {
    struct http_head head;
    struct slice bytes = message_take_head(messages, text);
    ssize_t used = http_head_parse_response(&head, bytes.base, bytes.length, 0);
    if (used <= 0)
        return head_complain(error, path, "response", used);
    bool to_head = slice_starts_with(message->request, SLICE("HEAD "));
    message->has_body = head.status != 204 && head.status != 304 && !to_head;
    message->response = cleaned_head(messages, &head, false);
    return true;
}

/* A head that tells another length is a mistake of whoever wrote the file. Editors put a newline at
 * the end. */
static bool length_fits(const struct test_message *message, const char *path,
                        char error[TEST_MESSAGE_ERROR]) {
    struct http_head head;
    bool is_request = message->response.length == 0;
    struct slice text = is_request ? message->request : message->response;
    ssize_t used = is_request ? http_head_parse_request(&head, text.base, text.length, 0)
                              : http_head_parse_response(&head, text.base, text.length, 0);
    uint64_t told;
    if (used <= 0 || !message->has_body ||
        !slice_to_uint64(http_head_value(&head, HTTP_CONTENT_LENGTH), &told) ||
        told == message->body.length)
        return true;
    snprintf(
        error, TEST_MESSAGE_ERROR,
        "%s: Content-Length is %llu, but %zu bytes follow the head: correct the field or leave "
        "it out",
        path, (unsigned long long)told, message->body.length);
    return false;
}

static bool message_read_text(struct test_messages *messages, struct slice text, const char *path,
                              char error[TEST_MESSAGE_ERROR]) {
    struct test_message message = {
        .name = arena_copy(&messages->arena, slice_from(path)),
        .request = SLICE("GET http://test.example/ HTTP/1.1\r\n"
                         "Host: test.example\r\nAccept-Encoding: gzip\r\n\r\n")};
    if (!slice_starts_with(text, SLICE("HTTP/")) &&
        !message_read_request(messages, &message, &text, path, error))
        return false;
    if (slice_starts_with(text, SLICE("HTTP/")) &&
        !read_response(messages, &message, &text, path, error))
        return false;
    message.body = message.has_body ? text : SLICE("");
    if (!message.has_body && text.length > 0)
        return failure(error, TEST_MESSAGE_ERROR,
                       "%s: %zu bytes follow a head that has no body; a request with a body needs "
                       "Content-Length",
                       path, text.length);
    if (!length_fits(&message, path, error))
        return false;
    messages_add(messages, &message);
    return true;
}

/* ---- recordings --------------------------------------------------------------------------- */

static void add_recorded(struct test_messages *messages, const struct recorded_exchange *recorded,
                         const char *path, unsigned number) {
    struct test_message message = {.body = recorded->virgin, .has_body = recorded->virgin_given};
    struct http_head request, response;
    bool partial = recorded->virgin_given &&
                   (!recorded->virgin_whole || recorded->virgin.length != recorded->virgin_length);
    if (partial ||
        http_head_parse_request(&request, recorded->request_head.base,
                                recorded->request_head.length, 0) <= 0 ||
        (recorded->response_head.length > 0 &&
         http_head_parse_response(&response, recorded->response_head.base,
                                  recorded->response_head.length, 0) <= 0)) {
        messages->left_out++;
        return;
    }
    message.name = arena_printf(&messages->arena, "%s exchange %u", path, number).base;
    message.request = cleaned_head(messages, &request, true);
    if (recorded->response_head.length > 0)
        message.response = cleaned_head(messages, &response, false);
    messages_add(messages, &message);
}

static bool read_recording(struct test_messages *messages, FILE *stream, const char *path,
                           uint64_t most, char error[TEST_MESSAGE_ERROR]) {
    struct recorded_exchange recorded;
    char *content, why[RECORD_FILE_ERROR];
    struct record_file *file = record_file_of(stream, path, why);
    unsigned number = 0;
    if (file == NULL)
        return failure(error, TEST_MESSAGE_ERROR, "%s", why);
    while (record_file_next(file, &recorded, &content)) {
        if (messages->count >= most) {
            messages->more = true;
            free(content);
            break;
        }
        messages_keep(messages, content);
        add_recorded(messages, &recorded, path, ++number);
    }
    const char *complaint = record_file_end(file)->complaint;
    bool good = messages->more || complaint == NULL;
    if (!good)
        snprintf(error, TEST_MESSAGE_ERROR, "%s", complaint);
    record_file_close(&file);
    return good;
}

/* ---- files -------------------------------------------------------------------------------- */

static bool file_complain(char error[TEST_MESSAGE_ERROR], const char *path, const char *why) {
    return failure(error, TEST_MESSAGE_ERROR, "%s can't be read: %s", path, why);
}

static bool message_read_whole(struct test_messages *messages, FILE *stream, const char *path,
                               char error[TEST_MESSAGE_ERROR]) {
    size_t length = 0, room = 0, got;
    char *bytes = NULL;
    do {
        if (length == room)
            bytes = xrealloc(bytes, room = room == 0 ? 1 << 16 : 2 * room);
        got = fread(bytes + length, 1, room - length, stream);
        length += got;
    } while (got > 0 && length <= TEST_MESSAGE_BODY);
    messages_keep(messages, bytes);
    if (ferror(stream))
        return file_complain(error, path, strerror(errno));
    if (length > TEST_MESSAGE_BODY)
        return file_complain(error, path, "it is larger than 64 MB");
    return message_read_text(messages, slice_make(bytes, length), path, error);
}

bool test_messages_read(struct test_messages *messages, const char *path, uint64_t most,
                        char error[TEST_MESSAGE_ERROR]) {
    static const char family[] = "retort-icap ";
    char beginning[sizeof family - 1];
    FILE *stream = fopen(path, "re");
    if (stream == NULL)
        return file_complain(error, path, strerror(errno));
    size_t got = fread(beginning, 1, sizeof beginning, stream);
    if (fseek(stream, 0, SEEK_SET) != 0) {
        fclose(stream);
        return file_complain(error, path,
                             "it is no plain file: write what it gives into one first");
    }
    if (got == sizeof beginning && memcmp(beginning, family, got) == 0)
        return read_recording(messages, stream, path, most, error); /* closes the stream */
    bool good = message_read_whole(messages, stream, path, error);
    fclose(stream);
    return good;
}

void test_messages_release(struct test_messages *messages) {
    for (unsigned i = 0; i < messages->memory_count; i++)
        free(messages->memory[i]);
    free(messages->memory);
    free(messages->list);
    arena_release(&messages->arena);
    *messages = (struct test_messages){0};
}

/* ---- made here ---------------------------------------------------------------------------- */

#define REQUEST_FOR(path)                                                                          \
    "GET http://test.example" path " HTTP/1.1\nHost: test.example\n"                               \
    "Accept-Encoding: gzip, br, zstd\n\n"

static const char *const made[][2] = {
    {"made: a short text",
     REQUEST_FOR("/short.txt") "HTTP/1.1 200 OK\nContent-Type: text/plain\nContent-Length: 10\n"
                               "ETag: \"one\"\n\nOne line.\n"},
    {"made: a text without a length",
     REQUEST_FOR("/chunked.txt") "HTTP/1.1 200 OK\nContent-Type: text/plain; charset=utf-8\n\n"
                                 "A first line.\nA second line with \xc3\xbc.\n"},
    {"made: an empty text",
     REQUEST_FOR("/empty.txt") "HTTP/1.1 200 OK\nContent-Type: text/plain\nContent-Length: 0\n\n"},
    {"made: a page",
     REQUEST_FOR("/page.html") "HTTP/1.1 200 OK\nContent-Type: text/html\n\n"
                               "<!DOCTYPE html>\n<html><head><title>A page</title>\n"
                               "<meta charset=utf-8></head>\n<body class=\"a\">\n<p>Text &amp; more"
                               "</p>\n<img src=\"a.png\">\n<script>var a = '</body';</script>\n"
                               "</body></html>\n"},
    {"made: a response to HEAD",
     "HEAD http://test.example/short.txt HTTP/1.1\nHost: test.example\n\n"
     "HTTP/1.1 200 OK\nContent-Type: text/plain\nContent-Length: 10\n\n"},
    {"made: a response without a body",
     REQUEST_FOR("/same.txt") "HTTP/1.1 304 Not Modified\nETag: \"one\"\n\n"},
    {"made: a page that was not found",
     REQUEST_FOR("/none.html") "HTTP/1.1 404 Not Found\nContent-Type: text/html\n\n<p>None.</p>\n"},
    {"made: a response that must not be changed",
     REQUEST_FOR("/kept.txt") "HTTP/1.1 200 OK\nContent-Type: text/plain\n"
                              "Cache-Control: no-transform\n\nAs it is.\n"},
    {"made: a request", "GET http://test.example/a.html?b=c HTTP/1.1\nHost: test.example\n"
                        "Referer: http://test.example/\nAccept: text/html\n\n"},
    {"made: a request with a form",
     "POST http://test.example/form HTTP/1.1\nHost: test.example\n"
     "Content-Type: application/x-www-form-urlencoded\nContent-Length: 11\n\na=1&b=2&c=3"},
};

static void make_message(struct test_messages *messages, const char *name, struct slice text) {
    char error[TEST_MESSAGE_ERROR] = "";
    bool good = message_read_text(messages, text, name, error);
    ASSERT(good);
}

/* A text that has more bytes than a service keeps inside, and never the same line twice. */
static void make_long_text(struct test_messages *messages) {
    enum { LINES = 9000, LINE = 40 };
    static const char head[] =
        REQUEST_FOR("/long.txt") "HTTP/1.1 200 OK\nContent-Type: text/plain\n\n";
    char *text = xmalloc(sizeof head + LINES * LINE), *at = slice_put(text, slice_from(head));
    for (int i = 0; i < LINES; i++)
        at += sprintf(at, "line %d is %x\n", i, (unsigned)i * 2654435761u);
    messages_keep(messages, text);
    make_message(messages, "made: a long text", slice_make(text, (size_t)(at - text)));
}

void test_messages_make(struct test_messages *messages) {
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        make_message(messages, made[i][0], slice_from(made[i][1]));
    make_long_text(messages);
}
