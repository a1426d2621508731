#include "transaction/response.h"

#include "http/date.h"
#include "transaction/transaction.h"

void response_date(struct transaction *transaction) {
    if (http_head_has(transaction->response.head, HTTP_DATE))
        return;
    char date[HTTP_DATE_LENGTH + 1];
    http_date_format(date, transaction->response.response_time);
    http_head_set(transaction->response.head, HTTP_DATE,
                  arena_slice(&transaction->arena, slice_make(date, HTTP_DATE_LENGTH)));
}
