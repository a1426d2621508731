#include "origin/certificate_fetch.h"

#include "base/assert.h"
#include "base/log.h"
#include "origin/small_fetch.h"
#include "tls/intermediates.h"
#include "tls/verify.h"

struct certificate_fetches {
    unsigned magic;
#define CERTIFICATE_FETCHES_MAGIC 0xce47fe7cu
    struct net_context *net;
    struct origin_pool *connections;
    struct list_link list;
    unsigned count;
};

struct certificate_fetch {
    unsigned magic;
#define CERTIFICATE_FETCH_MAGIC 0xce47fe70u
    struct certificate_fetches *fetches;
    struct list_link link;
    char *url;
    struct small_fetch fetch;
    struct task task;
};

static void certificate_fetch_free(struct certificate_fetch *fetch) {
    list_remove(&fetch->link);
    fetch->fetches->count--;
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
    intermediates_put(net->intermediates, url, certificates, hops, error, net->loop);
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

static void certificate_fetch_start(struct net_context *net, const char *url) {
    struct certificate_fetches *fetches = net->fetches;
    struct certificate_fetch *fetch;
    CHECK_OBJ(fetches, CERTIFICATE_FETCHES_MAGIC);
    if (fetches->count >= CERTIFICATE_FETCHES_MOST) {
        certificate_fetch_note(net, url, NULL, 0, "too many certificates are being fetched");
        return;
    }
    ALLOC_OBJ(fetch, CERTIFICATE_FETCH_MAGIC);
    fetch->fetches = fetches;
    fetch->url = xstrdup(url);
    list_append(&fetches->list, &fetch->link);
    fetches->count++;
    task_init(&fetch->task, certificate_fetch_on_news);
    const struct small_fetch_request request = {
        .url = slice_from(fetch->url),
        .egress = EGRESS_PUBLIC,
        .hops = TLS_VERIFY_HOPS,
        .timeout = CERTIFICATE_FETCH_TIMEOUT,
    };
    small_fetch_start(&fetch->fetch, net, fetches->connections, &request, &fetch->task);
}

struct certificate_fetches *certificate_fetches_new(struct net_context *net,
                                                    struct origin_pool *connections) {
    struct certificate_fetches *fetches;
    ALLOC_OBJ(fetches, CERTIFICATE_FETCHES_MAGIC);
    fetches->net = net;
    fetches->connections = connections;
    list_init(&fetches->list);
    net->fetches = fetches;
    net->fetch_intermediate = certificate_fetch_start;
    return fetches;
}

void certificate_fetches_free(struct certificate_fetches **fetchesp) {
    struct certificate_fetches *fetches = *fetchesp;
    struct list_link *link;
    *fetchesp = NULL;
    if (fetches == NULL)
        return;
    CHECK_OBJ(fetches, CERTIFICATE_FETCHES_MAGIC);
    while ((link = list_first(&fetches->list)) != NULL) {
        struct certificate_fetch *fetch = CONTAINER_OF(link, struct certificate_fetch, link);
        certificate_fetch_note(fetches->net, fetch->url, NULL, 0, "the proxy is stopping");
        certificate_fetch_free(fetch);
    }
    fetches->net->fetch_intermediate = NULL;
    FREE_OBJ(fetches);
}
