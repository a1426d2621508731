#include "transaction/page.h"

#include "transaction/transaction.h"

struct http_head *page_reply(struct transaction *transaction, const struct page_choice *choice) {
    PARTS_FOR_EACH (number, pages.reply)
        return part_table[number]->pages.reply(transaction, choice);
    struct slice text =
        arena_printf(&transaction->arena, "%u %s\n\n%.*s.\n\n%s, transaction %s\n", choice->status,
                     http_reason(choice->status), SLICE_PRINT(choice->sentence),
                     transaction->settings->name, transaction_id(transaction));
    struct http_head *head = delivery_make_typed_page(transaction, RESULT_ERROR, choice->status,
                                                      SLICE("text/plain; charset=utf-8"), text);
    http_head_add(head, SLICE("X-Content-Type-Options"), SLICE("nosniff"));
    return head;
}

bool page_write(struct transaction *transaction, struct page_text *page) {
    PARTS_FOR_EACH (number, pages.write)
        return part_table[number]->pages.write(transaction, page);
    return false;
}

void page_add_language(struct http_head *head, const struct page_text *page) {
    if (page->by_language)
        http_head_add(head, SLICE("Vary"), SLICE("Accept-Language"));
    if (page->language != NULL)
        http_head_add(head, SLICE("Content-Language"), slice_from(page->language));
}
