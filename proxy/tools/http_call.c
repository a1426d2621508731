#include "tools/http_call.h"

#include "base/assert.h"
#include "tools/transfer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Where the body of an answer goes. */
struct body {
    struct transfer transfer;
    FILE *good; /* of status 200; NULL: as any other */
    FILE *any;  /* NULL: it is dropped */
    size_t length;
};

static size_t http_call_take_body(char *bytes, size_t size, size_t count, void *arg) {
    struct body *body = arg;
    size_t length = size * count;
    bool good = body->good != NULL && transfer_status(&body->transfer) == 200;
    FILE *out = good ? body->good : body->any;
    body->length += length;
    if (out == body->any && out != NULL && body->length > HTTP_CALL_MAX_BYTES)
        return transfer_fail(&body->transfer, "%s: the answer has more than %d MB",
                             body->transfer.where, HTTP_CALL_MAX_BYTES >> 20);
    if (out != NULL && fwrite(bytes, 1, length, out) != length)
        return transfer_fail(&body->transfer, "what came can't be written: %s", strerror(errno));
    return length;
}

/* The whole answer. */
static bool http_call_take_answer(struct body *body, const char *where,
                                  const struct http_request *request) {
    struct transfer *transfer = &body->transfer;
    if (!transfer_open(transfer, where, request))
        return false;
    curl_easy_setopt(transfer->curl, CURLOPT_WRITEFUNCTION, http_call_take_body);
    curl_easy_setopt(transfer->curl, CURLOPT_WRITEDATA, (void *)body);
    CURLcode code;
    do
        code = curl_easy_perform(transfer->curl);
    while (transfer_must_wait(transfer, code));
    if (code == CURLE_GOT_NOTHING && body->good == NULL && body->any != NULL && !transfer->secure &&
        !transfer_is_path(where))
        transfer->cut_off = "the answer is not HTTP, or cut off: is this retort's admin.listen, "
                            "and does it not speak TLS (https://)?";
    return transfer_end(transfer, code);
}

/* An answer that is kept says its length. */
static bool answer_is_whole(struct body *body) {
    bool passed = body->good != NULL && transfer_status(&body->transfer) == 200;
    if (passed && fflush(body->good) != 0)
        return transfer_fail(&body->transfer, "what came can't be written: %s", strerror(errno));
    return passed || transfer_length(&body->transfer) >= 0 || transfer_cut_off(&body->transfer);
}

void http_call_add_token(struct http_request *request) {
    const char *token = getenv(HTTP_CALL_TOKEN);
    if (token != NULL && token[0] != '\0')
        request->token = token;
}

static bool ask(struct http_answer *answer, const char *where, const struct http_request *request,
                struct body *body) {
    struct http_request with_token = *request;
    const char *type = NULL;
    *answer = (struct http_answer){0};
    body->any = open_memstream(&answer->body, &answer->length);
    ASSERT(body->any != NULL);
    http_call_add_token(&with_token);
    bool good = http_call_take_answer(body, where, &with_token) && answer_is_whole(body);
    ASSERT(fclose(body->any) == 0);
    if (good) {
        answer->status = transfer_status(&body->transfer);
        curl_easy_getinfo(body->transfer.curl, CURLINFO_CONTENT_TYPE, &type);
        answer->is_text = type != NULL && strncmp(type, "text/plain", strlen("text/plain")) == 0;
    } else {
        http_answer_release(answer);
    }
    transfer_close(&body->transfer);
    return good;
}

bool http_call(struct http_answer *answer, const char *where, const char *method, const char *path,
               char error[HTTP_CALL_ERROR]) {
    const struct http_request request = {.method = method, .target = path};
    return http_call_send(answer, where, &request, error);
}

bool http_call_send(struct http_answer *answer, const char *where,
                    const struct http_request *request, char error[HTTP_CALL_ERROR]) {
    struct body body = {
        .transfer = {.error = error,
                     .cut_off =
                         "the answer is not HTTP, or cut off: is this retort's admin.listen?"}};
    return ask(answer, where, request, &body);
}

bool http_call_copy(struct http_answer *answer, const char *where,
                    const struct http_request *request, FILE *out, char error[HTTP_CALL_ERROR]) {
    struct body body = {
        .transfer = {.error = error, .cut_off = "the answer is not HTTP, or cut off"}, .good = out};
    return ask(answer, where, request, &body);
}

bool http_call_drain(unsigned *status, const char *where, const struct http_request *request,
                     char error[HTTP_CALL_ERROR]) {
    struct body body = {
        .transfer = {.error = error, .cut_off = "the answer is not HTTP, or cut off"}};
    bool good = http_call_take_answer(&body, where, request);
    *status = transfer_status(&body.transfer);
    transfer_close(&body.transfer);
    return good;
}

void http_answer_release(struct http_answer *answer) {
    free(answer->body);
    *answer = (struct http_answer){0};
}
