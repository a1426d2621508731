if PART_RECORD
proxy_libproxy_a_SOURCES += \
	proxy/parts/record/part.c proxy/parts/record/record.h \
	proxy/parts/record/inspect.c \
	proxy/parts/record/inspect_page.c \
	proxy/parts/record/inspected.c proxy/parts/record/inspected.h \
	proxy/parts/record/inspections.c proxy/parts/record/inspections.h \
	proxy/parts/record/pages.c \
	proxy/parts/record/recorder.c proxy/parts/record/recorder.h \
	proxy/parts/record/recording.c
tests_unit_proxy_unit_proxy_SOURCES += \
	tests/unit/proxy/test_inspections.c \
	tests/unit/proxy/test_recorded.c
endif
