/*
 * Gathering: sends several slices with one write, and finds out what is left of them afterwards.
 *
 *     struct slice head[2] = {stored_head, extra_fields};
 *     struct iovec pieces[2 + MORE];
 *     int count = gather_pieces(pieces, head, 2);            empty slices take no piece
 *     ... append pieces of the body; write all; `sent` bytes were written ...
 *     size_t of_body = gather_consume(head, 2, sent);        bytes sent beyond the slices
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

/* Removes the first `sent` bytes from the slices, in their order. Returns how many bytes were sent
 * beyond the slices. */
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
