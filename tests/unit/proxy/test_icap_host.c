/* What all workers know of the silence of a host. */
#include "suites.h"

#include "event/timer.h"
#include "icap/host.h"

enum { QUIET = 500 };

static struct icap_host *host;

static struct icap_host *get(const char *text) {
    struct address address;
    ck_assert(address_parse(&address, slice_from(text), 0));
    return icap_host_get(&address);
}

static void begin(void) {
    host = get("192.0.2.1:1344");
    icap_host_heard(host, 10000);
}

/* The claim must be there for the taking. */
static void claim_at(uint64_t now) {
    ck_assert_uint_le(icap_host_due(host, QUIET), now);
    ck_assert(icap_host_claim(host, QUIET, now));
}

START_TEST(one_for_each_address) {
    struct icap_host *same = get("192.0.2.1:1344"), *other = get("192.0.2.1:1345");
    begin();
    ck_assert_ptr_eq(host, same);
    ck_assert_ptr_ne(host, other);
    icap_host_release(&same);
    icap_host_release(&other);
    ck_assert_uint_eq(icap_host_due(host, QUIET), 10500);
    icap_host_release(&host);
    host = get("192.0.2.1:1344");
    ck_assert_uint_eq(icap_host_due(host, QUIET), QUIET); /* nothing of it is left */
    icap_host_release(&host);
}
END_TEST

START_TEST(due_in_silence_alone) {
    begin();
    ck_assert(!icap_host_claim(host, QUIET, 10499));
    icap_host_heard(host, 10300);
    icap_host_heard(host, 10200); /* told late */
    ck_assert(!icap_host_claim(host, QUIET, 10500));
    ck_assert_uint_eq(icap_host_due(host, QUIET), 10800);
    claim_at(10800);
    icap_host_unclaim(host, false);
    icap_host_release(&host);
}
END_TEST

START_TEST(one_at_a_time_and_one_in_a_silence) {
    begin();
    claim_at(10500);
    ck_assert(!icap_host_claim(host, QUIET, 10501));
    icap_host_answered(host);
    ck_assert_uint_eq(icap_host_due(host, QUIET), TIMER_NEVER);
    ck_assert(!icap_host_claim(host, QUIET, 20000));
    icap_host_heard(host, 11000); /* a keep-alive probe was answered */
    ck_assert_uint_eq(icap_host_due(host, QUIET), 11500);
    icap_host_release(&host);
}
END_TEST

/* A single packet may be lost on its way, and proves nothing. */
START_TEST(checked_again_when_a_packet_is_overdue) {
    begin();
    claim_at(10500);
    icap_host_doubt(host, QUIET, 11200); /* it is being checked */
    icap_host_answered(host);
    icap_host_doubt(host, QUIET, 10999); /* it has just been */
    ck_assert_uint_eq(icap_host_due(host, QUIET), TIMER_NEVER);
    icap_host_doubt(host, QUIET, 11000);
    claim_at(11000);
    ck_assert(icap_host_unanswered(host));
    ck_assert(icap_host_is_lost(host, 10000));
    icap_host_release(&host);
}
END_TEST

/* A worker may notice at the next look only what it has heard. */
START_TEST(a_check_too_soon_after_it_was_heard) {
    begin();
    claim_at(10500);
    icap_host_answered(host);
    icap_host_heard(host, 10450);
    ck_assert_uint_eq(icap_host_due(host, QUIET), 10950);
    icap_host_release(&host);
}
END_TEST

START_TEST(lost_for_those_that_heard_nothing) {
    begin();
    ck_assert(!icap_host_is_lost(host, 0));
    claim_at(10500);
    ck_assert(!icap_host_is_lost(host, 10000));
    ck_assert(icap_host_unanswered(host));
    ck_assert(icap_host_is_lost(host, 10000));
    ck_assert(icap_host_is_lost(host, 3));
    ck_assert(!icap_host_is_lost(host, 10499)); /* the clocks differ a little */
    ck_assert(!icap_host_is_lost(host, 10600));
    icap_host_heard(host, 12000);
    claim_at(12500);
    icap_host_answered(host);
    ck_assert(!icap_host_is_lost(host, 10000)); /* it is back */
    icap_host_release(&host);
}
END_TEST

START_TEST(heard_during_the_check) {
    begin();
    claim_at(10500);
    icap_host_heard(host, 10490); /* just before, or so the clocks say */
    ck_assert(!icap_host_unanswered(host));
    icap_host_heard(host, 11000);
    claim_at(11500);
    ck_assert(icap_host_unanswered(host)); /* that said nothing against it */
    icap_host_release(&host);
}
END_TEST

START_TEST(a_host_that_drops_what_begins_a_connection) {
    begin();
    claim_at(10500);
    icap_host_heard(host, 10700);
    ck_assert(!icap_host_unanswered(host));
    claim_at(11200);
    ck_assert(!icap_host_unanswered(host)); /* silence everywhere says nothing now */
    ck_assert(!icap_host_is_lost(host, 0));
    icap_host_heard(host, 12000);
    claim_at(12500);
    icap_host_answered(host);
    icap_host_heard(host, 13000);
    claim_at(13500);
    ck_assert(icap_host_unanswered(host)); /* and now it does */
    icap_host_release(&host);
}
END_TEST

START_TEST(checks_that_say_nothing) {
    begin();
    claim_at(10500);
    icap_host_unclaim(host, true); /* who made it has gone */
    claim_at(10550);
    icap_host_unclaim(host, false); /* it can't be made */
    ck_assert_uint_eq(icap_host_due(host, QUIET), TIMER_NEVER);
    ck_assert(!icap_host_is_lost(host, 0));
    icap_host_release(&host);
}
END_TEST

Suite *icap_host_suite(void) {
    const TTest *tests[] = {
        one_for_each_address,
        due_in_silence_alone,
        one_at_a_time_and_one_in_a_silence,
        checked_again_when_a_packet_is_overdue,
        a_check_too_soon_after_it_was_heard,
        lost_for_those_that_heard_nothing,
        heard_during_the_check,
        a_host_that_drops_what_begins_a_connection,
        checks_that_say_nothing,
    };
    return suite_of("icap_host", tests, COUNT_OF(tests));
}
