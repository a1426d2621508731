#include "base/random.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

void random_fill(void *bytes, size_t length) {
    char *at = bytes;
    while (length > 0) {
        ssize_t got = getrandom(at, length, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            fprintf(stderr,
                    "the kernel gives no random numbers: %s; allow the system call getrandom\n",
                    strerror(errno));
            exit(1);
        }
        at += got;
        length -= (size_t)got;
    }
}
