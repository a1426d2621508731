#include "pki/fetches.h"

#include "base/assert.h"
#include "base/log.h"
#include "pki/intermediates.h"
#include "pki/small_fetch.h"
#include "pki/staple.h"
#include "tls/verify.h"

struct pki_fetches {
    unsigned magic;
#define PKI_FETCHES_MAGIC 0xce47fe7cu
    struct net_context *net;
    struct origin_pool *connections;
    struct list_link certificates, staples;
    unsigned certificate_count;
};

/* Certificates of issuers. */

struct certificate_fetch {
    unsigned magic;
#define CERTIFICATE_FETCH_MAGIC 0xce47fe70u
    struct pki_fetches *fetches;
    struct list_link link;
    char *url;
    struct small_fetch fetch;
    struct task task;
};

static void certificate_fetch_free(struct certificate_fetch *fetch) {
    list_remove(&fetch->link);
    fetch->fetches->certificate_count--;
    task_cancel(&fetch->task);
    small_fetch_close(&fetch->fetch);
    free(fetch->url);
    FREE_OBJ(fetch);
}

static void certificate_fetch_note(struct net_context *net, const char *url,
                                   const STACK_OF(X509) * certificates, unsigned hops,
                                   const char *error) {
    net->counters.intermediates_fetched += certificates != NULL;
    net->counters.intermediates_failed += certificates == NULL;
    if (certificates == NULL)
        log_debug("the certificate at %s can't be fetched: %s", url, error);
    intermediates_put(url, certificates, hops, error, net->loop);
}

static void certificate_fetch_on_news(struct task *task) {
    struct certificate_fetch *fetch = CONTAINER_OF(task, struct certificate_fetch, task);
    CHECK_OBJ(fetch, CERTIFICATE_FETCH_MAGIC);
    const struct small_fetch *done = &fetch->fetch;
    const char *error = done->error;
    STACK_OF(X509) *found = NULL;
    if (done->state == SMALL_FETCH_BUSY)
        return;
    if (done->state == SMALL_FETCH_DONE) {
        found = aia_parse(done->body, done->length);
        error = found == NULL ? "the answer contains no certificate" : "";
    }
    certificate_fetch_note(fetch->fetches->net, fetch->url, found, done->hops, error);
    sk_X509_pop_free(found, X509_free);
    certificate_fetch_free(fetch);
}

void pki_fetch_certificate(struct net_context *net, const char *url) {
    struct pki_fetches *fetches = net->fetches;
    struct certificate_fetch *fetch;
    CHECK_OBJ(fetches, PKI_FETCHES_MAGIC);
    if (fetches->certificate_count >= CERTIFICATE_FETCHES_MOST) {
        certificate_fetch_note(net, url, NULL, 0, "too many certificates are being fetched");
        return;
    }
    ALLOC_OBJ(fetch, CERTIFICATE_FETCH_MAGIC);
    fetch->fetches = fetches;
    fetch->url = xstrdup(url);
    list_append(&fetches->certificates, &fetch->link);
    fetches->certificate_count++;
    task_init(&fetch->task, certificate_fetch_on_news);
    const struct small_fetch_request request = {
        .url = slice_from(fetch->url),
        .egress = EGRESS_PUBLIC,
        .hops = TLS_VERIFY_HOPS,
        .timeout = CERTIFICATE_FETCH_TIMEOUT,
    };
    small_fetch_start(&fetch->fetch, net, fetches->connections, &request, &fetch->task);
}

/* OCSP responses. */

/* FETCH_TIMEOUT in milliseconds, the others in seconds: how often the clock is looked at, which may
 * be set. */
enum { FETCH_TIMEOUT = 10000, FETCH_HOPS = 4, LOOK_MOST = 600 };

struct staple_fetch {
    unsigned magic;
#define STAPLE_FETCH_MAGIC 0x57a9fe7cu
    struct pki_fetches *fetches;
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
    struct pki_fetches *fetches = fetch->fetches;
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

static bool staples_have(const struct pki_fetches *fetches, const struct staple *staple) {
    for (const struct list_link *link = fetches->staples.next; link != &fetches->staples;
         link = link->next)
        if (CONTAINER_OF(link, const struct staple_fetch, link)->staple == staple)
            return true;
    return false;
}

void pki_fetch_staple(struct pki_fetches *fetches, X509 *certificate, const char *name) {
    struct staple *staple = staple_of(certificate);
    struct staple_fetch *fetch;
    CHECK_OBJ(fetches, PKI_FETCHES_MAGIC);
    if (staple == NULL || staples_have(fetches, staple) || X509_up_ref(certificate) != 1)
        return;
    ALLOC_OBJ(fetch, STAPLE_FETCH_MAGIC);
    fetch->fetches = fetches;
    fetch->certificate = certificate;
    fetch->staple = staple;
    fetch->name = xstrdup(name);
    timer_init(&fetch->timer, staple_fetch_on_timer);
    task_init(&fetch->task, staple_fetch_on_news);
    list_append(&fetches->staples, &fetch->link);
    loop_timer_after(fetches->net->loop, &fetch->timer, 0);
}

void pki_fetches_forget_staples(struct pki_fetches *fetches) {
    struct list_link *link;
    while ((link = list_first(&fetches->staples)) != NULL) {
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
}

/* All of a worker. */

struct pki_fetches *pki_fetches_new(struct net_context *net, struct origin_pool *connections) {
    struct pki_fetches *fetches;
    ALLOC_OBJ(fetches, PKI_FETCHES_MAGIC);
    fetches->net = net;
    fetches->connections = connections;
    list_init(&fetches->certificates);
    list_init(&fetches->staples);
    net->fetches = fetches;
    return fetches;
}

void pki_fetches_free(struct pki_fetches **fetchesp) {
    struct pki_fetches *fetches = *fetchesp;
    struct list_link *link;
    *fetchesp = NULL;
    if (fetches == NULL)
        return;
    CHECK_OBJ(fetches, PKI_FETCHES_MAGIC);
    pki_fetches_forget_staples(fetches);
    while ((link = list_first(&fetches->certificates)) != NULL) {
        struct certificate_fetch *fetch = CONTAINER_OF(link, struct certificate_fetch, link);
        certificate_fetch_note(fetches->net, fetch->url, NULL, 0, "the proxy is stopping");
        certificate_fetch_free(fetch);
    }
    fetches->net->fetches = NULL;
    FREE_OBJ(fetches);
}
