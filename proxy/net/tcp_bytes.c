#include "net/tcp_bytes.h"

/* The C library's struct tcp_info ends before the numbers of bytes. */
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>

struct tcp_bytes tcp_bytes_of(int fd) {
    struct tcp_info info = {0};
    socklen_t length = sizeof info;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0 ||
        length < offsetof(struct tcp_info, tcpi_bytes_retrans) + sizeof info.tcpi_bytes_retrans)
        return (struct tcp_bytes){0};
    return (struct tcp_bytes){
        .in = info.tcpi_bytes_received,
        .out = info.tcpi_bytes_sent - info.tcpi_bytes_retrans + info.tcpi_notsent_bytes,
    };
}
