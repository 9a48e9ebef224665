# The units as systemd 252 reads them, in a root of their own: clean, and exposed no more than 2.0.
set -euo pipefail
root=$CI_WORK/units
mkdir -p "$root/etc/systemd/system" "$root/usr/lib/systemd/system" "$root/usr/bin" "$root/bin"
cp -r deploy/*.service deploy/*.socket deploy/*.service.d "$root/etc/systemd/system/"
cp deploy/scopeward@.service "$root/etc/systemd/system/scopeward@alice.service"
printf '[Service]\nExecStart=/usr/bin/subc\n' >"$root/etc/systemd/system/subc.service"
cp /bin/true "$root/usr/bin/scopeward"
cp /bin/true "$root/usr/bin/subc"
cp /bin/true "$root/bin/kill"
cp /usr/lib/systemd/system/*.target /usr/lib/systemd/system/*.slice /usr/lib/systemd/system/systemd-user-sessions.service \
	"$root/usr/lib/systemd/system/" 2>/dev/null || true
said=$(systemd-analyze verify --root="$root" scopeward.service scopeward@alice.service scopeward.socket subc.service 2>&1) ||
	{ echo "$said"; exit 1; }
[ -z "$said" ] || { echo "$said"; exit 1; }
for unit in scopeward.service scopeward@alice.service; do
	systemd-analyze security --offline=true --threshold=20 --no-pager --root="$root" "$unit" >"$CI_WORK/exposure.txt" ||
		{ cat "$CI_WORK/exposure.txt"; exit 1; }
	tail -n 1 "$CI_WORK/exposure.txt"
done
# The sidecar comes after the router, never the reverse.
if grep -l '^Before=subc' deploy/scopeward*.service; then exit 1; fi
grep -q '^Before=scopeward.service' deploy/subc.service.d/50-scopeward.conf
# The filter as the manager reads it, line by line: what attaching, giving up privileges and the
# proxy's scheduling take is let through, though sets that are refused hold it.
for unit in deploy/scopeward*.service; do
	last=$(grep '^SystemCallFilter=' "$unit" | tail -n 1)
	[ "$last" = "SystemCallFilter=bpf capset sched_setattr" ] || { echo "$unit: $last"; exit 1; }
done
