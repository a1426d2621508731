# Unit tests of the services' algorithms.
check_PROGRAMS += tests/unit/services/unit-services
tests_unit_services_unit_services_CPPFLAGS = $(services_cppflags) -DMODULES='"$(abs_top_builddir)/icap-services/.libs"' \
	-DPAGES='"$(abs_top_srcdir)/tests/data/pages"' -DMANUAL='"$(abs_top_srcdir)/docs/retort-helperd.8"'
tests_unit_services_unit_services_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(picture_cflags) $(encoder_cflags)
tests_unit_services_unit_services_LDADD = common/libconfig.la icap-services/libalgorithms.la $(CHECK_LIBS) $(picture_libs) $(encoder_libs) $(BROTLI_DECODER_LIBS) $(adremover_libs) $(CRYPTO_LIBS)
tests_unit_services_unit_services_SOURCES = \
	icap-services/helperd/queue.c icap-services/helperd/queue.h \
	icap-services/helperd/settings.c icap-services/helperd/settings.h \
	icap-services/adremover/service.c icap-services/gray/service.c icap-services/gzip/service.c icap-services/inject/service.c \
	icap-services/inject/answer.c icap-services/inject/answer.h \
	icap-services/inject/policy.c icap-services/inject/policy.h \
	tests/unit/services/suites.h \
	tests/unit/services/test_accept_encoding.c \
	tests/unit/services/test_adapted_head.c \
	tests/unit/services/test_arguments.c \
	tests/unit/services/test_driver.c \
	tests/unit/services/test_encoder.c \
	tests/unit/services/test_filter.c \
	tests/unit/services/test_gif_gray.c \
	tests/unit/services/test_helper_line.c \
	tests/unit/services/test_helper_protocol.c \
	tests/unit/services/test_helperd_settings.c \
	tests/unit/services/test_image_type.c \
	tests/unit/services/test_jpeg_gray.c \
	tests/unit/services/test_module.c \
	tests/unit/services/test_option.c \
	tests/unit/services/test_picture.c \
	tests/unit/services/test_picture_cost.c \
	tests/unit/services/test_png_gray.c \
	tests/unit/services/test_png_info.c \
	tests/unit/services/test_policy.c \
	tests/unit/services/test_queue.c \
	tests/unit/services/test_recipe.c \
	tests/unit/services/test_request_kind.c \
	tests/unit/services/test_scanner.c \
	tests/unit/services/test_service.c \
	tests/unit/services/test_text_table.c \
	tests/unit/services/test_url_pattern.c \
	tests/unit/services/test_webp_gray.c \
	tests/unit/services/unit.c
TESTS += tests/unit/services/unit-services
