#include "http2_lab.h"

#include "http2/hpack_encode.h"

#include <string.h>
#include <unistd.h>

struct http2_frame lab_frame;
struct slice lab_payload;
size_t lab_body_size;
struct lab_tunnel lab_tunnel;

/* What is sent next. */
static char wire[1 << 20], *wire_end;
/* Where the next frame of what has come begins. */
static size_t taken;

void lab_put_frame(enum http2_frame_type type, unsigned flags, uint32_t stream,
                   struct slice bytes) {
    wire_end = http2_frame_write(wire_end, bytes.length, type, flags, stream);
    wire_end = slice_put(wire_end, bytes);
}

void lab_put_settings(uint16_t id, uint32_t value) {
    wire_end = http2_frame_write(wire_end, HTTP2_SETTING_SIZE, HTTP2_SETTINGS, 0, 0);
    wire_end = http2_frame_put_setting(wire_end, id, value);
}

void lab_put_request(uint32_t stream, const char *method, const char *path, unsigned flags) {
    char block[1024], *at = hpack_put_method(block, slice_from(method));
    if (strcmp(method, "CONNECT") != 0) {
        at = hpack_put_scheme(at, SLICE("http"));
        at = hpack_put_path(at, slice_from(path));
    }
    at = hpack_put_authority(at, SLICE("h:80"));
    lab_put_frame(HTTP2_HEADERS, HTTP2_END_HEADERS | flags, stream,
                  slice_make(block, (size_t)(at - block)));
}

void lab_put_get(uint32_t stream) {
    lab_put_request(stream, "GET", "/a", HTTP2_END_STREAM);
}

void lab_put_reset(uint32_t stream) {
    lab_put_frame(HTTP2_RST_STREAM, 0, stream, slice_make("\0\0\0\10", 4));
}

void lab_put_update(uint32_t stream, uint32_t bytes) {
    wire_end = http2_frame_put_window_update(wire_end, stream, bytes);
}

void lab_send_only(struct client_lab *lab) {
    struct slice bytes = slice_make(wire, (size_t)(wire_end - wire));
    wire_end = wire;
    client_lab_put(lab, bytes);
}

void lab_send_all(struct client_lab *lab) {
    lab_send_only(lab);
    client_lab_run(lab);
}

struct client_lab *lab_open_with(const char *settings, uint16_t id, uint32_t value) {
    struct client_lab *lab = client_lab_open(settings);
    taken = 0;
    wire_end = slice_put(wire, HTTP2_PREFACE);
    lab_put_settings(id, value);
    lab_put_frame(HTTP2_SETTINGS, HTTP2_ACK, 0, SLICE(""));
    lab_send_all(lab);
    return lab;
}

struct client_lab *lab_open(const char *settings) {
    return lab_open_with(settings, HTTP2_SETTING_ENABLE_PUSH, 0);
}

bool lab_next_frame(struct client_lab *lab) {
    if (lab->got - taken < HTTP2_FRAME_HEAD)
        return false;
    http2_frame_read(&lab_frame, lab->received + taken);
    if (lab->got - taken < HTTP2_FRAME_HEAD + lab_frame.length)
        return false;
    lab_payload = slice_make(lab->received + taken + HTTP2_FRAME_HEAD, lab_frame.length);
    taken += HTTP2_FRAME_HEAD + lab_frame.length;
    return true;
}

bool lab_find_frame(struct client_lab *lab, enum http2_frame_type type, uint32_t stream) {
    while (lab_next_frame(lab))
        if (lab_frame.type == type && lab_frame.stream == stream)
            return true;
    return false;
}

void lab_forget_frames(struct client_lab *lab) {
    lab->got = taken = 0;
}

void lab_pass(struct client_lab *lab, uint64_t milliseconds) {
    lab->loop.now += milliseconds;
    lab->loop.now_nanoseconds += milliseconds * 1000000;
    timers_run(&lab->loop.timers, lab->loop.now);
    client_lab_run(lab);
}

void lab_wait(struct client_lab *lab, unsigned milliseconds) {
    uint64_t end = lab->loop.now + milliseconds;
    while (lab->loop.now < end) {
        usleep(5000);
        client_lab_run(lab);
    }
}

void lab_answer_bytes(struct asked *asked) {
    char *text = xmalloc(lab_body_size + 1);
    memset(text, 'x', lab_body_size);
    asked->reply.status = 200;
    asked->reply.stored = SLICE("HTTP/1.1 200 OK\r\n");
    asked->reply.body = body_of_bytes(slice_make(text, lab_body_size));
    asked->reply.length = -1;
    free(text);
    asked_reply_so(asked);
}

void lab_answer_nothing(struct asked *asked) {
    (void)asked;
}

static void tunnel_on_wake(struct task *task) {
    (void)task;
    size_t put;
    lab_tunnel.wakes++;
    while (lab_tunnel.put < 4 && duplex_write(lab_tunnel.duplex, SLICE("t"), &put) == IO_DONE)
        lab_tunnel.put += put;
}

void lab_answer_tunnel(struct asked *asked) {
    static struct http_head head;
    if (asked->exchange->request.method_id != HTTP_METHOD_CONNECT) {
        lab_answer_bytes(asked);
        return;
    }
    http_head_init(&head);
    head.status = 200;
    lab_tunnel.wakes = 0;
    lab_tunnel.put = 0;
    task_init(&lab_tunnel.task, tunnel_on_wake);
    lab_tunnel.duplex = exchange_open_tunnel(asked->exchange, &head, SLICE(""));
    lab_tunnel.duplex->waker = &lab_tunnel.task;
    loop_defer(&asked->lab->loop, &lab_tunnel.task);
}
