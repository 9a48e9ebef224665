#!/usr/bin/env bash
# Builds what the end-to-end tests drive, from published crates, into one folder:
#
#   subc          the router without scopes, subc-daemon 0.24.0
#   scope-owner   the Rust SDK's example programs, subc-client-rs 0.30.3,
#   echo-module   unmodified: the published source with its published lock file
#   carrier       a module on the same SDK that opens onward routes (carrier/)
#   oldmodule     a provider on subc-protocol 0.26, from before scopes (oldmodule/)
#
#   build.sh [FOLDER]    FOLDER defaults to $SCOPEWARD_ROUTER_BIN, else
#                        ${XDG_CACHE_HOME:-~/.cache}/scopeward-realrouter
#
# Needs cargo and a C compiler. Every project is locked to the versions its crate was published
# with. What is built from the same recipe is not built again. The last line names the folder.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-${SCOPEWARD_ROUTER_BIN:-${XDG_CACHE_HOME:-$HOME/.cache}/scopeward-realrouter}}
mkdir -p "$out/stamp"
exec 9>"$out/lock"
flock 9 # one builder at a time: a second one waits and finds everything built
export CARGO_TARGET_DIR=$out/target CARGO_TERM_COLOR=never
export CARGO_PROFILE_DEV_DEBUG=0 CARGO_INCREMENTAL=0

recipe() { # what a binary is built from
	find "$here/$1" "$here/build.sh" -type f -print0 | sort -z | xargs -0 sha256sum | sha256sum | cut -d' ' -f1
}

# make NAME BINARY...: build_NAME unless its binaries are there and of this recipe.
make() {
	local project=$1 stamp sum
	shift
	stamp=$out/stamp/$project
	sum=$(recipe "${project/sdk/carrier}")
	local built=yes binary
	for binary in "$@"; do [ -x "$out/$binary" ] || built=no; done
	if [ "$built" = yes ] && [ "$(cat "$stamp" 2>/dev/null)" = "$sum" ]; then
		echo "have $*"
		return
	fi
	echo "building $* ..."
	build_"$project" "$@" 2>"$out/$project.log" || {
		tail -30 "$out/$project.log"
		return 1
	}
	echo "$sum" >"$stamp"
}

install_built() { # install_built FROM BINARY...
	local from=$1 binary
	shift
	for binary in "$@"; do
		cp "$from/$binary" "$out/$binary.new"
		mv "$out/$binary.new" "$out/$binary"
	done
}

build_router() { project router "$@"; }
build_oldmodule() { project oldmodule "$@"; }
build_carrier() { project carrier "$@"; }
project() {
	local dir=$here/$1
	shift
	(cd "$dir" && nice cargo build --locked) && install_built "$CARGO_TARGET_DIR/debug" "$@"
}

# The SDK's examples are no part of a dependency's build: its published source is copied out of
# cargo's own cache and built in place of a workspace.
build_sdk() {
	local manifest source example flags=()
	manifest=$(cd "$here/carrier" && cargo metadata --locked --format-version 1 |
		grep -o '"manifest_path":"[^"]*/subc-client-rs-0\.30\.3/Cargo\.toml"' | head -1 | cut -d'"' -f4)
	[ -n "$manifest" ] || { echo "cargo metadata names no subc-client-rs 0.30.3" >&2; return 1; }
	source=$out/sdk
	rm -rf "$source"
	cp -r "$(dirname "$manifest")" "$source"
	for example in "$@"; do flags+=(--example "$example"); done
	(cd "$source" && nice cargo build --locked "${flags[@]}") &&
		install_built "$CARGO_TARGET_DIR/debug/examples" "$@"
}

make router subc
make sdk scope-owner echo-module
make carrier carrier
make oldmodule oldmodule
echo "$out"
