#include "icap/endpoint.h"

#include "base/assert.h"
#include "base/log.h"
#include "http/credentials.h"
#include "icap/info.h"
#include "icap/probe.h"
#include "icap/service.h"

#include <stdio.h>

enum { OVERLOADED_FOR = 10000, HURRY = 1000, TURNS = 16, PATIENT_TRIES = 10 };

static void on_retry(struct timer *timer);
static void on_change(struct task *task);
static void endpoint_follow(struct icap_endpoint *endpoint);

char *icap_endpoint_write_head(const struct icap_endpoint *endpoint, const char *uri_text) {
    const struct url *uri = endpoint->uri;
    const char *credentials = endpoint->service->base.settings->credentials;
    char *head, value[HTTP_CREDENTIALS_VALUE];
    struct slice basic = SLICE("");
    if (credentials != NULL)
        basic = http_credentials_write(credentials, value);
    int length = asprintf(
        &head, "%s ICAP/1.0\r\nHost: %s%.*s%s:%u\r\nUser-Agent: Retort\r\n%s%.*s%s", uri_text,
        uri->host_is_ipv6 ? "[" : "", SLICE_PRINT(uri->host), uri->host_is_ipv6 ? "]" : "",
        uri->port, credentials == NULL ? "" : "Proxy-Authorization: ", SLICE_PRINT(basic),
        credentials == NULL ? "" : "\r\n");
    ASSERT(length > 0);
    return head;
}

/* NULL: its uri is icap. */
static struct tls_client *endpoint_make_tls(struct icap_service *service, const struct url *uri) {
    if (!slice_equal_nocase(uri->scheme, SLICE("icaps")))
        return NULL;
    return tls_client_new(&service->base.settings->trust, uri->host);
}

struct icap_endpoint *icap_endpoint_new(struct icap_service *service, unsigned index) {
    struct icap_endpoint *endpoint;
    ALLOC_OBJ(endpoint, ICAP_ENDPOINT_MAGIC);
    endpoint->service = service;
    endpoint->index = index;
    endpoint->uri_text = service->base.settings->uri_texts[index];
    endpoint->uri = &service->base.settings->endpoints[index];
    endpoint->head = icap_endpoint_write_head(endpoint, endpoint->uri_text);
    endpoint->tls = endpoint_make_tls(service, endpoint->uri);
    endpoint->health = service->quota->health[index];
    endpoint->shifts = icap_health_shifts(endpoint->health);
    timer_init(&endpoint->retry, on_retry);
    icap_look_init(&endpoint->look);
    task_init(&endpoint->change_task, on_change);
    icap_lost_connections_init(&endpoint->lost_connections);
    endpoint->pool = pool_new(service->net, &service->net->counters.icap_connections_open);
    endpoint->info = icap_info_start(endpoint, service->quota->servers[index]);
    on_change(&endpoint->change_task);
    return endpoint;
}

static void drop_probe(struct icap_endpoint *endpoint) {
    bool renewing = endpoint->renewing;
    endpoint->renewing = false;
    icap_probe_cancel(&endpoint->probe);
    if (renewing)
        icap_service_leave(endpoint->service, endpoint);
}

void icap_endpoint_free(struct icap_endpoint **endpointp) {
    struct icap_endpoint *endpoint = *endpointp;
    *endpointp = NULL;
    CHECK_OBJ(endpoint, ICAP_ENDPOINT_MAGIC);
    struct loop *loop = endpoint->service->net->loop;
    drop_probe(endpoint);
    icap_info_end(&endpoint->info);
    ASSERT(endpoint->busy == 0);
    waiter_cancel(&endpoint->watcher, &endpoint->health->lock);
    icap_health_unclaim(endpoint->health, endpoint, true, loop);
    task_cancel(&endpoint->change_task);
    timer_cancel(&loop->timers, &endpoint->retry);
    icap_look_end(&endpoint->look, loop);
    icap_lost_connections_end(&endpoint->lost_connections);
    pool_free(&endpoint->pool);
    tls_client_release(&endpoint->tls);
    free(endpoint->head);
    FREE_OBJ(endpoint);
}

