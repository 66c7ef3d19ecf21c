#!/bin/sh
# Tests a program of libibverbs on a machine without RDMA, on a good network and on bad ones. For a program of your own
# change the lines "build" and "run".
#
# usage: test.sh           environment: SOFTRNIC (softrnic), CC (cc)
set -eu
: "${SOFTRNIC:=softrnic}" "${CC:=cc}"
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

$CC -O1 -g -Wall -Wextra -o "$work/pair" pair.c -libverbs # build

# Each line is a fault model. One seed is one pattern of faults. ../../docs/faults.md lists more.
while IFS= read -r faults; do
  echo "network: ${faults:-good}"
  if ! timeout 60 "$SOFTRNIC" run --impair "$faults" --explain --capture "$work/packets.pcapng" -- "$work/pair" 200; then # run
    if cp "$work"/packets.pcapng* . 2>/dev/null; then echo "failed; Wireshark reads the packets in $PWD/packets.pcapng*" >&2; fi
    exit 1
  fi
done <<'FAULTS'

loss 1% seed 1
loss 2% duplicate 1% reorder 5% delay 100us seed 2
drop 3rd WRITE_LAST
FAULTS
echo passed
