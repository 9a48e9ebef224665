# limit: 900
# The benchmark's ratios, printed for whoever compares and never asserted: they are this machine's, at
# this hour. Only a world that does not start, or a row without a figure, fails.
set -euo pipefail
built nativerouter
go run ./cmd/wirebench -short -json "$CI_WORK/bench.json" >"$CI_WORK/bench.txt" || { cat "$CI_WORK/bench.txt"; exit 1; }
cat "$CI_WORK/bench.txt"
awk -F '|' '/ x (haproxy|native) / { print $2 ":" $(NF-3) $(NF-1) }' "$CI_WORK/bench.txt" | tr -s ' ' | paste -sd ';'
