#include "origin/seat.h"

#include "base/assert.h"

static void origin_seat_on_timeout(struct timer *timer) {
    struct origin_seat *seat = CONTAINER_OF(timer, struct origin_seat, timer);
    CHECK_OBJ(seat, ORIGIN_SEAT_MAGIC);
    seat->expired = true;
    loop_defer(seat->net->loop, seat->task);
}

void origin_seat_init(struct origin_seat *seat, struct origin_group *group, struct net_context *net,
                      struct mailbox *mailbox, struct task *task,
                      const struct origin_seat_needs *needs) {
    INIT_OBJ(seat, ORIGIN_SEAT_MAGIC);
    seat->group = group;
    seat->net = net;
    seat->mailbox = mailbox;
    seat->task = task;
    seat->needs = *needs;
    list_init(&seat->link);
    list_init(&seat->waiting);
    timer_init(&seat->timer, origin_seat_on_timeout);
}

/* Tries to find a member for the seat; the lock is held. */
static enum origin_choice seat_down(struct origin_seat *seat, uint64_t now) {
    struct origin_group *group = seat->group;
    struct origin_member *member = NULL;
    const struct origin_wish wish = {
        .hash = seat->needs.hash,
        .tried = seat->tried,
        .tried_count = seat->tried_count,
        .repeatable = seat->needs.repeatable,
        .only_up = seat->needs.only_up,
    };
    if (seat->tried_count >= group->rules.tries)
        return ORIGIN_NONE_LEFT;
    enum origin_choice choice = origin_choose(group, &wish, now, &member);
    if (member == NULL)
        return choice;
    seat->member = member;
    seat->probe = choice == ORIGIN_CHOSEN_PROBE;
    seat->epoch = member->downs;
    member->probing = member->probing || seat->probe;
    member->references++;
    member->active++;
    member->requests++;
    member->turn = ++group->turns;
    return choice;
}

static void leave_queue(struct origin_seat *seat) {
    if (list_empty(&seat->link))
        return;
    list_remove(&seat->link);
    seat->group->queued--;
}

/* Who can't be helped any more is woken too, to hear that. One who only waits for the servers that
 * it has not been at does not hold up those behind. */
void origin_group_serve_queue(struct origin_group *group, uint64_t now, const struct loop *loop) {
    LIST_FOR_EACH_SAFE (link, next, &group->queue) {
        struct origin_seat *seat = CONTAINER_OF(link, struct origin_seat, link);
        CHECK_OBJ(seat, ORIGIN_SEAT_MAGIC);
        if (seat_down(seat, now) != ORIGIN_ALL_FULL) {
            leave_queue(seat);
            waiters_wake(&seat->waiting, loop);
        } else if (seat->tried_count == 0) {
            return;
        }
    }
}

/* Who has been let in once and met a server that failed is not sent away, and goes to the front. */
static enum seat_state join_queue(struct origin_seat *seat) {
    struct origin_group *group = seat->group;
    bool returns = seat->tried_count > 0;
    if (!returns && group->queued >= group->rules.queue_max)
        return SEAT_REFUSED;
    group->queued++;
    if (returns)
        list_prepend(&group->queue, &seat->link);
    else
        list_append(&group->queue, &seat->link);
    waiter_add(&seat->waiting, &seat->waiter, seat->mailbox, seat->task);
    return SEAT_WAITING;
}

/* The first time, or after a server has been left; the lock is held. */
static enum seat_state origin_seat_enter(struct origin_seat *seat, uint64_t now) {
    /* Nobody who is new overtakes those who wait. */
    bool may_try = list_empty(&seat->group->queue) || seat->tried_count > 0;
    enum origin_choice choice = may_try ? seat_down(seat, now) : ORIGIN_ALL_FULL;
    if (seat->member != NULL)
        return SEAT_TAKEN;
    return choice == ORIGIN_ALL_FULL ? join_queue(seat) : SEAT_NONE;
}

static void start_clock(struct origin_seat *seat) {
    uint64_t end = seat->net->loop->now + seat->group->rules.queue_timeout;
    if (end > seat->needs.deadline)
        end = seat->needs.deadline;
    seat->expired = false;
    timer_set(&seat->net->loop->timers, &seat->timer, end);
}

static void take_off_queue(struct origin_seat *seat) {
    waiter_cancel(&seat->waiter, &seat->group->lock);
    timer_set(&seat->net->loop->timers, &seat->timer, TIMER_NEVER);
}

/* It has waited; the lock is held. */
static enum seat_state after_waiting(struct origin_seat *seat) {
    if (seat->member != NULL)
        return SEAT_TAKEN;
    if (list_empty(&seat->link))
        return SEAT_NONE;
    if (!seat->expired)
        return SEAT_WAITING;
    leave_queue(seat);
    return SEAT_EXPIRED;
}

