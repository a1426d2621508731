#include "part.h"

#include "base/assert.h"
#include "intercept/ca_page.h"
#include "intercept/intercept.h"
#include "server.h"
#include "tls/server.h"

/* The part intercept: TLS connections of clients that are opened, spliced or blocked. */

/* ---- the server -------------------------------------------------------------------------------- */

static void intercept_open(struct server *server) {
    server->parts[PART_INTERCEPT] = interception_new(interception_settings_of(server->settings));
}

static void intercept_change(struct server *server, struct settings *settings) {
    interception_configure(server->parts[PART_INTERCEPT], interception_settings_of(settings));
}

static void intercept_close(struct server *server) {
    struct interception *interception = server->parts[PART_INTERCEPT];
    server->parts[PART_INTERCEPT] = NULL;
    interception_free(&interception);
}

/* ---- a worker ---------------------------------------------------------------------------------- */

static struct tls_server *inside_new(bool http2) {
    return tls_server_new(&(struct tls_server_settings){.policy = "intercepted", .http2 = http2});
}

static void intercept_join(struct transaction_host *host, void *state) {
    struct intercept_host *own = xcalloc(1, sizeof *own);
    *own = (struct intercept_host){state, inside_new(true), inside_new(false)};
    host->parts[PART_INTERCEPT] = own;
}

static void intercept_leave(struct transaction_host *host) {
    struct intercept_host *own = host->parts[PART_INTERCEPT];
    host->parts[PART_INTERCEPT] = NULL;
    if (own == NULL)
        return;
    tls_server_release(&own->inside);
    tls_server_release(&own->inside_http1);
    free(own);
}

static const struct step_row *const steps[] = {&intercept_step, &bump_step, NULL};

const struct part part_intercept = {
    .settings = &intercept_part_settings,
    .process = {.open = intercept_open, .change = intercept_change, .close = intercept_close},
    .worker = {.join = intercept_join, .leave = intercept_leave, .answer_internal = ca_page_answer},
    .steps = steps,
};
