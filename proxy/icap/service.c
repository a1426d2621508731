#include "icap/service.h"

#include "base/assert.h"
#include "base/log.h"
#include "icap/probe.h"

enum { FAILURES_DOWN = 10 };

static void on_retry(struct timer *timer);

struct icap_service *icap_service_new(struct net_context *net,
                                      const struct icap_service_settings *settings,
                                      unsigned workers) {
    struct icap_service *service;
    ALLOC_OBJ(service, ICAP_SERVICE_MAGIC);
    service->net = net;
    service->settings = settings;
    service->workers = workers;
    service->back_off = settings->down_min;
    service->error = "it has not been asked yet";
    list_init(&service->waiting);
    timer_init(&service->retry, on_retry);
    service->pool = pool_new(net, &net->counters.icap_connections_open);
    return service;
}

void icap_service_free(struct icap_service **servicep) {
    struct icap_service *service = *servicep;
    *servicep = NULL;
    if (service == NULL)
        return;
    CHECK_OBJ(service, ICAP_SERVICE_MAGIC);
    ASSERT(list_empty(&service->waiting));
    icap_probe_cancel(&service->probe);
    timer_cancel(&service->net->loop->timers, &service->retry);
    pool_free(&service->pool);
    FREE_OBJ(service);
}

static void wake_one(struct icap_service *service) {
    struct list_link *link = list_first(&service->waiting);
    if (link == NULL)
        return;
    struct icap_waiter *waiter = CONTAINER_OF(link, struct icap_waiter, link);
    list_remove(link);
    service->waiting_count--;
    waiter->called = true;
    loop_defer(service->net->loop, waiter->task);
}

static void wake_all(struct icap_service *service) {
    while (!list_empty(&service->waiting))
        wake_one(service);
}

static void go_down(struct icap_service *service, const char *error) {
    if (service->state != ICAP_STATE_DOWN)
        log_warn("icap service %s (%s) is down: %s; %s, trying again in %lu ms",
                 service->settings->name, service->settings->uri_text, error,
                 service->settings->bypass ? "messages pass unadapted"
                                           : "its requests are answered with 502",
                 (unsigned long)service->back_off);
    service->state = ICAP_STATE_DOWN;
    service->error = error;
    service->have_options = false;
    pool_close_idle(service->pool);
    loop_timer_after(service->net->loop, &service->retry, service->back_off);
    service->back_off *= 2;
    if (service->back_off > service->settings->down_max)
        service->back_off = service->settings->down_max;
    wake_all(service);
}

/* Does the service do what it is configured for? */
static const char *unfit(const struct icap_service *service, const struct icap_options *options) {
    if (service->settings->point == ICAP_REQMOD_PRECACHE && !options->reqmod)
        return "its Methods do not list REQMOD: configure another point";
    if (service->settings->point == ICAP_RESPMOD_PRECACHE && !options->respmod)
        return "its Methods do not list RESPMOD: configure another point";
    return NULL;
}

static void on_probed(struct icap_service *service, const struct icap_options *options,
                      const char *error) {
    CHECK_OBJ(service, ICAP_SERVICE_MAGIC);
    if (options != NULL)
        error = unfit(service, options);
    if (error != NULL) {
        go_down(service, error);
        return;
    }
    if (service->state == ICAP_STATE_DOWN)
        log_info("icap service %s is up again", service->settings->name);
    service->state = ICAP_STATE_UP;
    service->options = *options;
    service->have_options = true;
    service->failures = 0;
    service->back_off = service->settings->down_min;
    service->options_expire =
        options->ttl < 0 ? TIMER_NEVER : service->net->loop->now + (uint64_t)options->ttl * 1000;
    wake_all(service);
}

static void probe(struct icap_service *service) {
    if (service->probe == NULL)
        service->probe = icap_probe_start(service, on_probed);
}

static void on_retry(struct timer *timer) {
    struct icap_service *service = CONTAINER_OF(timer, struct icap_service, retry);
    CHECK_OBJ(service, ICAP_SERVICE_MAGIC);
    probe(service);
}

/* This worker's share of the connections. */
static unsigned share(const struct icap_service *service) {
    unsigned most = service->settings->max_connections;
    if (service->options.max_connections > 0 && service->options.max_connections < most)
        most = service->options.max_connections;
    return most > service->workers ? most / service->workers : 1;
}

static enum icap_readiness wait_for(struct icap_service *service, struct icap_waiter *waiter) {
    if (list_empty(&waiter->link)) {
        list_append(&service->waiting, &waiter->link);
        service->waiting_count++;
    }
    return ICAP_SERVICE_WAIT;
}

enum icap_readiness icap_service_ready(struct icap_service *service, struct icap_waiter *waiter) {
    CHECK_OBJ(service, ICAP_SERVICE_MAGIC);
    waiter->called = false;
    if (service->state == ICAP_STATE_DOWN)
        return ICAP_SERVICE_DOWN;
    if (!service->have_options) {
        probe(service);
        return wait_for(service, waiter);
    }
    if (service->options_expire <= service->net->loop->now)
        probe(service);
    if (service->connections >= share(service))
        return wait_for(service, waiter);
    service->connections++;
    return ICAP_SERVICE_UP;
}

void icap_service_stop_waiting(struct icap_service *service, struct icap_waiter *waiter) {
    if (waiter->called) {
        waiter->called = false;
        wake_one(service); /* its turn is the next one's */
    }
    if (list_empty(&waiter->link))
        return;
    list_remove(&waiter->link);
    service->waiting_count--;
}

void icap_service_leave(struct icap_service *service) {
    CHECK_OBJ(service, ICAP_SERVICE_MAGIC);
    ASSERT(service->connections > 0);
    service->connections--;
    wake_one(service);
}

void icap_service_succeeded(struct icap_service *service) {
    service->failures = 0;
}

void icap_service_failed(struct icap_service *service, bool unreachable, const char *error) {
    CHECK_OBJ(service, ICAP_SERVICE_MAGIC);
    service->net->counters.icap_failures++;
    if (service->state != ICAP_STATE_UP)
        return;
    if (unreachable || ++service->failures >= FAILURES_DOWN)
        go_down(service, error);
}

void icap_service_see_istag(struct icap_service *service, struct slice istag) {
    if (istag.length == 0 || istag.length >= sizeof service->options.istag ||
        slice_equal(istag, slice_from(service->options.istag)))
        return;
    memcpy(service->options.istag, istag.base, istag.length);
    service->options.istag[istag.length] = '\0';
}

const char *icap_service_error(const struct icap_service *service) {
    return service->error;
}

struct slice icap_service_pool_key(const struct icap_service *service) {
    return slice_from(service->settings->name);
}

const char *icap_service_state_name(const struct icap_service *service) {
    static const char *const names[] = {"unknown", "up", "down"};
    return names[service->state];
}
