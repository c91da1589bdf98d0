# The menu. `just` lists it; every line is an ordinary command that works without just.

# Data that are not built in; see README.
export ROTA_DATA := env("ROTA_DATA", "data")

# List what there is.
default:
    @just --list --unsorted

# Run a federation: `just run heart --seed 7`; without arguments the embedded one.
run *ARGS:
    cargo run --release -- simulate {{ARGS}}

# All tests.
test *ARGS:
    cargo test --workspace {{ARGS}}

# Clippy on everything, warnings denied.
lint:
    cargo clippy --workspace --all-targets -- -D warnings

# Format everything.
fmt:
    cargo fmt --all

# What has to pass before a change is done.
ci:
    .ci/run

# The Python wheel with the program in it, into dist/; needs Python 3.10 and installs maturin beside the build.
wheel:
    python3 -m venv target/maturin
    target/maturin/bin/pip install --quiet "maturin>=1.9,<2"
    cd python && ../target/maturin/bin/maturin build --profile dist --out ../dist

# The same for systems with glibc 2.28 and later, such as RHEL 8 and 9: the compiler and linker of zig, a package of the
# Python package index, build against its old symbols.
wheel-manylinux:
    python3 -m venv target/maturin
    target/maturin/bin/pip install --quiet "maturin[zig]>=1.9,<2"
    cd python && CARGO_ZIGBUILD_PYTHON_PATH={{justfile_directory()}}/target/maturin/bin/python ../target/maturin/bin/maturin build --profile dist --zig --compatibility manylinux_2_28 --out ../dist

# The sources of the Python package as one file, into dist/, from which pip builds a wheel with a Rust compiler.
sdist:
    python3 -m venv target/maturin
    target/maturin/bin/pip install --quiet "maturin>=1.9,<2"
    cd python && ../target/maturin/bin/maturin sdist --out ../dist

# The tests of the Python package, in a fresh environment, with the program that `cargo test` builds.
python:
    cargo test --workspace --test program --no-run
    python/check target/debug/rota

# The documentation of all crates.
doc:
    cargo doc --workspace --no-deps --document-private-items

# The book, into target/book/docs, with measurements beside it as the Markdown files that they are; needs
# `cargo install mdbook`, which takes every link to Markdown for one to a page of the book.
book:
    mdbook build docs
    cp -r measurements target/book/
    find target/book/docs -name '*.html' -exec perl -pi -e 's{(\.\./measurements/[^"#]*)\.html}{$1.md}g' {} +

# The package for Debian, into target/debian; needs `cargo install cargo-deb --locked`.
deb:
    cargo deb -p node --locked --profile dist

# Licences, advisories and sources of dependencies; needs `cargo install cargo-deny`.
deny:
    cargo deny check

# Writes console examples and pinned bytes anew; look at the difference before you commit it.
golden:
    ROTA_GOLDEN=write cargo test --workspace --test book --test golden
    ROTA_GOLDEN=write cargo test -p bare --lib -- traces_of_every_sort

# Seconds of a scenario with every check by every member, then with checks remembered: `just bench digits20`.
bench SCENARIO="digits20":
    cargo build --release
    target/release/rota simulate {{SCENARIO}} --no-references --quiet --json --check every-member | grep -E '"(seconds|trace|weights_abs_sum|signatures|cache)"'
    target/release/rota simulate {{SCENARIO}} --no-references --quiet --json | grep -E '"(seconds|trace|weights_abs_sum|signatures|cache)"'

# All the numbers of docs/performance.md.
bench-all: (bench "diabetes") (bench "digits20") (bench "digits100") (bench "null")

# Seconds and bytes of every strategy on a scenario, after a `cargo build --release`.
strategies SCENARIO="digits20":
    for name in $(target/release/rota strategies --json | grep -o '"name": "[a-z-]*"' | cut -d '"' -f 4); do echo "$name" $(target/release/rota simulate {{SCENARIO}} --strategy $name --no-references --quiet --json | grep -E '^  "(seconds|bytes)"'); done

# Exported ONNX graphs run by tract give what our own forward pass gives.
onnx:
    cargo test -p learn --features tract --lib -- export::tests::graphs

# Many federations of state machines under every fault, with changes of the agreement: `just sweep 1000`,
# or of one size only: `just sweep 1000 0 4`.
sweep SEEDS="1000" FIRST="0" MEMBERS="":
    cargo run --release -p bare --example sweep -- {{SEEDS}} {{FIRST}} {{MEMBERS}}

