#include "event/mailbox.h"

#include "base/assert.h"

#include <sys/eventfd.h>
#include <unistd.h>

static void deliver_all(struct mailbox *mailbox) {
    struct message *newest = atomic_exchange_explicit(&mailbox->newest, NULL, memory_order_acquire);
    struct message *oldest = NULL;
    while (newest != NULL) {
        struct message *next = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    while (oldest != NULL) {
        struct message *message = oldest;
        oldest = message->next;
        message->deliver(message);
    }
}

static void mailbox_on_event(struct event *event, uint32_t events) {
    struct mailbox *mailbox = CONTAINER_OF(event, struct mailbox, event);
    uint64_t count;
    /* The read comes first: a post after it makes the descriptor ready again. */
    ssize_t got = read(event->fd, &count, sizeof count);
    (void)got;
    (void)events;
    deliver_all(mailbox);
}

bool mailbox_init(struct mailbox *mailbox, struct loop *loop) {
    atomic_init(&mailbox->newest, NULL);
    mailbox->loop = loop;
    event_init(&mailbox->event);
    int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (fd < 0)
        return false;
    if (loop_add(loop, &mailbox->event, fd, EPOLLIN, mailbox_on_event))
        return true;
    close(fd);
    return false;
}

void mailbox_release(struct mailbox *mailbox) {
    int fd = mailbox->event.fd;
    deliver_all(mailbox);
    loop_remove(mailbox->loop, &mailbox->event);
    close(fd);
}

void mailbox_post(struct mailbox *mailbox, struct message *message) {
    struct message *newest = atomic_load_explicit(&mailbox->newest, memory_order_relaxed);
    do {
        message->next = newest;
    } while (!atomic_compare_exchange_weak_explicit(&mailbox->newest, &newest, message,
                                                    memory_order_release, memory_order_relaxed));
    if (newest != NULL)
        return; /* the first message in the box has made the descriptor ready */
    uint64_t one = 1;
    ssize_t put = write(mailbox->event.fd, &one, sizeof one);
    (void)put; /* fails only on overflow, and then the descriptor is ready already */
}
