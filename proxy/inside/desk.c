#include "inside/desk.h"

#include "base/assert.h"
#include "inside/remote.h"

#include <unistd.h>

enum {
    FRAMES_AT_ONCE = 256, /* of one link before others have their turn */
    FRAMES_IN_RING = RING_SIZE / sizeof(struct frame),
};

static void link_on_event(struct event *event, uint32_t events);
static bool link_receive_some(struct desk_link *link);

/* Life */

static void link_begin_slots(struct desk_link *link) {
    link->free_count = 0;
    link->due_count = 0;
    for (uint32_t slot = FRAME_SLOTS; slot-- > 0;) {
        link->slots[slot] = (struct desk_slot){.serial = link->slots[slot].serial};
        link->free_slots[link->free_count++] = slot;
    }
}

static void link_watch(struct desk_link *link) {
    struct inside_desk *desk = link->desk;
    if (link->run != NULL && desk->loop != NULL && link->event.fd < 0)
        loop_add(desk->loop, &link->event, link->run->worker_fds[desk->worker], EPOLLIN,
                 link_on_event);
}

static void link_unwatch(struct desk_link *link) {
    task_cancel(&link->task);
    if (link->desk->loop != NULL)
        loop_remove(link->desk->loop, &link->event);
}

/* Exchanges of a run that is over, each with its reason. */
static void link_fail(struct desk_link *link, enum remote_failure failure) {
    for (unsigned i = 0; i < FRAME_SLOTS; i++) {
        struct inside_remote *remote = link->slots[i].remote;
        link->slots[i].remote = NULL;
        if (remote != NULL)
            inside_remote_lost(remote, failure);
    }
}

static void link_detach(struct desk_link *link, enum remote_failure failure) {
    if (link->run == NULL)
        return;
    link_unwatch(link);
    link_fail(link, failure);
    ASSERT(list_empty(&link->blocked));
    inside_run_release(&link->run);
}

/* What it has said before it ended counts. */
static void link_hear_last(struct desk_link *link) {
    for (unsigned i = 0; link->run != NULL && i <= FRAMES_IN_RING / FRAMES_AT_ONCE; i++)
        if (link_receive_some(link))
            return;
}

/* Takes the run that the runner has now, where that is another one. */
static void link_refresh(struct desk_link *link) {
    struct inside_desk *desk = link->desk;
    if (atomic_load(&link->runner->generation) == link->generation)
        return;
    link_hear_last(link);
    link_detach(link, REMOTE_DIED);
    link->run = inside_runner_run(link->runner, &link->generation);
    if (link->run == NULL)
        return;
    link_begin_slots(link);
    link_open(&link->link, board_ring(link->run->board, desk->worker, BOARD_TO_RUNNER),
              board_ring(link->run->board, desk->worker, BOARD_TO_WORKER), link->run->event_fd);
    link_sleep(&link->link);
    link_watch(link);
}

/* Frames */

static void link_send_due(struct desk_link *link) {
    for (uint32_t slot = 0; link->due_count > 0 && slot < FRAME_SLOTS; slot++) {
        struct desk_slot *own = &link->slots[slot];
        const struct frame frame = {.type = FRAME_CLOSE, .slot = slot, .serial = own->serial};
        if (!own->close_due)
            continue;
        if (!link_send(&link->link, &frame, NULL))
            return;
        own->close_due = false;
        link->due_count--;
    }
}

static void link_wake_blocked(struct desk_link *link) {
    struct list_link woken;
    list_init(&woken);
    link_send_due(link);
    list_splice(&woken, &link->blocked);
    while (!list_empty(&woken)) {
        struct list_link *first = list_first(&woken);
        list_remove(first);
        inside_remote_has_room(first);
    }
}

static void link_free_slot(struct desk_link *link, uint32_t slot) {
    link->slots[slot].state = DESK_SLOT_FREE;
    link->free_slots[link->free_count++] = slot;
    atomic_fetch_sub(&link->run->under_way, 1);
}

/* It crossed CLOSE. False: there are more of them than that explains. */
static bool slot_drops(struct desk_slot *slot, const struct frame *frame) {
    uint64_t length = frame->length > 0 ? frame->length : 1;
    if (length > slot->left)
        return false;
    slot->left -= length;
    return true;
}

/* False: that can't be. */
static bool link_take_frame(struct desk_link *link, const struct frame *frame) {
    if (frame->slot >= FRAME_SLOTS)
        return false;
    struct desk_slot *slot = &link->slots[frame->slot];
    if (slot->state == DESK_SLOT_FREE || slot->serial != frame->serial)
        return false;
    if (frame->type == FRAME_CLOSED) {
        if (slot->state != DESK_SLOT_CLOSING || slot->close_due)
            return false;
        link_free_slot(link, frame->slot);
        return true;
    }
    if (slot->state == DESK_SLOT_CLOSING)
        return slot_drops(slot, frame);
    return inside_remote_take(slot->remote, frame, link->desk->payload);
}

static void link_break(struct desk_link *link) {
    inside_run_break(link->run, "it wrote what no runner writes into the shared memory");
    link_detach(link, REMOTE_LIED);
}

/* False: frames are left, or nothing can be read any more. */
static bool link_receive_some(struct desk_link *link) {
    struct frame frame;
    for (unsigned i = 0; i < FRAMES_AT_ONCE; i++) {
        enum link_status status = link_receive(&link->link, &frame, link->desk->payload);
        if (status == LINK_EMPTY && !link->link.out.broken)
            return true;
        if (status != LINK_FRAME || !link_take_frame(link, &frame)) {
            link_break(link);
            return false;
        }
    }
    return false;
}