# The same of federations with masked rounds, of 4 to 10 members: `just sweep-masked 1000`.
sweep-masked SEEDS="1000" FIRST="0":
    cargo run --release -p bare --example sweep -- masked {{SEEDS}} {{FIRST}}

# One of these federations, told in sentences: `just replay-masked 591`.
replay-masked SEED:
    cargo run --release -p bare --example sweep -- replay-masked {{SEED}}

# The same of federations with noise: `just sweep-noised 1000`.
sweep-noised SEEDS="1000" FIRST="0":
    cargo run --release -p bare --example sweep -- noised {{SEEDS}} {{FIRST}}

# One of these federations, told in sentences: `just replay-noised 591`.
replay-noised SEED:
    cargo run --release -p bare --example sweep -- replay-noised {{SEED}}

# One of the federations of `just sweep`, told in sentences: `just replay 4 591`.
replay MEMBERS SEED:
    cargo run --release -p bare --example sweep -- replay {{MEMBERS}} {{SEED}}

# A digest of all events of many federations of every sort: equal before and after a change that changes
# no behaviour.
digest SEEDS="500":
    cargo run --release -p bare --example sweep -- digest {{SEEDS}}

# Breaks every rule of the protocol in turn, in a copy of the sources, and prints which tests notice:
# `just mutants R1` for one clause of the protocol, `just mutants AnyParent` for one mutant,
# `just mutants list` for all, `just mutants federations` for those that need a whole federation.
mutants *ONLY:
    cargo run -p bare --example mutants -- {{ONLY}}

# Real processes killed by SIGKILL, one federation after another: `just soak 1000`.
soak KILLS="100":
    ROTA_SOAK_KILLS={{KILLS}} cargo test --workspace --test kill -- --nocapture restarted

# Damaged and invented bytes for everything that reads bytes from outside: `just fuzz 60`.
fuzz MINUTES="10":
    ROTA_FUZZ_MINUTES={{MINUTES}} cargo test --workspace --test fuzz -- --nocapture --test-threads 1
    ROTA_FUZZ_MINUTES={{MINUTES}} cargo test --workspace --lib -- --nocapture blob_streams

# The figures of docs/performance.md that need processes.
figures:
    cargo test --release --test run -- figures:: --ignored --nocapture --test-threads 1

# The lead's mathematics, by criterion: `just mathematics coalitions`; all of it without a name.
mathematics NAME="":
    cargo bench -p methods --features bench {{ if NAME == "" { "--benches" } else { "--bench " + NAME } }}

# The tables of the built-in experiments, into measurements/results: those that are older than the code, or those
# that are named: `just results heart`; `just results --older` only says which are.
results *WORDS:
    cargo build --release --workspace --example results
    target/release/examples/results {{WORDS}}

# Milliseconds and bytes of a masked round: `just masks 100 1000000`; without numbers 10 and 100 members.
masks *NUMBERS:
    cargo run --release -p privacy --example measure -- {{NUMBERS}}

# The price of masked rounds beside clear ones, as a table: CPU time, bytes and memory of 4, 10 and 100
# members with 14, 10,000 and 1,000,000 parameters; or of some alone: `just price-masked 10 1000000`.
price-masked *NUMBERS:
    cargo run --release -p lab --example price -- {{NUMBERS}}

# A round of a large model on four processes, in clear and masked: `just price-large "4 100_000_000 1"`,
# members, parameters and rounds.
price-large SIZE="4 100_000_000 1":
    ROTA_LARGE="{{SIZE}}" cargo test --release --test run -- figures::measure_a_round_of_a_large_model --ignored --nocapture
    ROTA_LARGE="{{SIZE}}" ROTA_PRIVACY=masked cargo test --release --test run -- figures::measure_a_round_of_a_large_model --ignored --nocapture

# What federations with noise are worth on three public tables, as tables in Markdown: `just table-noised`, or
# over five splits only: `just table-noised 5`.
table-noised *SPLITS:
    cargo build --workspace --example noised
    target/debug/examples/noised {{SPLITS}}

# Nanoseconds of a draw of noise and of a coordinate that is clipped and rounded.
draws:
    cargo run --release -p privacy --example draws

# Attacks on membership in federations with noise, with 64 shadows each: the tables of docs/attacks.md.
attacks:
    cargo test --workspace --test federations -- --ignored --nocapture attacks::

# LibTorch for `--features tch`, into target/libtorch; prints the environment to set:
# `eval "$(just libtorch)"`, or `just libtorch cuda` for CUDA devices (docs/devices.md).
libtorch KIND="cpu":
    @examples/devices/libtorch.sh {{KIND}}
