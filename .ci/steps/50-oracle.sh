# limit: 1800
# The oracle against the real router without scopes.
set -euo pipefail
built oracle
play-oracle real
