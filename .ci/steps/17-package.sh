# limit: 900
# The Debian package in a throw-away root: installed, upgraded, removed, purged. No systemctl runs.
set -euo pipefail
export GOARCH=amd64 CGO_ENABLED=0
dir=$CI_WORK/package root=$CI_WORK/package/root
mkdir -p "$root/var/lib/dpkg" "$dir/out"
touch "$root/var/lib/dpkg/status"
export SCOPEWARD_BINARY=$dir/scopeward
go build -trimpath -o "$SCOPEWARD_BINARY" ./cmd/scopeward
for version in 0.1.0 0.2.0; do
	SCOPEWARD_VERSION=$version go run github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.2 \
		package --config deploy/package/nfpm.yaml --packager deb --target "$dir/out/scopeward_$version.deb"
done

dpkg_in() { dpkg --root="$root" --force-script-chrootless --force-not-root --log=/dev/null "$@"; }
files() { (cd "$root" && find . -path ./var/lib/dpkg -prune -o -print | sort); }
state() { dpkg-query --admindir="$root/var/lib/dpkg" -W -f '${Version} ${db:Status-Status}\n' scopeward; }
before=$(files)

dpkg_in --install "$dir/out/scopeward_0.1.0.deb"
[ "$(state)" = "0.1.0 installed" ]
for file in usr/bin/scopeward usr/lib/systemd/system/scopeward.service usr/lib/systemd/system/scopeward@.service \
	usr/lib/systemd/system/scopeward.socket etc/scopeward/scopeward.jsonc etc/systemd/system/scopeward.service.d/50-settings.conf; do
	[ -f "$root/$file" ] || { echo "not installed: $file"; exit 1; }
done
[ ! -e "$root/etc/systemd/system/subc.service.d" ]
"$root/usr/bin/scopeward" check --config "$root/etc/scopeward/scopeward.jsonc"
if getcap "$root/usr/bin/scopeward" 2>/dev/null | grep .; then echo "the program has file capabilities"; exit 1; fi

echo "// mine" >>"$root/etc/scopeward/scopeward.jsonc"
dpkg_in --install "$dir/out/scopeward_0.2.0.deb"
[ "$(state)" = "0.2.0 installed" ]
grep -q '^// mine' "$root/etc/scopeward/scopeward.jsonc"

mkdir -p "$root/var/lib/scopeward"
touch "$root/var/lib/scopeward/ledger.db"
dpkg_in --remove scopeward
[ "$(state)" = "0.2.0 config-files" ]
[ ! -e "$root/usr/bin/scopeward" ]
grep -q '^// mine' "$root/etc/scopeward/scopeward.jsonc"
[ -e "$root/var/lib/scopeward/ledger.db" ]

dpkg_in --purge scopeward
after=$(files)
[ "$before" = "$after" ] || { diff <(echo "$before") <(echo "$after"); exit 1; }
echo "installed, upgraded, removed and purged: nothing is left"
