# limit: 600
# Sessions, table, router and clock in one process, two thousand seeds. A seed
# that fails is named, and replays exactly. 30-mutants shows that it finds five
# named bugs within a few hundred.
set -euo pipefail
SCOPEWARD_SIM_FIRST=0 SCOPEWARD_SIM_SEEDS=${SCOPEWARD_SIM_SEEDS:-2000} \
	go test -count=1 -v -run '^TestSimulation' ./proxy
