# limit: 600
# The README's command.
set -euo pipefail
go test ./...
