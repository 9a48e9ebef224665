# limit: 1200
# The README's command, with time enough for a slow machine.
set -euo pipefail
go test -timeout 18m ./...
