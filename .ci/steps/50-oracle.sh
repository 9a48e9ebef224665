# limit: 900
# The oracle against the real router: every transcript is the recorded one, but for the differences
# that the README's table names.
set -euo pipefail
[ -d "$SHARED/oracle" ] || { echo "no oracle at $SHARED/oracle (set SHARED)"; exit 1; }
built oracle
go build -o "$CI_WORK/scopeward" ./cmd/scopeward
log=$CI_WORK/oracle.txt
PYTHONDONTWRITEBYTECODE=1 ORACLE_WORK=$CI_WORK/oracle SCOPEWARD=$CI_WORK/scopeward \
	python3 "$SHARED/oracle/run.py" --world sidecar --compare "$SHARED/oracle/golden" -j 3 >"$log" || true
grep -v '^OK ' "$log"
tail -n 1 "$log" | grep -q '^[0-9]* passed, ' || { echo "the oracle did not finish"; exit 1; }
[ "$(grep -c '^OK ' "$log")" -gt 200 ] || { echo "too few scenarios ran"; exit 1; }

# The first column of the table under "## Differences from the native router".
allowed=$(sed -n '/^## Differences from the native router/,/^## /p' README.md |
	sed -n 's/^| *`\([a-z0-9_]*\)`.*/\1/p' | sort -u)
differ=$(sed -n 's/^\(DIFF\|ERROR\) *\([a-z0-9_]*\).*/\2/p' "$log" | sort -u)
unlisted=$(comm -13 <(echo "$allowed") <(echo "$differ"))
[ -z "$unlisted" ] || { echo "differences that the README does not list:"; echo "$unlisted"; exit 1; }
for name in $allowed; do
	# Kept true the other way too: what is listed differs, here or by a transcript of our own.
	grep -qx "$name" <<<"$differ" || [ -e "$SHARED/oracle/golden/ours/$name.json" ] ||
		{ echo "the README lists $name, which does not differ"; exit 1; }
done
tail -n 1 "$log"
