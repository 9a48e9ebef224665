# limit: 900
# Every fuzz target, ten seconds each, two at once; the one that looks for a
# scope that two readers see differently a minute. A package is compiled once for
# all of its targets.
set -euo pipefail
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n 1 dirname | sort -u >"$out/packages"
while read -r package; do
	binary=$out/$(tr -c 'a-z0-9\n' _ <<<"$package")
	go test -c -fuzz=. -o "$binary" "$package"
	(cd "$package" && "$binary" -test.list '^Fuzz') | sed "s|^|$binary $package |"
done <"$out/packages" >"$out/targets"
run() { # BINARY PACKAGE TARGET
	local log=$1.$3.log time=10s
	[ "$3" = FuzzOpenNeverUnscoped ] && time=60s
	if (cd "$2" && "$1" -test.run '^$' -test.fuzz "^$3\$" -test.fuzztime $time -test.fuzzminimizetime 1s -test.parallel 1 \
		-test.timeout 300s -test.fuzzcachedir "$1.cache") >"$log" 2>&1; then
		echo "$2 $3: $(grep -o 'execs: [0-9]*' "$log" | tail -1)"
	else
		echo "$2 $3 FAILED" && cat "$log"
		exit 1
	fi
}
export -f run
xargs -P 2 -L 1 bash -c 'run "$@"' _ <"$out/targets"
count=$(wc -l <"$out/targets")
echo "$count fuzz targets"
[ "$count" -gt 0 ]
