# limit: 600
# go.mod says exactly what is imported, and go.sum what was published.
set -euo pipefail
go mod tidy -diff
go mod verify
