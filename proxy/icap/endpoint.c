#include "icap/endpoint.h"

#include "base/assert.h"
#include "base/log.h"
#include "http/credentials.h"
#include "icap/probe.h"
#include "icap/service.h"

#include <stdio.h>

enum { OVERLOADED_FOR = 10000 };

static void on_retry(struct timer *timer);

/* URI, Host and what else is always the same. */
static char *write_head(const struct icap_endpoint *endpoint) {
    const struct url *uri = endpoint->uri;
    const char *credentials = endpoint->service->settings->credentials;
    char *head, value[HTTP_CREDENTIALS_VALUE];
    struct slice basic = SLICE("");
    if (credentials != NULL)
        basic = http_credentials_write(credentials, value);
    int length =
        asprintf(&head, "%s ICAP/1.0\r\nHost: %s%.*s%s:%u\r\nUser-Agent: Retort\r\n%s%.*s%s",
                 endpoint->uri_text, uri->host_is_ipv6 ? "[" : "", SLICE_PRINT(uri->host),
                 uri->host_is_ipv6 ? "]" : "", uri->port,
                 credentials == NULL ? "" : "Proxy-Authorization: ", SLICE_PRINT(basic),
                 credentials == NULL ? "" : "\r\n");
    ASSERT(length > 0);
    return head;
}

static struct tls_client *make_tls(const struct icap_service_settings *settings,
                                   const struct url *uri) {
    const struct tls_settings tls = {
        .ca_file = settings->ca_file,
        .certificate = settings->certificate,
        .certificate_key = settings->certificate_key,
        .verify = settings->verify,
    };
    return slice_equal_nocase(uri->scheme, SLICE("icaps")) ? tls_client_new(&tls, uri->host) : NULL;
}

struct icap_endpoint *icap_endpoint_new(struct icap_service *service, unsigned index) {
    struct icap_endpoint *endpoint;
    ALLOC_OBJ(endpoint, ICAP_ENDPOINT_MAGIC);
    endpoint->service = service;
    endpoint->index = index;
    endpoint->uri_text = service->settings->uri_texts[index];
    endpoint->uri = &service->settings->endpoints[index];
    endpoint->head = write_head(endpoint);
    endpoint->tls = make_tls(service->settings, endpoint->uri);
    endpoint->back_off = service->settings->down_min;
    endpoint->error = "it has not been asked yet";
    timer_init(&endpoint->retry, on_retry);
    endpoint->pool = pool_new(service->net, &service->net->counters.icap_connections_open);
    return endpoint;
}

void icap_endpoint_free(struct icap_endpoint **endpointp) {
    struct icap_endpoint *endpoint = *endpointp;
    *endpointp = NULL;
    CHECK_OBJ(endpoint, ICAP_ENDPOINT_MAGIC);
    ASSERT(endpoint->busy == 0);
    icap_probe_cancel(&endpoint->probe);
    timer_cancel(&endpoint->service->net->loop->timers, &endpoint->retry);
    pool_free(&endpoint->pool);
    tls_client_free(&endpoint->tls);
    free(endpoint->head);
    FREE_OBJ(endpoint);
}

static void go_down(struct icap_endpoint *endpoint, const char *error) {
    const struct icap_service_settings *settings = endpoint->service->settings;
    if (endpoint->state != ICAP_STATE_DOWN)
        log_warn("icap service %s (%s) is down: %s; %s, trying again in %lu ms", settings->name,
                 endpoint->uri_text, error,
                 settings->endpoint_count > 1 ? "other endpoints serve if they are up"
                 : settings->bypass           ? "messages pass unadapted"
                                              : "its requests are answered with 502",
                 (unsigned long)endpoint->back_off);
    endpoint->state = ICAP_STATE_DOWN;
    endpoint->error = error;
    endpoint->have_options = false;
    endpoint->failures = 0;
    pool_close_idle(endpoint->pool);
    loop_timer_after(endpoint->service->net->loop, &endpoint->retry, endpoint->back_off);
    endpoint->back_off *= 2;
    if (endpoint->back_off > settings->down_max)
        endpoint->back_off = settings->down_max;
    icap_service_wake_all(endpoint->service);
}

/* Does the service do what it is configured for? */
static const char *unfit(const struct icap_endpoint *endpoint, const struct icap_options *options) {
    bool reqmod = icap_point_is_reqmod(endpoint->service->settings->point);
    if (reqmod && !options->reqmod)
        return "its Methods do not list REQMOD: configure another point";
    if (!reqmod && !options->respmod)
        return "its Methods do not list RESPMOD: configure another point";
    return NULL;
}

