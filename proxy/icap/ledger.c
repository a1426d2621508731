#include "icap/ledger.h"

#include "base/assert.h"

#include <string.h>

struct icap_ledger_page {
    unsigned magic;
#define ICAP_LEDGER_PAGE_MAGIC 0x1ca91ed9u
    struct icap_ledger_page *next;
    char *name;
    struct icap_account gone; /* of those that were closed */
    struct list_link open;
};

static struct icap_ledger_page *ledger_find(const struct icap_ledger *ledger, const char *name) {
    struct icap_ledger_page *page = ledger->pages;
    while (page != NULL && strcmp(page->name, name) != 0)
        page = page->next;
    return page;
}

static struct icap_ledger_page *ledger_add(struct icap_ledger *ledger, const char *name) {
    struct icap_ledger_page *page;
    ALLOC_OBJ(page, ICAP_LEDGER_PAGE_MAGIC);
    page->name = xstrdup(name);
    list_init(&page->open);
    page->next = ledger->pages;
    ledger->pages = page;
    return page;
}

void icap_ledger_open(struct icap_ledger *ledger, const char *name, struct icap_ledger_entry *entry,
                      const struct icap_account *account) {
    list_init(&entry->link);
    entry->account = account;
    entry->page = NULL;
    if (ledger == NULL)
        return;
    entry->page = ledger_find(ledger, name);
    if (entry->page == NULL)
        entry->page = ledger_add(ledger, name);
    list_append(&entry->page->open, &entry->link);
}

void icap_ledger_close(struct icap_ledger_entry *entry) {
    if (entry->page == NULL)
        return;
    CHECK_OBJ(entry->page, ICAP_LEDGER_PAGE_MAGIC);
    icap_account_add(&entry->page->gone, entry->account);
    list_remove(&entry->link);
    entry->page = NULL;
}

void icap_ledger_sum(const struct icap_ledger *ledger, const char *name, struct icap_account *sum) {
    struct icap_ledger_page *page = ledger_find(ledger, name);
    memset(sum, 0, sizeof *sum);
    if (page == NULL)
        return;
    CHECK_OBJ(page, ICAP_LEDGER_PAGE_MAGIC);
    icap_account_add(sum, &page->gone);
    LIST_FOR_EACH (link, &page->open) {
        icap_account_add(sum, CONTAINER_OF(link, struct icap_ledger_entry, link)->account);
    }
}

void icap_ledger_free(struct icap_ledger **ledgerp) {
    struct icap_ledger *ledger = *ledgerp;
    *ledgerp = NULL;
    while (ledger != NULL && ledger->pages != NULL) {
        struct icap_ledger_page *page = ledger->pages;
        CHECK_OBJ(page, ICAP_LEDGER_PAGE_MAGIC);
        ASSERT(list_empty(&page->open));
        ledger->pages = page->next;
        free(page->name);
        FREE_OBJ(page);
    }
    free(ledger);
}
