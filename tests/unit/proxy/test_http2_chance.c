/* Sequences of frames by chance, most of which are good: nothing is left over, and nobody waits for ever. */
#include "http2_lab.h"

#include <stdlib.h>
#include <string.h>

/* So many sequences: RETORT_ROUNDS in the environment. */
static unsigned rounds(void) {
    const char *wanted = getenv("RETORT_ROUNDS");
    return wanted != NULL ? (unsigned)atoi(wanted) : 40;
}

static unsigned chance;

static unsigned any(unsigned below) {
    chance = chance * 1103515245u + 12345u;
    return (chance >> 8) % below;
}

static struct body *open_body;

static void answer_by_chance(struct asked *asked) {
    static const struct slice trailers = {"A: b\r\n", 6};
    size_t room;
    switch (any(7)) {
    case 0: return;
    case 1:
        if (lab_tunnel.duplex == NULL) {
            lab_answer_tunnel(asked);
            return;
        }
    /* fallthrough */
    case 2:
        lab_body_size = any(300000);
        lab_answer_bytes(asked);
        return;
    case 3:
        asked->reply.trailers = &trailers;
        asked_reply_target(asked);
        return;
    case 4: exchange_abort(asked->exchange); return;
    case 5:
        asked->reply.status = 200;
        asked->reply.stored = SLICE("HTTP/1.1 200 OK\r\n");
        asked->reply.length = -1;
        asked->reply.body = body_new(NULL, BODY_SHARED, -1);
        if (open_body == NULL) {
            char *at = body_room(asked->reply.body, &room);
            memset(at, 'y', room);
            body_grow(asked->reply.body, room);
            open_body = body_reference(asked->reply.body);
        } else {
            body_finish(asked->reply.body, any(2) ? BODY_COMPLETE : BODY_FAILED);
        }
        asked_reply_so(asked);
        return;
    default: asked_reply_target(asked);
    }
}

/* The streams whose direction from the client has not ended. */
static uint32_t alive[32];
static unsigned alive_count;

static void open_by_chance(uint32_t id) {
    bool ended = any(2) || alive_count == 32;
    lab_put_request(id,
                    any(3)   ? "POST"
                    : any(4) ? "GET"
                             : "CONNECT",
                    any(20) ? "/a" : "a", ended ? HTTP2_END_STREAM : 0);
    if (!ended)
        alive[alive_count++] = id;
}

static void put_by_chance(uint32_t *next) {
    static const char bytes[5000];
    unsigned at = alive_count > 0 ? any(alive_count) : 0;
    uint32_t id = alive_count > 0 ? alive[at] : 0;
    unsigned what = any(100);
    if (what < 30 || id == 0) {
        open_by_chance(*next);
        *next += 2;
    } else if (what < 70) {
        bool ended = any(4) == 0;
        lab_put_frame(HTTP2_DATA, ended ? HTTP2_END_STREAM : 0, id, slice_make(bytes, any(5000)));
        if (ended)
            alive[at] = alive[--alive_count];
    } else if (what < 75) {
        lab_put_reset(id);
        alive[at] = alive[--alive_count];
    } else if (what < 85) {
        lab_put_update(any(2) ? 0 : id, 1 + any(100000));
    } else if (what < 92) {
        lab_put_settings(HTTP2_SETTING_INITIAL_WINDOW_SIZE, any(3) * any(70000));
    } else if (what < 95) {
        lab_put_frame(HTTP2_PING, 0, 0, SLICE("12345678"));
    } else if (what < 99) {
        lab_put_frame(HTTP2_PRIORITY_UPDATE, 0, 0, SLICE("\0\0\0\1u=1, i"));
    } else if (any(4) == 0) {
        lab_put_frame((enum http2_frame_type)any(20), any(256), any(*next),
                      slice_make(bytes, any(20)));
    }
}

static void end_open_body(struct client_lab *lab) {
    if (open_body == NULL)
        return;
    body_finish(open_body, any(2) ? BODY_COMPLETE : BODY_FAILED);
    body_release(&open_body);
    client_lab_run(lab);
}

