/* Transactions without services: what is asked of the origin, what is refused, and what a client
 * gets. */
#include "transaction_lab.h"

#include <string.h>

#define REPLY "HTTP/1.1 200 OK\r\nContent-Length: 10\r\nCache-Control: max-age=60\r\n"
#define BODY  "\r\n0123456789"

/* The value of a field in the text of a head; "-": it has none. */
static const char *value_of(const char *text, const char *name) {
    static char value[1000];
    char line[100];
    snprintf(line, sizeof line, "\r\n%s: ", name);
    const char *at = strstr(text, line), *end = strstr(text, "\r\n\r\n");
    if (at == NULL || at > end)
        return "-";
    at += strlen(line);
    snprintf(value, sizeof value, "%.*s", (int)strcspn(at, "\r"), at);
    return value;
}

static unsigned status_of(const char *text) {
    return strncmp(text, "HTTP/1.1 ", 9) == 0 ? (unsigned)atoi(text + 9) : 0;
}

static struct transaction_lab *open_lab(const char *settings) {
    struct transaction_lab *lab = transaction_lab_open(settings);
    lab->reply = REPLY BODY;
    return lab;
}

/* What a request says, and which status it is refused with; 200: it is not. */
static const struct {
    const char *method, *fields;
    unsigned status;
} admitted[] = {
    {"GET", "", 200},
    {"GET", "Via: 1.1 other\r\n", 200},
    {"GET", "Via: 1.1 retort\r\n", 508},
    {"GET", "Via: 1.1 RETORT (here)\r\n", 508},
    {"GET", "Via: 1.0 a, 1.1 b\r\nVia: 1.1 c,1.1 retort , 1.1 d\r\n", 508},
    {"GET", "Via: 1.1 retorts\r\n", 200},
    {"GET", "Via: retort\r\n", 200},
    {"GET", "Via: 1.1 a (1.1 retort)\r\n", 200},
    {"GET", "Max-Forwards: 0\r\n", 200}, /* counts for OPTIONS and TRACE alone */
    {"OPTIONS", "", 200},
    {"OPTIONS", "Max-Forwards: 0\r\n", 501},
    {"OPTIONS", "Max-Forwards: x\r\n", 501},
    {"OPTIONS", "Max-Forwards: 3\r\n", 200},
    {"TRACE", "", 405},
    {"PURGE", "", 405},
    {"Ban", "", 405},
    {"GET", "Expect: tea\r\n", 417},
};

START_TEST(requests_are_admitted_or_refused) {
    for (size_t i = 0; i < COUNT_OF(admitted); i++) {
        struct transaction_lab *lab = open_lab("");
        transaction_lab_ask(lab, admitted[i].method, "/a", admitted[i].fields);
        const char *reply = client_lab_received(lab->client);
        ck_assert_msg(status_of(reply) == admitted[i].status, "%s %s: %s", admitted[i].method,
                      admitted[i].fields, reply);
        ck_assert_uint_eq(lab->requests, admitted[i].status == 200);
        transaction_lab_close(lab);
    }
}
END_TEST

/* RFC 9110 §7.6: what is for us stays here, and we show that we were here. */
static const struct {
    const char *method, *fields, *name, *value;
} forwarded[] = {
    {"GET", "", "Via", "1.1 retort"},
    {"GET", "Via: 1.0 a\r\nVia: 1.1 b\r\n", "Via", "1.0 a, 1.1 b, 1.1 retort"},
    {"GET", "Connection: x-a, close\r\nX-A: 1\r\n", "X-A", "-"},
    {"GET", "X-A: 1\r\n", "X-A", "1"},
    {"GET", "Proxy-Authorization: Basic x\r\n", "Proxy-Authorization", "-"},
    {"GET", "Authorization: Basic x\r\n", "Authorization", "Basic x"},
    {"GET", "Keep-Alive: 5\r\n", "Keep-Alive", "-"},
    {"GET", "Upgrade: h2c\r\nConnection: upgrade\r\n", "Upgrade", "-"},
    {"OPTIONS", "Max-Forwards: 3\r\n", "Max-Forwards", "2"},
    {"GET", "Max-Forwards: 3\r\n", "Max-Forwards", "3"},
};

