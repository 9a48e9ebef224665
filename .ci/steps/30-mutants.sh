# limit: 1800
# A rule that is taken out of the source makes its test fail by name.
set -euo pipefail
go vet ./.ci/mutants
go tool staticcheck ./.ci/mutants
go test ./.ci/mutants
go run ./.ci/mutants
