# make demo   does all the set-up and shows a congestion event become a CNP
# make test   does all the set-up and runs every test
# The other targets are for those who work on pncd.

SHELL       := /bin/bash
.SHELLFLAGS := -o pipefail -ec

GO       ?= go
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS  := -s -w -X pncd/internal/version.version=$(VERSION)
TOOLS    := $(CURDIR)/bin/tools
FUZZTIME ?= 60s
FAMILY   ?= 4
SID_ROOT ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/pncd/frr-sid
export FAMILY PCAP

.PHONY: all build demo test bench lab-frr-sid generate lint fuzz dist setup check-go clean

all: build

check-go:
	@integration/setup.sh --go

# Debian or Ubuntu packages that the labs use; says what is missing where it can't install them.
setup: check-go
	@integration/setup.sh --labs

build: check-go
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/ ./cmd/pncd ./cmd/pncctl ./cmd/pnclab

# FAMILY=6 for IPv6; PCAP=file replays the RoCEv2 packets of a capture.
demo: setup build
	@bin/pnclab demo --family $(FAMILY) $(if $(PCAP),--pcap "$$PCAP")

# The race detector makes the learning simulation slow, so its long cases run a second time without it; and it finds a
# race in GoBGP's BMP, whose tests run without it only.
# The filter fails on a skip that .ci/allowed-skips does not list when CI is set.
test: setup build
	$(GO) build -C tools -o $(TOOLS)/gotest ./gotest
	$(GO) test -race -timeout 35m -json ./... | $(TOOLS)/gotest
	$(GO) test -count=1 -timeout 15m -json ./proxyagent/flowmap | $(TOOLS)/gotest -figures
	$(GO) test -count=1 -timeout 5m -run Station -json ./bgp/engine ./integration | $(TOOLS)/gotest

bench: setup build
	@set -f; $(GO) run ./integration/bench/run $(BENCH)

# Optional, not in CI: FRR of Debian sid, which knows NHC, as a route reflector; see docs/bgp.md. Needs root. The first
# run fetches Debian sid (about 400 MB on disk) to SID_ROOT, where it stays; `rm -rf` removes it.
lab-frr-sid: setup
	@integration/setup.sh --sid
	@integration/sid.sh $(SID_ROOT)
	$(GO) vet -tags sid ./integration
	SID_ROOT=$(SID_ROOT) $(GO) test -tags sid -count=1 -v -run '^TestSid' ./integration

generate: $(TOOLS)/buf
	PATH="$(TOOLS):$$PATH" $(TOOLS)/buf generate

$(TOOLS)/buf $(TOOLS)/staticcheck &: tools/go.mod
	$(GO) build -C tools -o $(TOOLS)/ tool

# Formatting, vet, staticcheck, the protobuf's style, and generated code that is current.
lint: check-go $(TOOLS)/buf $(TOOLS)/staticcheck
	@out=$$(gofmt -l $$(git ls-files '*.go')); test -z "$$out" || { echo "gofmt would change:"; echo "$$out"; exit 1; }
	$(GO) vet ./...
	$(TOOLS)/staticcheck ./...
	cd proto && $(TOOLS)/buf lint
	@tmp=$$(mktemp -d) && trap 'rm -rf "$$tmp"' EXIT && \
	  PATH="$(TOOLS):$$PATH" $(TOOLS)/buf generate -o "$$tmp" && diff -r "$$tmp/api/pnc" api/pnc || \
	  { echo "api/ is not what proto/ says: run 'make generate'"; exit 1; }
	$(GO) mod tidy -diff
	$(GO) mod verify

# Every fuzz target for FUZZTIME each, one after the other.
fuzz: check-go
	@set -e; for pkg in $$($(GO) list ./...); do \
	  for f in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
	    echo "$$pkg $$f"; $(GO) test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x $$pkg; done; done

# A tarball with static binaries, the unit, the reference configuration, the documentation and licences.
# The same commit gives the same octets.
dist: build
	@GO=$(GO) deploy/dist.sh $(VERSION) bin dist

clean:
	rm -rf bin dist
