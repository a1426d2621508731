#include "transaction/remembered.h"

#include "transaction/transaction.h"

bool remembered_begin(struct transaction *transaction) {
    struct icap_service *chosen[ADAPT_CHAIN_MAX];
    if (transaction->variant != NULL)
        return true;
    /* Who wants no change gets what services make for him alone. */
    if (!transaction->adapt->any_remembered || transaction->caching.control.no_transform ||
        !transaction_may_adapt_late(transaction))
        return false;
    unsigned count = adapt_set_choose(transaction->adapt, ADAPT_RESPMOD_POSTCACHE,
                                      transaction_rules(transaction), chosen);
    unsigned all = count;
    count = adapt_set_remembered(chosen, count);
    if (count == 0)
        return false;
    struct remembered *remembered = arena_zalloc(&transaction->arena, sizeof *remembered);
    memcpy(remembered->services, chosen, count * sizeof *chosen);
    remembered->count = count;
    remembered->others = count < all;
    remembered->chain = adapt_mark_chain(chosen, count);
    transaction->variant = remembered;
    return true;
}

/* A service may have given it a shorter life than what it was made of has. */
static bool has_aged(const struct object *made, const struct object *of, time_t now) {
    struct freshness its_own = object_freshness(made), stored = object_freshness(of);
    return made->response_time == of->response_time &&
           its_own.lifetime < freshness_age(&its_own, now) &&
           stored.lifetime >= freshness_age(&stored, now);
}

struct object *remembered_look_up(struct transaction *transaction) {
    struct remembered *remembered = transaction->variant;
    remembered_forget(remembered);
    struct object *object = cache_lookup_made(
        transaction->host->cache, &transaction->caching.name, transaction->request.head,
        transaction_scope(transaction), remembered->chain, &remembered->made);
    if (remembered->made == NULL)
        return object;
    if (adapt_mark_is_old(remembered->services, remembered->count,
                          object_making(remembered->made).tag)) {
        remembered->old = true;
        object_release(&remembered->made);
    } else if (object == NULL) {
        object = remembered->made;
        remembered->made = NULL;
        remembered->only = true;
    } else if (has_aged(remembered->made, object, transaction->net->loop->wall) ||
               object_making(remembered->made).kind == OBJECT_LEFT_ALONE) {
        remembered->applied = object_making(remembered->made).kind == OBJECT_LEFT_ALONE;
        object_release(&remembered->made);
    }
    return object;
}

void remembered_forget(struct remembered *remembered) {
    object_release(&remembered->made);
    remembered->only = remembered->applied = false;
}

bool remembered_includes(const struct remembered *remembered, const struct icap_service *service) {
    for (unsigned i = 0; i < remembered->count; i++)
        if (remembered->services[i] == service)
            return true;
    return false;
}

unsigned remembered_leave_out(const struct remembered *remembered, struct icap_service **chosen,
                              unsigned count) {
    unsigned left = 0;
    for (unsigned i = 0; i < count; i++)
        if (!remembered->applied || !remembered_includes(remembered, chosen[i]))
            chosen[left++] = chosen[i];
    return left;
}
