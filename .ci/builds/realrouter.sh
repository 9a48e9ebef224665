# The router without scopes, the SDK's examples and our test modules, debug profile.
set -euo pipefail
exec bash deploy/realrouter/build.sh "$SCOPEWARD_ROUTER_BIN"
