# Unit tests of the services' algorithms.
check_PROGRAMS += tests/unit-services/unit
tests_unit_services_unit_CPPFLAGS = $(services_cppflags) -DPAGES='"$(abs_top_srcdir)/tests/unit-services/pages"'
tests_unit_services_unit_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(picture_cflags) $(encoder_cflags)
tests_unit_services_unit_LDADD = icap-services/libalgorithms.la $(CHECK_LIBS) $(picture_libs) $(encoder_libs) $(BROTLI_DECODER_LIBS) $(adremover_libs) $(CRYPTO_LIBS)
tests_unit_services_unit_SOURCES = \
	icap-services/helperd/queue.c icap-services/helperd/queue.h \
	tests/unit-services/suites.h \
	tests/unit-services/test_accept_encoding.c \
	tests/unit-services/test_adapted_head.c \
	tests/unit-services/test_arguments.c \
	tests/unit-services/test_encoder.c \
	tests/unit-services/test_filter.c \
	tests/unit-services/test_gif_gray.c \
	tests/unit-services/test_helper_protocol.c \
	tests/unit-services/test_image_type.c \
	tests/unit-services/test_jpeg_gray.c \
	tests/unit-services/test_option.c \
	tests/unit-services/test_picture.c \
	tests/unit-services/test_picture_cost.c \
	tests/unit-services/test_png_gray.c \
	tests/unit-services/test_png_info.c \
	tests/unit-services/test_policy.c \
	tests/unit-services/test_queue.c \
	tests/unit-services/test_recipe.c \
	tests/unit-services/test_request_kind.c \
	tests/unit-services/test_scanner.c \
	tests/unit-services/test_text_table.c \
	tests/unit-services/test_url_pattern.c \
	tests/unit-services/test_webp_gray.c \
	tests/unit-services/unit.c
TESTS += tests/unit-services/unit

# The ad remover's decisions against Brave's; the whole of it by hand, see the script.
TESTS += tests/unit-services/compare-filters.sh

# The services as they run; takes half a minute, wants c-icap and netpbm.
EXTRA_DIST += \
	tests/unit-services/brave/Cargo.lock tests/unit-services/brave/Cargo.toml tests/unit-services/brave/main.rs \
	tests/unit-services/compare-filters.sh \
	tests/unit-services/compare_filters.py \
	tests/unit-services/icap.py \
	tests/unit-services/pages/app.html tests/unit-services/pages/forms.html \
	tests/unit-services/pages/fragment.html tests/unit-services/pages/frames.html \
	tests/unit-services/pages/news.html tests/unit-services/pages/tables.html \
	tests/unit-services/pages/old.html tests/unit-services/pages/short.html \
	tests/unit-services/services/__init__.py \
	tests/unit-services/services/bad_helper.py tests/unit-services/services/lab.py tests/unit-services/services/pictures.py \
	tests/unit-services/services/test_adremover.py tests/unit-services/services/test_forms.py tests/unit-services/services/test_gray.py \
	tests/unit-services/services/test_gzip.py tests/unit-services/services/test_helpers.py \
	tests/unit-services/services/test_inject.py \
	tests/unit-services/services/test_shares.py tests/unit-services/services/test_together.py \
	tests/unit-services/services_test.py

# Built with those of tests/fuzz, which has the list.
tests_unit_services_fuzz_filter_SOURCES = tests/unit-services/fuzz_filter.c
tests_unit_services_fuzz_filter_CPPFLAGS = $(services_cppflags)
tests_unit_services_fuzz_filter_LDFLAGS = $(fuzz_ldflags)
tests_unit_services_fuzz_filter_LDADD = icap-services/libalgorithms.la $(adremover_libs)
tests_unit_services_fuzz_image_SOURCES = tests/unit-services/fuzz_image.c
tests_unit_services_fuzz_image_CPPFLAGS = $(services_cppflags)
tests_unit_services_fuzz_image_LDFLAGS = $(fuzz_ldflags)
tests_unit_services_fuzz_image_LDADD = icap-services/libalgorithms.la $(picture_libs)
tests_unit_services_fuzz_page_SOURCES = tests/unit-services/fuzz_page.c
tests_unit_services_fuzz_page_CPPFLAGS = $(services_cppflags)
tests_unit_services_fuzz_page_LDFLAGS = $(fuzz_ldflags)
tests_unit_services_fuzz_page_LDADD = icap-services/libalgorithms.la
