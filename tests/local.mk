# The tests. Each folder lists its own parts in a local.mk. What starts programs for minutes is run by tests/run.sh, not by make check.

# Of the Check library's limits, which are for programs as they are shipped.
if SANITIZED
AM_TESTS_ENVIRONMENT = CK_TIMEOUT_MULTIPLIER=$${CK_TIMEOUT_MULTIPLIER:-5}; export CK_TIMEOUT_MULTIPLIER;
endif

checks = \
	tests/check-api-table.sh tests/check-checks.sh tests/check-docs.sh tests/check-fleet-model.sh tests/check-format.sh tests/check-headers.sh \
	tests/check-icap-table.sh tests/check-includes.sh \
	tests/check-names.sh tests/check-parts.sh tests/check-sources.sh tests/check-writers.sh
TESTS += $(checks)
EXTRA_DIST += $(checks) tests/fleet/promises.pml tests/check tests/data/fetch.sh tests/data/pages tests/golden tests/hooks tests/install.sh tests/link-parts.sh tests/other-debian.sh tests/package tests/run.sh tests/valgrind

include tests/unit/common/local.mk
include tests/unit/proxy/local.mk
include tests/unit/services/local.mk
include tests/fuzz/local.mk
include tests/e2e/local.mk
include tests/bench/local.mk