/* Wakes the runner, and exchanges that waited for room. */
static void link_settle(struct desk_link *link) {
    bool blocked = !list_empty(&link->blocked) || link->due_count > 0;
    if (blocked && (link_room(&link->link) == FRAME_PAYLOAD || !link_await_room(&link->link)))
        link_wake_blocked(link);
    link_flush(&link->link);
}

static void link_serve(struct desk_link *link) {
    if (link->run == NULL)
        return;
    ring_stay_awake(&link->link.in);
    bool ended = atomic_load(&link->run->ended); /* before the last frames are read */
    bool empty = link_receive_some(link);
    if (link->run == NULL)
        return;
    if (empty && ended) {
        link_detach(link, REMOTE_DIED);
        return;
    }
    link_settle(link);
    if (!empty || !link_sleep(&link->link))
        loop_defer(link->desk->loop, &link->task);
}

static void link_on_event(struct event *event, uint32_t events) {
    struct desk_link *link = CONTAINER_OF(event, struct desk_link, event);
    uint64_t count;
    (void)events;
    /* The read comes first: what is written after it makes the descriptor ready again. */
    ssize_t got = read(event->fd, &count, sizeof count);
    (void)got;
    link_serve(link);
}

static void link_on_task(struct task *task) {
    link_serve(CONTAINER_OF(task, struct desk_link, task));
}

/* Exchanges */

struct desk_link *inside_desk_choose(struct inside_desk *desk, enum desk_refusal *refusal) {
    struct desk_link *best = NULL;
    CHECK_OBJ(desk, INSIDE_DESK_MAGIC);
    *refusal = DESK_DOWN;
    desk->next = (desk->next + 1) % desk->link_count;
    for (unsigned i = 0; i < desk->link_count; i++) {
        struct desk_link *link = &desk->links[(desk->next + i) % desk->link_count];
        link_refresh(link);
        if (link->run == NULL)
            continue;
        *refusal = DESK_FULL;
        if (link->free_count > (best == NULL ? 0 : best->free_count))
            best = link;
    }
    return best;
}

uint32_t desk_link_take(struct desk_link *link, struct inside_remote *remote) {
    ASSERT(link->free_count > 0);
    uint32_t slot = link->free_slots[--link->free_count];
    struct desk_slot *own = &link->slots[slot];
    own->remote = remote;
    own->serial++;
    own->state = DESK_SLOT_OPEN;
    atomic_fetch_add(&link->run->under_way, 1);
    return slot;
}

void desk_link_give(struct desk_link *link, uint32_t slot, bool opened, uint64_t left) {
    struct desk_slot *own = &link->slots[slot];
    ASSERT(own->state == DESK_SLOT_OPEN);
    own->remote = NULL;
    if (!opened) {
        link_free_slot(link, slot);
        return;
    }
    own->state = DESK_SLOT_CLOSING;
    own->left = left;
    own->close_due = true;
    link->due_count++;
    link_send_due(link);
    loop_defer(link->desk->loop, &link->task);
}

bool desk_link_send(struct desk_link *link, const struct frame *frame, const void *bytes,
                    struct list_link *blocked) {
    loop_defer(link->desk->loop, &link->task);
    if (link_send(&link->link, frame, bytes))
        return true;
    if (list_empty(blocked))
        list_append(&link->blocked, blocked);
    return false;
}

/* The desk */

static struct inside_desk *desk_new(struct inside_runners *runners, unsigned worker) {
    unsigned count = runners->count;
    struct inside_desk *desk = xcalloc(1, sizeof *desk + count * sizeof desk->links[0]);
    desk->magic = INSIDE_DESK_MAGIC;
    desk->runners = runners;
    desk->worker = worker;
    desk->link_count = count;
    for (unsigned i = 0; i < count; i++) {
        struct desk_link *link = &desk->links[i];
        link->desk = desk;
        link->runner = &runners->runners[i];
        event_init(&link->event);
        task_init(&link->task, link_on_task);
        list_init(&link->blocked);
    }
    return desk;
}

struct inside_desk *inside_desk_open(struct inside_runners *runners, unsigned worker,
                                     struct loop *loop) {
    ASSERT(worker < runners->workers);
    struct inside_desk *desk = runners->desks[worker];
    if (desk == NULL)
        desk = runners->desks[worker] = desk_new(runners, worker);
    CHECK_OBJ(desk, INSIDE_DESK_MAGIC);
    if (desk->users++ > 0)
        return desk;
    desk->loop = loop;
    for (unsigned i = 0; i < desk->link_count; i++)
        link_watch(&desk->links[i]);
    return desk;
}

void inside_desk_close(struct inside_desk **deskp) {
    struct inside_desk *desk = *deskp;
    *deskp = NULL;
    CHECK_OBJ(desk, INSIDE_DESK_MAGIC);
    if (--desk->users > 0)
        return;
    for (unsigned i = 0; i < desk->link_count; i++) {
        if (desk->links[i].run != NULL)
            link_settle(&desk->links[i]);
        link_unwatch(&desk->links[i]);
    }
    desk->loop = NULL;
}

void inside_desk_free(struct inside_desk **deskp) {
    struct inside_desk *desk = *deskp;
    *deskp = NULL;
    if (desk == NULL)
        return;
    CHECK_OBJ(desk, INSIDE_DESK_MAGIC);
    ASSERT(desk->users == 0);
    for (unsigned i = 0; i < desk->link_count; i++)
        inside_run_release(&desk->links[i].run);
    FREE_OBJ(desk);
}
