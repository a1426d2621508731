# The adaptation services: modules for c-icap, the supervisor of helper processes, and the helpers.

services_cppflags = $(AM_CPPFLAGS) -I$(top_srcdir)/icap-services -I$(top_builddir)/icap-services

# What services and helpers share beyond libcommon.
noinst_LTLIBRARIES += common/libservice.la
common_libservice_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
common_libservice_la_SOURCES = \
	common/service/adapted_head.c common/service/adapted_head.h \
	common/service/arguments.c common/service/arguments.h \
	common/service/event.h \
	common/service/content.c common/service/content.h \
	common/service/helper_client.c common/service/helper_client.h \
	common/service/helper_line.c common/service/helper_line.h \
	common/service/helper_protocol.c common/service/helper_protocol.h \
	common/service/module.c common/service/module.h \
	common/service/option.c common/service/option.h \
	common/service/driver.c common/service/driver.h \
	common/service/start.c common/service/start.h \
	common/service/clean_head.c common/service/clean_head.h \
	common/service/service.c common/service/service.h \
	common/service/url_pattern.c common/service/url_pattern.h

encoder_sources = \
	icap-services/gzip/codec.c icap-services/gzip/codec.h \
	icap-services/gzip/encoder.c icap-services/gzip/encoder.h \
	icap-services/gzip/sample.c icap-services/gzip/sample.h
encoder_cflags = $(ZLIB_CFLAGS) $(BROTLI_CFLAGS) $(ZSTD_CFLAGS)
encoder_libs = $(ZLIB_LIBS) $(BROTLI_LIBS) $(ZSTD_LIBS)

picture_cflags = $(JPEG_CFLAGS) $(PNG_CFLAGS) $(WEBP_CFLAGS) $(GIF_CFLAGS)
picture_libs = $(JPEG_LIBS) $(PNG_LIBS) $(WEBP_LIBS) $(GIF_LIBS) $(ZLIB_LIBS) -lm

adremover_sources = \
	icap-services/adremover/domain_set.c icap-services/adremover/domain_set.h \
	icap-services/adremover/filter.c icap-services/adremover/filter.h \
	icap-services/adremover/regex.c icap-services/adremover/regex.h \
	icap-services/adremover/replacement.c icap-services/adremover/replacement.h \
	icap-services/adremover/request.c icap-services/adremover/request.h \
	icap-services/adremover/rule.c icap-services/adremover/rule.h \
	icap-services/adremover/rule_index.c icap-services/adremover/rule_index.h \
	icap-services/adremover/rule_options.c icap-services/adremover/rule_options.h \
	icap-services/adremover/rule_parse.c \
	icap-services/adremover/host.c icap-services/adremover/host.h \
	icap-services/adremover/skipped.c icap-services/adremover/skipped.h \
	icap-services/adremover/hash.h
adremover_libs = $(PCRE2_LIBS) $(PSL_LIBS) $(IDN2_LIBS)

# The algorithms, as an archive of which helpers and tests take what they need.
noinst_LTLIBRARIES += icap-services/libalgorithms.la
icap_services_libalgorithms_la_CPPFLAGS = $(services_cppflags)
icap_services_libalgorithms_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden $(picture_cflags) $(encoder_cflags) $(PCRE2_CFLAGS) $(PSL_CFLAGS) $(IDN2_CFLAGS) $(CRYPTO_CFLAGS)
icap_services_libalgorithms_la_SOURCES = \
	$(adremover_sources) \
	icap-services/gray/apng_gray.c icap-services/gray/apng_gray.h \
	icap-services/gray/bmp_gray.c icap-services/gray/bmp_gray.h \
	icap-services/gray/tiff.c icap-services/gray/tiff.h \
	icap-services/gray/gif_gray.c icap-services/gray/gif_gray.h \
	icap-services/gray/gif_scale.c icap-services/gray/gif_scale.h \
	icap-services/gray/image_type.c icap-services/gray/image_type.h \
	icap-services/gray/jpeg_gray.c icap-services/gray/jpeg_gray.h \
	icap-services/gray/picture.c icap-services/gray/picture.h \
	icap-services/gray/picture_cost.c icap-services/gray/picture_cost.h \
	icap-services/gray/png_gray.c icap-services/gray/png_gray.h \
	icap-services/gray/png_chunks.c icap-services/gray/png_chunks.h \
	icap-services/gray/scaler.c icap-services/gray/scaler.h \
	icap-services/gray/webp_gray.c icap-services/gray/webp_gray.h \
	icap-services/gzip/accept_encoding.c icap-services/gzip/accept_encoding.h \
	$(encoder_sources) \
	icap-services/helpers/recipe.c icap-services/helpers/recipe.h \
	icap-services/inject/policy.c icap-services/inject/policy.h \
	icap-services/inject/scanner.c icap-services/inject/scanner.h \
	icap-services/inject/tag.c icap-services/inject/tag.h \
	icap-services/inject/tree.c icap-services/inject/tree.h \
	icap-services/inject/text_table.c icap-services/inject/text_table.h
