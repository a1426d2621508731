# The programmable origin of the end-to-end tests.
if MICROHTTPD
check_PROGRAMS += tests/e2e/origin/origin
endif
tests_e2e_origin_origin_CFLAGS = $(AM_CFLAGS) $(MICROHTTPD_CFLAGS) $(JANSSON_CFLAGS)
tests_e2e_origin_origin_SOURCES = tests/e2e/origin/origin.c
tests_e2e_origin_origin_LDADD = $(MICROHTTPD_LIBS) $(JANSSON_LIBS) -lpthread

# What makes calls to a disk fail, loaded into the proxy with LD_PRELOAD. It is built without
# sanitizers: it stands before their libraries.
check_LTLIBRARIES = tests/e2e/faults/disk_faults.la
tests_e2e_faults_disk_faults_la_SOURCES = tests/e2e/faults/disk_faults.c
tests_e2e_faults_disk_faults_la_CFLAGS = $(AM_CFLAGS) -fno-sanitize=all
tests_e2e_faults_disk_faults_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere

# What fills a volume with objects in no time.
if PART_DISK
check_PROGRAMS += tests/e2e/volume/fill_volume
endif
tests_e2e_volume_fill_volume_CPPFLAGS = $(AM_CPPFLAGS) $(proxy_includes)
tests_e2e_volume_fill_volume_SOURCES = tests/e2e/volume/fill_volume.c
tests_e2e_volume_fill_volume_LDADD = $(proxy_libs)

# What refuses memory, likewise.
check_LTLIBRARIES += tests/e2e/faults/memory_faults.la
tests_e2e_faults_memory_faults_la_SOURCES = tests/e2e/faults/memory_faults.c
tests_e2e_faults_memory_faults_la_CFLAGS = $(AM_CFLAGS) -fno-sanitize=all -fno-builtin
tests_e2e_faults_memory_faults_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere

# What kills a process at a message of a takeover, likewise.
check_LTLIBRARIES += tests/e2e/faults/takeover_faults.la
tests_e2e_faults_takeover_faults_la_SOURCES = tests/e2e/faults/takeover_faults.c
tests_e2e_faults_takeover_faults_la_CFLAGS = $(AM_CFLAGS) -fno-sanitize=all
tests_e2e_faults_takeover_faults_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere

# A resolver that does not answer, likewise.
check_LTLIBRARIES += tests/e2e/faults/slow_names.la
tests_e2e_faults_slow_names_la_SOURCES = tests/e2e/faults/slow_names.c
tests_e2e_faults_slow_names_la_CFLAGS = $(AM_CFLAGS) -fno-sanitize=all
tests_e2e_faults_slow_names_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere

# Threads that take their time to end, likewise.
check_LTLIBRARIES += tests/e2e/faults/slow_ends.la
tests_e2e_faults_slow_ends_la_SOURCES = tests/e2e/faults/slow_ends.c
tests_e2e_faults_slow_ends_la_CFLAGS = $(AM_CFLAGS) -fno-sanitize=all
tests_e2e_faults_slow_ends_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere

# A service that breaks one promise at a time, for retort-service-test. It does on purpose what compilers warn of.
check_LTLIBRARIES += tests/e2e/faults/bad.la
tests_e2e_faults_bad_la_SOURCES = tests/e2e/faults/bad.c
tests_e2e_faults_bad_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden -Wno-error -w
tests_e2e_faults_bad_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -rpath /nowhere
tests_e2e_faults_bad_la_LIBADD = common/libservice.la common/libcommon.la
# The same in c-icap.
check_LTLIBRARIES += tests/e2e/faults/srv_bad.la
tests_e2e_faults_srv_bad_la_SOURCES = tests/e2e/faults/bad.c
tests_e2e_faults_srv_bad_la_CFLAGS = $(tests_e2e_faults_bad_la_CFLAGS)
tests_e2e_faults_srv_bad_la_LDFLAGS = $(tests_e2e_faults_bad_la_LDFLAGS)
tests_e2e_faults_srv_bad_la_LIBADD = $(module_libs)
# Without the events that only the proxy has, so that a process may run it.
check_LTLIBRARIES += tests/e2e/faults/quiet/bad.la
tests_e2e_faults_quiet_bad_la_SOURCES = tests/e2e/faults/bad.c
tests_e2e_faults_quiet_bad_la_CPPFLAGS = $(AM_CPPFLAGS) -DBAD_QUIET
tests_e2e_faults_quiet_bad_la_CFLAGS = $(tests_e2e_faults_bad_la_CFLAGS)
tests_e2e_faults_quiet_bad_la_LDFLAGS = $(tests_e2e_faults_bad_la_LDFLAGS)
tests_e2e_faults_quiet_bad_la_LIBADD = common/libservice.la common/libcommon.la

