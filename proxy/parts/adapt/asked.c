#include "adapt/chain.h"

/* What logs and traces tell of a chain (transaction/asked.h). */

/* Squid's words (Adaptation::Icap::XactOutcome). */
static struct slice icap_outcome(enum adapter_verdict verdict) {
    switch (verdict) {
    case ADAPTER_UNMODIFIED: return SLICE("ICAP_ECHO");
    case ADAPTER_MODIFIED: return SLICE("ICAP_MOD");
    case ADAPTER_SATISFIED: return SLICE("ICAP_SAT");
    case ADAPTER_PENDING: return SLICE("ICAP_ERR_GONE");
    case ADAPTER_FAILED: return SLICE("ICAP_ERR_OTHER");
    }
    return SLICE("ICAP_ERR_UNKNOWN");
}

static void asked_note_call(struct asked_service *asked, const struct adapter_call *call) {
    const struct service_settings *settings = call->adapter->settings;
    if (asked->error == NULL && call->broken)
        asked->error = call->error;
    asked->figures = &call->figures;
    asked->outcome = icap_outcome(call->verdict);
    asked->uri = settings->endpoint_count > 0 ? settings->uri_texts[0] : "";
}

unsigned adapt_chain_tell(const struct adapt_chain *chain, struct asked_service *list) {
    for (unsigned i = 0; i < chain->at; i++) {
        const struct adapt_record *record = &chain->records[i];
        list[i] = (struct asked_service){
            .service = record->service,
            .verdict = record->verdict,
            .error = record->error,
            .milliseconds = record->milliseconds,
            .reqmod = chain->reqmod,
            .started = record->started,
            .span = record->span,
        };
        if (chain->calls[i] != NULL)
            asked_note_call(&list[i], chain->calls[i]);
    }
    return chain->at;
}

const char *adapt_chain_awaited(const struct adapt_chain *chain) {
    return chain->at < chain->count ? chain->services[chain->at]->settings->name : NULL;
}

const char *adapt_chain_failed(const struct adapt_chain *chain) {
    return chain->state == ADAPT_FAILED ? chain->failed_service : NULL;
}
