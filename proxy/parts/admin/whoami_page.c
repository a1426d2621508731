#include "admin/whoami_page.h"

#include "admin/guard.h"
#include "config.h"

#include <unistd.h>

void whoami_page_make(struct page *page, const struct admin_calls *calls,
                      const struct page_request *request) {
    const struct admin_caller *caller = request->caller;
    (void)calls;
    page_json(page, 200,
              json_pack("{s:s, s:s, s:s, s:s, s:s, s:i}", "name", caller->name, "role",
                        operator_role_name(caller->role), "from", caller->from, "certificate",
                        caller->certificate, "version", PACKAGE_VERSION, "pid", (int)getpid()));
}
