# limit: 600
# What is generated and committed is what the generator makes today.
set -euo pipefail
before=$(git status --porcelain; git diff)
go generate ./...
after=$(git status --porcelain; git diff)
[ "$before" = "$after" ] || { git status --porcelain; git diff --stat; echo "go generate ./... changes what is committed"; exit 1; }