# The ad remover's decisions beside those of Brave's engine; the whole of it by hand, see the script.
TESTS += tests/e2e/brave/compare-filters.sh

# What tests/run.sh starts. The files of tests by their pattern: a list would be forgotten.
EXTRA_DIST += \
	tests/e2e/brave/Cargo.lock tests/e2e/brave/Cargo.toml tests/e2e/brave/main.rs \
	tests/e2e/brave/compare-filters.sh tests/e2e/brave/compare_filters.py \
	tests/e2e/conformance tests/e2e/h2spec tests/e2e/harness tests/e2e/services
dist-hook:
	cp -p $(srcdir)/tests/e2e/*.py $(distdir)/tests/e2e/
	find $(distdir)/tests -name __pycache__ -prune -exec rm -rf {} +

# Modules for services inside the proxy: the example, and one that does what tests ask for.
check_LTLIBRARIES += tests/e2e/modules/hello.la tests/e2e/modules/keeper.la tests/e2e/modules/odd.la tests/e2e/modules/outside.la \
	tests/e2e/modules/other/odd.la
check_LTLIBRARIES += tests/e2e/modules/doomed.la
test_module_ldflags = $(AM_LDFLAGS) -module -avoid-version -shared -rpath /nowhere
tests_e2e_modules_hello_la_SOURCES = examples/hello-service/hello.c
tests_e2e_modules_hello_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
tests_e2e_modules_hello_la_LDFLAGS = $(test_module_ldflags)
tests_e2e_modules_hello_la_LIBADD = common/libservice.la common/libcommon.la
tests_e2e_modules_keeper_la_SOURCES = tests/e2e/modules/keeper.c
tests_e2e_modules_keeper_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
tests_e2e_modules_keeper_la_LDFLAGS = $(test_module_ldflags)
tests_e2e_modules_keeper_la_LIBADD = common/libservice.la common/libcommon.la
tests_e2e_modules_odd_la_SOURCES = tests/e2e/modules/odd.c
tests_e2e_modules_odd_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
tests_e2e_modules_odd_la_LDFLAGS = $(test_module_ldflags)
tests_e2e_modules_odd_la_LIBADD = common/libservice.la common/libcommon.la
tests_e2e_modules_outside_la_SOURCES = tests/e2e/modules/outside.c
tests_e2e_modules_outside_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
tests_e2e_modules_outside_la_LDFLAGS = $(test_module_ldflags)
tests_e2e_modules_outside_la_LIBADD = common/libservice.la common/libcommon.la
# The same service with other code.
tests_e2e_modules_other_odd_la_SOURCES = tests/e2e/modules/odd.c
tests_e2e_modules_other_odd_la_CPPFLAGS = $(AM_CPPFLAGS) -DODD_CODE='"+"'
tests_e2e_modules_other_odd_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
tests_e2e_modules_other_odd_la_LDFLAGS = $(test_module_ldflags)
tests_e2e_modules_other_odd_la_LIBADD = common/libservice.la common/libcommon.la
# The same in c-icap.
check_LTLIBRARIES += tests/e2e/modules/srv_outside.la
tests_e2e_modules_srv_outside_la_SOURCES = tests/e2e/modules/outside.c
tests_e2e_modules_srv_outside_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
tests_e2e_modules_srv_outside_la_LDFLAGS = $(test_module_ldflags)
tests_e2e_modules_srv_outside_la_LIBADD = $(module_libs)
# The example that hears of events.
check_LTLIBRARIES += tests/e2e/modules/report.la
tests_e2e_modules_report_la_SOURCES = examples/report-service/report.c
tests_e2e_modules_report_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
tests_e2e_modules_report_la_LDFLAGS = $(test_module_ldflags)
tests_e2e_modules_report_la_LIBADD = common/libservice.la common/libcommon.la
tests_e2e_modules_doomed_la_SOURCES = tests/e2e/modules/doomed.c
tests_e2e_modules_doomed_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
tests_e2e_modules_doomed_la_LDFLAGS = $(test_module_ldflags)
tests_e2e_modules_doomed_la_LIBADD = common/libservice.la common/libcommon.la