/* Checks that the service supports the configured point. */
static const char *endpoint_unfit(const struct icap_endpoint *endpoint,
                                  const struct icap_options *options) {
    bool reqmod = adapt_point_is_reqmod(endpoint->service->base.settings->point);
    if (reqmod && !options->reqmod)
        return "its Methods do not list REQMOD: set point to a respmod point";
    if (!reqmod && !options->respmod)
        return "its Methods do not list RESPMOD: set point to a reqmod point";
    return NULL;
}

/* The right number of connections follows from both. */
static void warn_of_no_limit(const struct icap_endpoint *endpoint,
                             const struct icap_options *options) {
    const struct service_settings *settings = endpoint->service->base.settings;
    if (options->max_connections == 0 && !settings->max_connections_given &&
        endpoint->known.state == SERVICE_UNKNOWN)
        log_warn("icap service %s (%s) does not state how many connections it serves "
                 "(Max-Connections): set max_connections to its number of threads, because further "
                 "connections wait there and time out; it is %u now",
                 settings->name, endpoint->uri_text, settings->max_connections);
}

/* A slow message of one client then counts as a failure of the service for all. */
static void warn_of_impatience(const struct icap_endpoint *endpoint,
                               const struct icap_options *options) {
    const struct service_settings *settings = endpoint->service->base.settings;
    bool thinks_longer = settings->first_byte_timeout > 0;
    uint64_t patience = thinks_longer ? settings->first_byte_timeout : settings->timeout;
    bool told = endpoint->known.have_options &&
                endpoint->known.options.answers_within == options->answers_within;
    if (options->answers_within >= patience && !told)
        log_warn("icap service %s (%s) may take %llu ms for an answer, but %s is %llu ms, so slow "
                 "answers count as failures of the service: raise it, or lower the deadline of the "
                 "service",
                 settings->name, endpoint->uri_text, (unsigned long long)options->answers_within,
                 thinks_longer ? "first_byte_timeout" : "timeout", (unsigned long long)patience);
}

static void warn_of_lists(const struct icap_endpoint *endpoint,
                          const struct icap_options *options) {
    if (options->lists_too_long && !endpoint->known.options.lists_too_long)
        log_warn("icap service %s (%s): its Transfer-Preview, Transfer-Ignore and "
                 "Transfer-Complete are longer than %d bytes together, so all messages are sent to "
                 "it whole: shorten these lists",
                 endpoint->service->base.settings->name, endpoint->uri_text, ICAP_TRANSFER_SPACE);
}

/* A late one is not shown either. */
static void see_options_istag(struct icap_endpoint *endpoint, struct icap_probe_answer *answer) {
    struct icap_options *options = answer->options;
    struct service_tag_sight sight =
        icap_endpoint_see_istag(endpoint, slice_from(options->istag), &answer->asked);
    if (sight.late)
        memcpy(options->istag, endpoint->known.options.istag, sizeof options->istag);
}

static void on_probed(struct icap_endpoint *endpoint, struct icap_probe_answer *answer) {
    CHECK_OBJ(endpoint, ICAP_ENDPOINT_MAGIC);
    const struct loop *loop = endpoint->service->net->loop;
    const char *error =
        answer->options != NULL ? endpoint_unfit(endpoint, answer->options) : answer->error;
    if (answer->options != NULL)
        answer->failure = ICAP_FAILURE_GONE;
    if (endpoint->renewing && answer->connection != NULL)
        icap_endpoint_take_back(endpoint, &answer->connection, true);
    connection_close(&answer->connection);
    if (endpoint->renewing) {
        endpoint->renewing = false;
        icap_service_leave(endpoint->service, endpoint);
    }
    if (error != NULL) {
        icap_health_unanswered(endpoint->health, endpoint, answer->failure, error, loop);
    } else {
        warn_of_no_limit(endpoint, answer->options);
        warn_of_impatience(endpoint, answer->options);
        warn_of_lists(endpoint, answer->options);
        see_options_istag(endpoint, answer);
        icap_health_answered(endpoint->health, endpoint, answer->options, loop);
    }
    endpoint_follow(endpoint);
}