static bool has_waited(const struct origin_seat *seat) {
    return seat->timer.deadline != TIMER_NEVER || seat->expired;
}

static void origin_seat_count(struct origin_seat *seat, enum seat_state state, bool waited) {
    struct counters *counters = &seat->net->counters;
    counters->origin_queued += !waited && state == SEAT_WAITING;
    counters->origin_queue_refused += state == SEAT_REFUSED;
    counters->origin_queue_timeouts += state == SEAT_EXPIRED;
}

enum seat_state origin_seat_take(struct origin_seat *seat) {
    struct origin_group *group = seat->group;
    bool waited = has_waited(seat);
    CHECK_OBJ(seat, ORIGIN_SEAT_MAGIC);
    pthread_mutex_lock(&group->lock);
    enum seat_state state =
        waited ? after_waiting(seat) : origin_seat_enter(seat, seat->net->loop->now);
    if (state == SEAT_WAITING && !waited)
        start_clock(seat);
    pthread_mutex_unlock(&group->lock);
    origin_seat_count(seat, state, waited);
    if (state != SEAT_WAITING && waited) {
        take_off_queue(seat);
        seat->expired = false;
    }
    if (state == SEAT_TAKEN) {
        ASSERT(seat->tried_count < ORIGINS_TRIES_MAX);
        seat->tried[seat->tried_count++] = seat->member->number;
        seat->judged = false;
    }
    return state;
}

/* What began before the member went down says nothing of how it is now. */
static bool origin_seat_counts(const struct origin_seat *seat) {
    return seat->epoch == seat->member->downs;
}

/* The lock is held. */
static void origin_seat_judge(struct origin_seat *seat, const char *error) {
    struct origin_group *group = seat->group;
    struct origin_member *member = seat->member;
    uint64_t now = seat->net->loop->now;
    member->failed += error != NULL;
    if (origin_seat_counts(seat) && error != NULL)
        seat->net->counters.origin_servers_down +=
            origin_member_failed(group, member, now, seat->probe, error);
    else if (origin_seat_counts(seat))
        origin_member_succeeded(group, member, now);
    if (seat->probe)
        member->probing = seat->probe = false;
    origin_group_serve_queue(group, now, seat->net->loop);
}

/* What the status says of the server; NULL: it is well. */
static const char *fault(const struct origin_seat *seat, unsigned status) {
    bool counted = !seat->needs.any_status && status >= 500 && status <= 599 &&
                   seat->group->rules.failure_status[status - 500];
    return counted ? "it answered with an error of its own (failure_status)" : NULL;
}

void origin_seat_answered(struct origin_seat *seat, unsigned status) {
    CHECK_OBJ(seat, ORIGIN_SEAT_MAGIC);
    if (seat->judged || seat->member == NULL)
        return;
    seat->judged = true;
    pthread_mutex_lock(&seat->group->lock);
    origin_seat_judge(seat, fault(seat, status));
    pthread_mutex_unlock(&seat->group->lock);
}

void origin_seat_failed(struct origin_seat *seat, const char *error) {
    CHECK_OBJ(seat, ORIGIN_SEAT_MAGIC);
    if (seat->judged || seat->member == NULL)
        return;
    seat->judged = true;
    pthread_mutex_lock(&seat->group->lock);
    origin_seat_judge(seat, error);
    pthread_mutex_unlock(&seat->group->lock);
}

void origin_seat_leave(struct origin_seat *seat) {
    struct origin_group *group = seat->group;
    CHECK_OBJ(seat, ORIGIN_SEAT_MAGIC);
    if (seat->member == NULL)
        return;
    pthread_mutex_lock(&group->lock);
    struct origin_member *member = seat->member;
    seat->member = NULL;
    ASSERT(member->active > 0);
    member->active--;
    /* A probe that came to nothing: its client left. The next request may try. */
    if (seat->probe)
        member->probing = seat->probe = false;
    origin_member_release(member);
    origin_group_serve_queue(group, seat->net->loop->now, seat->net->loop);
    pthread_mutex_unlock(&group->lock);
}

void origin_seat_close(struct origin_seat *seat) {
    if (seat == NULL || seat->magic != ORIGIN_SEAT_MAGIC)
        return;
    /* From here on nobody can give it a member, but one may have been given already. */
    pthread_mutex_lock(&seat->group->lock);
    leave_queue(seat);
    pthread_mutex_unlock(&seat->group->lock);
    waiter_cancel(&seat->waiter, &seat->group->lock);
    timer_cancel(&seat->net->loop->timers, &seat->timer);
    origin_seat_leave(seat);
    seat->magic = 0;
}
