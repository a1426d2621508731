if PART_DISK
proxy_libproxy_a_SOURCES += \
	proxy/parts/disk/part.c proxy/parts/disk/settings.c proxy/parts/disk/settings.h \
	proxy/parts/disk/disk.c proxy/parts/disk/disk.h \
	proxy/parts/disk/disk_body.c proxy/parts/disk/disk_body.h \
	proxy/parts/disk/admission_filter.c proxy/parts/disk/admission_filter.h \
	proxy/parts/disk/index.c proxy/parts/disk/index.h \
	proxy/parts/disk/purge_log.c proxy/parts/disk/purge_log.h \
	proxy/parts/disk/purge_slot.c proxy/parts/disk/purge_slot.h \
	proxy/parts/disk/purge_writer.c proxy/parts/disk/purge_writer.h \
	proxy/parts/disk/lending.c proxy/parts/disk/lending.h \
	proxy/parts/disk/load.c \
	proxy/parts/disk/queue.c proxy/parts/disk/queue.h \
	proxy/parts/disk/reading.c proxy/parts/disk/reading.h \
	proxy/parts/disk/reads.c proxy/parts/disk/reads.h \
	proxy/parts/disk/record.c proxy/parts/disk/record.h \
	proxy/parts/disk/recovery.c \
	proxy/parts/disk/segment.c proxy/parts/disk/segment.h \
	proxy/parts/disk/stream.c proxy/parts/disk/stream.h \
	proxy/parts/disk/volume.c proxy/parts/disk/volume.h \
	proxy/parts/disk/volume_purges.c \
	proxy/parts/disk/writer.c proxy/parts/disk/writer.h
tests_unit_proxy_unit_proxy_SOURCES += \
	tests/unit/proxy/test_admission_filter.c \
	tests/unit/proxy/test_disk.c \
	tests/unit/proxy/test_disk_damage.c \
	tests/unit/proxy/test_disk_index.c \
	tests/unit/proxy/test_disk_record.c \
	tests/unit/proxy/test_disk_stream.c \
	tests/unit/proxy/test_disk_volume.c \
	tests/unit/proxy/test_purge_log.c \
	tests/unit/proxy/volume_bench.c tests/unit/proxy/volume_bench.h
endif
