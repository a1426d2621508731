#include "inside/runner_links.h"

#include "base/assert.h"
#include "inside/remote.h"

#include <unistd.h>

enum {
    FRAMES_AT_ONCE = 256, /* of one link before others have their turn */
    FRAMES_IN_RING = LINK_RING / sizeof(struct frame),
};

static void link_on_event(struct event *event, uint32_t events);
static bool link_receive_some(struct inside_link *link);

/* Life */

static void link_begin_slots(struct inside_link *link) {
    link->free_count = 0;
    link->due_count = 0;
    for (uint32_t slot = FRAME_SLOTS; slot-- > 0;) {
        link->slots[slot] = (struct inside_slot){.serial = link->slots[slot].serial};
        link->free_slots[link->free_count++] = slot;
    }
}

static void link_watch(struct inside_link *link) {
    struct inside_runner_links *runner_links = link->runner_links;
    if (link->run != NULL && runner_links->loop != NULL && link->event.fd < 0)
        loop_add(runner_links->loop, &link->event, link->run->worker_fds[runner_links->worker],
                 EPOLLIN, link_on_event);
}

static void link_unwatch(struct inside_link *link) {
    task_cancel(&link->task);
    if (link->runner_links->loop != NULL)
        loop_remove(link->runner_links->loop, &link->event);
}

/* Exchanges of a run that is over, each with its reason. */
static void link_fail(struct inside_link *link, enum remote_failure failure) {
    for (unsigned i = 0; i < FRAME_SLOTS; i++) {
        struct inside_remote *remote = link->slots[i].remote;
        link->slots[i].remote = NULL;
        if (remote != NULL)
            inside_remote_lost(remote, failure);
    }
}

static void link_detach(struct inside_link *link, enum remote_failure failure) {
    if (link->run == NULL)
        return;
    link_unwatch(link);
    link_fail(link, failure);
    ASSERT(list_empty(&link->blocked));
    inside_run_release(&link->run);
}

/* What it has said before it ended counts. */
static void link_hear_last(struct inside_link *link) {
    for (unsigned i = 0; link->run != NULL && i <= FRAMES_IN_RING / FRAMES_AT_ONCE; i++)
        if (link_receive_some(link))
            return;
}

/* Takes the run that the runner has now, where that is another one. */
static void link_refresh(struct inside_link *link) {
    struct inside_runner_links *runner_links = link->runner_links;
    if (atomic_load(&link->runner->generation) == link->generation)
        return;
    link_hear_last(link);
    link_detach(link, REMOTE_DIED);
    link->run = inside_runner_run(link->runner, &link->generation);
    if (link->run == NULL)
        return;
    link_begin_slots(link);
    link_open(&link->link, board_ring(link->run->board, runner_links->worker, BOARD_TO_RUNNER),
              board_ring(link->run->board, runner_links->worker, BOARD_TO_WORKER),
              link->run->event_fd);
    link_sleep(&link->link);
    link_watch(link);
}

/* Frames */

static void link_send_due(struct inside_link *link) {
    for (uint32_t slot = 0; link->due_count > 0 && slot < FRAME_SLOTS; slot++) {
        struct inside_slot *own = &link->slots[slot];
        const struct frame frame = {.type = FRAME_CLOSE, .slot = slot, .serial = own->serial};
        if (!own->close_due)
            continue;
        if (!link_send(&link->link, &frame, NULL))
            return;
        own->close_due = false;
        link->due_count--;
    }
}