icap_services_libalgorithms_la_LIBADD = common/libservice.la common/libcommon.la

# What makes a module for c-icap of a service, with all that services use.
noinst_LTLIBRARIES += icap-services/libhost.la
icap_services_libhost_la_CPPFLAGS = $(services_cppflags) $(CICAP_CFLAGS) -DRETORT_VERSION='"$(PACKAGE_VERSION)"'
icap_services_libhost_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
icap_services_libhost_la_SOURCES = \
	icap-services/host-c-icap/cicap.h \
	icap-services/host-c-icap/module.c \
	icap-services/host-c-icap/transaction.c icap-services/host-c-icap/transaction.h
icap_services_libhost_la_LIBADD = common/libservice.la common/libcommon.la

# The same, for services of others: examples/hello-service. An archive, since every module has a host of its own.
pkgconfigdir = $(libdir)/pkgconfig
nodist_pkgconfig_DATA = icap-services/retort-service.pc icap-services/retort-service-inside.pc
retortbasedir = $(pkgincludedir)/base
retortbase_HEADERS = \
	common/base/arena.h common/base/assert.h common/base/list.h common/base/log.h common/base/slice.h common/base/spool.h
retorthttpdir = $(pkgincludedir)/http
retorthttp_HEADERS = \
	common/http/chunked.h common/http/date.h common/http/framing.h common/http/head.h common/http/head_parser.h common/http/methods.def \
	common/http/names.def common/http/names.h common/http/neutral.h common/http/trailer.h common/http/url.h
retortservicedir = $(pkgincludedir)/service
retortservice_HEADERS = \
	common/service/adapted_head.h common/service/arguments.h common/service/content.h common/service/event.h \
	common/service/helper_client.h \
	common/service/helper_protocol.h common/service/option.h common/service/service.h common/service/url_pattern.h
install-exec-local: icap-services/libhost.la
	$(MKDIR_P) "$(DESTDIR)$(libdir)"
	$(INSTALL_DATA) icap-services/.libs/libhost.a "$(DESTDIR)$(libdir)/libretort-service.a"
# A service to begin with, which builds with pkg-config and tests itself.
templatedir = $(pkgdatadir)/service-template
dist_template_DATA = examples/hello-service/Makefile examples/hello-service/README.md examples/hello-service/hello.c
templatemessagesdir = $(templatedir)/messages
dist_templatemessages_DATA = \
	examples/hello-service/messages/empty.http examples/hello-service/messages/no-length.http \
	examples/hello-service/messages/page.http examples/hello-service/messages/text.http

# The services: what a module for c-icap and a module for the proxy itself are made of. The same objects are in both.
module_cflags = $(AM_CFLAGS) -fvisibility=hidden
noinst_LTLIBRARIES += icap-services/libadremover.la icap-services/libgray.la icap-services/libgzip.la icap-services/libinject.la

# Which code it is, for the versions of the services: a checksum of all that they are made of. It is written when it changes.
BUILT_SOURCES += icap-services/build.h
CLEANFILES += icap-services/build.h
icap-services/build.h: FORCE
	$(AM_V_at)$(MKDIR_P) icap-services && \
	sum=`cd $(srcdir) && find common icap-services -name '*.[ch]' ! -path icap-services/build.h | LC_ALL=C sort | xargs cat | sha256sum | cut -c 1-16` && \
	echo "#define SERVICES_BUILD \"$$sum\"" >$@.new && \
	if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi
FORCE:
.PHONY: FORCE
# By a variable: automake takes a target that it knows by its name for one with commands of its own.
build_users = icap-services/adremover/libadremover_la-service.lo icap-services/gray/libgray_la-service.lo \
	icap-services/gzip/libgzip_la-service.lo icap-services/inject/libinject_la-service.lo
$(build_users): icap-services/build.h

icap_services_libadremover_la_SOURCES = icap-services/adremover/service.c \
	$(adremover_sources)
icap_services_libadremover_la_CPPFLAGS = $(services_cppflags)
icap_services_libadremover_la_CFLAGS = $(module_cflags) $(PCRE2_CFLAGS) $(PSL_CFLAGS)

icap_services_libgray_la_SOURCES = icap-services/gray/service.c \
	icap-services/gray/image_type.c icap-services/gray/image_type.h \
	icap-services/gray/picture.c icap-services/gray/picture.h \
	icap-services/gray/picture_cost.c icap-services/gray/picture_cost.h
