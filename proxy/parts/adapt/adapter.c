#include "adapt/adapter.h"

#include "adapt/service_report.h"
#include "adapt/shared_service.h"
#include "base/assert.h"

#include <string.h>

void adapter_init(struct adapter *adapter, const struct shared_service *shared,
                  const struct service_settings *settings, struct adapter_host *host) {
    INIT_OBJ(adapter, ADAPTER_MAGIC);
    adapter->class = shared->class;
    adapter->settings = settings;
    adapter->host = host;
    adapter->tag = shared->tag;
    bypass_log_init(&adapter->bypass_log, shared->bypasses, host->net->loop);
    adapter_accounts_open(host->accounts, settings->name, &adapter->account_entry,
                          &adapter->account);
}

void adapter_release(struct adapter *adapter) {
    CHECK_OBJ(adapter, ADAPTER_MAGIC);
    bypass_log_release(&adapter->bypass_log);
    adapter_accounts_close(&adapter->account_entry);
    adapter->magic = 0;
}

void adapter_bypassed(struct adapter *adapter, const char *reason) {
    CHECK_OBJ(adapter, ADAPTER_MAGIC);
    adapter->account.bypassed++;
    adapter->host->net->counters.icap_bypassed++;
    bypass_log_note(&adapter->bypass_log, reason);
}

void adapter_report(const struct adapter *adapter, struct service_report *report) {
    CHECK_OBJ(adapter, ADAPTER_MAGIC);
    memset(report, 0, sizeof *report);
    adapter->class->report(adapter, report);
    adapter_accounts_sum(adapter->host->accounts, adapter->settings->name, &report->account);
}