START_TEST(requests_are_forwarded_without_what_is_ours) {
    struct transaction_lab *lab = open_lab("");
    for (size_t i = 0; i < COUNT_OF(forwarded); i++) {
        char path[32];
        snprintf(path, sizeof path, "/%zu", i);
        client_lab_connect(lab->client);
        transaction_lab_ask(lab, forwarded[i].method, path, forwarded[i].fields);
        const char *asked = transaction_lab_asked(lab);
        const char *value = value_of(asked, forwarded[i].name);
        ck_assert_msg(strcmp(value, forwarded[i].value) == 0, "%s%s: %s", forwarded[i].fields,
                      forwarded[i].name, value);
        ck_assert_str_eq(value_of(asked, "Host"), lab->origin);
        ck_assert_int_eq(strncmp(strchr(asked, ' ') + 1, path, strlen(path)), 0);
    }
    transaction_lab_close(lab);
}
END_TEST

/* RFC 9211: a request, perhaps with another one before it, and what Cache-Status says of it. */
static const struct {
    const char *reply, *first, *second, *status;
} statuses[] = {
    {REPLY BODY, NULL, "", "retort; fwd=miss; stored"},
    {REPLY BODY, "", "", "retort; hit; ttl=60"},
    {REPLY "Age: 10\r\n" BODY, "", "", "retort; hit; ttl=50"},
    {REPLY BODY, "", "Cache-Control: no-cache\r\n", "retort; fwd=request; stored"},
    {REPLY "Vary: A\r\n" BODY, "A: 1\r\n", "A: 2\r\n", "retort; fwd=miss; stored"},
    {REPLY "Vary: A\r\n" BODY, "A: 1\r\n", "A: 1\r\n", "retort; hit; ttl=60"},
    {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nCache-Control: no-store\r\n\r\nx", NULL, "",
     "retort; fwd=miss"},
    {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nCache-Control: max-age=0\r\nETag: \"v\"\r\n\r\nx", "",
     "", "retort; fwd=stale; stored"},
};

START_TEST(cache_status_says_how_the_cache_took_part) {
    for (size_t i = 0; i < COUNT_OF(statuses); i++) {
        struct transaction_lab *lab = open_lab("cache { status_field = true }\n");
        lab->reply = statuses[i].reply;
        if (statuses[i].first != NULL) {
            transaction_lab_ask(lab, "GET", "/a", statuses[i].first);
            client_lab_received(lab->client);
        }
        transaction_lab_ask(lab, "GET", "/a", statuses[i].second);
        const char *value = value_of(client_lab_received(lab->client), "Cache-Status");
        ck_assert_msg(strcmp(value, statuses[i].status) == 0, "%zu: %s", i, value);
        transaction_lab_close(lab);
    }
}
END_TEST

/* Of a stored response of ten bytes with an ETag. */
static const struct {
    const char *method, *fields;
    unsigned status;
    const char *range, *length, *body;
} parts[] = {
    {"GET", "", 200, "-", "10", "0123456789"},
    {"HEAD", "", 200, "-", "10", ""},
    {"GET", "Range: bytes=2-4\r\n", 206, "bytes 2-4/10", "3", "234"},
    {"GET", "Range: bytes=8-99\r\n", 206, "bytes 8-9/10", "2", "89"},
    {"GET", "Range: bytes=-3\r\n", 206, "bytes 7-9/10", "3", "789"},
    {"GET", "Range: bytes=10-\r\n", 416, "bytes */10", NULL, NULL},
    {"GET", "Range: lines=1-2\r\n", 200, "-", "10", "0123456789"},
    {"GET", "Range: bytes=2-4\r\nIf-Range: \"v\"\r\n", 206, "bytes 2-4/10", "3", "234"},
    {"GET", "Range: bytes=2-4\r\nIf-Range: \"w\"\r\n", 200, "-", "10", "0123456789"},
    {"GET", "If-None-Match: \"v\"\r\n", 304, "-", "-", ""},
    {"GET", "If-None-Match: \"w\"\r\n", 200, "-", "10", "0123456789"},
    {"HEAD", "Range: bytes=2-4\r\n", 200, "-", "10", ""},
};

