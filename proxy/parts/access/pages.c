#include "access/rules.h"
#include "admin/page.h"
#include "admin/part_pages.h"
#include "base/arena.h"
#include "http/head_parser.h"
#include "match/regex.h"
#include "match/rules.h"

#include <stdio.h>
#include <time.h>

/* Pages about the access sections: what they have decided, and what they would decide.
 *
 *     GET /access            {"access": [{"class", "action", "log_only", "decided", "logged"}]}
 *     GET /access/test?url=&client=&method=&user=&group=&authenticator=&listener=&destination=&sni=
 *                      &certificate=&header=
 *                            {"outcome", "status", "section", "class", "why", "sections": [...]}
 *
 * group and destination are lists with commas; header has fields with CR LF between them. */

static uint64_t sum_counts(const struct access_settings *section, size_t member) {
    uint64_t sum = 0;
    for (size_t i = 0; i < ACCESS_COUNTERS; i++) {
        const struct access_count *count = &section->counts[i * section->stride];
        const _Atomic uint64_t *value = (const _Atomic uint64_t *)((const char *)count + member);
        sum += atomic_load_explicit(value, memory_order_relaxed);
    }
    return sum;
}

static json_t *section_json(const struct settings *settings, size_t at) {
    const struct access_settings *section = &accesses_of(settings)->list[at];
    return json_pack(
        "{s:I, s:s, s:s, s:b, s:I, s:I}", "number", (json_int_t)at + 1, "class",
        url_class_name(section->url_class), "action", access_action_name(section->action),
        "log_only", (int)section->log_only, "decided",
        (json_int_t)sum_counts(section, offsetof(struct access_count, decided)), "logged",
        (json_int_t)sum_counts(section, offsetof(struct access_count, logged)));
}

static void show_sections(struct page *page, const struct admin_calls *calls) {
    struct settings *settings = calls->settings(calls->context);
    const struct accesses_settings *mine = accesses_of(settings);
    json_t *list = json_array();
    for (size_t i = 0; i < mine->count; i++)
        json_array_append_new(list, section_json(settings, i));
    page_json(page, 200,
              json_pack("{s:o, s:I}", "access", list, "since", (json_int_t)mine->counted_since));
    settings_release(&settings);
}

/* A request that nobody has sent. */
struct trial {
    struct page *page;
    const struct page_request *request;
    const struct settings *settings;
    const struct listen_settings *listen;
    struct arena *arena;
    struct address client;
    struct url url;
    struct http_head head;
    struct class_user user;
    struct class_subject subject;
    struct slice authenticator;
    json_t *sections;
};

static struct slice trial_argument(const struct trial *trial, const char *name) {
    return slice_from(page_argument(trial->request, name));
}

static bool trial_refuse(const struct trial *trial, const char *reason) {
    page_error(trial->page, 400, reason);
    return false;
}

/* The parts of a list with commas. Returns how many there are. */
static size_t trial_list(const struct trial *trial, const char *name, struct slice **parts) {
    struct slice rest = trial_argument(trial, name);
    size_t count = 0;
    *parts = arena_alloc(trial->arena, (rest.length + 1) * sizeof **parts);
    while (rest.length > 0) {
        const char *comma = memchr(rest.base, ',', rest.length);
        size_t length = comma != NULL ? (size_t)(comma - rest.base) : rest.length;
        (*parts)[count++] = slice_trim(slice_make(rest.base, length));
        length += comma != NULL;
        rest = slice_make(rest.base + length, rest.length - length);
    }
    return count;
}

static bool trial_find_listener(struct trial *trial) {
    struct slice name = trial_argument(trial, "listener");
    for (size_t i = 0; i < trial->settings->listen_count; i++) {
        const struct listen_settings *listen = &trial->settings->listens[i];
        if (name.length == 0 ? listen->mode == LISTEN_FORWARD
                             : slice_equal(slice_from(listen->name), name)) {
            trial->listen = listen;
            return true;
        }
    }
    if (name.length > 0)
        return trial_refuse(trial, "no listen section has this name or this address");
    trial->listen = &trial->settings->listens[0];
    return true;
}

