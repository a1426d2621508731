//go:build h2spec

// Package h2spec names the conformance suite for HTTP/2 that tests/data/fetch.sh builds, so that go.mod can hold its version and
// those of what it uses. They are of a time when Go 1.19, Debian's, could build them.
package h2spec

import _ "github.com/summerwind/h2spec/cmd/h2spec"
