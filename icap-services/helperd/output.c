#include "helperd/output.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/plural.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { SECOND = 1000 };

/* ---- what a pool may write ---------------------------------------------------------------- */

static void tell_of_flood(struct output_share *share) {
    if (share->flood == 0)
        return;
    log_warn("pool %s: %llu %s dropped, as its helpers wrote more than %u a second "
             "(log_lines); look at its command, %s",
             share->settings->name, (unsigned long long)share->flood,
             plural((int64_t)share->flood, "line was", "lines were"), share->settings->log_lines,
             share->settings->command[0]);
    share->flood = 0;
}

static void on_flood_over(struct timer *timer) {
    tell_of_flood(CONTAINER_OF(timer, struct output_share, timer));
}

void output_share_init(struct output_share *share, struct loop *loop,
                       const struct pool_settings *settings) {
    memset(share, 0, sizeof *share);
    share->loop = loop;
    share->settings = settings;
    timer_init(&share->timer, on_flood_over);
}

void output_share_release(struct output_share *share) {
    timer_cancel(&share->loop->timers, &share->timer);
    tell_of_flood(share);
}

static bool take_turn(struct output_share *share) {
    if (share->loop->now >= share->second_ends) {
        share->second_ends = share->loop->now + SECOND;
        share->written = 0;
    }
    if (share->written < share->settings->log_lines) {
        share->written++;
        return true;
    }
    share->dropped++;
    share->flood++;
    loop_timer_after(share->loop, &share->timer, OUTPUT_PAUSE);
    return false;
}

/* ---- lines -------------------------------------------------------------------------------- */

static void output_write_line(const struct output *output) {
    log_info("pool %s: helper %d: %.*s%s", output->share->settings->name, (int)output->pid,
             (int)output->length, output->line, output->length == OUTPUT_LINE ? " ..." : "");
}

static void output_end_line(struct output *output) {
    output->ended = true;
    if (output->length == 0)
        return;
    output->dropped = !take_turn(output->share);
    if (!output->dropped)
        output_write_line(output);
}

static void output_take_byte(struct output *output, char byte) {
    if (output->ended) {
        output->ended = output->dropped = false;
        output->length = 0;
    }
    if (byte == '\n')
        output_end_line(output);
    else if (output->length < OUTPUT_LINE)
        output->line[output->length++] = byte == 0 ? '?' : byte; /* the log's texts end at a NUL */
}

/* Returns how many bytes were read; 0 when there are none, for now or for ever. */
static size_t output_take_bytes(struct output *output) {
    static char bytes[16384];
    ssize_t length = read(output->fd, bytes, sizeof bytes);
    for (ssize_t i = 0; i < length; i++)
        output_take_byte(output, bytes[i]);
    if (length == 0) /* it closed both descriptors */
        output_close(output);
    return length > 0 ? (size_t)length : 0;
}

static void on_bytes(struct event *event, uint32_t events) {
    (void)events;
    output_take_bytes(CONTAINER_OF(event, struct output, event));
}

/* ---- the pipe ----------------------------------------------------------------------------- */

void output_init(struct output *output, struct output_share *share) {
    output->share = share;
    output->fd = -1;
    event_init(&output->event);
}

int output_open(struct output *output) {
    int ends[2];
    ASSERT(output->fd < 0);
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    if (fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0 ||
        !loop_add(output->share->loop, &output->event, ends[0], EPOLLIN, on_bytes)) {
        int error = errno;
        close(ends[0]);
        close(ends[1]);
        errno = error;
        return -1;
    }
    output->fd = ends[0];
    output->length = 0;
    output->ended = output->dropped = false;
    return ends[1];
}

void output_begin(struct output *output, pid_t pid) {
    output->pid = pid;
}

/* Reads only what stands in the pipe now. Programs that the helper left behind may write more,
 * which nobody reads. */
void output_finish(struct output *output) {
    int left = 0;
    if (output->fd >= 0 && ioctl(output->fd, FIONREAD, &left) != 0)
        left = 0;
    while (left > 0 && output->fd >= 0) {
        size_t length = output_take_bytes(output);
        if (length == 0)
            break;
        left -= (int)length;
    }
    if (output->length > 0 && !output->ended)
        output_end_line(output);
    if (output->dropped) {
        output_write_line(output);
        output->share->dropped--;
        output->share->flood--;
    }
    output->length = 0;
    output->ended = output->dropped = false;
    output_close(output);
}

void output_close(struct output *output) {
    if (output->fd < 0)
        return;
    loop_remove(output->share->loop, &output->event);
    close(output->fd);
    output->fd = -1;
}
