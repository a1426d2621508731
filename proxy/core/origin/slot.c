#include "origin/slot.h"

#include "base/assert.h"

static void origin_slot_on_timeout(struct timer *timer) {
    struct origin_slot *slot = CONTAINER_OF(timer, struct origin_slot, timer);
    CHECK_OBJ(slot, ORIGIN_SLOT_MAGIC);
    slot->expired = true;
    loop_defer(slot->net->loop, slot->task);
}

void origin_slot_init(struct origin_slot *slot, struct origin_group *group, struct net_context *net,
                      struct mailbox *mailbox, struct task *task,
                      const struct origin_slot_needs *needs) {
    INIT_OBJ(slot, ORIGIN_SLOT_MAGIC);
    slot->group = group;
    slot->net = net;
    slot->mailbox = mailbox;
    slot->task = task;
    slot->needs = *needs;
    list_init(&slot->link);
    list_init(&slot->waiting);
    timer_init(&slot->timer, origin_slot_on_timeout);
}

/* Tries to find a member for the slot. Call with the lock held. */
static enum origin_choice slot_down(struct origin_slot *slot, uint64_t now) {
    struct origin_group *group = slot->group;
    struct origin_member *member = NULL;
    const struct origin_wish wish = {
        .hash = slot->needs.hash,
        .tried = slot->tried,
        .tried_count = slot->tried_count,
        .repeatable = slot->needs.repeatable,
        .only_up = slot->needs.only_up,
    };
    if (slot->tried_count >= group->rules.tries)
        return ORIGIN_NONE_LEFT;
    enum origin_choice choice = origin_choose(group, &wish, now, &member);
    if (member == NULL)
        return choice;
    slot->member = member;
    slot->probe = choice == ORIGIN_CHOSEN_PROBE;
    slot->epoch = member->downs;
    member->probing = member->probing || slot->probe;
    member->references++;
    member->active++;
    member->requests++;
    member->turn = ++group->turns;
    return choice;
}

static void leave_queue(struct origin_slot *slot) {
    if (list_empty(&slot->link))
        return;
    list_remove(&slot->link);
    slot->group->queued--;
}

/* A request for which no server is left is woken too, to be told. A request that waits only for
 * servers that it has not tried does not delay those after it. */
void origin_group_serve_queue(struct origin_group *group, uint64_t now, const struct loop *loop) {
    LIST_FOR_EACH_SAFE (link, next, &group->queue) {
        struct origin_slot *slot = CONTAINER_OF(link, struct origin_slot, link);
        CHECK_OBJ(slot, ORIGIN_SLOT_MAGIC);
        if (slot_down(slot, now) != ORIGIN_ALL_FULL) {
            leave_queue(slot);
            waiters_wake(&slot->waiting, loop);
        } else if (slot->tried_count == 0) {
            return;
        }
    }
}

/* A request whose server has failed is never refused, and goes to the front of the queue. */
static enum origin_slot_state join_queue(struct origin_slot *slot) {
    struct origin_group *group = slot->group;
    bool returns = slot->tried_count > 0;
    if (!returns && group->queued >= group->rules.queue_max)
        return ORIGIN_SLOT_REFUSED;
    group->queued++;
    if (returns)
        list_prepend(&group->queue, &slot->link);
    else
        list_append(&group->queue, &slot->link);
    waiter_add(&slot->waiting, &slot->waiter, slot->mailbox, slot->task);
    return ORIGIN_SLOT_WAITING;
}

/* Called the first time, or after a server was left. Call with the lock held. */
static enum origin_slot_state origin_slot_enter(struct origin_slot *slot, uint64_t now) {
    /* A new request never overtakes waiting ones. */
    bool may_try = list_empty(&slot->group->queue) || slot->tried_count > 0;
    enum origin_choice choice = may_try ? slot_down(slot, now) : ORIGIN_ALL_FULL;
    if (slot->member != NULL)
        return ORIGIN_SLOT_TAKEN;
    return choice == ORIGIN_ALL_FULL ? join_queue(slot) : ORIGIN_SLOT_NONE;
}

static void start_clock(struct origin_slot *slot) {
    uint64_t end = slot->net->loop->now + slot->group->rules.queue_timeout;
    if (end > slot->needs.deadline)
        end = slot->needs.deadline;
    slot->expired = false;
    timer_set(&slot->net->loop->timers, &slot->timer, end);
}

static void take_off_queue(struct origin_slot *slot) {
    waiter_cancel(&slot->waiter, &slot->group->lock);
    timer_set(&slot->net->loop->timers, &slot->timer, TIMER_NEVER);
}

/* The result after waiting. Call with the lock held. */
static enum origin_slot_state after_waiting(struct origin_slot *slot) {
    if (slot->member != NULL)
        return ORIGIN_SLOT_TAKEN;
    if (list_empty(&slot->link))
        return ORIGIN_SLOT_NONE;
    if (!slot->expired)
        return ORIGIN_SLOT_WAITING;
    leave_queue(slot);
    return ORIGIN_SLOT_EXPIRED;
}

/* Without members nobody was there to be full. Backups alone wait for the first answer of name
 * servers. */
