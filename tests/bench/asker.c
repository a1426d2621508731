#include "asker.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>

double asker_now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec * 1e-9;
}

void asker_need(bool good, const char *what) {
    if (good)
        return;
    perror(what);
    exit(2);
}

int asker_connect(uint16_t port, int flags, int epoll, uint32_t events, void *owner) {
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons(port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    struct epoll_event event = {.events = events, .data.ptr = owner};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
    asker_need(fd >= 0, "socket");
    int result = connect(fd, (struct sockaddr *)&address, sizeof address);
    asker_need(result == 0 || flags != 0, "connect");
    asker_need(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0, "epoll_ctl");
    return fd;
}

static int by_time(const void *a, const void *b) {
    float left = *(const float *)a, right = *(const float *)b;
    return (left > right) - (left < right);
}

void asker_sort(float *times, size_t count) {
    qsort(times, count, sizeof *times, by_time);
}

double asker_part(const float *times, size_t count, size_t of_thousand) {
    return count == 0 ? 0 : (double)times[count * of_thousand / 1000];
}
