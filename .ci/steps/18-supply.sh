# limit: 900
# What we are built of, and that anybody can build the same: the licence of every module, go.sum's
# word on what lies in the module cache, and two builds, from another folder with an empty cache, that
# are the same bytes. Nothing is fetched. A vulnerability data base is not asked: it is on the network.
set -euo pipefail
go vet ./.ci/licences
go test ./.ci/licences
go run ./.ci/licences
go mod verify
again=$CI_WORK/again
mkdir -p "$again/elsewhere"
git ls-files -z | xargs -0 tar -c | tar -x -C "$again/elsewhere"
build() { CGO_ENABLED=0 GOFLAGS=-mod=readonly go build -trimpath -buildvcs=false -o "$1" ./cmd/scopeward; }
build "$again/one"
(cd "$again/elsewhere" && GOCACHE=$again/cache build "$again/two")
cmp "$again/one" "$again/two"
unshare -rn "$again/one" version # where there is no network, not even loopback
sha256sum "$again/one" | cut -d' ' -f1
rm -rf "$again"
