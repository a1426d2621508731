#include "adapt/adapter_accounts.h"

#include "base/assert.h"

#include <string.h>

/* All accounts of one name. */
struct adapter_accounts_service {
    unsigned magic;
#define ADAPTER_ACCOUNTS_SERVICE_MAGIC 0xadacc047u
    struct adapter_accounts_service *next;
    char *name;
    struct adapter_account closed; /* the sum of those that were closed */
    struct list_link open;
};

static struct adapter_accounts_service *accounts_find(const struct adapter_accounts *accounts,
                                                      const char *name) {
    struct adapter_accounts_service *service = accounts->services;
    while (service != NULL && strcmp(service->name, name) != 0)
        service = service->next;
    return service;
}

static struct adapter_accounts_service *accounts_add(struct adapter_accounts *accounts,
                                                     const char *name) {
    struct adapter_accounts_service *service;
    ALLOC_OBJ(service, ADAPTER_ACCOUNTS_SERVICE_MAGIC);
    service->name = xstrdup(name);
    list_init(&service->open);
    service->next = accounts->services;
    accounts->services = service;
    return service;
}

void adapter_accounts_open(struct adapter_accounts *accounts, const char *name,
                           struct adapter_accounts_entry *entry,
                           const struct adapter_account *account) {
    list_init(&entry->link);
    entry->account = account;
    entry->service = NULL;
    if (accounts == NULL)
        return;
    entry->service = accounts_find(accounts, name);
    if (entry->service == NULL)
        entry->service = accounts_add(accounts, name);
    list_append(&entry->service->open, &entry->link);
}

void adapter_accounts_close(struct adapter_accounts_entry *entry) {
    if (entry->service == NULL)
        return;
    CHECK_OBJ(entry->service, ADAPTER_ACCOUNTS_SERVICE_MAGIC);
    adapter_account_add(&entry->service->closed, entry->account);
    list_remove(&entry->link);
    entry->service = NULL;
}

void adapter_accounts_sum(const struct adapter_accounts *accounts, const char *name,
                          struct adapter_account *sum) {
    struct adapter_accounts_service *service = accounts_find(accounts, name);
    memset(sum, 0, sizeof *sum);
    if (service == NULL)
        return;
    CHECK_OBJ(service, ADAPTER_ACCOUNTS_SERVICE_MAGIC);
    adapter_account_add(sum, &service->closed);
    LIST_FOR_EACH (link, &service->open) {
        adapter_account_add(sum, CONTAINER_OF(link, struct adapter_accounts_entry, link)->account);
    }
}

void adapter_accounts_free(struct adapter_accounts **accountsp) {
    struct adapter_accounts *accounts = *accountsp;
    *accountsp = NULL;
    while (accounts != NULL && accounts->services != NULL) {
        struct adapter_accounts_service *service = accounts->services;
        CHECK_OBJ(service, ADAPTER_ACCOUNTS_SERVICE_MAGIC);
        ASSERT(list_empty(&service->open));
        accounts->services = service->next;
        free(service->name);
        FREE_OBJ(service);
    }
    free(accounts);
}
