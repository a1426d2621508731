/*
 * The bytes that a TCP connection has carried, as the kernel counts them: each byte once, with those
 * that wait to be sent, and with what TLS adds.
 *
 *     struct tcp_bytes bytes = tcp_bytes_of(fd);            before the descriptor is closed
 *
 * Threads: any. Errors: zeroes for what is no TCP connection.
 */
#ifndef RETORT_NET_TCP_BYTES_H
#define RETORT_NET_TCP_BYTES_H

#include <stdint.h>

struct tcp_bytes {
    uint64_t in, out;
};

struct tcp_bytes tcp_bytes_of(int fd);

#endif