icap_services_libgray_la_CPPFLAGS = $(services_cppflags)
icap_services_libgray_la_CFLAGS = $(module_cflags)

icap_services_libgzip_la_SOURCES = icap-services/gzip/service.c \
	icap-services/gzip/accept_encoding.c icap-services/gzip/accept_encoding.h \
	$(encoder_sources)
icap_services_libgzip_la_CPPFLAGS = $(services_cppflags)
icap_services_libgzip_la_CFLAGS = $(module_cflags) $(encoder_cflags)

icap_services_libinject_la_SOURCES = icap-services/inject/service.c \
	icap-services/inject/answer.c icap-services/inject/answer.h \
	icap-services/inject/policy.c icap-services/inject/policy.h \
	icap-services/inject/scanner.c icap-services/inject/scanner.h \
	icap-services/inject/tag.c icap-services/inject/tag.h \
	icap-services/inject/tree.c icap-services/inject/tree.h
icap_services_libinject_la_CPPFLAGS = $(services_cppflags)
icap_services_libinject_la_CFLAGS = $(module_cflags) $(CRYPTO_CFLAGS)

# The modules for c-icap. Each is the host and one service. In the build tree they are in icap-services/.libs/.
cicapmodule_LTLIBRARIES = \
	icap-services/srv_adremover.la \
	icap-services/srv_gray.la \
	icap-services/srv_gzip.la \
	icap-services/srv_inject.la
module_ldflags = $(AM_LDFLAGS) -module -avoid-version -shared
module_libs = icap-services/libhost.la $(CICAP_LIBS)

icap_services_srv_adremover_la_SOURCES =
icap_services_srv_adremover_la_LDFLAGS = $(module_ldflags)
icap_services_srv_adremover_la_LIBADD = icap-services/libadremover.la $(module_libs) $(adremover_libs)
icap_services_srv_gray_la_SOURCES =
icap_services_srv_gray_la_LDFLAGS = $(module_ldflags)
icap_services_srv_gray_la_LIBADD = icap-services/libgray.la $(module_libs)
icap_services_srv_gzip_la_SOURCES =
icap_services_srv_gzip_la_LDFLAGS = $(module_ldflags)
icap_services_srv_gzip_la_LIBADD = icap-services/libgzip.la $(module_libs) $(encoder_libs)
icap_services_srv_inject_la_SOURCES =
icap_services_srv_inject_la_LDFLAGS = $(module_ldflags)
icap_services_srv_inject_la_LIBADD = icap-services/libinject.la $(module_libs) $(CRYPTO_LIBS)

# The modules for the proxy itself (proxy/inside/): one service each, and nothing of c-icap.
servicemodule_LTLIBRARIES = \
	icap-services/adremover.la \
	icap-services/gray.la \
	icap-services/gzip.la \
	icap-services/inject.la
inside_libs = common/libservice.la common/libcommon.la

icap_services_adremover_la_SOURCES =
icap_services_adremover_la_LDFLAGS = $(module_ldflags)
icap_services_adremover_la_LIBADD = icap-services/libadremover.la $(inside_libs) $(adremover_libs)
icap_services_gray_la_SOURCES =
icap_services_gray_la_LDFLAGS = $(module_ldflags)
icap_services_gray_la_LIBADD = icap-services/libgray.la $(inside_libs)
icap_services_gzip_la_SOURCES =
icap_services_gzip_la_LDFLAGS = $(module_ldflags)
icap_services_gzip_la_LIBADD = icap-services/libgzip.la $(inside_libs) $(encoder_libs)
icap_services_inject_la_SOURCES =
icap_services_inject_la_LDFLAGS = $(module_ldflags)
icap_services_inject_la_LIBADD = icap-services/libinject.la $(inside_libs) $(CRYPTO_LIBS)

# libtool's .la files are of no use to who loads the modules.
install-data-hook:
	cd "$(DESTDIR)$(cicapmoduledir)" && rm -f srv_adremover.la srv_gray.la srv_gzip.la srv_inject.la
	cd "$(DESTDIR)$(servicemoduledir)" && rm -f adremover.la gray.la gzip.la inject.la
uninstall-hook:
	cd "$(DESTDIR)$(cicapmoduledir)" && rm -f srv_adremover.so srv_gray.so srv_gzip.so srv_inject.so
	cd "$(DESTDIR)$(servicemoduledir)" && rm -f adremover.so gray.so gzip.so inject.so
	rm -f "$(DESTDIR)$(libdir)/libretort-service.a"

