#include "icap/adapter.h"

#include "base/assert.h"
#include "http/head.h"
#include "icap/call.h"
#include "icap/service.h"

static struct icap_service *icap_adapter_service(struct adapter *adapter) {
    struct icap_service *service = CONTAINER_OF(adapter, struct icap_service, base);
    CHECK_OBJ(service, ICAP_SERVICE_MAGIC);
    return service;
}

static struct icap_call *icap_adapter_call(struct adapter_call *base) {
    struct icap_call *call = CONTAINER_OF(base, struct icap_call, base);
    CHECK_OBJ(call, ICAP_CALL_MAGIC);
    return call;
}

/* The service, of all workers. */

static struct shared_service *icap_adapter_share(const struct settings *settings, size_t index,
                                                 const struct shared_services *before) {
    return &icap_quota_new(&icap_adapter_class, settings, index, before)->shared;
}

static void icap_adapter_unshare(struct shared_service **sharedp) {
    struct icap_quota *quota = icap_quota_of(*sharedp);
    *sharedp = NULL;
    icap_quota_free(&quota);
}

static void icap_adapter_report_endpoint(struct icap_health *health,
                                         struct service_endpoint_report *report,
                                         char id[SERVICE_TEXT]) {
    struct icap_health_view view;
    icap_health_read(health, &view);
    report->state = view.state;
    report->since = view.since;
    report->retry_at = view.retry_at;
    memcpy(report->error, view.error, sizeof report->error);
    memcpy(report->notice, view.options.notice.text, sizeof report->notice);
    if (id[0] == '\0')
        memcpy(id, view.options.service, SERVICE_TEXT);
}

static void icap_adapter_report_shared(struct shared_service *shared,
                                       struct service_report *report) {
    struct icap_quota *quota = icap_quota_of(shared);
    for (unsigned i = 0; i < quota->endpoint_count; i++) {
        struct service_endpoint_report *endpoint = &report->endpoints[i];
        icap_adapter_report_endpoint(quota->health[i], endpoint, report->id);
        icap_server_report(quota->servers[i], &endpoint->server);
        if (endpoint->state > report->state)
            report->state = endpoint->state;
    }
}

/* The service, of one worker. */

static struct adapter *icap_adapter_open(struct shared_service *shared,
                                         const struct service_settings *settings,
                                         struct adapter_host *host) {
    return &icap_service_new(icap_quota_of(shared), settings, host)->base;
}

static void icap_adapter_retire(struct adapter *adapter) {
    icap_service_retire(icap_adapter_service(adapter));
}

static void icap_adapter_close(struct adapter **adapterp) {
    struct icap_service *service = icap_adapter_service(*adapterp);
    *adapterp = NULL;
    icap_service_free(&service);
}

static void icap_adapter_report(const struct adapter *adapter, struct service_report *report) {
    const struct icap_service *service = CONTAINER_OF(adapter, const struct icap_service, base);
    CHECK_OBJ(service, ICAP_SERVICE_MAGIC);
    report->connections = icap_service_connections(service);
    report->pending = service->waiting_count;
    for (unsigned i = 0; i < service->endpoint_count; i++) {
        const struct icap_endpoint *endpoint = service->endpoints[i];
        report->endpoints[i].connections = endpoint->busy;
        if (report->version[0] == '\0')
            icap_health_show_istag(endpoint->health, report->version);
        if (report->product[0] == '\0')
            memcpy(report->product, endpoint->known.options.product, sizeof report->product);
    }
}

static void icap_adapter_refresh(struct adapter *adapter) {
    icap_service_keep_known(icap_adapter_service(adapter));
}

static unsigned icap_adapter_client_fields(const struct adapter *adapter) {
    return icap_client_fields_of(CONTAINER_OF(adapter, const struct icap_service, base));
}

/* One call. */

static void icap_adapter_start(struct adapter_call *base, struct adapter *adapter,
                               const struct adapter_request *request, struct http_head *adapted,
                               struct task *waker) {
    const struct icap_request encapsulated = {
        .given = request->response == NULL ? request->request : request->response,
        .request_head = http_head_text(request->request, http_head_write_request, request->arena),
        .response_head =
            request->response == NULL
                ? slice_make("", 0)
                : http_head_text(request->response, http_head_write_response, request->arena),
        .virgin = request->body,
        .path = request->path,
        .client = request->client,
        .transaction_id = request->transaction_id,
        .trace = request->trace,
        .hold = request->hold,
        .trickle = request->trickle,
        .recording = request->recording,
    };
    icap_call_start(CONTAINER_OF(base, struct icap_call, base), icap_adapter_service(adapter),
                    &encapsulated, adapted, waker);
}

static struct source *icap_adapter_body(struct adapter_call *base) {
    return icap_call_adapted_body(icap_adapter_call(base));
}

static void icap_adapter_end(struct adapter_call *base) {
    icap_call_close(icap_adapter_call(base));
}

const struct adapter_class icap_adapter_class = {
    .name = "icap",
    .share = icap_adapter_share,
    .unshare = icap_adapter_unshare,
    .report_shared = icap_adapter_report_shared,
    .open = icap_adapter_open,
    .retire = icap_adapter_retire,
    .close = icap_adapter_close,
    .report = icap_adapter_report,
    .refresh = icap_adapter_refresh,
    .client_fields = icap_adapter_client_fields,
    .call_size = sizeof(struct icap_call),
    .start = icap_adapter_start,
    .body = icap_adapter_body,
    .end = icap_adapter_end,
};
