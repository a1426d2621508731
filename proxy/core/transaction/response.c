#include "transaction/response.h"

#include "http/date.h"
#include "transaction/transaction.h"

void response_set(struct response *response, struct http_head *head, struct source **bodyp) {
    response->head = head;
    response->body = *bodyp;
    *bodyp = NULL;
}

void response_set_head(struct response *response, struct http_head *head) {
    response->head = head;
}

void response_set_times(struct response *response, time_t request_time, time_t response_time) {
    response->request_time = request_time;
    response->response_time = response_time;
}

struct source *response_give_body(struct response *response) {
    struct source *body = response->body;
    response->body = NULL;
    return body;
}

void response_close_body(struct response *response) {
    source_close(&response->body);
}

void response_drop(struct response *response) {
    source_close(&response->body);
    response->head = NULL;
}

void response_date(struct transaction *transaction) {
    if (http_head_has(transaction->response.head, HTTP_DATE))
        return;
    char date[HTTP_DATE_LENGTH + 1];
    http_date_format(date, transaction->response.response_time);
    http_head_set(transaction->response.head, HTTP_DATE,
                  arena_slice(&transaction->arena, slice_make(date, HTTP_DATE_LENGTH)));
}