START_TEST(parts_of_what_is_stored_are_chosen) {
    struct transaction_lab *lab = open_lab("");
    lab->reply = REPLY "ETag: \"v\"\r\n" BODY;
    transaction_lab_ask(lab, "GET", "/a", "");
    client_lab_received(lab->client);
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        transaction_lab_ask(lab, parts[i].method, "/a", parts[i].fields);
        const char *reply = client_lab_received(lab->client);
        ck_assert_msg(status_of(reply) == parts[i].status, "%s: %s", parts[i].fields, reply);
        ck_assert_str_eq(value_of(reply, "Content-Range"), parts[i].range);
        if (parts[i].length != NULL)
            ck_assert_str_eq(value_of(reply, "Content-Length"), parts[i].length);
        if (parts[i].body != NULL)
            ck_assert_str_eq(strstr(reply, "\r\n\r\n") + 4, parts[i].body);
    }
    ck_assert_uint_eq(lab->requests, 1);
    transaction_lab_close(lab);
}
END_TEST

/* Parts that are close together are one, which is shorter. */
START_TEST(several_parts_are_chosen) {
    static char text[2000];
    struct transaction_lab *lab = open_lab("");
    snprintf(text, sizeof text,
             "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nCache-Control: max-age=60\r\n\r\n%01000d",
             7);
    lab->reply = text;
    transaction_lab_ask(lab, "GET", "/a", "");
    client_lab_received(lab->client);
    transaction_lab_ask(lab, "GET", "/a", "Range: bytes=0-1,997-999\r\n");
    const char *reply = client_lab_received(lab->client);
    ck_assert_msg(strstr(reply, "Content-Type: multipart/byteranges; boundary=") != NULL, "%s",
                  reply);
    ck_assert_ptr_nonnull(strstr(reply, "Content-Range: bytes 0-1/1000\r\n\r\n00\r\n"));
    ck_assert_ptr_nonnull(strstr(reply, "Content-Range: bytes 997-999/1000\r\n\r\n007\r\n"));
    transaction_lab_ask(lab, "GET", "/a", "Range: bytes=0-1,4-5\r\n");
    reply = client_lab_received(lab->client);
    ck_assert_str_eq(value_of(reply, "Content-Range"), "bytes 0-5/1000");
    ck_assert_uint_eq(lab->requests, 1);
    transaction_lab_close(lab);
}
END_TEST

/* What the origin says of its own URLs, with its address behind the "@", and what a client of the
 * map is told. */
static const struct {
    const char *location, *told;
} locations[] = {
    {"http://@/app/x", "/shop/x"},
    {"/app/x?y=1", "/shop/x?y=1"},
    {"/app/", "/shop/"},
    {"/other", "/other"},
    {"http://elsewhere.example/app/x", "http://elsewhere.example/app/x"},
};

START_TEST(locations_lead_through_the_map) {
    for (size_t i = 0; i < COUNT_OF(locations); i++) {
        struct transaction_lab *lab = open_lab("map \"/shop/\" { origin = \"http://@/app/\" }\n");
        const char *location = locations[i].location, *at = strchr(location, '@');
        char text[400];
        snprintf(text, sizeof text,
                 "HTTP/1.1 302 Found\r\nLocation: %.*s%s%s\r\nContent-Length: 0\r\n\r\n",
                 at != NULL ? (int)(at - location) : 0, location, at != NULL ? lab->origin : "",
                 at != NULL ? at + 1 : location);
        lab->reply = text;
        lab->client->reverse = true;
        client_lab_connect(lab->client);
        client_lab_send(lab->client, "GET /shop/a HTTP/1.1\r\nHost: h\r\n\r\n");
        ck_assert_int_eq(strncmp(transaction_lab_asked(lab), "GET /app/a HTTP/1.1\r\n", 21), 0);
        const char *told = value_of(client_lab_received(lab->client), "Location");
        ck_assert_msg(strcmp(told, locations[i].told) == 0, "%s: %s", location, told);
        transaction_lab_close(lab);
    }
}
END_TEST

START_TEST(a_path_outside_of_all_maps_is_not_found) {
    struct transaction_lab *lab = open_lab("map \"/shop/\" { origin = \"http://@/app/\" }\n");
    lab->client->reverse = true;
    client_lab_connect(lab->client);
    client_lab_send(lab->client, "GET /else HTTP/1.1\r\nHost: h\r\n\r\n");
    ck_assert_uint_eq(status_of(client_lab_received(lab->client)), 404);
    ck_assert_uint_eq(lab->requests, 0);
    transaction_lab_close(lab);
}
END_TEST

