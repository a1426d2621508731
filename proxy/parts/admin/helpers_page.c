#include "admin/helpers_page.h"

#include "admin/helperd_patience.h"
#include "admin/settings.h"
#include "base/log.h"

#include <string.h>

typedef json_t *helpers_page_call(const char *path, const json_t *command,
                                  char error[HELPERD_CALL_ERROR]);

/* The answer to the command, which is released. NULL: the page says why. */
static json_t *helpers_page_ask(struct page *page, const struct admin_calls *calls,
                                helpers_page_call *call, json_t *command, unsigned refused) {
    char error[HELPERD_CALL_ERROR] = "";
    struct settings *settings = calls->settings(calls->context);
    json_t *answer = call(admin_settings_of(settings)->helpers, command, error);
    settings_release(&settings);
    json_decref(command);
    if (answer == NULL)
        page_error(page, refused, error);
    else
        json_object_del(answer, "ok");
    return answer;
}

void helpers_page_show(struct page *page, const struct admin_calls *calls) {
    json_t *answer = helpers_page_ask(page, calls, helperd_patience_look,
                                      json_pack("{s:s}", "call", "helpers"), 503);
    if (answer != NULL)
        page_json(page, 200, answer);
}

/* By who has the turn. */
static void change_pool_in_turn(struct page *page, const struct admin_calls *calls,
                                const struct page_request *request, const char *call,
                                const char *what) {
    uint64_t number = 0;
    const char *pool = page_argument(request, "pool"), *text = page_argument(request, what);
    json_t *name = json_string(pool); /* NULL: it is not UTF-8, as no name of a pool is */
    if (name == NULL || !slice_to_uint64(slice_from(text), &number)) {
        json_decref(name);
        page_error(page, 404, "there is no pool of that name; /v1/helpers lists them");
        return;
    }
    json_t *answer = helpers_page_ask(
        page, calls, helperd_patience_change,
        json_pack("{s:s, s:O, s:I}", "call", call, "pool", name, what, (json_int_t)number), 409);
    if (answer != NULL) {
        log_info("helpers: %s %s to %s through the admin plane", call, pool, text);
        page_json(page, 200, json_pack("{s:O, s:I}", "pool", name, what, (json_int_t)number));
        json_decref(answer);
    }
    json_decref(name);
}

static void change_pool(struct page *page, const struct admin_calls *calls,
                        const struct page_request *request, const char *call, const char *what) {
    char reason[TURN_REASON];
    if (turn_take(&helperd_patience_turn, HELPERD_PATIENCE_WHAT, reason)) {
        change_pool_in_turn(page, calls, request, call, what);
        turn_end(&helperd_patience_turn);
    } else {
        page_busy(page, reason);
    }
}

void helpers_page_renice(struct page *page, const struct admin_calls *calls,
                         const struct page_request *request) {
    change_pool(page, calls, request, "renice", "nice");
}

void helpers_page_resize(struct page *page, const struct admin_calls *calls,
                         const struct page_request *request) {
    change_pool(page, calls, request, "resize", "processes");
}
