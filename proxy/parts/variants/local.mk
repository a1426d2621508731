if PART_VARIANTS
proxy_libproxy_a_SOURCES += \
	proxy/parts/variants/part.c \
	proxy/parts/variants/adapted_variant.c proxy/parts/variants/adapted_variant.h \
	proxy/parts/variants/variant_object.c proxy/parts/variants/variant_object.h
endif
