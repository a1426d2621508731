#include "inside/child.h"

#include "runner/process.h"

#include <pthread.h>
#include <string.h>

/* What a process says of its module, checked: it goes into logs, metrics and pages. */

static bool told_copy(char *to, size_t size, const char *word) {
    if (word == NULL || strlen(word) >= size)
        return false;
    memcpy(to, word, strlen(word) + 1);
    return true;
}

static bool told_is_name(const char *name) {
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "_.:/ -";
    return name[0] != '\0' && name[strspn(name, allowed)] == '\0';
}

static void told_clean(char *text) {
    for (; *text != '\0'; text++)
        if (*text < ' ' || *text > '~')
            *text = '?';
}

static bool told_read_texts(struct inside_event_calls *told, struct words_reader *reader) {
    if (!told_copy(told->name, sizeof told->name, words_next(reader)) ||
        !told_is_name(told->name) ||
        !told_copy(told->description, sizeof told->description, words_next(reader)) ||
        !told_copy(told->notice, sizeof told->notice, words_next(reader)))
        return false;
    told_clean(told->description);
    told_clean(told->notice);
    return true;
}

static bool told_read_counters(struct inside_event_calls *told, struct words_reader *reader) {
    uint64_t count = words_next_number(reader);
    if (count > SERVICE_MODULE_COUNTERS)
        return false;
    told->counter_count = (unsigned)count;
    for (unsigned i = 0; i < told->counter_count; i++)
        if (!told_copy(told->counters[i], sizeof told->counters[i], words_next(reader)) ||
            !told_is_name(told->counters[i]))
            return false;
    return true;
}

bool inside_event_calls_read(struct inside_event_calls *told, const char *bytes, size_t length) {
    struct words_reader reader = {bytes, length, false};
    memset(told, 0, sizeof *told);
    told->fingerprint = words_next_number(&reader);
    uint64_t points = words_next_number(&reader), preview = words_next_number(&reader);
    told->wants_client_ip = words_next_number(&reader) != 0;
    told->answers_within = words_next_number(&reader);
    told->has_events = words_next_number(&reader) != 0;
    told->points = (unsigned)points;
    told->preview_size = preview > UINT32_MAX ? UINT32_MAX : (unsigned)preview;
    return told_read_texts(told, &reader) && told_read_counters(told, &reader) && !reader.bad &&
           points >= 1 && points <= (SERVICE_REQUEST | SERVICE_RESPONSE) && reader.left == 0;
}

const char *inside_name_keep(const char *name) {
    enum { NAMES = 512 };
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static char names[NAMES][SERVICE_MODULE_NAME];
    static unsigned count;
    const char *kept = "OTHER";
    pthread_mutex_lock(&lock);
    unsigned i = 0;
    while (i < count && strcmp(names[i], name) != 0)
        i++;
    if (i < count)
        kept = names[i];
    else if (count < NAMES && strlen(name) < SERVICE_MODULE_NAME)
        kept = strcpy(names[count++], name);
    pthread_mutex_unlock(&lock);
    return kept;
}