static bool trial_take_url(struct trial *trial) {
    struct slice text = trial_argument(trial, "url");
    struct url *url = &trial->url;
    bool connects = slice_equal(trial->subject.method, SLICE("CONNECT"));
    bool good =
        connects ? url_parse_authority(url, text, 0) && url->port != 0 : url_parse(url, text);
    if (!good)
        return trial_refuse(trial, connects ? "the URL is not HOST:PORT, which CONNECT needs"
                                            : "the URL is not absolute: write http://HOST/PATH");
    size_t room = url_room(url);
    char *bytes = arena_alloc(trial->arena, room);
    size_t length =
        connects ? url_rewrite_authority(url, bytes, room) : url_rewrite(url, bytes, room);
    if (length == 0)
        return trial_refuse(trial, "the URL can't be used");
    trial->subject.url = slice_make(bytes, length);
    trial->subject.host = url->host;
    trial->subject.path = connects ? slice_make("", 0) : url_path(url);
    trial->subject.scheme = connects ? slice_make("", 0) : url->scheme;
    trial->subject.port = url->port;
    return true;
}

static bool trial_take_head(struct trial *trial) {
    struct slice fields = trial_argument(trial, "header");
    struct slice text = arena_concat(trial->arena, SLICE("GET / HTTP/1.1\r\n"), fields,
                                     fields.length > 0 ? SLICE("\r\n") : SLICE(""), SLICE("\r\n"));
    if (http_head_parse_request(&trial->head, text.base, text.length, 0) <= 0)
        return trial_refuse(trial, "a header field is not NAME: VALUE");
    trial->subject.head = &trial->head;
    return true;
}

static bool trial_take_client(struct trial *trial) {
    struct slice text = trial_argument(trial, "client");
    if (!address_parse_ip(&trial->client, text.length > 0 ? text : SLICE("127.0.0.1"), 1))
        return trial_refuse(trial, "the client is not an IP address");
    trial->subject.client = &trial->client;
    return true;
}

/* Nobody says how the user was proved: any section that could prove it takes the user. */
static void trial_take_user(struct trial *trial) {
    struct slice *groups, name = trial_argument(trial, "user");
    trial->subject.user_pending = name.length == 0;
    if (name.length == 0)
        return;
    trial->user.name = name;
    trial->user.group_count = trial_list(trial, "group", &groups);
    trial->user.groups = groups;
    trial->subject.user = &trial->user;
    trial->authenticator = trial_argument(trial, "authenticator");
}

static bool trial_take_destinations(struct trial *trial) {
    struct slice *texts;
    size_t count = trial_list(trial, "destination", &texts);
    struct address *list = arena_alloc(trial->arena, (count + 1) * sizeof *list);
    for (size_t i = 0; i < count; i++)
        if (!address_parse_ip(&list[i], texts[i], trial->subject.port))
            return trial_refuse(trial, "a destination is not an IP address");
    if (count == 0 && address_parse_ip(&list[0], trial->subject.host, trial->subject.port))
        count = 1;
    trial->subject.destinations = list;
    trial->subject.destination_count = count;
    trial->subject.destination_pending = count == 0 && trial->listen->mode != LISTEN_REVERSE;
    return true;
}

static bool trial_begin(struct trial *trial) {
    struct slice method = trial_argument(trial, "method");
    trial->subject.method = method.length > 0 ? method : SLICE("GET");
    trial->subject.sni = trial_argument(trial, "sni");
    trial->subject.certificate = trial_argument(trial, "certificate");
    trial->subject.wall = time(NULL);
    if (!trial_find_listener(trial) || !trial_take_url(trial) || !trial_take_head(trial) ||
        !trial_take_client(trial) || !trial_take_destinations(trial))
        return false;
    trial->subject.listener = slice_from(trial->listen->name);
    trial_take_user(trial);
    return true;
}

static void trial_see(void *arg, size_t at, enum access_finding finding) {
    struct trial *trial = arg;
    json_t *section = section_json(trial->settings, at);
    json_object_set_new(section, "finding", json_string(access_finding_text(finding)));
    json_array_append_new(trial->sections, section);
}

/* What is refused before the access sections are asked; NULL: nothing. */
static const char *trial_obstacle(const struct trial *trial) {
    const struct listen_settings *listen = trial->listen;
    bool taken = listen->allow_count == 0;
    for (size_t i = 0; i < listen->allow_count; i++)
        taken = taken || network_contains(&listen->allow[i], &trial->client);
    if (!taken)
        return "listen.allow does not let this client use the listener";
    if (slice_equal(trial->subject.method, SLICE("CONNECT")) &&
        !settings_connect_port_allowed(trial->settings, trial->subject.port))
        return "connect_ports does not allow CONNECT to this port";
    return NULL;
}