static void start_probe(struct icap_endpoint *endpoint, struct connection **connection,
                        uint64_t patience) {
    endpoint->probe = icap_probe_start(endpoint, connection, patience, on_probed);
    icap_look_go_on(endpoint);
}

/* Asks for OPTIONS for the first time, or while the endpoint is down. */
static void endpoint_ask(struct icap_endpoint *endpoint) {
    struct connection *none = NULL;
    start_probe(endpoint, &none, endpoint->service->base.settings->timeout);
    /* The kernel repeats lost packets after a second and then ever less often, so a new attempt
     * is better. Now and then an attempt gets the whole time, in case the network is really that
     * slow. */
    if (icap_endpoint_is_lost(endpoint) && ++endpoint->tries % PATIENT_TRIES != 0)
        icap_probe_hurry(endpoint->probe, HURRY);
}

static void ask_first(struct icap_endpoint *endpoint) {
    if (endpoint->probe == NULL &&
        icap_health_claim(endpoint->health, endpoint, endpoint->service->net->loop->now))
        endpoint_ask(endpoint);
}

static void on_retry(struct timer *timer) {
    struct icap_endpoint *endpoint = CONTAINER_OF(timer, struct icap_endpoint, retry);
    CHECK_OBJ(endpoint, ICAP_ENDPOINT_MAGIC);
    if (icap_quota_may_ask(endpoint->service->quota, endpoint->index))
        endpoint_ask(endpoint);
    else
        loop_timer_after(endpoint->service->net->loop, &endpoint->retry, ICAP_HEALTH_AGAIN);
}

/* A renewal gets a short time only, because it uses a connection that a transaction may need. */
static void start_renewal(struct icap_endpoint *endpoint, struct connection **connection) {
    const struct service_settings *settings = endpoint->service->base.settings;
    bool hasty = settings->connect_timeout < settings->timeout;
    endpoint->renewing = true;
    start_probe(endpoint, connection, hasty ? settings->connect_timeout : settings->timeout);
}

static bool claim_renewal(struct icap_endpoint *endpoint) {
    uint64_t now = endpoint->service->net->loop->now;
    return endpoint->known.have_options && endpoint->known.options_expire <= now &&
           !endpoint->service->retired && endpoint->probe == NULL &&
           icap_health_claim(endpoint->health, endpoint, now);
}

bool icap_endpoint_renew_over(struct icap_endpoint *endpoint, struct connection **connection) {
    CHECK_OBJ(endpoint, ICAP_ENDPOINT_MAGIC);
    if (!claim_renewal(endpoint))
        return false;
    if (!pool_would_take(*connection)) {
        icap_health_unclaim(endpoint->health, endpoint, false, endpoint->service->net->loop);
        return false;
    }
    start_renewal(endpoint, connection);
    return true;
}

/* When no connection is free now, the next transaction that ends gives its own. */
static void endpoint_renew(struct icap_endpoint *endpoint) {
    struct icap_service *service = endpoint->service;
    if (!claim_renewal(endpoint))
        return;
    struct icap_quota_bid bid = icap_endpoint_bid(endpoint);
    if (icap_quota_take(service->quota, &bid, 1, service->net->loop->now) < 0) {
        icap_health_unclaim(endpoint->health, endpoint, false, service->net->loop);
        return;
    }
    endpoint->busy++;
    struct connection *connection =
        pool_take_quiet(endpoint->pool, icap_endpoint_key(endpoint), NULL, NULL);
    start_renewal(endpoint, &connection);
}

/* Only one of all workers tries an endpoint that is down. */
static void endpoint_hold(struct icap_endpoint *endpoint) {
    struct loop *loop = endpoint->service->net->loop;
    if (endpoint->known.state != SERVICE_DOWN)
        return;
    if (endpoint->service->retired) {
        icap_health_unclaim(endpoint->health, endpoint, true, loop);
        return;
    }
    if (endpoint->renewing && endpoint->known.unreachable)
        drop_probe(endpoint);
    bool mine = atomic_load(&endpoint->health->holder) == endpoint ||
                icap_health_claim(endpoint->health, endpoint, loop->now);
    uint64_t at = endpoint->known.retry_at;
    if (mine && endpoint->probe == NULL)
        timer_set(&loop->timers, &endpoint->retry, at > loop->now ? at : loop->now);
}

