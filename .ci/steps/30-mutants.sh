# limit: 900
# A rule that is taken out of the source makes its test fail by name.
set -euo pipefail
go run ./.ci/mutants
