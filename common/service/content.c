#include "service/content.h"

#include <stdatomic.h>

static struct service_content *content_start(const struct service_host *host,
                                             const struct service_content_order *order) {
    return host->content == NULL ? NULL : host->content->start(host->context, order);
}

struct service_content *service_content_query(const struct service_host *host, struct slice url,
                                              unsigned variant) {
    return content_start(host, &(struct service_content_order){
                                   .kind = SERVICE_CONTENT_QUERY, .url = url, .variant = variant});
}

struct service_content *service_content_fetch(const struct service_host *host, struct slice url,
                                              struct slice fields,
                                              const struct service_exchange *exchange) {
    return content_start(
        host, &(struct service_content_order){
                  .kind = SERVICE_CONTENT_FETCH, .url = url, .head = fields, .exchange = exchange});
}

struct service_content *service_content_validate(const struct service_host *host, struct slice url,
                                                 struct slice fields,
                                                 const struct service_exchange *exchange) {
    return content_start(host, &(struct service_content_order){.kind = SERVICE_CONTENT_VALIDATE,
                                                               .url = url,
                                                               .head = fields,
                                                               .exchange = exchange});
}

struct service_content *service_content_expire(const struct service_host *host, struct slice url,
                                               int64_t seconds) {
    return content_start(host, &(struct service_content_order){
                                   .kind = SERVICE_CONTENT_EXPIRE, .url = url, .seconds = seconds});
}

struct service_content *service_content_delete(const struct service_host *host, struct slice url) {
    return content_start(
        host, &(struct service_content_order){.kind = SERVICE_CONTENT_DELETE, .url = url});
}

struct service_content *service_content_pin(const struct service_host *host, struct slice url,
                                            bool pinned) {
    return content_start(host, &(struct service_content_order){
                                   .kind = SERVICE_CONTENT_PIN, .url = url, .pinned = pinned});
}

struct service_content *service_content_inject(const struct service_host *host, struct slice url,
                                               int64_t lifetime, struct slice head,
                                               struct slice body) {
    return content_start(host, &(struct service_content_order){.kind = SERVICE_CONTENT_INJECT,
                                                               .url = url,
                                                               .seconds = lifetime,
                                                               .whole = true,
                                                               .head = head,
                                                               .body = body,
                                                               .length = body.length});
}

struct service_content *service_content_inject_start(const struct service_host *host,
                                                     struct slice url, int64_t lifetime,
                                                     struct slice head, uint64_t length) {
    return content_start(host, &(struct service_content_order){.kind = SERVICE_CONTENT_INJECT,
                                                               .url = url,
                                                               .seconds = lifetime,
                                                               .head = head,
                                                               .length = length});
}

size_t service_content_inject_body(struct service_content *operation, struct slice bytes) {
    return operation->calls->give(operation, bytes);
}

void service_content_inject_done(struct service_content *operation) {
    operation->calls->done(operation);
}

struct service_content *service_content_read(const struct service_host *host, struct slice url,
                                             unsigned variant, uint64_t most) {
    return content_start(host, &(struct service_content_order){.kind = SERVICE_CONTENT_READ,
                                                               .url = url,
                                                               .variant = variant,
                                                               .whole = true,
                                                               .length = most});
}

struct service_content *service_content_read_start(const struct service_host *host,
                                                   struct slice url, unsigned variant) {
    return content_start(host, &(struct service_content_order){
                                   .kind = SERVICE_CONTENT_READ, .url = url, .variant = variant});
}

enum service_content_flow service_content_read_part(struct service_content *operation, char *out,
                                                    size_t capacity, size_t *got) {
    *got = 0;
    return operation->calls->take(operation, out, capacity, got);
}

int service_content_descriptor(const struct service_content *operation) {
    return operation->descriptor;
}

const struct service_content_answer *
service_content_answer(const struct service_content *operation) {
    return atomic_load_explicit(&operation->answer, memory_order_acquire);
}

void service_content_close(struct service_content **operationp) {
    struct service_content *operation = *operationp;
    *operationp = NULL;
    if (operation != NULL)
        operation->calls->close(operation);
}
