# The oracle's own build of the same router, by its own recipe.
set -euo pipefail
[ -x "$SHARED/oracle/build.sh" ] || { echo "no oracle at $SHARED/oracle (set SHARED)"; exit 1; }
exec bash "$SHARED/oracle/build.sh" "$ORACLE_CACHE" 0.24.0
