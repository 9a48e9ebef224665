package table

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// rules are the sentences of the contract that the table decides, by section. A
// test says with claim which of them it would fail without.
var rules = map[string]string{
	"2.key":                 "the same ref under two owners is two scopes",
	"2.owner":               "owner is the registering connection's, direct cannot own a scope",
	"2.ref":                 "ref is an opaque string",
	"2.epoch.exact":         "scope_epoch is an unsigned integer",
	"2.epoch.regressed":     "a sync that lowers the epoch of a ref held is refused",
	"2.epoch.tombstoned":    "an epoch lower than an ended one that is remembered is refused (as the native router)",
	"2.version":             "version increases when a record's content changes and not when it is re-sent unchanged",
	"2.version.once":        "no version is used twice within an incarnation, so a tag never matches a later session",
	"2.proof.format":        "bind_proof_sha256 is exactly 64 lowercase hexadecimal characters, in sync and apply",
	"2.proof.change":        "a change of the hash alone is a change of content",
	"2.proof.secret":        "the hash stays out of describe replies and bind stamps",
	"2.kind.closed":         "kind is a closed enum",
	"2.kind.fixed":          "kind is fixed for the life of an epoch, a higher epoch may change it",
	"2.expires.any":         "any owner may set expires_at_ms, for any kind",
	"2.parent.fields":       "parent is (owner, ref, scope_epoch)",
	"2.targets.bounds":      "a targeted entry holds 1 to 16 targets",
	"2.targets.sum":         "entries of one principal add up",
	"2.carrier.no-parent":   "a carrier of the parent gets no right to parent",
	"2.gate":                "gated attributes from an owner not in scope_authority_owners are refused per record",
	"2.gate.rest":           "any other owner's scope may carry kind, parent, child_owners, carriers and expires_at_ms",
	"2.bound.live":          "at most 10,000 live scopes per owner",
	"2.bound.attributes":    "at most 4 KiB of attributes per scope",
	"2.bound.tombstones":    "tombstones are capped per owner, evicted oldest first, and never refuse",
	"2.expiry.end":          "a live scope ends when its deadline is at or before the wall clock",
	"2.expiry.effects":      "expiry has the effects of omission: tombstone, scope_ended, children ended and drained",
	"2.expiry.warning":      "each expiry reports owner, ref, epoch, deadline and routes closed",
	"2.expiry.passed":       "a new epoch's passed deadline is refused scope_expired",
	"2.expiry.horizon":      "a deadline more than 24 hours ahead, u64::MAX included, is refused",
	"2.expiry.immutable":    "changing, adding or removing the deadline on a live epoch is refused, whatever the value",
	"2.expiry.unchanged":    "an unchanged deadline is not re-checked against the horizon",
	"2.expiry.higher":       "a different deadline needs a higher epoch",
	"2.expiry.periodic":     "the sweep works without an authority and changes neither authority nor generation",
	"2.expiry.own":          "an accepted call sweeps only the calling owner's scopes",
	"2.expiry.no-commit":    "a whole-call refusal commits no sweep",
	"2.expiry.once":         "a scope ended by the call's sweep appears once in ended",
	"2.expiry.resend":       "re-sending the swept epoch is scope_expired, ending it not_live, a higher epoch created",
	"2.expiry.not-undone":   "a per-record refusal does not undo the sweep",
	"2.expiry.describe":     "describe does not evaluate expiry",
	"2.expiry.no-backlog":   "a periodic sweep's ends do not appear in a later call's ended",
	"2.expiry.admission":    "admission sees the passed deadline and does not mutate",
	"2.expiry.cause":        "an end before the deadline leaves an owner-ended tombstone",
	"2.expiry.no-deadline":  "re-sending an expired epoch without its deadline is still scope_expired",
	"2.expiry.lost":         "once the tombstone is lost, a fresh store refuses only a passed deadline",
	"2.expiry.backwards":    "a clock that goes back delays an end and never revives one",
	"2.token":               "flow_id and run_id are 1 to 256 printable non-space ASCII bytes, else the call is refused by name",
	"2.flow.alone":          "flow_id alone is valid",
	"2.run.agent":           "run_id without agent_id is refused",
	"2.run.flow":            "run_id with flow_id is refused",
	"2.run.delegates":       "a delegating run record is accepted",
	"2.stamp.verbatim":      "attributes are stamped verbatim",
	"3.authority.first":     "the first connection of an owner to sync becomes the authority",
	"3.authority.other":     "a sync from any other connection of the owner is refused",
	"3.authority.launch":    "the current launch takes authority from an older launch's connection",
	"3.authority.candidate": "a candidate is not current and cannot take authority",
	"3.authority.lazy":      "promotion changes nothing until the promoted connection's first full sync",
	"3.authority.close":     "authority is free when its connection closes, and the next full sync takes it",
	"3.generation.stale":    "an equal or smaller generation is scope_sync_stale and changes nothing",
	"3.generation.first":    "the first sync after taking authority replaces at any generation, the new baseline",
	"3.sync.omitted":        "a scope absent from a full sync ends",
	"3.sync.tombstoned":     "a record naming a tombstoned epoch is refused scope_epoch_ended",
	"3.sync.replace":        "a higher epoch ends the old scope and creates the new one",
	"3.sync.refused-record": "a refused record keeps its state and does not block the rest",
	"3.parent.permitted":    "a parent is accepted from its owner or a child owner only, at its live epoch",
	"3.parent.pending":      "a child synced before its parent's owner is pending and settles when it syncs",
	"3.parent.order":        "every order of owners ends in the same links",
	"3.parent.cycle":        "a cycle is refused, across owners and through pending links",
	"3.parent.ended":        "a parent's end makes its children ended, drains them, and never removes them",
	"3.parent.new-session":  "a new session under the parent's ref does not adopt the old one's children",
	"3.parent.one-level":    "an ended link does not travel further down",
	"3.parent.post-set":     "links and cycles are checked against the set as it stands after the call",
	"3.parent.cascade":      "a refused parent refuses the new children that name it in the same call",
	"3.apply.named":         "an apply changes only the named refs",
	"3.apply.not-authority": "an apply that fails the authority check is scope_sync_not_authority",
	"3.apply.required":      "an apply before this connection's full sync is scope_sync_required",
	"3.apply.stale":         "an apply's generation must be larger than the last accepted",
	"3.apply.body":          "an empty or repeated ref, or one in both lists, refuses the call by name",
	"3.apply.lists":         "more than 10,000 entries in either list is scope_live_limit_exceeded",
	"3.apply.order":         "the whole-call checks run in the contract's order, decoding first",
	"3.apply.body-order":    "step 5 runs list length, then record by record, then ends",
	"3.apply.end":           "an end removes only the exact live ref and epoch, any other is not_live",
	"3.apply.limit":         "a resulting set over the bound refuses the whole call, sweep included",
	"3.apply.slot":          "at the cap a matching end or an expired scope frees a slot",
	"3.apply.advances":      "an accepted call advances the generation even when nothing came of it",
	"3.apply.later-sync":    "a later full sync still ends every scope it omits",
	"3.reply":               "the reply lists results and end results in request order, and each ended ref once",
	"4.commit":              "a commit compares the captured tag: scope_ended or scope_changed, other routes stay",
	"4.commit.retry":        "a change of another scope, or a refused record, does not make a bind stale",
	"4.usage.reserved":      "reserved openers' routes do not count as usage",
	"4.usage.kept":          "usage is reserved at admission, kept through bind and route, released once on every path",
	"4.idle":                "a conditional replacement or change of proof is refused while the epoch is in use",
	"4.idle.never":          "created and unchanged records are never refused by the condition",
	"4.idle.flag":           "the condition is of the request and not stored content",
	"4.presence.survives":   "presence survives the route's close and ends with the holder's connection",
	"4.presence.failed":     "a failed bind leaves no presence",
	"4.presence.cap":        "presence is capped at eight distinct connections, further opens still bind",
	"4.presence.shared":     "repeated opens of one connection share its entry",
	"4.presence.reserved":   "a reserved opener records no presence",
	"4.presence.epoch":      "replacing, ending or expiring the epoch discards its holders",
	"5.describe.live":       "describe answers live with the stamp's fields",
	"5.describe.ended":      "describe answers ended with the latest ended epoch",
	"5.describe.not-live":   "describe answers not_live, and whether the owner has synced",
	"5.describe.refused":    "a refused sync does not make its owner synced",
	"5.feed.created":        "created when a scope is created",
	"5.feed.ended":          "ended when a scope ends",
	"5.feed.changed":        "changed when carriers, delegates, agent_id, flow_id, run_id or parent_state change",
	"5.feed.synced":         "synced when an owner's first sync is accepted, with its full live set",
	"5.feed.cursor":         "a reader that follows from a snapshot has no gap and no repeat, a too old cursor is refused",
	"5a.refusals":           "every refusal of the table has its code",
	"5a.drains":             "every row of the drain table drains its routes with its reason, and no others",
	"5a.none":               "a change in the none row drains nothing",
	"6.atomic":              "the new tag is published and the drains are decided in one step",
	"6.superseded":          "routes are drained on every endpoint, superseded ones included",
	"6.restart":             "a new table is empty and takes the same epochs again",
	"11.unregistered":       "a connection that is gone cannot sync",
	"11.link.new-only":      "a link is checked only when it is new",
	"11.link.settling":      "settling a pending link bumps the child's version and drains only when it ends",
	"11.narrowing":          "narrowing a carrier from any module to a list drains its routes outside it",
	"11.one-reason":         "each closed route gets one reason, by rank",
	"11.child-owner":        "removing a child owner does not end a child already linked",
	"11.records":            "record types refuse unknown fields",
	"11.attributes":         "attributes are the closed struct {agent_id?, delegates, flow_id?, run_id?}",
	"11.old-bodies":         "bodies from before expiry and run_id decode unchanged",
	"134.order":             "a record re-sent with its sets in another order is unchanged",
	"134.digest":            "a record has one digest in every process, whatever the order",
	"134.sorted":            "every JSON form of a set is a sorted array",
	"134.audit":             "no map, slice or float reaches a digest undeclared",
	"134.proof":             "the digest leaves the proof's hash out",
}

// claim says that the test fails when one of these rules is removed.
func claim(t testing.TB, ids ...string) {
	t.Helper()
	for _, id := range ids {
		require.Contains(t, rules, id, "no such rule")
	}
}

// TestEveryRuleIsClaimed reads the package's tests and fails on a rule that none
// of them claims.
func TestEveryRuleIsClaimed(t *testing.T) {
	claimed := map[string]bool{}
	paths, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		require.NoError(t, err)
		for _, decl := range file.Decls {
			f, isFunc := decl.(*ast.FuncDecl)
			if !isFunc || !strings.HasPrefix(f.Name.Name, "Test") {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				if name, ok := call.Fun.(*ast.Ident); !ok || name.Name != "claim" {
					return true
				}
				for _, arg := range call.Args[1:] {
					if lit, ok := arg.(*ast.BasicLit); ok {
						id, err := strconv.Unquote(lit.Value)
						require.NoError(t, err)
						require.Contains(t, rules, id, "%s claims a rule that there is not", f.Name.Name)
						claimed[id] = true
					}
				}
				return true
			})
		}
	}
	for id, sentence := range rules {
		require.True(t, claimed[id], "no test claims %s: %s", id, sentence)
	}
}
