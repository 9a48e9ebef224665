# limit: 300
# The README's other command: the whole story on loopback, with Go alone.
set -euo pipefail
go run ./cmd/scopeward demo
go run ./cmd/scopeward demo --json >"$CI_WORK/demo.json"
python3 -c 'import json, sys; [json.loads(line) for line in open(sys.argv[1])]' "$CI_WORK/demo.json"
