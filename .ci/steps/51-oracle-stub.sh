# limit: 1200
# The oracle against the stub router: it is as faithful as the tests that stand on it need it.
set -euo pipefail
go build -o "$CI_WORK/stubrouter" ./.ci/stubrouter
play-oracle stub "$CI_WORK/stubrouter"
