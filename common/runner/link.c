#include "runner/link.h"

#include <sys/types.h>
#include <unistd.h>

void link_open(struct link *link, struct link_ring *out, struct link_ring *in, int wake_fd) {
    *link = (struct link){.wake_fd = wake_fd};
    ring_open(&link->out, &out->shared, out->bytes, LINK_RING);
    ring_open(&link->in, &in->shared, in->bytes, LINK_RING);
}

static size_t padded(size_t length) {
    return (length + 7) & ~(size_t)7;
}

size_t link_room(struct link *link) {
    size_t room = ring_room(&link->out);
    room = room > sizeof(struct frame) ? (room - sizeof(struct frame)) & ~(size_t)7 : 0;
    return room < FRAME_PAYLOAD ? room : FRAME_PAYLOAD;
}

bool link_send(struct link *link, const struct frame *frame, const void *payload) {
    static const char zeros[8];
    size_t behind = padded(frame->length);
    if (ring_room(&link->out) < sizeof *frame + behind)
        return false;
    ring_write(&link->out, frame, sizeof *frame);
    ring_write(&link->out, payload, frame->length);
    ring_write(&link->out, zeros, behind - frame->length);
    ring_publish(&link->out);
    link->sent = true;
    return true;
}

bool link_await_room(struct link *link) {
    return ring_await_room(&link->out, sizeof(struct frame) + FRAME_PAYLOAD);
}

static bool frame_is_sound(const struct frame *frame, size_t waiting) {
    return frame->type >= FRAME_OPEN && frame->type < FRAME_TYPES &&
           frame->length <= FRAME_PAYLOAD && padded(frame->length) <= waiting - sizeof *frame;
}

enum link_status link_receive(struct link *link, struct frame *frame, char *payload) {
    size_t waiting = ring_waiting(&link->in);
    if (link->in.broken)
        return LINK_BROKEN;
    if (waiting == 0)
        return LINK_EMPTY;
    link->in.broken = waiting < sizeof *frame;
    if (link->in.broken)
        return LINK_BROKEN;
    ring_read(&link->in, frame, sizeof *frame);
    link->in.broken = !frame_is_sound(frame, waiting);
    if (link->in.broken)
        return LINK_BROKEN;
    ring_read(&link->in, payload, frame->length);
    ring_skip(&link->in, padded(frame->length) - frame->length);
    ring_release(&link->in);
    link->received = true;
    return LINK_FRAME;
}

void link_wake(int fd) {
    uint64_t one = 1;
    ssize_t wrote = write(fd, &one, sizeof one); /* a full counter wakes as well */
    (void)wrote;
}

void link_flush(struct link *link) {
    bool wake = link->sent && ring_must_wake(&link->out);
    wake |= link->received && ring_must_wake_writer(&link->in);
    link->sent = link->received = false;
    if (wake)
        link_wake(link->wake_fd);
}

bool link_sleep(struct link *link) {
    bool empty = ring_sleep(&link->in);
    if (!empty)
        ring_stay_awake(&link->in);
    return empty;
}