void icap_endpoint_close_idle(struct icap_endpoint *endpoint) {
    struct connection *connection;
    if (pool_count(endpoint->pool) == 0)
        return;
    while (icap_endpoint_is_lost(endpoint) &&
           (connection = pool_take(endpoint->pool, icap_endpoint_key(endpoint), NULL, NULL)) !=
               NULL)
        icap_lost_connections_add(&endpoint->lost_connections, &connection);
    pool_close_idle(endpoint->pool);
    struct icap_quota_bid bid = icap_endpoint_bid(endpoint);
    icap_quota_note(endpoint->service->quota, &bid, endpoint->service->net->loop);
}

static void follow_shifts(struct icap_endpoint *endpoint) {
    uint64_t shifts = icap_health_shifts(endpoint->health);
    if (shifts == endpoint->shifts)
        return;
    endpoint->shifts = shifts;
    icap_endpoint_close_idle(endpoint);
}

/* Somebody has changed its health. */
static void endpoint_follow(struct icap_endpoint *endpoint) {
    struct icap_service *service = endpoint->service;
    follow_shifts(endpoint);
    struct icap_health_view *known = &endpoint->known;
    enum service_state before = known->state;
    if (!icap_health_has_changed(endpoint->health, known))
        return;
    icap_health_read(endpoint->health, known);
    if (known->have_options)
        icap_quota_state(service->quota, endpoint->index, known->options.max_connections);
    if (known->state == SERVICE_DOWN)
        icap_endpoint_close_idle(endpoint);
    if (!icap_endpoint_is_lost(endpoint))
        icap_lost_connections_end(&endpoint->lost_connections);
    else
        icap_look_soon(endpoint);
    endpoint_hold(endpoint);
    if (known->state != before || !known->have_options)
        icap_service_wake_all(service);
}

static void on_change(struct task *task) {
    struct icap_endpoint *endpoint = CONTAINER_OF(task, struct icap_endpoint, change_task);
    CHECK_OBJ(endpoint, ICAP_ENDPOINT_MAGIC);
    if (endpoint->service->base.host->mailbox != NULL)
        icap_health_watch(endpoint->health, &endpoint->watcher,
                          endpoint->service->base.host->mailbox, &endpoint->change_task);
    endpoint_follow(endpoint);
}

void icap_endpoint_retire(struct icap_endpoint *endpoint) {
    CHECK_OBJ(endpoint, ICAP_ENDPOINT_MAGIC);
    struct loop *loop = endpoint->service->net->loop;
    icap_endpoint_close_idle(endpoint);
    icap_info_end(&endpoint->info);
    if (endpoint->known.state == SERVICE_UNKNOWN)
        return; /* transactions that wait here must be told */
    drop_probe(endpoint);
    timer_cancel(&loop->timers, &endpoint->retry);
    icap_health_unclaim(endpoint->health, endpoint, true, loop);
}

bool icap_endpoint_ready(struct icap_endpoint *endpoint) {
    CHECK_OBJ(endpoint, ICAP_ENDPOINT_MAGIC);
    endpoint_follow(endpoint);
    if (endpoint->known.state == SERVICE_DOWN)
        return false;
    if (!endpoint->known.have_options) {
        ask_first(endpoint);
        return false;
    }
    if (endpoint->known.options_expire <= endpoint->service->net->loop->now)
        endpoint_renew(endpoint);
    return true;
}

/* Returns how many connections may be idle. When there are fewer connections than workers, a
 * worker with waiting transactions keeps a connection for some turns, and then gives it to
 * another worker. */
