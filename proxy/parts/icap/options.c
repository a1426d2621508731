#include "icap/options.h"

#include "adapt/client_fields.h"

static void options_copy(char *to, size_t capacity, struct slice text) {
    size_t length = text.length < capacity - 1 ? text.length : capacity - 1;
    if (length > 0)
        memcpy(to, text.base, length);
    to[length] = '\0';
}

static void copy_field(char *to, size_t capacity, const struct http_head *head, enum http_name id) {
    options_copy(to, capacity, http_head_value(head, id));
}

static void copy_notice(struct icap_notice *notice, const struct http_head *head) {
    static const struct slice cut = {"...", 3};
    const struct http_field *field = http_head_find_text(head, SLICE("X-Operator-Notice"));
    if (field == NULL)
        return;
    options_copy(notice->text, sizeof notice->text, field->value);
    if (field->value.length >= sizeof notice->text)
        options_copy(notice->text + sizeof notice->text - 1 - cut.length, cut.length + 1, cut);
}

/* Appends elements, one on each line, with a NUL at the end. Returns false when there is no
 * room. Each field line is parsed separately, so that an open quote hides nothing of the next
 * line. */
static bool append_list(struct icap_options *options, size_t *at, const struct http_head *head,
                        enum http_name id) {
    const struct http_field *field = http_head_find(head, id);
    for (; field != NULL; field = http_head_find_next(head, id, field)) {
        struct slice rest = field->value, element;
        while (slice_next_element(&rest, &element)) {
            if (element.length + sizeof "\n" >= ICAP_TRANSFER_SPACE - *at)
                return false;
            char *end = slice_put(options->transfer + *at, element);
            *end++ = '\n';
            *at = (size_t)(end - options->transfer);
        }
    }
    options->transfer[(*at)++] = '\0';
    return *at < ICAP_TRANSFER_SPACE;
}

static void take_lists(struct icap_options *options, const struct http_head *head) {
    size_t at = 0;
    bool fits = append_list(options, &at, head, HTTP_TRANSFER_PREVIEW);
    options->ignore_at = (uint16_t)at;
    fits = fits && append_list(options, &at, head, HTTP_TRANSFER_IGNORE);
    options->complete_at = (uint16_t)at;
    options->lists_too_long = !fits || !append_list(options, &at, head, HTTP_TRANSFER_COMPLETE);
}

bool icap_options_parse(struct icap_options *options, const struct http_head *head,
                        const char **error) {
    uint64_t number;
    memset(options, 0, sizeof *options);
    options->ttl = -1;
    if (head->status / 100 != 2) {
        *error = head->status == 404
                     ? "it answered OPTIONS with 404: there is no such service; check uri"
                     : "it did not answer OPTIONS with a status 2xx";
        return false;
    }
    if (http_head_value(head, HTTP_ISTAG).length >= SERVICE_TEXT) {
        *error = "the ISTag in its OPTIONS is longer than 255 bytes: RFC 3507 allows 32";
        return false;
    }
    options->reqmod = http_head_has_token(head, HTTP_METHODS, SLICE("REQMOD"));
    options->respmod = http_head_has_token(head, HTTP_METHODS, SLICE("RESPMOD"));
    struct slice preview = http_head_value(head, HTTP_PREVIEW);
    options->preview_given = preview.base != NULL && slice_to_uint64(preview, &number);
    options->preview = options->preview_given ? (size_t)number : 0;
    options->allow_204 = http_head_has_token(head, HTTP_ALLOW, SLICE("204"));
    options->allow_206 = http_head_has_token(head, HTTP_ALLOW, SLICE("206"));
    struct slice most = http_head_value(head, HTTP_MAX_CONNECTIONS);
    if (most.base != NULL && slice_to_uint64(most, &number) && number < UINT32_MAX)
        options->max_connections = number == 0 ? 1 : (unsigned)number;
    struct slice ttl = http_head_value(head, HTTP_OPTIONS_TTL);
    if (ttl.base != NULL && slice_to_uint64(ttl, &number) && number < INT32_MAX)
        options->ttl = (int64_t)number;
    copy_field(options->istag, sizeof options->istag, head, HTTP_ISTAG);
    copy_field(options->service, sizeof options->service, head, HTTP_SERVICE_ID);
    copy_field(options->product, sizeof options->product, head, HTTP_SERVICE);
    for (size_t i = 0; i < CLIENT_FIELD_NAMES; i++)
        if (http_head_has_token(head, HTTP_X_INCLUDE, client_field_names[i].name))
            options->client_fields |= client_field_names[i].field;
    take_lists(options, head);
    const struct http_field *within = http_head_find_text(head, SLICE("X-Answers-Within"));
    if (within != NULL && slice_to_uint64(within->value, &number))
        options->answers_within = number;
    copy_notice(&options->notice, head);
    return true;
}

static struct slice extension_of(struct slice path) {
    const char *slash = path.length > 0 ? memrchr(path.base, '/', path.length) : NULL;
    const char *name = slash != NULL ? slash + 1 : path.base;
    size_t length = path.length - (size_t)(name - path.base);
    const char *dot = length > 0 ? memrchr(name, '.', length) : NULL;
    if (dot == NULL)
        return slice_make("", 0);
    return slice_make(dot + 1, length - (size_t)(dot + 1 - name));
}

/* 2: the list names the extension; 1: it has "*"; 0: neither. */
static int listed(const char *list, struct slice extension) {
    int found = 0;
    for (const char *end; (end = strchr(list, '\n')) != NULL; list = end + 1) {
        struct slice element = slice_make(list, (size_t)(end - list));
        if (slice_equal(element, SLICE("*")))
            found = found > 1 ? found : 1;
        else if (extension.length > 0 && slice_equal_nocase(element, extension))
            found = 2;
    }
    return found;
}

enum icap_transfer icap_options_transfer(const struct icap_options *options, struct slice path) {
    struct slice extension = extension_of(path);
    if (options->lists_too_long)
        return ICAP_TRANSFER_COMPLETE;
    int preview = listed(options->transfer, extension);
    int ignore = listed(options->transfer + options->ignore_at, extension);
    int complete = listed(options->transfer + options->complete_at, extension);
    if (ignore > preview && ignore >= complete)
        return ICAP_TRANSFER_IGNORE;
    if (complete > preview)
        return ICAP_TRANSFER_COMPLETE;
    return ICAP_TRANSFER_PREVIEW;
}
