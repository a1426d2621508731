#include "origin/staple_fetch.h"

#include "base/assert.h"
#include "base/log.h"
#include "origin/small_fetch.h"
#include "tls/staple.h"

#include <openssl/x509.h>

/* FETCH_TIMEOUT in milliseconds, the others in seconds: how often the clock is looked at, which may
 * be set. */
enum { FETCH_TIMEOUT = 10000, FETCH_HOPS = 4, LOOK_MOST = 600 };

struct staple_fetches {
    unsigned magic;
#define STAPLE_FETCHES_MAGIC 0x57a9fe70u
    struct net_context *net;
    struct origin_pool *connections;
    struct list_link list;
};

struct staple_fetch {
    unsigned magic;
#define STAPLE_FETCH_MAGIC 0x57a9fe7cu
    struct staple_fetches *fetches;
    struct list_link link;
    X509 *certificate; /* counted, and with it its staple */
    struct staple *staple;
    char *name;
    struct timer timer;
    struct task task;
    struct small_fetch fetch;
    char *url;
    unsigned char *request;
    size_t request_length;
};

static void staple_fetch_wait(struct staple_fetch *fetch) {
    struct loop *loop = fetch->fetches->net->loop;
    int64_t left = staple_due(fetch->staple, loop->wall) - (int64_t)loop->wall;
    left = left < 0 ? 0 : left > LOOK_MOST ? LOOK_MOST : left;
    loop_timer_after(loop, &fetch->timer, (uint64_t)left * 1000);
}

static void staple_fetch_fail(struct staple_fetch *fetch, const char *error) {
    struct net_context *net = fetch->fetches->net;
    struct staple_report report;
    staple_read(fetch->staple, &report);
    if (report.error[0] == '\0')
        log_warn("certificate %s: its OCSP response can't be fetched%s%s (%s); it is tried again",
                 fetch->name, fetch->url != NULL ? " from " : "",
                 fetch->url != NULL ? fetch->url : "", error);
    net->counters.staples_failed++;
    staple_note_failure(fetch->staple, error, net->loop->wall);
}

static void staple_fetch_take(struct staple_fetch *fetch) {
    struct net_context *net = fetch->fetches->net;
    char error[STAPLE_ERROR];
    struct staple_report report;
    if (!staple_put(fetch->staple, fetch->fetch.body, fetch->fetch.length, net->loop->wall,
                    error)) {
        staple_fetch_fail(fetch, error);
        return;
    }
    net->counters.staples_fetched++;
    staple_read(fetch->staple, &report);
    if (report.state == STAPLE_REVOKED)
        log_error("certificate %s is revoked, says %s: get a new certificate", fetch->name,
                  fetch->url);
}

static void staple_fetch_forget(struct staple_fetch *fetch) {
    small_fetch_close(&fetch->fetch);
    free(fetch->url);
    free(fetch->request);
    fetch->url = NULL;
    fetch->request = NULL;
}

static void staple_fetch_on_news(struct task *task) {
    struct staple_fetch *fetch = CONTAINER_OF(task, struct staple_fetch, task);
    CHECK_OBJ(fetch, STAPLE_FETCH_MAGIC);
    if (fetch->fetch.state == SMALL_FETCH_BUSY)
        return;
    if (fetch->fetch.state == SMALL_FETCH_FAILED)
        staple_fetch_fail(fetch, fetch->fetch.error);
    else
        staple_fetch_take(fetch);
    staple_fetch_forget(fetch);
    staple_fetch_wait(fetch);
}

static void staple_fetch_start(struct staple_fetch *fetch) {
    struct staple_fetches *fetches = fetch->fetches;
    char error[STAPLE_ERROR] = "out of memory";
    fetch->url = staple_responder(fetch->staple, &fetch->request, &fetch->request_length, error);
    if (fetch->url == NULL) {
        staple_fetch_fail(fetch, error);
        staple_fetch_wait(fetch);
        return;
    }
    const struct small_fetch_request request = {
        .url = slice_from(fetch->url),
        .egress = EGRESS_ANY,
        .hops = FETCH_HOPS,
        .timeout = FETCH_TIMEOUT,
        .post = slice_make((char *)fetch->request, fetch->request_length),
        .type = SLICE("application/ocsp-request"),
    };
    small_fetch_start(&fetch->fetch, fetches->net, fetches->connections, &request, &fetch->task);
}

static void staple_fetch_on_timer(struct timer *timer) {
    struct staple_fetch *fetch = CONTAINER_OF(timer, struct staple_fetch, timer);
    CHECK_OBJ(fetch, STAPLE_FETCH_MAGIC);
    int64_t now = fetch->fetches->net->loop->wall;
    if (staple_due(fetch->staple, now) <= now)
        staple_fetch_start(fetch);
    else
        staple_fetch_wait(fetch);
}

struct staple_fetches *staple_fetches_new(struct net_context *net,
                                          struct origin_pool *connections) {
    struct staple_fetches *fetches;
    ALLOC_OBJ(fetches, STAPLE_FETCHES_MAGIC);
    fetches->net = net;
    fetches->connections = connections;
    list_init(&fetches->list);
    return fetches;
}

static bool staple_fetches_have(const struct staple_fetches *fetches, const struct staple *staple) {
    for (const struct list_link *link = fetches->list.next; link != &fetches->list;
         link = link->next)
        if (CONTAINER_OF(link, const struct staple_fetch, link)->staple == staple)
            return true;
    return false;
}

void staple_fetches_add(struct staple_fetches *fetches, X509 *certificate, const char *name) {
    struct staple *staple = staple_of(certificate);
    struct staple_fetch *fetch;
    CHECK_OBJ(fetches, STAPLE_FETCHES_MAGIC);
    if (staple == NULL || staple_fetches_have(fetches, staple) || X509_up_ref(certificate) != 1)
        return;
    ALLOC_OBJ(fetch, STAPLE_FETCH_MAGIC);
    fetch->fetches = fetches;
    fetch->certificate = certificate;
    fetch->staple = staple;
    fetch->name = xstrdup(name);
    timer_init(&fetch->timer, staple_fetch_on_timer);
    task_init(&fetch->task, staple_fetch_on_news);
    list_append(&fetches->list, &fetch->link);
    loop_timer_after(fetches->net->loop, &fetch->timer, 0);
}

void staple_fetches_free(struct staple_fetches **fetchesp) {
    struct staple_fetches *fetches = *fetchesp;
    struct list_link *link;
    *fetchesp = NULL;
    if (fetches == NULL)
        return;
    CHECK_OBJ(fetches, STAPLE_FETCHES_MAGIC);
    while ((link = list_first(&fetches->list)) != NULL) {
        struct staple_fetch *fetch = CONTAINER_OF(link, struct staple_fetch, link);
        CHECK_OBJ(fetch, STAPLE_FETCH_MAGIC);
        list_remove(link);
        timer_cancel(&fetches->net->loop->timers, &fetch->timer);
        task_cancel(&fetch->task);
        staple_fetch_forget(fetch);
        X509_free(fetch->certificate);
        free(fetch->name);
        FREE_OBJ(fetch);
    }
    FREE_OBJ(fetches);
}
