# limit: 900
# Every fuzz target, ten seconds each.
set -euo pipefail
count=0
for package in $(go list ./...); do
	for target in $(go test -list '^Fuzz' "$package" | grep '^Fuzz' || true); do
		echo "$package $target"
		go test -run '^$' -fuzz "^$target\$" -fuzztime 10s "$package"
		count=$((count + 1))
	done
done
echo "$count fuzz targets"
[ "$count" -gt 0 ]