/* The client leaves, or the origin does, when so many bytes of the response have come. */
START_TEST(either_side_may_leave_at_any_byte) {
    static const char *const replies[] = {
        REPLY BODY,
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    };
    for (size_t i = 0; i < COUNT_OF(replies); i++) {
        struct transaction_lab *lab = open_lab("");
        lab->reply = NULL;
        for (size_t cut = 0; cut < 2 * strlen(replies[i]); cut++) {
            bool client_leaves = cut % 2 == 0;
            char path[32], begun[200];
            snprintf(path, sizeof path, "/%zu", cut);
            snprintf(begun, sizeof begun, "%.*s", (int)cut / 2, replies[i]);
            client_lab_connect(lab->client);
            transaction_lab_ask(lab, "GET", path, "");
            ck_assert_uint_eq(lab->requests, 1);
            lab->requests = 0;
            transaction_lab_say(lab, begun);
            if (client_leaves)
                client_lab_hang_up(lab->client);
            transaction_lab_break(lab);
            const char *reply = client_lab_received(lab->client);
            ck_assert_msg(list_empty(&lab->host.active), "cut at %zu of %s", cut / 2, replies[i]);
            ck_assert_msg(client_leaves || status_of(reply) == 502 || lab->client->ended,
                          "cut at %zu: %s", cut / 2, reply);
            ck_assert_ptr_null(strstr(reply, "\r\n0\r\n\r\n")); /* never as if it were whole */
        }
        transaction_lab_close(lab);
    }
}
END_TEST

/* What the settings say, and the steps of which each of its transactions is made, in their order. */
START_TEST(settings_list_the_steps_that_they_need) {
    static const struct {
        const char *settings, *steps;
    } rows[] = {
        {"", "RECEIVE ADMIT LOOKUP FETCH STORE TUNNEL DELIVER LOG "},
        {"listen \"127.0.0.1:3129\" { mode = transparent }\n",
         "RECEIVE ADMIT DESTINATION LOOKUP FETCH STORE TUNNEL DELIVER LOG "},
        {"limit all { concurrent = 5 }\n",
         "RECEIVE ADMIT LIMIT LOOKUP FETCH STORE TUNNEL DELIVER LOG "},
        {"access all { action = allow }\n",
         "RECEIVE ADMIT ACCESS LOOKUP FETCH STORE TUNNEL DELIVER LOG "},
        {"icap_service a { uri = \"icap://127.0.0.1/a\" point = reqmod_precache }\n"
         "adapt all { services = { a } }\n"
         "access all { action = allow }\n",
         "RECEIVE ADMIT ACCESS REQMOD RECHECK LOOKUP FETCH STORE TUNNEL DELIVER LOG "},
        {"icap_service a { uri = \"icap://127.0.0.1/a\" point = respmod_precache }\n"
         "icap_service b { uri = \"icap://127.0.0.1/b\" point = respmod_postcache }\n"
         "adapt all { services = { a, b } }\n",
         "RECEIVE ADMIT LOOKUP FETCH RESPMOD STORE TUNNEL VARIANT RESPMOD_POSTCACHE "
         "DELIVER LOG "},
    };
    for (unsigned i = 0; i < COUNT_OF(rows); i++) {
        char text[400], found[300] = "";
        snprintf(text, sizeof text, "listen \"127.0.0.1:3128\" { mode = forward }\n%s",
                 rows[i].settings);
        struct settings *settings = settings_from(text);
        steps_compile(settings);
        for (unsigned j = 0; j < settings->steps->count; j++) {
            const struct step_row *row = settings->steps->rows[j];
            ck_assert_uint_eq(settings->steps->at[row->step], j);
            ck_assert_str_eq(step_name(row->step), row->name);
            strcat(strcat(found, row->name), " ");
        }
        ck_assert_str_eq(found, rows[i].steps);
        settings_release(&settings);
    }
}
END_TEST

Suite *transaction_suite(void) {
    const TTest *const tests[] = {
        requests_are_admitted_or_refused,
        requests_are_forwarded_without_what_is_ours,
        cache_status_says_how_the_cache_took_part,
        parts_of_what_is_stored_are_chosen,
        several_parts_are_chosen,
        locations_lead_through_the_map,
        a_path_outside_of_all_maps_is_not_found,
        either_side_may_leave_at_any_byte,
    };
    const TTest *const with_all[] = {settings_list_the_steps_that_they_need};
    Suite *suite = suite_of("transaction", tests, COUNT_OF(tests));
    suite_add_with(suite, "all", with_all, COUNT_OF(with_all));
    return suite;
}
