#!/bin/sh
# Builds the drop-in libraries into a directory:
#
#   libsoftrnic-preload.so                      for LD_PRELOAD: names of libibverbs, loads the engine on use
#   libsoftrnic-engine.so                       the adapter and the functions
#   standin/libibverbs.so.1.d/libibverbs.so.1   for LD_LIBRARY_PATH without rdma-core
#
# usage: build.sh DIR [preload|engine]
# environment: CC (gcc), GO (go)
set -eu
usage() { echo "usage: $0 DIR [preload|engine]" >&2; exit 2; }
[ $# -ge 1 ] && [ $# -le 2 ] || usage
part=${2-all}
case $part in all | preload | engine) ;; *) usage ;; esac
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")"
: "${CC:=gcc}" "${GO:=go}"

missing() { echo "$0: $1" >&2; exit 1; }
has_header() { echo "#include <$1>" | "$CC" -E -x c - >/dev/null 2>&1; }

[ "$(uname -s)" = Linux ] || missing "the drop-in libraries are for Linux, this is $(uname -s)"
command -v "$CC" >/dev/null || missing "no C compiler: $CC not found; Debian: apt-get install gcc libc6-dev"
has_header stdio.h || missing "$CC finds no <stdio.h>; Debian: apt-get install libc6-dev"
case $("$CC" -dumpmachine) in
  x86_64-*linux-gnu | x86_64-redhat-linux | x86_64-suse-linux) arch=amd64 ;;
  aarch64-*linux-gnu | aarch64-redhat-linux | aarch64-suse-linux) arch=arm64 ;;
  *) missing "$CC builds for $("$CC" -dumpmachine); the drop-in libraries exist for x86_64 and aarch64 with glibc" ;;
esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
warn="-Wall -Wextra"

# link_library FILE SOURCES FLAGS links atomically: another process may have the file loaded.
link_library() {
  file=$1; shift
  # shellcheck disable=SC2086
  "$CC" -std=gnu11 -O2 -g1 -fPIC -fvisibility=hidden $warn -shared -Wl,-z,now,-z,relro,-z,noseparate-code,-O1 \
    -Wl,--hash-style=gnu,--no-undefined "$@" -o "$work/library.so" -Wl,--as-needed -ldl
  mv -f "$work/library.so" "$file"
}

build_preload() {
  awk -v FORM=functions -f preload/generate.awk preload/symbols.txt >"$work/symbols.inc"
  awk -v FORM=versions -f preload/generate.awk preload/symbols.txt >"$work/versions"
  link_library "$out/libsoftrnic-preload.so" -I "$work" -Wl,-soname,libsoftrnic-preload.so \
    preload/resolve.c preload/redirect.c preload/paths.c preload/glob.c preload/ftw.c preload/dlopen.c preload/channel.c \
    preload/signals.c preload/trampoline_$arch.S
  mkdir -p "$out/standin/libibverbs.so.1.d"
  link_library "$out/standin/libibverbs.so.1.d/libibverbs.so.1" -I "$work" -DSTANDIN=1 -Wl,-soname,libibverbs.so.1 \
    -Wl,--version-script="$work/versions" preload/resolve.c preload/strings.c preload/trampoline_$arch.S
}

build_engine() {
  command -v "$GO" >/dev/null || missing "no Go: $GO not found; see https://go.dev/dl, or Debian: apt-get install golang"
  for header in infiniband/verbs.h:libibverbs-dev rdma/rdma_cma.h:librdmacm-dev; do
    has_header "${header%:*}" || missing "$CC finds no <${header%:*}>; Debian: apt-get install ${header#*:}"
  done
  # Goroutines are not preempted by SIGURG: see engine/signals.c.
  CGO_ENABLED=1 CC=$CC "$GO" build -trimpath -buildmode=c-shared -ldflags=-X=runtime.godebugDefault=asyncpreemptoff=1 \
    -o "$work/engine.so" ./engine
  mv -f "$work/engine.so" "$out/libsoftrnic-engine.so"
}

[ "$part" = engine ] || build_preload
[ "$part" = preload ] || build_engine
