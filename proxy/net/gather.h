/*
 * Gathering: slices that leave together in one write, and what is left of them after it.
 *
 *     struct slice head[2] = {stored_head, extra_fields};
 *     struct iovec pieces[2 + MORE];
 *     int count = gather_pieces(pieces, head, 2);            empty slices take no piece
 *     ... further pieces of the body follow; all are written; `sent` bytes have gone ...
 *     size_t of_body = gather_consume(head, 2, sent);        what was sent behind the slices
 */
#ifndef RETORT_NET_GATHER_H
#define RETORT_NET_GATHER_H

#include "base/slice.h"

#include <sys/uio.h>

/* Returns how many of `pieces` were filled: one for each slice that is not empty. */
static inline int gather_pieces(struct iovec *pieces, const struct slice *slices, int count) {
    int filled = 0;
    for (int i = 0; i < count; i++)
        if (slices[i].length > 0)
            pieces[filled++] = (struct iovec){(void *)slices[i].base, slices[i].length};
    return filled;
}

/* Takes the bytes that were sent off the slices, in their order. Returns how many bytes were sent
 * beyond them. */
static inline size_t gather_consume(struct slice *slices, int count, size_t sent) {
    for (int i = 0; i < count && sent > 0; i++) {
        size_t taken = sent < slices[i].length ? sent : slices[i].length;
        slices[i].base += taken;
        slices[i].length -= taken;
        sent -= taken;
    }
    return sent;
}

#endif
