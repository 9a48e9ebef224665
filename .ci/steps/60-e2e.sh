# limit: 1800
# The real router with SDK modules behind the sidecar. Nothing may skip. The seed is the commit's:
# a failing sample can be played again.
set -euo pipefail
built realrouter
export SCOPEWARD_E2E=required
export SCOPEWARD_E2E_SEED=${SCOPEWARD_E2E_SEED:-$((16#$(git rev-parse HEAD | cut -c1-8)))}
echo "seed $SCOPEWARD_E2E_SEED"
packages=$(grep -rl --include="*_test.go" SCOPEWARD_E2E . | xargs -n1 dirname | sort -u)
# Faults and the soak have steps of their own.
if ! go test -count=1 -timeout 25m -parallel 6 -v -skip '^(TestFaults|Test.*(Exhausted|Full|Spoilt|Upgraded)|TestSoak)$' $packages >"$CI_WORK/e2e.txt" 2>&1; then
	grep -A 12 'Error Trace' "$CI_WORK/e2e.txt" | cut -c1-300 | tail -n 120
	grep -e '--- FAIL' -e '^panic' -e '^FAIL' "$CI_WORK/e2e.txt"
	exit 1
fi
grep -e '^--- ' -e '^ok' -e 'back after' -e 'good opens' -e 'idle connections' -e ' p99 ' "$CI_WORK/e2e.txt"
if grep -q -- '--- SKIP' "$CI_WORK/e2e.txt"; then echo "a test was skipped"; exit 1; fi