static unsigned idle_most(struct icap_endpoint *endpoint) {
    struct icap_service *service = endpoint->service;
    struct icap_quota_bid bid = icap_endpoint_bid(endpoint);
    const struct icap_quota_keeper keeper = {
        .waits = service->waiter != NULL,
        .next = service->waiting_count > 0 && ++endpoint->turns % TURNS != 0,
        .slot = &service->holder,
        .mailbox = service->base.host->mailbox,
        .release = &service->release_task,
    };
    return icap_quota_idle(service->quota, &bid, &keeper);
}

void icap_endpoint_take_back(struct icap_endpoint *endpoint, struct connection **connection,
                             bool reusable) {
    struct icap_service *service = endpoint->service;
    CHECK_OBJ(endpoint, ICAP_ENDPOINT_MAGIC);
    if (icap_endpoint_is_lost(endpoint))
        icap_lost_connections_add(&endpoint->lost_connections, connection);
    else if (reusable && !service->retired && endpoint->known.state != SERVICE_DOWN)
        pool_give(endpoint->pool, icap_endpoint_key(endpoint), connection,
                  service->base.settings->idle_timeout, idle_most(endpoint));
    else
        connection_close(connection);
}

void icap_endpoint_succeeded(struct icap_endpoint *endpoint) {
    CHECK_OBJ(endpoint, ICAP_ENDPOINT_MAGIC);
    struct icap_health *health = endpoint->health;
    if (endpoint->known.state == SERVICE_TRIAL ||
        atomic_load_explicit(&health->failures, memory_order_relaxed) > 0)
        icap_health_succeeded(health, endpoint->service->net->loop);
}

void icap_endpoint_failed(struct icap_endpoint *endpoint, uint64_t turn, enum icap_failure failure,
                          const char *error) {
    CHECK_OBJ(endpoint, ICAP_ENDPOINT_MAGIC);
    const struct loop *loop = endpoint->service->net->loop;
    if (failure == ICAP_FAILURE_OVERLOADED)
        icap_quota_lower(endpoint->service->quota, endpoint->index, loop->now + OVERLOADED_FOR);
    icap_health_failed(endpoint->health, turn, failure, error, loop);
    endpoint_follow(endpoint);
}

static void show_istag(struct icap_endpoint *endpoint, struct slice istag) {
    char *known = endpoint->known.options.istag;
    if (istag.length >= sizeof endpoint->known.options.istag ||
        slice_equal(istag, slice_from(known)))
        return;
    memcpy(known, istag.base, istag.length);
    known[istag.length] = '\0';
    icap_health_see_istag(endpoint->health, known);
}

struct service_tag_sight icap_endpoint_see_istag(struct icap_endpoint *endpoint, struct slice istag,
                                                 const struct service_tag_moment *asked) {
    const struct loop *loop = endpoint->service->net->loop;
    struct service_tag *tag = endpoint->service->base.tag;
    struct service_tag_sight sight = {0, false, false};
    if (istag.length == 0) {
        sight.result = service_tag_of_generation(tag, asked->generation);
        return sight;
    }
    sight = service_tag_see(tag, endpoint->index, istag, asked, loop->now);
    if (!sight.late)
        show_istag(endpoint, istag);
    if (sight.shifted)
        icap_health_shift(endpoint->health, loop);
    return sight;
}

struct icap_quota_bid icap_endpoint_bid(struct icap_endpoint *endpoint) {
    return (struct icap_quota_bid){
        .endpoint = endpoint->index,
        .busy = endpoint->busy,
        .idle = pool_count(endpoint->pool),
        .counted = &endpoint->counted,
        .alone = endpoint->known.state == SERVICE_TRIAL,
    };
}

struct dial_target icap_endpoint_target(const struct icap_endpoint *endpoint, uint64_t timeout) {
    return (struct dial_target){
        .host = endpoint->uri->host,
        .port = endpoint->uri->port,
        .egress = EGRESS_ANY,
        .timeout = timeout,
        .tls = endpoint->tls,
    };
}

struct slice icap_endpoint_key(const struct icap_endpoint *endpoint) {
    return slice_from(endpoint->uri_text);
}
