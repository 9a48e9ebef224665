# limit: 1800
# The real router under faults: a seeded sample of the matrix, resources that run out, connection
# files that are spoilt, a router that is upgraded underneath. SCOPEWARD_E2E_FAULTS=all plays all 90.
set -euo pipefail
built realrouter
built nativerouter
export SCOPEWARD_E2E=required
export SCOPEWARD_E2E_SEED=${SCOPEWARD_E2E_SEED:-$((16#$(git rev-parse HEAD | cut -c1-8)))}
echo "seed $SCOPEWARD_E2E_SEED"
go test -count=1 -timeout 25m -parallel 6 -v -run '^(TestFaults|Test.*(Exhausted|Full|Spoilt|Upgraded))$' ./deploy/e2e >"$CI_WORK/faults.txt" 2>&1 ||
	{ grep -v '^=== ' "$CI_WORK/faults.txt" | tail -n 200; exit 1; }
grep -E '^(---|\s+---|ok|    )' "$CI_WORK/faults.txt" | tail -n 60
if grep -q -- '--- SKIP' "$CI_WORK/faults.txt"; then echo "a test was skipped"; exit 1; fi