static const char *trial_reason(const struct access_decision *decision) {
    if (decision->unsure)
        return "an expression of the rules needs too much work for this request, which is denied "
               "then";
    if (decision->section == NULL)
        return decision->outcome == ACCESS_ALLOW
                   ? "there are no access sections"
                   : "no access section matches, and then a request is denied";
    switch (decision->outcome) {
    case ACCESS_ASK: return "the client is asked who it is, with 407 or 401";
    case ACCESS_RESOLVE:
        return "the section depends on the address of the host; say which destination";
    case ACCESS_DENY:
        return decision->for_want
                   ? "the section depends on something unknown, which counts against the client"
                   : "the section matches";
    default: return "the section matches";
    }
}

static const char *outcome_name(enum access_outcome outcome) {
    static const char *const names[] = {"allow", "deny", "ask", "redirect", "resolve"};
    return names[outcome];
}

static unsigned trial_status(const struct trial *trial, const struct access_decision *decision) {
    switch (decision->outcome) {
    case ACCESS_ASK: return trial->listen->mode == LISTEN_REVERSE ? 401 : 407;
    case ACCESS_REDIRECT: return decision->section->status;
    case ACCESS_DENY:
        return decision->section != NULL && decision->section->action == ACCESS_ACTION_DENY
                   ? decision->section->status
                   : 403;
    default: return 200;
    }
}

static void trial_answer(struct trial *trial, const struct access_decision *decision,
                         const char *obstacle) {
    const struct access_settings *section = decision->section;
    json_t *answer = json_pack(
        "{s:s, s:i, s:s, s:o}", "outcome",
        obstacle != NULL ? "deny" : outcome_name(decision->outcome), "status",
        obstacle != NULL ? 403 : (int)trial_status(trial, decision), "why",
        obstacle != NULL ? obstacle : trial_reason(decision), "sections", trial->sections);
    if (section != NULL && obstacle == NULL) {
        json_object_set_new(
            answer, "section",
            json_integer((json_int_t)(section - accesses_of(trial->settings)->list) + 1));
        json_object_set_new(answer, "class", json_string(url_class_name(section->url_class)));
        json_object_set_new(answer, "action", json_string(access_action_name(section->action)));
    }
    page_json(trial->page, 200, answer);
}

/* The authenticator of a user that the caller names without one: that of the section at hand. */
static struct slice trial_authenticator(const struct trial *trial) {
    const struct settings *settings = trial->settings;
    const struct accesses_settings *mine = accesses_of(settings);
    for (size_t i = 0;
         trial->authenticator.length == 0 && trial->user.name.length > 0 && i < mine->count; i++)
        if (mine->list[i].authenticator_count > 0)
            return slice_from(settings->authenticators[mine->list[i].authenticators[0]]);
    return trial->authenticator;
}

static void trial_run(struct trial *trial) {
    struct access_decision decision;
    trial->sections = json_array();
    regex_take_gave_up();
    const uint64_t *bits = rules_find(trial->settings->rules, &trial->subject, trial->arena);
    const struct access_question question = {
        .settings = trial->settings,
        .subject = &trial->subject,
        .bits = bits,
        .unsure = regex_take_gave_up(),
        .authenticator = trial_authenticator(trial),
        .may_ask = trial->listen->mode != LISTEN_TRANSPARENT,
        .may_resolve = true,
        .see = trial_see,
        .see_arg = trial,
    };
    access_decide(&question, &decision);
    trial_answer(trial, &decision, trial_obstacle(trial));
}

static void try_request(struct page *page, const struct admin_calls *calls,
                        const struct page_request *request) {
    struct arena arena;
    struct settings *settings = calls->settings(calls->context);
    arena_init(&arena);
    struct trial *trial = arena_zalloc(&arena, sizeof *trial);
    trial->page = page;
    trial->request = request;
    trial->settings = settings;
    trial->arena = &arena;
    if (trial_begin(trial))
        trial_run(trial);
    arena_release(&arena);
    settings_release(&settings);
}

static void access_answer(struct page *page, const struct admin_calls *calls,
                          const struct page_request *request) {
    if (strcmp(request->path, "/access") == 0)
        show_sections(page, calls);
    else
        try_request(page, calls, request);
}

const struct part_pages access_pages = {.answer = access_answer};