# The supervisor.
sbin_PROGRAMS += icap-services/retort-helperd
icap_services_retort_helperd_CPPFLAGS = $(services_cppflags) -DCONFIGURATION='"$(retortconfdir)/helperd.conf"'
icap_services_retort_helperd_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
icap_services_retort_helperd_SOURCES = \
	icap-services/helperd/client.c icap-services/helperd/client.h \
	icap-services/helperd/dispatch.c icap-services/helperd/dispatch.h \
	icap-services/helperd/line_port.c icap-services/helperd/line_port.h \
	icap-services/helperd/main.c \
	icap-services/helperd/output.c icap-services/helperd/output.h \
	icap-services/helperd/pool.c icap-services/helperd/pool.h \
	icap-services/helperd/pool_workers.c icap-services/helperd/pool_workers.h \
	icap-services/helperd/queue.c icap-services/helperd/queue.h \
	icap-services/helperd/settings.c icap-services/helperd/settings.h icap-services/helperd/options.def \
	icap-services/helperd/supervisor.c icap-services/helperd/supervisor.h \
	icap-services/helperd/worker.c icap-services/helperd/worker.h
icap_services_retort_helperd_LDADD = common/libconfig.la common/libservice.la common/libcommon.la $(JANSSON_LIBS)

# The helpers.
helper_PROGRAMS += icap-services/gray-helper icap-services/text-helper
helper_sources = icap-services/helpers/helper_loop.c icap-services/helpers/helper_loop.h \
	icap-services/helpers/sandbox.c icap-services/helpers/sandbox.h
# What `retortctl adlist` runs.
helper_PROGRAMS += icap-services/retort-adlist
icap_services_retort_adlist_CPPFLAGS = $(services_cppflags)
icap_services_retort_adlist_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS) $(PCRE2_CFLAGS) $(PSL_CFLAGS) $(IDN2_CFLAGS)
icap_services_retort_adlist_SOURCES = icap-services/adremover/adlist.c
icap_services_retort_adlist_LDADD = icap-services/libalgorithms.la $(adremover_libs) $(JANSSON_LIBS)

icap_services_gray_helper_CPPFLAGS = $(services_cppflags)
icap_services_gray_helper_CFLAGS = $(AM_CFLAGS) $(SECCOMP_CFLAGS)
icap_services_gray_helper_SOURCES = $(helper_sources) \
	icap-services/helpers/gray_helper.c \
	icap-services/helpers/runner.c icap-services/helpers/runner.h
icap_services_gray_helper_LDADD = icap-services/libalgorithms.la $(picture_libs) $(SECCOMP_LIBS)
icap_services_text_helper_CPPFLAGS = $(services_cppflags)
icap_services_text_helper_SOURCES = $(helper_sources) icap-services/helpers/text_helper.c
icap_services_text_helper_LDADD = icap-services/libalgorithms.la $(SECCOMP_LIBS)
icap_services_text_helper_CFLAGS = $(AM_CFLAGS) $(SECCOMP_CFLAGS)

dist_man_MANS += docs/retort-service-test.1 docs/retort-helperd.8 docs/gray-helper.8 docs/text-helper.8 docs/retort-adlist.1
EXTRA_DIST += docs/SERVICES.md examples/helper/reverse.py examples/helper/upper.c

# What tests modules of services, ours and those of others.
bin_PROGRAMS += icap-services/retort-service-test
icap_services_retort_service_test_CPPFLAGS = $(services_cppflags) -DHELPERD='"$(sbindir)/retort-helperd"'
icap_services_retort_service_test_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS) $(ZLIB_CFLAGS) $(BROTLI_DECODER_CFLAGS) $(ZSTD_CFLAGS)
icap_services_retort_service_test_SOURCES = \
	icap-services/service-test/call.c icap-services/service-test/call.h \
	icap-services/service-test/expected.c icap-services/service-test/expected.h \
	icap-services/service-test/helperd.c icap-services/service-test/helperd.h \
	icap-services/service-test/instance.c icap-services/service-test/instance.h \
	icap-services/service-test/main.c \
	icap-services/service-test/message.c icap-services/service-test/message.h \
	icap-services/service-test/options.c icap-services/service-test/options.h icap-services/service-test/options.def \
	icap-services/service-test/plan.c icap-services/service-test/plan.h \
	icap-services/service-test/report.c icap-services/service-test/report.h \
	icap-services/service-test/run.c icap-services/service-test/run.h \
	icap-services/service-test/watch.c icap-services/service-test/watch.h \
	icap-services/service-test/worker.c icap-services/service-test/worker.h
icap_services_retort_service_test_LDADD = common/librecord.la common/libservice.la common/libcommon.la \
	$(JANSSON_LIBS) $(ZLIB_LIBS) $(BROTLI_DECODER_LIBS) $(ZSTD_LIBS) $(XXHASH_LIBS) -lpthread