static void link_wake_blocked(struct inside_link *link) {
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

static void link_free_slot(struct inside_link *link, uint32_t slot) {
    link->slots[slot].state = INSIDE_SLOT_FREE;
    link->free_slots[link->free_count++] = slot;
    atomic_fetch_sub(&link->run->under_way, 1);
}

/* It crossed CLOSE. False: there are more of them than that explains. */
static bool slot_drops(struct inside_slot *slot, const struct frame *frame) {
    uint64_t length = frame->length > 0 ? frame->length : 1;
    if (length > slot->left)
        return false;
    slot->left -= length;
    return true;
}

/* False: that can't be. */
static bool link_take_frame(struct inside_link *link, const struct frame *frame) {
    if (frame->slot >= FRAME_SLOTS)
        return false;
    struct inside_slot *slot = &link->slots[frame->slot];
    if (slot->state == INSIDE_SLOT_FREE || slot->serial != frame->serial)
        return false;
    if (frame->type == FRAME_CLOSED) {
        if (slot->state != INSIDE_SLOT_CLOSING || slot->close_due)
            return false;
        link_free_slot(link, frame->slot);
        return true;
    }
    if (slot->state == INSIDE_SLOT_CLOSING)
        return slot_drops(slot, frame);
    return inside_remote_take(slot->remote, frame, link->runner_links->payload);
}

static void link_break(struct inside_link *link) {
    inside_run_break(link->run, "it wrote what no runner writes into the shared memory");
    link_detach(link, REMOTE_LIED);
}

/* False: frames are left, or nothing can be read any more. */
static bool link_receive_some(struct inside_link *link) {
    struct frame frame;
    for (unsigned i = 0; i < FRAMES_AT_ONCE; i++) {
        enum link_status status = link_receive(&link->link, &frame, link->runner_links->payload);
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
static void link_settle(struct inside_link *link) {
    bool blocked = !list_empty(&link->blocked) || link->due_count > 0;
    if (blocked && (link_room(&link->link) == FRAME_PAYLOAD || !link_await_room(&link->link)))
        link_wake_blocked(link);
    link_flush(&link->link);
}

static void link_serve(struct inside_link *link) {
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
        loop_defer(link->runner_links->loop, &link->task);
}

static void link_on_event(struct event *event, uint32_t events) {
    struct inside_link *link = CONTAINER_OF(event, struct inside_link, event);
    uint64_t count;
    (void)events;
    /* The read comes first: what is written after it makes the descriptor ready again. */
    ssize_t got = read(event->fd, &count, sizeof count);
    (void)got;
    link_serve(link);
}

static void link_on_task(struct task *task) {
    link_serve(CONTAINER_OF(task, struct inside_link, task));
}

/* Exchanges */

struct inside_link *inside_runner_links_choose(struct inside_runner_links *runner_links,
                                               enum inside_link_refusal *refusal) {
    struct inside_link *best = NULL;
    CHECK_OBJ(runner_links, INSIDE_RUNNER_LINKS_MAGIC);
    *refusal = INSIDE_LINK_DOWN;
    runner_links->next = (runner_links->next + 1) % runner_links->link_count;
    for (unsigned i = 0; i < runner_links->link_count; i++) {
        struct inside_link *link =
            &runner_links->links[(runner_links->next + i) % runner_links->link_count];
        link_refresh(link);
        if (link->run == NULL)
            continue;
        *refusal = INSIDE_LINK_FULL;
        if (link->free_count > (best == NULL ? 0 : best->free_count))
            best = link;
    }
    return best;
}

uint32_t inside_link_take(struct inside_link *link, struct inside_remote *remote) {
    ASSERT(link->free_count > 0);
    uint32_t slot = link->free_slots[--link->free_count];
    struct inside_slot *own = &link->slots[slot];
    own->remote = remote;
    own->serial++;
    own->state = INSIDE_SLOT_OPEN;
    atomic_fetch_add(&link->run->under_way, 1);
    return slot;
}

void inside_link_give(struct inside_link *link, uint32_t slot, bool opened, uint64_t left) {
    struct inside_slot *own = &link->slots[slot];
    ASSERT(own->state == INSIDE_SLOT_OPEN);
    own->remote = NULL;
    if (!opened) {
        link_free_slot(link, slot);
        return;
    }
    own->state = INSIDE_SLOT_CLOSING;
    own->left = left;
    own->close_due = true;
    link->due_count++;
    link_send_due(link);
    loop_defer(link->runner_links->loop, &link->task);
}

bool inside_link_send(struct inside_link *link, const struct frame *frame, const void *bytes,
                      struct list_link *blocked) {
    loop_defer(link->runner_links->loop, &link->task);
    if (link_send(&link->link, frame, bytes))
        return true;
    if (list_empty(blocked))
        list_append(&link->blocked, blocked);
    return false;
}

/* The links */

static struct inside_runner_links *inside_runner_links_new(struct inside_runners *runners,
                                                           unsigned worker) {
    unsigned count = runners->count;
    struct inside_runner_links *runner_links =
        xcalloc(1, sizeof *runner_links + count * sizeof runner_links->links[0]);
    runner_links->magic = INSIDE_RUNNER_LINKS_MAGIC;
    runner_links->runners = runners;
    runner_links->worker = worker;
    runner_links->link_count = count;
    for (unsigned i = 0; i < count; i++) {
        struct inside_link *link = &runner_links->links[i];
        link->runner_links = runner_links;
        link->runner = &runners->runners[i];
        event_init(&link->event);
        task_init(&link->task, link_on_task);
        list_init(&link->blocked);
    }
    return runner_links;
}

struct inside_runner_links *inside_runner_links_open(struct inside_runners *runners,
                                                     unsigned worker, struct loop *loop) {
    ASSERT(worker < runners->workers);
    struct inside_runner_links *runner_links = runners->runner_links[worker];
    if (runner_links == NULL)
        runner_links = runners->runner_links[worker] = inside_runner_links_new(runners, worker);
    CHECK_OBJ(runner_links, INSIDE_RUNNER_LINKS_MAGIC);
    if (runner_links->users++ > 0)
        return runner_links;
    runner_links->loop = loop;
    for (unsigned i = 0; i < runner_links->link_count; i++)
        link_watch(&runner_links->links[i]);
    return runner_links;
}

void inside_runner_links_close(struct inside_runner_links **runner_linksp) {
    struct inside_runner_links *runner_links = *runner_linksp;
    *runner_linksp = NULL;
    CHECK_OBJ(runner_links, INSIDE_RUNNER_LINKS_MAGIC);
    if (--runner_links->users > 0)
        return;
    for (unsigned i = 0; i < runner_links->link_count; i++) {
        if (runner_links->links[i].run != NULL)
            link_settle(&runner_links->links[i]);
        link_unwatch(&runner_links->links[i]);
    }
    runner_links->loop = NULL;
}

void inside_runner_links_free(struct inside_runner_links **runner_linksp) {
    struct inside_runner_links *runner_links = *runner_linksp;
    *runner_linksp = NULL;
    if (runner_links == NULL)
        return;
    CHECK_OBJ(runner_links, INSIDE_RUNNER_LINKS_MAGIC);
    ASSERT(runner_links->users == 0);
    for (unsigned i = 0; i < runner_links->link_count; i++)
        inside_run_release(&runner_links->links[i].run);
    FREE_OBJ(runner_links);
}
