#include "part.h"

#include "pages/error_page.h"
#include "transaction/internal.h"
#include "transaction/transaction.h"

/* The part pages: what operators write for clients, and the file by which browsers find the proxy. */

static bool pac_answer(struct transaction *transaction, struct slice path) {
    if (!internal_has_pac(transaction->settings, path))
        return false;
    internal_respond(transaction, 200, SLICE("application/x-ns-proxy-autoconfig"),
                     SLICE("no-store"),
                     slice_from(pages_settings_of(transaction->settings)->pac.text));
    return true;
}

const struct part part_pages = {
    .settings = &pages_part_settings,
    .worker = {.answer_internal = pac_answer},
    .pages = {.reply = pages_reply, .write = pages_write},
};
