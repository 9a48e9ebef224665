# A router that serves scopes itself, for the upgrade: by the oracle's recipe, after its first one,
# since both share a target folder.
set -euo pipefail
built oracle
exec bash "$SHARED/oracle/build.sh" "$ORACLE_CACHE" 0.36.15
