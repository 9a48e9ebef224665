# limit: 300
# What a relayed call costs in system calls, copied bytes and allocations: counts that no machine
# changes. They may fall; the test fails when they rise, and the benchmark prints them.
set -euo pipefail
go test -count=1 -run '^(TestARelayedCallCostsOneWaitReadAndWriteEachWay|TestRelayAllocatesNothing)$' \
	-bench '^BenchmarkRelayedCall$' -benchtime 20x ./proxy >"$CI_WORK/counts.txt" || { cat "$CI_WORK/counts.txt"; exit 1; }
sed -nE 's/^BenchmarkRelayedCall\/([^[:space:]]+)-[0-9]+[[:space:]].* ns\/op/\1:/p' "$CI_WORK/counts.txt" | tr -s ' \t' ' ' >"$CI_WORK/rows.txt"
[ -s "$CI_WORK/rows.txt" ]
paste -sd '|' "$CI_WORK/rows.txt" | sed 's/|/\n/2'
