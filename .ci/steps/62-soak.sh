# limit: 1200
# Two minutes of mixed load with churn on the real router. SCOPEWARD_E2E_SOAK=30m plays longer.
set -euo pipefail
built realrouter
export SCOPEWARD_E2E=required
go test -count=1 -timeout 15m -v -run '^TestSoak$' ./deploy/e2e >"$CI_WORK/soak.txt" 2>&1 ||
	{ grep -v '^=== ' "$CI_WORK/soak.txt" | tail -n 100; exit 1; }
grep -E '^(---|ok|    )' "$CI_WORK/soak.txt"
if grep -q -- '--- SKIP' "$CI_WORK/soak.txt"; then echo "a test was skipped"; exit 1; fi
