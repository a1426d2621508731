#include "icap/exchange_file.h"

#include "base/assert.h"

#include <errno.h>
#include <stdarg.h>

enum { STEP = 1 << 20 };

struct icap_exchange_file {
    unsigned magic;
#define ICAP_EXCHANGE_FILE_MAGIC 0x1ca9f11eu
    FILE *stream;
    char *name;
    uint64_t at; /* bytes read */
    bool over;
    struct icap_exchange_file_end end;
    char complaint[ICAP_EXCHANGE_FILE_ERROR];
};

static void exchange_file_complain(struct icap_exchange_file *file, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The first complaint stays. */
static void exchange_file_complain(struct icap_exchange_file *file, const char *format, ...) {
    va_list arguments;
    if (file->end.complaint != NULL)
        return;
    va_start(arguments, format);
    vsnprintf(file->complaint, sizeof file->complaint, format, arguments);
    va_end(arguments);
    file->end.complaint = file->complaint;
}

static bool check_beginning(struct icap_exchange_file *file, char *error) {
    char bytes[ICAP_RECORD_FILE_LENGTH];
    static const char family[] = "retort-icap ";
    if (fread(bytes, 1, sizeof bytes, file->stream) != sizeof bytes ||
        memcmp(bytes, family, sizeof family - 1) != 0)
        snprintf(error, ICAP_EXCHANGE_FILE_ERROR,
                 "%s is not a recording: `retortctl icap record` makes them", file->name);
    else if (memcmp(bytes, ICAP_RECORD_FILE, sizeof bytes) != 0)
        snprintf(error, ICAP_EXCHANGE_FILE_ERROR,
                 "%s is a recording of a version that this retortctl does not know; use the one "
                 "that made it",
                 file->name);
    else
        return true;
    return false;
}

struct icap_exchange_file *icap_exchange_file_of(FILE *stream, const char *name,
                                                 char error[ICAP_EXCHANGE_FILE_ERROR]) {
    struct icap_exchange_file *file;
    ALLOC_OBJ(file, ICAP_EXCHANGE_FILE_MAGIC);
    file->stream = stream;
    file->name = xstrdup(name);
    file->at = ICAP_RECORD_FILE_LENGTH;
    if (!check_beginning(file, error))
        icap_exchange_file_close(&file);
    return file;
}

struct icap_exchange_file *icap_exchange_file_open(const char *path,
                                                   char error[ICAP_EXCHANGE_FILE_ERROR]) {
    FILE *stream = fopen(path, "re");
    if (stream != NULL)
        return icap_exchange_file_of(stream, path, error);
    snprintf(error, ICAP_EXCHANGE_FILE_ERROR, "can't open %s: %s", path, strerror(errno));
    return NULL;
}

/* As much memory as there are bytes, whatever the head says. NULL: the file ends before. */
static char *read_content(struct icap_exchange_file *file, size_t length) {
    char *content = NULL;
    size_t got = 0;
    do {
        size_t step = length - got < STEP ? length - got : STEP;
        content = xrealloc(content, got + step + 1);
        size_t count = fread(content + got, 1, step, file->stream);
        got += count;
        if (count < step) {
            free(content);
            return NULL;
        }
    } while (got < length);
    return content;
}

static void take_end(struct icap_exchange_file *file, const struct icap_exchange *last) {
    struct icap_exchange_file_end *end = &file->end;
    file->over = true;
    end->dropped = last->dropped;
    end->unfinished = last->unfinished;
    snprintf(end->reason, sizeof end->reason, "%.*s", SLICE_PRINT(last->ended));
    if (last->kept != end->read + end->damaged)
        exchange_file_complain(file, "%s: its end speaks of %llu exchanges, there are %llu",
                               file->name, (unsigned long long)last->kept,
                               (unsigned long long)(end->read + end->damaged));
    else if (fgetc(file->stream) != EOF)
        exchange_file_complain(file, "%s: something stands behind its end", file->name);
}

/* NULL: there is no more. */
static char *read_record(struct icap_exchange_file *file, struct icap_record_head *head) {
    char bytes[ICAP_RECORD_HEAD];
    size_t got = fread(bytes, 1, sizeof bytes, file->stream);
    if (got < sizeof bytes) {
        exchange_file_complain(file, "%s is cut off at byte %llu: there is no end of the recording",
                               file->name, (unsigned long long)(file->at + got));
        return NULL;
    }
    if (!icap_record_head_parse(head, bytes)) {
        exchange_file_complain(file, "%s is damaged at byte %llu: what follows can't be read",
                               file->name, (unsigned long long)file->at);
        return NULL;
    }
    char *content = read_content(file, head->length);
    if (content == NULL)
        exchange_file_complain(file, "%s is cut off inside the record at byte %llu", file->name,
                               (unsigned long long)file->at);
    return content;
}

static bool is_sound(struct icap_exchange_file *file, const struct icap_record_head *head,
                     const char *content, struct icap_exchange *exchange) {
    struct slice bytes = slice_make(content, head->length);
    const char *error = "its sum is wrong";
    if (icap_record_content_fits(head, bytes) && icap_exchange_parse(exchange, bytes, &error))
        return true;
    exchange_file_complain(file, "%s is damaged in the record at byte %llu: %s", file->name,
                           (unsigned long long)file->at, error);
    file->end.damaged += head->kind == ICAP_RECORD_EXCHANGE;
    return false;
}

bool icap_exchange_file_next(struct icap_exchange_file *file, struct icap_exchange *exchange,
                             char **content) {
    CHECK_OBJ(file, ICAP_EXCHANGE_FILE_MAGIC);
    struct icap_record_head head;
    *content = NULL;
    while (!file->over) {
        char *bytes = read_record(file, &head);
        file->over = bytes == NULL || head.kind == ICAP_RECORD_END;
        bool sound = bytes != NULL && is_sound(file, &head, bytes, exchange);
        if (sound && head.kind == ICAP_RECORD_EXCHANGE) {
            *content = bytes;
            file->end.read++;
        } else if (sound) {
            take_end(file, exchange);
        }
        file->at += ICAP_RECORD_HEAD + (bytes == NULL ? 0 : head.length);
        if (*content != NULL)
            return true;
        free(bytes);
    }
    return false;
}

const struct icap_exchange_file_end *icap_exchange_file_end(const struct icap_exchange_file *file) {
    CHECK_OBJ(file, ICAP_EXCHANGE_FILE_MAGIC);
    return &file->end;
}

void icap_exchange_file_close(struct icap_exchange_file **filep) {
    struct icap_exchange_file *file = *filep;
    *filep = NULL;
    if (file == NULL)
        return;
    CHECK_OBJ(file, ICAP_EXCHANGE_FILE_MAGIC);
    fclose(file->stream);
    free(file->name);
    FREE_OBJ(file);
}
