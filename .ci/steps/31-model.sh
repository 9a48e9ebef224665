# limit: 900
# The table beside its naive model for 200,000 steps, and concurrent histories
# checked for linearizability.
set -euo pipefail
go test -count=1 -v -run 'TheTableAndTheModelAgree$' ./table/model -steps=200000 -rapid.steps=80 | grep -v '\[rapid\] OK'
go test -race -count=1 -v -run 'AreLinearizable$' ./table/model | tail -n 3