static void close_tunnel(void) {
    if (lab_tunnel.duplex == NULL)
        return;
    task_cancel(&lab_tunnel.task);
    duplex_close(&lab_tunnel.duplex);
    lab_tunnel.duplex = NULL;
}

START_TEST(frames_by_chance_leave_nothing) {
    unsigned last = rounds();
    unsigned steps = 0;
    for (unsigned round = 0; round < last; round++) {
        chance = round * 7919u + 1;
        struct client_lab *lab = lab_open("client { http2_streams = 20  http2_window = 16KB "
                                          "header_timeout = 1s  send_timeout = 5s }\n");
        uint32_t next = 1;
        alive_count = 0;
        lab->answer = answer_by_chance;
        for (unsigned step = 0; step < 60 && lab->clients.connection_count > 0; step++) {
            lab->wait_for_body = any(2);
            lab->deaf = any(4) == 0;
            for (unsigned i = any(6); i > 0; i--)
                put_by_chance(&next);
            lab_send_all(lab);
            if (any(10) == 0)
                end_open_body(lab);
            if (any(10) == 0)
                close_tunnel();
            if (any(30) == 0)
                clients_drain(&lab->clients);
            if (any(10) == 0)
                lab_pass(lab, any(3000));
            lab_forget_frames(lab);
            steps++;
        }
        if (any(2))
            clients_abort(&lab->clients);
        client_lab_hang_up(lab);
        end_open_body(lab);
        close_tunnel();
        client_lab_run(lab);
        client_lab_close(lab);
    }
    ck_assert_uint_gt(steps, 10 * last); /* most connections have lived on */
}
END_TEST

static void answer_at_once(struct asked *asked) {
    static const struct slice trailers = {"A: b\r\n", 6};
    lab_body_size = any(4) * any(60000);
    if (any(3) == 0)
        asked->reply.trailers = &trailers;
    lab_answer_bytes(asked);
}

/* Whatever the windows were and whoever did not read for a while: each reply arrives as a whole. */
START_TEST(replies_arrive_whatever_the_windows_were) {
    unsigned last = rounds();
    for (unsigned round = 0; round < last; round++) {
        chance = round * 104729u + 1;
        struct client_lab *lab = lab_open("client { http2_budget = 100000 }\n");
        unsigned asked = 0, ends = 0;
        lab->answer = answer_at_once;
        lab->wait_for_body = false;
        lab_forget_frames(lab);
        for (unsigned step = 0; step < 20; step++) {
            lab->deaf = any(4) == 0;
            for (unsigned i = any(5); i > 0; i--, asked++)
                lab_put_get(2 * asked + 1);
            if (any(4) == 0)
                lab_put_settings(HTTP2_SETTING_INITIAL_WINDOW_SIZE, any(3) * any(70000));
            if (any(3) == 0)
                lab_put_update(0, 1 + any(30000));
            if (asked > 0 && any(2))
                lab_put_update(1 + 2 * any(asked), 1 + any(30000));
            if (any(5) == 0)
                lab_put_frame(HTTP2_PRIORITY_UPDATE, 0, 0, SLICE("\0\0\0\1u=1"));
            lab_send_all(lab);
        }
        lab->deaf = false;
        lab_put_settings(HTTP2_SETTING_INITIAL_WINDOW_SIZE, 1 << 29);
        lab_put_update(0, 1 << 29);
        lab_send_all(lab);
        ck_assert_uint_eq(lab->open, 0);
        while (lab_next_frame(lab))
            ends += (lab_frame.type == HTTP2_DATA || lab_frame.type == HTTP2_HEADERS) &&
                    lab_frame.flags & HTTP2_END_STREAM;
        ck_assert_uint_eq(ends, asked);
        client_lab_close(lab);
    }
}
END_TEST

Suite *http2_chance_suite(void) {
    Suite *suite = suite_create("http2_chance");
    TCase *tcase = tcase_create("chance");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, frames_by_chance_leave_nothing);
    tcase_add_test(tcase, replies_arrive_whatever_the_windows_were);
    suite_add_tcase(suite, tcase);
    return suite;
}
