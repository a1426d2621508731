#include "helpers/helper_loop.h"

#include "base/log.h"
#include "helpers/sandbox.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { JOBS_FD = 0 };

bool helper_work_reply(struct helper_work *work, struct slice text) {
    if (text.length > HELPER_INLINE_MAX)
        return false;
    memcpy(work->reply, text.base, text.length);
    work->reply_length = text.length;
    return true;
}

static bool map_body(struct helper_work *work, uint64_t length) {
    work->input = slice_make("", 0);
    if (work->input_fd < 0 || length == 0)
        return true;
    void *bytes = mmap(NULL, length, PROT_READ, MAP_PRIVATE, work->input_fd, 0);
    if (bytes == MAP_FAILED)
        return false;
    work->input = slice_make(bytes, length);
    return true;
}

static uint64_t file_length(int fd) {
    off_t length = lseek(fd, 0, SEEK_END);
    return length < 0 ? 0 : (uint64_t)length;
}

static enum helper_status helper_loop_do_job(const struct helper_packet *job,
                                             struct helper_packet *result,
                                             enum helper_status (*function)(struct helper_work *)) {
    struct helper_work work = {.parameters = helper_packet_parameters(job),
                               .input_fd = job->body,
                               .output = -1,
                               .reply = result->parameters};
    if (!map_body(&work, job->message.body_length)) {
        helper_packet_set_parameters(result, SLICE("not enough memory for the body"));
        return HELPER_FAILED;
    }
    enum helper_status status = function(&work);
    if (work.input.length > 0)
        munmap((void *)work.input.base, work.input.length);
    result->message.inline_length = (uint32_t)work.reply_length;
    result->body = work.output;
    if (result->body >= 0) {
        result->message.body_length = file_length(result->body);
        if (!helper_body_seal(result->body))
            return HELPER_FAILED;
    }
    return status;
}

int helper_loop_run(enum helper_status (*function)(struct helper_work *work)) {
    static struct helper_packet job, result;
    for (;;) {
        switch (helper_packet_receive(JOBS_FD, &job)) {
        case HELPER_IO_DONE: break;
        case HELPER_IO_CLOSED: return 0;
        default:
            log_error("descriptor 0 is not a job socket: retort-helperd starts this program");
            return 1;
        }
        helper_packet_init(&result, HELPER_RESULT, job.message.id);
        result.message.status = helper_loop_do_job(&job, &result, function);
        helper_packet_close_body(&job);
        enum helper_io sent = helper_packet_send(JOBS_FD, &result);
        helper_packet_close_body(&result);
        if (sent != HELPER_IO_DONE)
            return 0;
    }
}

/* ---- by hand ------------------------------------------------------------------------------ */

/* Makes a sealed copy of all that can be read at `fd`; false with errno. */
static bool collect(int fd, struct helper_packet *job) {
    char bytes[65536];
    ssize_t length;
    job->body = helper_body_create("input");
    while (job->body >= 0 && (length = read(fd, bytes, sizeof bytes)) != 0) {
        if (length < 0 || !helper_body_write(job->body, bytes, (size_t)length))
            return false;
        job->message.body_length += (uint64_t)length;
    }
    return job->body >= 0 && helper_body_seal(job->body);
}

static bool copy_out(int from, int to) {
    char bytes[65536];
    ssize_t length;
    off_t at = 0;
    while ((length = pread(from, bytes, sizeof bytes, at)) > 0) {
        if (!helper_body_write(to, bytes, (size_t)length))
            return false;
        at += length;
    }
    return length == 0;
}

int helper_loop_once(struct slice parameters, int input, int output,
                     enum helper_status (*function)(struct helper_work *)) {
    static struct helper_packet job, result;
    helper_packet_init(&job, HELPER_JOB, 1);
    helper_packet_init(&result, HELPER_RESULT, 1);
    if (!helper_packet_set_parameters(&job, parameters) || (input >= 0 && !collect(input, &job))) {
        log_error("can't read the input");
        return 1;
    }
    enum helper_status status = helper_loop_do_job(&job, &result, function);
    struct slice text = helper_packet_parameters(&result);
    bool good = status == HELPER_DONE || status == HELPER_UNCHANGED;
    if (!good)
        log_error("%s: %.*s", helper_status_text(status), SLICE_PRINT(text));
    else if (status == HELPER_UNCHANGED)
        good = job.body < 0 || copy_out(job.body, output);
    else
        good = result.body >= 0 ? copy_out(result.body, output)
                                : helper_body_write(output, text.base, text.length);
    helper_packet_close_body(&job);
    helper_packet_close_body(&result);
    return good ? 0 : 1;
}

/* ---- limits ------------------------------------------------------------------------------- */

static void helper_loop_limit(int resource, uint64_t value) {
    struct rlimit now;
    if (value == 0 || getrlimit(resource, &now) != 0)
        return;
    now.rlim_cur = now.rlim_max == RLIM_INFINITY || value < now.rlim_max ? value : now.rlim_max;
    setrlimit(resource, &now);
}

void helper_limit_memory(uint64_t bytes) {
    if (!sandbox_under_checker()) /* they map far more than the program uses */
        helper_loop_limit(RLIMIT_AS, bytes);
}

void helper_limit_file(uint64_t bytes) {
    helper_loop_limit(RLIMIT_FSIZE, bytes);
}

void helper_limit_cpu(unsigned cpu_seconds) {
    struct rusage used;
    if (cpu_seconds > 0 && getrusage(RUSAGE_SELF, &used) == 0)
        helper_loop_limit(RLIMIT_CPU, (uint64_t)used.ru_utime.tv_sec +
                                          (uint64_t)used.ru_stime.tv_sec + 1 + cpu_seconds);
}
