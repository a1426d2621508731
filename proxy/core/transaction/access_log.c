#include "transaction/access_log.h"

#include "base/assert.h"
#include "log/target.h"
#include "transaction/access_log_choice.h"

#include <stdlib.h>
#include <string.h>

/* GATHER: at most, and of the queue only a PART. FLUSH_AFTER: milliseconds. */
enum { GATHER = 65536, PART = 4, FLUSH_AFTER = 200 };

struct access_log {
    struct log_target *target;
    uint64_t *lost; /* the worker's counter of lines */
    size_t gather;  /* bytes that are handed over at once */
    const struct log_settings *settings;
    bool icap;        /* a line for each call of a service */
    bool plain;       /* each entry has a line, with the whole address */
    bool shortened;   /* clients' addresses are */
    unsigned results; /* a bit for each result that has lines */
    struct access_log_line_time time;
    struct log_chunk *lines;
};

struct access_logs {
    unsigned magic;
#define ACCESS_LOGS_MAGIC 0xacce5510u
    struct loop *loop;
    struct timer timer;
    bool armed;
    bool asks_class;
    size_t count;
    struct access_log *logs;
};

static void access_log_flush(struct access_log *log) {
    struct log_chunk *lines = log->lines;
    if (lines->length == 0)
        return;
    if (log_target_post(log->target, &log->lines)) {
        log->lines = log_chunk_new(GATHER + LOG_LINE_MAX);
        return;
    }
    for (size_t i = 0; i < lines->length; i++)
        *log->lost += lines->bytes[i] == '\n';
    lines->length = 0;
}

void access_logs_flush(struct access_logs *logs) {
    for (size_t i = 0; i < logs->count; i++)
        access_log_flush(&logs->logs[i]);
}

void access_logs_count_lost(struct access_logs *logs) {
    for (size_t i = 0; logs != NULL && i < logs->count; i++)
        *logs->logs[i].lost += log_target_take_lost(logs->logs[i].target);
}

static void access_log_on_timer(struct timer *timer) {
    struct access_logs *logs = CONTAINER_OF(timer, struct access_logs, timer);
    CHECK_OBJ(logs, ACCESS_LOGS_MAGIC);
    logs->armed = false;
    access_logs_flush(logs);
}

static void access_log_set(struct access_log *log, const struct log_settings *settings, bool icap) {
    log->settings = settings;
    log->icap = icap;
    log->results = access_log_choice_results(settings->results);
    log->shortened = settings->ipv4_prefix < 32 || settings->ipv6_prefix < 128;
    log->plain = !icap && !log->shortened && log->results == ~0u && settings->status_count == 0 &&
                 settings->services == NULL && settings->url_class == NULL;
}

static void access_log_open(struct access_logs *logs, struct net_context *net,
                            const struct log_settings *settings, bool icap) {
    struct access_log *log = &logs->logs[logs->count];
    const struct log_demand demand = {.path = settings->path,
                                      .place = settings->place,
                                      .queue = settings->queue,
                                      .facility = settings->facility,
                                      .severity = settings->severity,
                                      .kind = icap ? "icap_log" : "access_log",
                                      .trust = &settings->trust};
    log->target = log_target_open(&demand);
    if (log->target == NULL)
        return;
    logs->count++;
    log->lines = log_chunk_new(GATHER + LOG_LINE_MAX);
    log->gather = settings->queue / PART < GATHER ? settings->queue / PART : GATHER;
    access_log_set(log, settings, icap);
    log->lost = &net->counters.access_log_lines_lost;
    logs->asks_class |= settings->url_class != NULL;
}

struct access_logs *access_logs_open(struct net_context *net, const struct settings *settings) {
    struct access_logs *logs;
    ALLOC_OBJ(logs, ACCESS_LOGS_MAGIC);
    logs->loop = net->loop;
    timer_init(&logs->timer, access_log_on_timer);
    logs->logs =
        xcalloc(settings->access_log_count + settings->icap_log_count + 1, sizeof *logs->logs);
    for (size_t i = 0; i < settings->access_log_count; i++)
        access_log_open(logs, net, &settings->access_logs[i], false);
    for (size_t i = 0; i < settings->icap_log_count; i++)
        access_log_open(logs, net, &settings->icap_logs[i], true);
    return logs;
}

