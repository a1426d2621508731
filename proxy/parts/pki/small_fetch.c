#include "pki/small_fetch.h"

#include "base/assert.h"

#include <stdarg.h>
#include <stdio.h>

enum { HEAD_MOST = 16384 };

static void small_fetch_begin(struct small_fetch *fetch);

static void small_fetch_end(struct small_fetch *fetch, enum small_fetch_state state) {
    fetch->state = state;
    source_close(&fetch->source);
    if (fetch->calling)
        origin_call_close(&fetch->call);
    fetch->calling = false;
    loop_defer(fetch->net->loop, fetch->waker);
}

static void small_fetch_fail(struct small_fetch *fetch, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void small_fetch_fail(struct small_fetch *fetch, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(fetch->error, sizeof fetch->error, format, arguments);
    va_end(arguments);
    small_fetch_end(fetch, SMALL_FETCH_FAILED);
}

bool small_fetch_redirect(const struct url *base, struct slice location,
                          char url[SMALL_FETCH_URL + 1]) {
    struct url target = *base;
    bool is_path = location.length > 0 && location.base[0] == '/' &&
                   (location.length == 1 || location.base[1] != '/');
    if (is_path)
        target.path_query = location;
    else if (!url_parse(&target, location))
        return false;
    if (!slice_equal_nocase(target.scheme, SLICE("http")))
        return false;
    size_t length = url_normalise(&target, url, SMALL_FETCH_URL);
    url[length] = '\0';
    return length > 0;
}

static void small_fetch_follow(struct small_fetch *fetch) {
    struct slice location = http_head_value(&fetch->response, HTTP_LOCATION);
    char target[SMALL_FETCH_URL + 1];
    if (fetch->request.post.length > 0 || location.length == 0) {
        small_fetch_fail(fetch, "the answer was %u", fetch->response.status);
        return;
    }
    if (!small_fetch_redirect(&fetch->url, location, target)) {
        small_fetch_fail(fetch, "it redirects to a URL that is not http");
        return;
    }
    memcpy(fetch->url_text, target, sizeof target);
    origin_call_close(&fetch->call);
    fetch->calling = false;
    small_fetch_begin(fetch);
}

static bool small_fetch_is_redirected(const struct small_fetch *fetch) {
    switch (fetch->response.status) {
    case 301:
    case 302:
    case 303:
    case 307:
    case 308: return true;
    default: return false;
    }
}

static void small_fetch_read(struct small_fetch *fetch) {
    enum source_status status = SOURCE_END;
    size_t got = 0;
    if (fetch->body == NULL)
        fetch->body = xcalloc(1, SMALL_FETCH_BODY + 1);
    while (fetch->source != NULL && fetch->length <= SMALL_FETCH_BODY &&
           (status = source_read(fetch->source, fetch->body + fetch->length,
                                 SMALL_FETCH_BODY + 1 - fetch->length, &got)) == SOURCE_DATA)
        fetch->length += got;
    if (fetch->length > SMALL_FETCH_BODY)
        small_fetch_fail(fetch, "it is larger than %d bytes", SMALL_FETCH_BODY);
    else if (status == SOURCE_FAILED)
        small_fetch_fail(fetch, "%s", fetch->call.error);
    else if (status == SOURCE_END)
        small_fetch_end(fetch, SMALL_FETCH_DONE);
}

static void small_fetch_receive(struct small_fetch *fetch) {
    if (small_fetch_is_redirected(fetch)) {
        small_fetch_follow(fetch);
        return;
    }
    if (fetch->response.status != 200) {
        small_fetch_fail(fetch, "the answer was %u", fetch->response.status);
        return;
    }
    fetch->source = origin_call_body(&fetch->call);
    if (fetch->source != NULL)
        source_set_waker(fetch->source, &fetch->task);
    small_fetch_read(fetch);
}

static void small_fetch_on_news(struct task *task) {
    struct small_fetch *fetch = CONTAINER_OF(task, struct small_fetch, task);
    CHECK_OBJ(fetch, SMALL_FETCH_MAGIC);
    if (fetch->state != SMALL_FETCH_BUSY)
        return;
    if (fetch->source != NULL)
        small_fetch_read(fetch);
    else if (fetch->call.state == ORIGIN_ANSWERED)
        small_fetch_receive(fetch);
    else if (fetch->call.state == ORIGIN_FAILED && fetch->net->loop->now >= fetch->deadline)
        small_fetch_fail(fetch, "it took too long");
    else if (fetch->call.state == ORIGIN_FAILED)
        small_fetch_fail(fetch, "%s", fetch->call.error);
}

static size_t small_fetch_write_head(struct small_fetch *fetch) {
    struct slice path = fetch->url.path_query, post = fetch->request.post;
    char length[64] = "";
    if (post.length > 0)
        snprintf(length, sizeof length, "Content-Length: %zu\r\n", post.length);
    return (size_t)snprintf(
        fetch->head, sizeof fetch->head,
        "%s %.*s HTTP/1.1\r\nHost: %.*s\r\nUser-Agent: Retort\r\n%s%.*s%s%sConnection: "
        "close\r\n\r\n",
        post.length > 0 ? "POST" : "GET", SLICE_PRINT(path),
        (int)(path.base - fetch->url_text - (ssize_t)strlen("http://")),
        fetch->url_text + strlen("http://"), post.length > 0 ? "Content-Type: " : "",
        SLICE_PRINT(fetch->request.type), post.length > 0 ? "\r\n" : "", length);
}

/* Requests the URL in url_text. */
static void small_fetch_begin(struct small_fetch *fetch) {
    if (fetch->hops >= fetch->request.hops) {
        small_fetch_fail(fetch, "it redirects too often");
        return;
    }
    char text[SMALL_FETCH_URL + 1];
    memcpy(text, fetch->url_text, sizeof text);
    if (!url_parse(&fetch->url, slice_from(text)) ||
        !slice_equal_nocase(fetch->url.scheme, SLICE("http")) ||
        url_rewrite(&fetch->url, fetch->url_text, SMALL_FETCH_URL) == 0) {
        small_fetch_fail(fetch, "it is not a valid http URL");
        return;
    }
    fetch->hops++;
    bool posts = fetch->request.post.length > 0;
    const struct origin_request request = {
        .host = fetch->url.host,
        .port = fetch->url.port,
        .egress = fetch->request.egress,
        .pool_key = SLICE("small fetch"),
        .head = slice_make(fetch->head, small_fetch_write_head(fetch)),
        .method = posts ? HTTP_METHOD_POST : HTTP_METHOD_GET,
        .body =
            posts ? bytes_source_start(&fetch->post, fetch->request.post, fetch->net->loop) : NULL,
        .deadline = fetch->deadline,
        .connect_timeout = fetch->request.timeout,
        .first_byte_timeout = fetch->request.timeout,
        .read_timeout = fetch->request.timeout,
        .max_head = HEAD_MOST,
    };
    fetch->calling = true;
    origin_call_start(&fetch->call, fetch->net, fetch->connections, &request, &fetch->response,
                      &fetch->task);
}

void small_fetch_start(struct small_fetch *fetch, struct net_context *net,
                       struct origin_pool *connections, const struct small_fetch_request *request,
                       struct task *waker) {
    INIT_OBJ(fetch, SMALL_FETCH_MAGIC);
    fetch->net = net;
    fetch->connections = connections;
    fetch->request = *request;
    fetch->deadline = net->loop->now + request->timeout;
    fetch->waker = waker;
    task_init(&fetch->task, small_fetch_on_news);
    if (request->url.length >= SMALL_FETCH_URL) {
        small_fetch_fail(fetch, "its URL is too long");
        return;
    }
    memcpy(fetch->url_text, request->url.base, request->url.length);
    small_fetch_begin(fetch);
}

void small_fetch_close(struct small_fetch *fetch) {
    if (fetch->magic != SMALL_FETCH_MAGIC)
        return;
    source_close(&fetch->source);
    if (fetch->calling)
        origin_call_close(&fetch->call);
    task_cancel(&fetch->task);
    free(fetch->body);
    fetch->magic = 0;
}