static void on_probed(struct icap_endpoint *endpoint, const struct icap_options *options,
                      const char *error) {
    CHECK_OBJ(endpoint, ICAP_ENDPOINT_MAGIC);
    if (options != NULL)
        error = unfit(endpoint, options);
    if (error != NULL) {
        go_down(endpoint, error);
        return;
    }
    if (endpoint->state == ICAP_STATE_DOWN) {
        log_info("icap service %s (%s) answers again", endpoint->service->settings->name,
                 endpoint->uri_text);
        endpoint->state = ICAP_STATE_TRIAL;
    } else if (endpoint->state == ICAP_STATE_UNKNOWN) {
        endpoint->state = ICAP_STATE_UP;
    }
    endpoint->options = *options;
    endpoint->options.notice.since = endpoint->service->net->loop->now;
    endpoint->have_options = true;
    icap_endpoint_see_istag(endpoint, slice_from(options->istag), 0);
    endpoint->options_expire =
        options->ttl < 0 ? TIMER_NEVER
                         : endpoint->service->net->loop->now + (uint64_t)options->ttl * 1000;
    icap_quota_state(endpoint->service->quota, endpoint->index, options->max_connections);
    icap_service_wake_all(endpoint->service);
}

static void probe(struct icap_endpoint *endpoint) {
    if (endpoint->probe == NULL)
        endpoint->probe = icap_probe_start(endpoint, on_probed);
}

static void on_retry(struct timer *timer) {
    struct icap_endpoint *endpoint = CONTAINER_OF(timer, struct icap_endpoint, retry);
    CHECK_OBJ(endpoint, ICAP_ENDPOINT_MAGIC);
    probe(endpoint);
}

bool icap_endpoint_ready(struct icap_endpoint *endpoint) {
    CHECK_OBJ(endpoint, ICAP_ENDPOINT_MAGIC);
    if (endpoint->state == ICAP_STATE_DOWN)
        return false;
    if (!endpoint->have_options) {
        probe(endpoint);
        return false;
    }
    if (endpoint->options_expire <= endpoint->service->net->loop->now)
        probe(endpoint);
    return endpoint->state == ICAP_STATE_UP || endpoint->busy == 0;
}

void icap_endpoint_succeeded(struct icap_endpoint *endpoint) {
    CHECK_OBJ(endpoint, ICAP_ENDPOINT_MAGIC);
    endpoint->failures = 0;
    if (endpoint->state != ICAP_STATE_TRIAL)
        return;
    log_info("icap service %s (%s) is up again", endpoint->service->settings->name,
             endpoint->uri_text);
    endpoint->state = ICAP_STATE_UP;
    endpoint->back_off = endpoint->service->settings->down_min;
    icap_service_wake_all(endpoint->service);
}

void icap_endpoint_failed(struct icap_endpoint *endpoint, enum icap_failure failure,
                          const char *error) {
    CHECK_OBJ(endpoint, ICAP_ENDPOINT_MAGIC);
    bool trial = endpoint->state == ICAP_STATE_TRIAL;
    if (endpoint->state != ICAP_STATE_UP && !trial)
        return;
    switch (failure) {
    case ICAP_FAILURE_REFUSED:
    case ICAP_FAILURE_BODY:
    case ICAP_FAILURE_QUEUE:
    case ICAP_FAILURE_DOWN: return; /* says nothing of it */
    case ICAP_FAILURE_CONNECT:
    case ICAP_FAILURE_GONE: go_down(endpoint, error); return;
    case ICAP_FAILURE_OVERLOADED:
        icap_quota_lower(endpoint->service->quota, endpoint->index,
                         endpoint->service->net->loop->now + OVERLOADED_FOR);
        if (!trial)
            return;
        break;
    default: break;
    }
    if (trial || ++endpoint->failures >= endpoint->service->settings->failures_down)
        go_down(endpoint, error);
}

static void show_istag(struct icap_endpoint *endpoint, struct slice istag) {
    char *known = endpoint->options.istag;
    if (istag.length >= sizeof endpoint->options.istag || slice_equal(istag, slice_from(known)))
        return;
    memcpy(known, istag.base, istag.length);
    known[istag.length] = '\0';
}

uint64_t icap_endpoint_see_istag(struct icap_endpoint *endpoint, struct slice istag,
                                 uint64_t generation) {
    struct icap_tag *tag = endpoint->service->quota->tag;
    if (istag.length == 0)
        return icap_tag_of_generation(tag, generation);
    show_istag(endpoint, istag);
    return icap_tag_see(tag, endpoint->index, istag, generation);
}

struct icap_quota_bid icap_endpoint_bid(struct icap_endpoint *endpoint) {
    return (struct icap_quota_bid){
        .endpoint = endpoint->index,
        .busy = endpoint->busy,
        .idle = pool_count(endpoint->pool),
        .counted = &endpoint->counted,
    };
}

const char *icap_endpoint_state_name(const struct icap_endpoint *endpoint) {
    static const char *const names[] = {"unknown", "down", "trial", "up"};
    return names[endpoint->state];
}

struct slice icap_endpoint_key(const struct icap_endpoint *endpoint) {
    return slice_from(endpoint->uri_text);
}
