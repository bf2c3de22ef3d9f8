# `make` alone lists the tasks.
SHELL := /bin/bash
SWIFT ?= swift
PREFIX ?= /usr/local
MINUTES ?= 1
SEED ?= 1
COUNT ?= 2000
# The Swift libraries go into the programs, so that they start quickly and run without the toolchain.
RELEASE := -c release --static-swift-stdlib
BIN = .build/release

.DEFAULT_GOAL := help
.PHONY: help deps toolchain build demo test check bench bench-queue bench-video bench-photos bench-upload photo-bench part-bench compare-corpus soak-ingest soak-upload soak fuzz install clean

help: ## list the tasks
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

deps: ## install the Debian packages of packages.txt that are missing
	@scripts/install-packages packages.txt

toolchain:
	@command -v $(SWIFT) >/dev/null || { echo "swift was not found: install the Swift 6.3 toolchain and put it on PATH"; exit 1; }

build: deps toolchain ## build the programs for use
	@$(SWIFT) build $(RELEASE) --product rushes
	@$(SWIFT) build $(RELEASE) --product rushes-media

demo: build ## run the main job on the fixtures and show what came of it
	@scripts/demo $(BIN)/rushes

test: deps toolchain ## everything that must hold: style, unit, pipeline and crash tests, in debug and release
	@scripts/test

check: toolchain ## the style alone
	@$(SWIFT) format lint --strict --parallel -r Package.swift Sources Tests

bench: build photo-bench part-bench ## time Rushes beside its peers: Benchmarks/
	@for bench in Benchmarks/bench-*; do $$bench $(BIN)/rushes || exit 1; done

bench-queue: build ## what the queue itself costs, over COUNT (2000) small photos
	@Benchmarks/bench-queue $(BIN)/rushes --count $(COUNT)

bench-photos: build photo-bench ## thumbnails beside libvips and ImageMagick, and 1,000 photos through the worker
	@Benchmarks/bench-photos $(BIN)/rushes

bench-upload: build part-bench ## uploads beside s5cmd, boto3, aws, rclone and tuspy: CPU a GiB, memory; 500 photos over a slow link
	@Benchmarks/bench-upload $(BIN)/rushes

part-bench: toolchain
	@$(SWIFT) build $(RELEASE) --product part-bench

photo-bench: toolchain
	@$(SWIFT) build $(RELEASE) --product photo-bench

bench-video: build ## one pass beside the usual chain of ffmpeg commands, on generated 4K clips: CPU, VMAF, bytes, memory
	@Benchmarks/bench-video $(BIN)/rushes

compare-corpus: build ## what ffmpeg's plain command and Rushes make of each kind of video: compare-corpus.md
	@scripts/compare-corpus --rushes $(BIN)/rushes

fuzz: build ## damaged photos, videos and sounds for MINUTES (1) by SEED (1): each ends in a result or a code
	@scripts/fuzz --rushes $(BIN)/rushes --minutes $(MINUTES) --seed $(SEED)

soak-ingest: build ## ingest under random kill -9 of box, backend and media processes for MINUTES (1), replayable by SEED (1)
	@scripts/soak-ingest --rushes $(BIN)/rushes --minutes $(MINUTES) --seed $(SEED)

soak-upload: build ## uploads over a bad network under random kill -9 of box, backend and store for MINUTES (1), by SEED (1)
	@scripts/soak-upload --rushes $(BIN)/rushes --minutes $(MINUTES) --seed $(SEED)

soak: soak-ingest soak-upload ## both

install: build ## put the programs into PREFIX/bin (/usr/local)
	install -d $(DESTDIR)$(PREFIX)/bin
	install -m 755 $(BIN)/rushes $(BIN)/rushes-media $(DESTDIR)$(PREFIX)/bin

clean: ## remove what was built and the demo's folder
	rm -rf .build .demo
