#include "tools/icap_command.h"

#include "base/plural.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* retortctl icap show: prints the content of a file of recorded exchanges. */

static json_t *icap_show_text_to_json(struct slice text) {
    json_t *json = json_stringn(text.base == NULL ? "" : text.base, text.length);
    return json != NULL ? json : json_string("?");
}

static void print_json(const struct recorded_exchange *recorded, uint64_t number) {
    json_t *json = json_object();
    json_object_set_new(json, "number", json_integer((json_int_t)number));
#define TEXT(name, help) json_object_set_new(json, #name, icap_show_text_to_json(recorded->name));
#define NUMBER(name, help)                                                                         \
    json_object_set_new(json, #name, json_integer((json_int_t)recorded->name));
#define PART(name, help)
#include "record/recorded_exchange.def"
#undef TEXT
#undef NUMBER
#undef PART
    json_dumpf(json, stdout, JSON_ENSURE_ASCII);
    putchar('\n');
    json_decref(json);
}

static void print_line(const struct recorded_exchange *recorded, uint64_t number,
                       const char *when) {
    struct tm parts;
    char text[32] = "-";
    time_t seconds = (time_t)(recorded->time / 1000);
    if (localtime_r(&seconds, &parts) != NULL)
        strftime(text, sizeof text, when, &parts);
    printf("%6llu %s.%03u ", (unsigned long long)number, text, (unsigned)(recorded->time % 1000));
    icap_print(stdout, recorded->service);
    putchar(' ');
    icap_print(stdout, recorded->verdict);
    printf(" %llu -> %llu bytes %.1f ms ", (unsigned long long)recorded->virgin_length,
           (unsigned long long)(recorded->result_given ? recorded->result_length : 0),
           (double)recorded->total_microseconds / 1000);
    icap_print(stdout, recorded->method);
    putchar(' ');
    icap_print(stdout, recorded->url);
    if (recorded->error.length > 0) {
        fputs(": ", stdout);
        icap_print(stdout, recorded->error);
    }
    putchar('\n');
}

/* Prints the lines of a head below its name. */
static void print_head(const char *name, struct slice head) {
    if (head.length == 0)
        return;
    printf("%s\n", name);
    while (head.length > 0) {
        const char *end = memchr(head.base, '\n', head.length);
        size_t length = end == NULL ? head.length : (size_t)(end + 1 - head.base);
        struct slice line = slice_trim(slice_make(head.base, length - (end != NULL)));
        if (line.length > 0 && line.base[line.length - 1] == '\r')
            line.length--;
        if (line.length > 0 || length < head.length) {
            fputs("    ", stdout);
            icap_print(stdout, line);
            putchar('\n');
        }
        head.base += length;
        head.length -= length;
    }
}

static void print_body(const char *name, struct slice kept, uint64_t length, uint64_t whole) {
    printf("%s: %llu bytes%s, %zu of them are here\n", name, (unsigned long long)length,
           whole ? "" : " and more", kept.length);
}

static void print_all(const struct recorded_exchange *recorded, uint64_t number) {
    print_line(recorded, number, "%Y-%m-%d %H:%M:%S");
    print_head("asked", recorded->asked);
    print_head("request_head", recorded->request_head);
    print_head("response_head", recorded->response_head);
    if (recorded->virgin_given)
        print_body("virgin", recorded->virgin, recorded->virgin_length, recorded->virgin_whole);
    print_head("answered", recorded->answered);
    print_head("result_head", recorded->result_head);
    if (recorded->result_given)
        print_body("result", recorded->result, recorded->result_length, recorded->result_whole);
}

static int show_one(struct icap_choices *options, const struct recorded_exchange *recorded,
                    uint64_t number) {
    struct slice bytes;
    if (options->words[2] != NULL) {
        if (!recorded_exchange_part(recorded, options->words[2], &bytes))
            return icap_complain(EXIT_FAILURE,
                                 "there is no such part; the parts are asked, request_head, "
                                 "response_head, virgin, answered, result_head, result");
        fwrite(bytes.base, 1, bytes.length, stdout);
    } else if (options->json) {
        print_json(recorded, number);
    } else {
        print_all(recorded, number);
    }
    return EXIT_SUCCESS;
}

static int find_one(struct icap_choices *options, struct record_file *file) {
    struct recorded_exchange recorded;
    uint64_t wanted, number = 0;
    char *content;
    if (!slice_to_uint64(slice_from(options->words[1]), &wanted))
        return icap_complain(EXIT_FAILURE,
                             "the argument after the file must be the number of an exchange");
    while (record_file_next(file, &recorded, &content)) {
        int status = ++number == wanted ? show_one(options, &recorded, number) : -1;
        free(content);
        if (status >= 0)
            return status;
    }
    return icap_complain(EXIT_FAILURE, "there is no exchange with this number");
}

/* JSON output: one object on each line. */
static void icap_show_list(struct icap_choices *options, struct record_file *file) {
    struct recorded_exchange recorded;
    uint64_t number = 0;
    char *content;
    while (record_file_next(file, &recorded, &content)) {
        number++;
        if (record_filter_fits(&options->filter, &recorded) &&
            record_filter_fits_verdict(&options->filter, &recorded) &&
            record_filter_takes(&options->filter)) {
            if (options->json)
                print_json(&recorded, number);
            else
                print_line(&recorded, number, "%H:%M:%S");
        }
        free(content);
    }
}

static int tell_end(const struct icap_choices *options, const struct record_file_end *end) {
    if (!options->json)
        printf("%llu %s, %llu dropped, %llu not finished at the end%s%s\n",
               (unsigned long long)end->read, plural((int64_t)end->read, "exchange", "exchanges"),
               (unsigned long long)end->dropped, (unsigned long long)end->unfinished,
               end->reason[0] != '\0' ? ": " : "", end->reason);
    return end->complaint == NULL ? EXIT_SUCCESS : icap_complain(EXIT_FAILURE, end->complaint);
}

int icap_show(struct icap_choices *options) {
    char error[RECORD_FILE_ERROR];
    struct record_file *file = record_file_open(options->words[0], error);
    if (file == NULL)
        return icap_complain(EXIT_FAILURE, error);
    int status;
    if (options->words[1] != NULL)
        status = find_one(options, file);
    else {
        icap_show_list(options, file);
        status = tell_end(options, record_file_end(file));
    }
    record_file_close(&file);
    return status;
}
