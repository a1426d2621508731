# Manuals. CONFIGURATION.md and retort.conf.5 are printed from the option table and kept in the tree,
# so that they can be read and installed without building; tests/unit/proxy checks that they are
# current. METRICS.md is printed from the table of counters; tests/check-docs.sh checks that.
dist_man_MANS += docs/retort.8 docs/retort.conf.5 docs/retortctl.1
dist_doc_DATA = README.md CHANGELOG.md SECURITY.md LICENSE docs/ACCESS.md docs/API.md docs/ARCHITECTURE.md docs/CACHE.md docs/CONFIGURATION.md docs/CONFORMANCE.md docs/ICAP.md \
	docs/HTTP2.md docs/METRICS.md docs/OPERATIONS.md docs/PERFORMANCE.md docs/SERVICES.md docs/START.md docs/TESTING.md docs/TLS.md docs/TRANSPARENT.md
EXTRA_DIST += docs/build-site.sh docs/site/mkdocs.yml docs/site/check_links.py docs/write-metrics.sh docs/performance.json docs/plots docs/pictures examples/security-headers.conf

docs: proxy/retort$(EXEEXT) proxy/retortctl$(EXEEXT) icap-services/retort-service-test$(EXEEXT)
	proxy/retort$(EXEEXT) --print-options markdown > $(srcdir)/docs/CONFIGURATION.md.new
	mv $(srcdir)/docs/CONFIGURATION.md.new $(srcdir)/docs/CONFIGURATION.md
	proxy/retort$(EXEEXT) --print-options man > $(srcdir)/docs/retort.conf.5.new
	mv $(srcdir)/docs/retort.conf.5.new $(srcdir)/docs/retort.conf.5
	$(srcdir)/docs/write-metrics.sh > $(srcdir)/docs/METRICS.md.new
	mv $(srcdir)/docs/METRICS.md.new $(srcdir)/docs/METRICS.md
	proxy/retortctl$(EXEEXT) --print-manual > $(srcdir)/docs/commands.new
	sed -e '/^\.\\" commands: begin/r $(srcdir)/docs/commands.new' \
		-e '/^\.\\" commands: begin/p; /^\.\\" commands: begin/,/^\.\\" commands: end/{/commands: end/!d}' \
		$(srcdir)/docs/retortctl.1 > $(srcdir)/docs/retortctl.1.new
	mv $(srcdir)/docs/retortctl.1.new $(srcdir)/docs/retortctl.1
	rm $(srcdir)/docs/commands.new
	proxy/retortctl$(EXEEXT) completion bash > $(srcdir)/conf/completion/retortctl
	proxy/retortctl$(EXEEXT) completion zsh > $(srcdir)/conf/completion/_retortctl
	proxy/retortctl$(EXEEXT) completion fish > $(srcdir)/conf/completion/retortctl.fish
	icap-services/retort-service-test$(EXEEXT) --completion bash > $(srcdir)/conf/completion/retort-service-test
	icap-services/retort-service-test$(EXEEXT) --completion zsh > $(srcdir)/conf/completion/_retort-service-test
	icap-services/retort-service-test$(EXEEXT) --completion fish > $(srcdir)/conf/completion/retort-service-test.fish
.PHONY: docs
