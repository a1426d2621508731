#include "part.h"

#include "base/assert.h"
#include "http2/client/http2.h"
#include "http2/origin/http2.h"
#include "http2/settings.h"
#include "transaction/transaction.h"

/* The part http2: HTTP/2 toward clients and toward origins. */

static void http2_join(struct transaction_host *host, void *state) {
    struct http2_host *own = xcalloc(1, sizeof *own);
    (void)state;
    http2_host_init(own, host->clients);
    host->parts[PART_HTTP2] = own;
}

static void http2_leave(struct transaction_host *host) {
    struct http2_host *own = host->parts[PART_HTTP2];
    host->parts[PART_HTTP2] = NULL;
    if (own != NULL)
        http2_host_release(own);
    free(own);
}

static void http2_take(void *state, const struct client_arrival *arrival) {
    http2_adopt(state, arrival);
}

const struct part part_http2 = {
    .worker = {.join = http2_join, .leave = http2_leave},
    .settings = &http2_part_settings,
    .protocol = {.name = "h2", .adopt = http2_take, .origin = &origin_http2_class},
};