static enum origin_slot_state when_empty(const struct origin_slot *slot,
                                         enum origin_slot_state state) {
    if (state == ORIGIN_SLOT_WAITING || state == ORIGIN_SLOT_TAKEN)
        return state;
    bool awaited = state == ORIGIN_SLOT_NONE && origin_group_is_awaited(slot->group);
    return slot->group->member_count == 0 || awaited ? ORIGIN_SLOT_EMPTY : state;
}

static bool has_waited(const struct origin_slot *slot) {
    return slot->timer.deadline != TIMER_NEVER || slot->expired;
}

static void origin_slot_count(struct origin_slot *slot, enum origin_slot_state state, bool waited) {
    struct counters *counters = &slot->net->counters;
    counters->origin_queued += !waited && state == ORIGIN_SLOT_WAITING;
    counters->origin_queue_refused += state == ORIGIN_SLOT_REFUSED;
    counters->origin_queue_timeouts += state == ORIGIN_SLOT_EXPIRED;
}

enum origin_slot_state origin_slot_take(struct origin_slot *slot) {
    struct origin_group *group = slot->group;
    bool waited = has_waited(slot);
    CHECK_OBJ(slot, ORIGIN_SLOT_MAGIC);
    pthread_mutex_lock(&group->lock);
    enum origin_slot_state state =
        waited ? after_waiting(slot) : origin_slot_enter(slot, slot->net->loop->now);
    if (state == ORIGIN_SLOT_WAITING && !waited)
        start_clock(slot);
    state = when_empty(slot, state);
    pthread_mutex_unlock(&group->lock);
    origin_slot_count(slot, state, waited);
    if (state != ORIGIN_SLOT_WAITING && waited) {
        take_off_queue(slot);
        slot->expired = false;
    }
    if (state == ORIGIN_SLOT_TAKEN) {
        ASSERT(slot->tried_count < ORIGINS_TRIES_MAX);
        slot->tried[slot->tried_count++] = slot->member->number;
        slot->judged = false;
    }
    return state;
}

/* A request that began before the member went down does not show its state now. */
static bool origin_slot_counts(const struct origin_slot *slot) {
    return slot->epoch == slot->member->downs;
}

/* Call with the lock held. */
static void origin_slot_judge(struct origin_slot *slot, const char *error) {
    struct origin_group *group = slot->group;
    struct origin_member *member = slot->member;
    uint64_t now = slot->net->loop->now;
    member->failed += error != NULL;
    if (origin_slot_counts(slot) && error != NULL)
        slot->net->counters.origin_servers_down +=
            origin_member_failed(group, member, now, slot->probe, error);
    else if (origin_slot_counts(slot))
        origin_member_succeeded(group, member, now);
    if (slot->probe)
        member->probing = slot->probe = false;
    origin_group_serve_queue(group, now, slot->net->loop);
}

/* Returns the failure that a status stands for, or NULL when the server works. */
static const char *fault(const struct origin_slot *slot, unsigned status) {
    bool counted = !slot->needs.any_status && status >= 500 && status <= 599 &&
                   slot->group->rules.failure_status[status - 500];
    return counted ? "it answered with an error of its own (failure_status)" : NULL;
}

void origin_slot_answered(struct origin_slot *slot, unsigned status) {
    CHECK_OBJ(slot, ORIGIN_SLOT_MAGIC);
    if (slot->judged || slot->member == NULL)
        return;
    slot->judged = true;
    pthread_mutex_lock(&slot->group->lock);
    origin_slot_judge(slot, fault(slot, status));
    pthread_mutex_unlock(&slot->group->lock);
}

void origin_slot_failed(struct origin_slot *slot, const char *error) {
    CHECK_OBJ(slot, ORIGIN_SLOT_MAGIC);
    if (slot->judged || slot->member == NULL)
        return;
    slot->judged = true;
    pthread_mutex_lock(&slot->group->lock);
    origin_slot_judge(slot, error);
    pthread_mutex_unlock(&slot->group->lock);
}

void origin_slot_leave(struct origin_slot *slot) {
    struct origin_group *group = slot->group;
    CHECK_OBJ(slot, ORIGIN_SLOT_MAGIC);
    if (slot->member == NULL)
        return;
    pthread_mutex_lock(&group->lock);
    struct origin_member *member = slot->member;
    slot->member = NULL;
    ASSERT(member->active > 0);
    member->active--;
    /* The client of the probe has left, so the next request may try. */
    if (slot->probe)
        member->probing = slot->probe = false;
    origin_member_release(member);
    origin_group_serve_queue(group, slot->net->loop->now, slot->net->loop);
    pthread_mutex_unlock(&group->lock);
}

void origin_slot_close(struct origin_slot *slot) {
    if (slot == NULL || slot->magic != ORIGIN_SLOT_MAGIC)
        return;
    /* From now on no thread can give it a member, but one may have been given already. */
    pthread_mutex_lock(&slot->group->lock);
    leave_queue(slot);
    pthread_mutex_unlock(&slot->group->lock);
    waiter_cancel(&slot->waiter, &slot->group->lock);
    timer_cancel(&slot->net->loop->timers, &slot->timer);
    origin_slot_leave(slot);
    slot->magic = 0;
}