void access_logs_close(struct access_logs **logsp) {
    struct access_logs *logs = *logsp;
    *logsp = NULL;
    if (logs == NULL)
        return;
    CHECK_OBJ(logs, ACCESS_LOGS_MAGIC);
    access_logs_flush(logs);
    timer_cancel(&logs->loop->timers, &logs->timer);
    access_logs_count_lost(logs);
    for (size_t i = 0; i < logs->count; i++) {
        free(logs->logs[i].lines);
        log_target_close(&logs->logs[i].target);
    }
    free(logs->logs);
    FREE_OBJ(logs);
}

static inline void access_log_write_line(struct access_log *log, const struct journal *journal) {
    struct log_chunk *lines = log->lines;
    lines->length +=
        access_log_line_write(lines->bytes + lines->length, log->settings, journal, &log->time);
    if (lines->length >= log->gather)
        access_log_flush(log);
}

static bool access_log_wants(const struct access_log *log, const struct journal *journal) {
    const struct log_settings *settings = log->settings;
    return (log->results >> journal->result & 1) != 0 &&
           access_log_choice_has_status(journal, settings->statuses, settings->status_count) &&
           access_log_choice_has_service(journal, settings->services) &&
           (settings->url_class == NULL || access_log_choice_is_in(journal, settings->url_class));
}

/* A line for each service that was asked. */
static void write_calls(struct access_log *log, const struct journal *journal) {
    struct journal of_call = *journal;
    for (unsigned i = 0; i < journal->asked_count; i++) {
        of_call.call = &journal->asked[i];
        if (of_call.call->figures != NULL &&
            (log->settings->services == NULL ||
             access_log_choice_names(log->settings->services, of_call.call->service)))
            access_log_write_line(log, &of_call);
    }
}

static void write_entry_to(struct access_log *log, const struct journal *journal) {
    if (log->icap)
        write_calls(log, journal);
    else
        access_log_write_line(log, journal);
}

/* The client's address in the log has only its first bits. */
static void write_shortened(struct access_log *log, const struct journal *journal) {
    struct journal shortened = *journal;
    struct address address = *journal->client_address;
    struct network network;
    char text[ADDRESS_IP_TEXT];
    address_unmap(&address);
    bool v6 = address.any.sa_family == AF_INET6;
    unsigned bits = v6 ? log->settings->ipv6_prefix : log->settings->ipv4_prefix;
    shortened.hides_port = true;
    if (network_around(&network, &address, v6, bits)) {
        if (v6)
            memcpy(&address.v6.sin6_addr, network.prefix, sizeof address.v6.sin6_addr);
        else
            memcpy(&address.v4.sin_addr, network.prefix, sizeof address.v4.sin_addr);
        shortened.client = slice_make(text, address_format_ip(&address, text));
    }
    write_entry_to(log, &shortened);
}

bool access_logs_ask_class(const struct access_logs *logs) {
    return logs->asks_class;
}

bool access_logs_wanted(const struct access_logs *logs) {
    return logs->count > 0;
}

static void write_special(struct access_log *log, const struct journal *journal) {
    if (log->shortened && journal->client_address != NULL)
        write_shortened(log, journal);
    else
        write_entry_to(log, journal);
}

void access_logs_write(struct access_logs *logs, const struct journal *journal) {
    CHECK_OBJ(logs, ACCESS_LOGS_MAGIC);
    for (size_t i = 0; i < logs->count; i++) {
        struct access_log *log = &logs->logs[i];
        if (log->plain)
            access_log_write_line(log, journal);
        else if (access_log_wants(log, journal))
            write_special(log, journal);
    }
    if (logs->armed || logs->count == 0)
        return;
    logs->armed = true;
    loop_timer_after(logs->loop, &logs->timer, FLUSH_AFTER);
}
