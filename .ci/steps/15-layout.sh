# Only the agreed top-level entries exist, and nothing in a test waits by sleeping.
set -euo pipefail
extra=$(git ls-files | cut -d/ -f1 | sort -u | grep -v '^\.' |
	grep -v -x -e proxy -e admission -e table -e sidecar -e bpf -e deploy -e cmd -e go.mod -e go.sum -e README.md || true)
[ -z "$extra" ] || { echo "unexpected top-level entries: $extra"; exit 1; }
if git grep -n 'time\.Sleep' -- '*_test.go'; then echo "a test sleeps"; exit 1; fi
