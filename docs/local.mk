# Manuals. CONFIGURATION.md is printed from the option table and kept in the tree, so that it can be read
# without building; tests/unit/proxy checks that it is current. retort.conf.5 has the same text, and is made
# where it is built. METRICS.md is printed from the table of counters; tests/check-docs.sh checks that.
dist_man_MANS += docs/retort.8 docs/retortctl.1 docs/retort-icap-replay.1 docs/retort-logs.1
man_MANS += docs/retort.conf.5
CLEANFILES += docs/retort.conf.5
dist_doc_DATA = README.md CHANGELOG.md SECURITY.md LICENSE docs/ACCESS.md docs/API.md docs/ARCHITECTURE.md docs/CACHE.md docs/CONFIGURATION.md docs/CONFORMANCE.md docs/FLEET.md docs/ICAP.md \
	docs/GLOSSARY.md docs/HTTP2.md docs/METRICS.md docs/OPERATIONS.md docs/PERFORMANCE.md docs/SERVICES.md docs/START.md docs/TESTING.md docs/TLS.md docs/TRANSPARENT.md
adrdir = $(docdir)/adr
dist_adr_DATA = docs/adr/adaptation.md docs/adr/cache.md docs/adr/calls-to-origins.md docs/adr/clients.md docs/adr/fleet.md docs/adr/http2.md docs/adr/interception.md docs/adr/journal.md docs/adr/origins.md docs/adr/rules.md docs/adr/services-as-adapters.md docs/adr/services.md docs/adr/surprises.md docs/adr/takeover.md docs/adr/tls.md docs/adr/urls.md
EXTRA_DIST += docs/build-site.sh docs/site/mkdocs.yml docs/site/check_links.py docs/write-metrics.sh docs/plots docs/pictures examples/security-headers.conf

docs/retort.conf.5: proxy/print-options$(EXEEXT)
	$(MKDIR_P) docs
	proxy/print-options$(EXEEXT) > $@.new
	mv $@.new $@

docs: proxy/retort$(EXEEXT) proxy/retortctl$(EXEEXT) icap-services/retort-helperd$(EXEEXT) icap-services/retort-service-test$(EXEEXT)
	proxy/retort$(EXEEXT) --print-options markdown > $(srcdir)/docs/CONFIGURATION.md.new
	mv $(srcdir)/docs/CONFIGURATION.md.new $(srcdir)/docs/CONFIGURATION.md
	$(srcdir)/docs/write-metrics.sh > $(srcdir)/docs/METRICS.md.new
	mv $(srcdir)/docs/METRICS.md.new $(srcdir)/docs/METRICS.md
	proxy/retortctl$(EXEEXT) --print-manual > $(srcdir)/docs/commands.new
	sed -e '/^\.\\" commands: begin/r $(srcdir)/docs/commands.new' \
		-e '/^\.\\" commands: begin/p; /^\.\\" commands: begin/,/^\.\\" commands: end/{/commands: end/!d}' \
		$(srcdir)/docs/retortctl.1 > $(srcdir)/docs/retortctl.1.new
	mv $(srcdir)/docs/retortctl.1.new $(srcdir)/docs/retortctl.1
	rm $(srcdir)/docs/commands.new
	icap-services/retort-helperd$(EXEEXT) --print-manual > $(srcdir)/docs/options.new
	sed -e '/^\.\\" options: begin/r $(srcdir)/docs/options.new' \
		-e '/^\.\\" options: begin/p; /^\.\\" options: begin/,/^\.\\" options: end/{/options: end/!d}' \
		$(srcdir)/docs/retort-helperd.8 > $(srcdir)/docs/retort-helperd.8.new
	mv $(srcdir)/docs/retort-helperd.8.new $(srcdir)/docs/retort-helperd.8
	rm $(srcdir)/docs/options.new
	proxy/retortctl$(EXEEXT) completion bash > $(srcdir)/conf/completion/retortctl
	proxy/retortctl$(EXEEXT) completion zsh > $(srcdir)/conf/completion/_retortctl
	proxy/retortctl$(EXEEXT) completion fish > $(srcdir)/conf/completion/retortctl.fish
	icap-services/retort-service-test$(EXEEXT) --completion bash > $(srcdir)/conf/completion/retort-service-test
	icap-services/retort-service-test$(EXEEXT) --completion zsh > $(srcdir)/conf/completion/_retort-service-test
	icap-services/retort-service-test$(EXEEXT) --completion fish > $(srcdir)/conf/completion/retort-service-test.fish
.PHONY: docs
