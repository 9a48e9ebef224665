package model_test

import (
	"fmt"
	"strconv"
	"strings"

	"scopeward/table/model"
)

// command is one step of both tables. Its text is what a failed run prints.
type command struct {
	op         string // sync, apply, open, commit, release, leave, promote, clock, sweep
	owner      string
	peer       string // a peer's name
	launch     int
	generation uint64
	records    []model.Record
	ends       []model.End
	open       model.Open
	opener     string
	provider   string
	route      uint64
	ms         int64
}

func (c command) String() string {
	var b strings.Builder
	switch c.op {
	case "sync", "apply":
		fmt.Fprintf(&b, "%s %s from=%s launch=%d generation=%d", c.op, c.owner, c.peer, c.launch, c.generation)
		for _, r := range c.records {
			b.WriteString("\n  " + recordText(r))
		}
		for _, e := range c.ends {
			fmt.Fprintf(&b, "\n  end %s@%d", e.Ref, e.Epoch)
		}
	case "open":
		fmt.Fprintf(&b, "open %s/%s@%d %s %s opener=%s provider=%s hold=%t proof=%.2s", c.open.Owner, c.open.Ref,
			c.open.Epoch, c.open.Principal, c.open.Module, c.opener, c.provider, c.open.Hold, c.open.ProofHash)
	case "commit", "release":
		fmt.Fprintf(&b, "%s %d", c.op, c.route)
	case "leave":
		fmt.Fprintf(&b, "leave %s", c.peer)
	case "promote":
		fmt.Fprintf(&b, "promote %s", c.owner)
	case "clock":
		fmt.Fprintf(&b, "clock %+d", c.ms)
	default:
		b.WriteString(c.op)
	}
	return b.String()
}

// recordText is a record in the form of the golden scripts of package table.
func recordText(r model.Record) string {
	words := []string{fmt.Sprintf("%s@%d", r.Ref, r.Epoch), r.Kind}
	for _, name := range []string{"agent_id", "delegates", "flow_id", "run_id"} {
		if v, given := r.Attributes[name]; given {
			words = append(words, fmt.Sprintf("%s=%.20s", strings.TrimSuffix(name, "_id"), v))
		}
	}
	if r.Proof != "" {
		words = append(words, "proof="+r.Proof[:2])
	}
	if r.Expires != nil {
		words = append(words, fmt.Sprintf("expires=%d", *r.Expires))
	}
	if r.OnlyIfIdle {
		words = append(words, "idle")
	}
	if p := r.Parent; p != nil {
		words = append(words, fmt.Sprintf("parent=%s/%s@%d", p.Owner, p.Ref, p.Epoch))
	}
	for _, c := range r.Carriers {
		word := "carrier=" + c.Principal
		if c.Targeted {
			word += "->" + strings.Join(c.Targets, ",")
		}
		words = append(words, word)
	}
	for _, p := range r.ChildOwners {
		words = append(words, "child="+p)
	}
	return strings.Join(words, " ")
}

// body is the request body of a sync or apply.
func (c command) body() []byte {
	var records, ends []string
	for _, r := range c.records {
		records = append(records, recordJSON(r))
	}
	for _, e := range c.ends {
		ends = append(ends, fmt.Sprintf(`{"ref":%q,"scope_epoch":%d}`, e.Ref, e.Epoch))
	}
	list := strings.Join(records, ",")
	if c.op == "sync" {
		return fmt.Appendf(nil, `{"op":"scope.sync","generation":%d,"scopes":[%s]}`, c.generation, list)
	}
	return fmt.Appendf(nil, `{"op":"scope.apply","generation":%d,"upsert":[%s],"end":[%s]}`,
		c.generation, list, strings.Join(ends, ","))
}

func recordJSON(r model.Record) string {
	var m []string
	add := func(format string, args ...any) { m = append(m, fmt.Sprintf(format, args...)) }
	add(`"ref":%q,"scope_epoch":%d,"kind":%q`, r.Ref, r.Epoch, r.Kind)
	if r.Proof != "" {
		add(`"bind_proof_sha256":%q`, r.Proof)
	}
	if r.OnlyIfIdle {
		add(`"replace_only_if_idle":true`)
	}
	if r.Expires != nil {
		add(`"expires_at_ms":%d`, *r.Expires)
	}
	if p := r.Parent; p != nil {
		add(`"parent":{"owner":%s,"ref":%q,"scope_epoch":%d}`, principalJSON(p.Owner), p.Ref, p.Epoch)
	}
	var list []string
	for _, p := range r.ChildOwners {
		list = append(list, principalJSON(p))
	}
	add(`"child_owners":[%s]`, strings.Join(list, ","))
	list = nil
	for _, c := range r.Carriers {
		targets := ""
		if c.Targeted {
			var quoted []string
			for _, t := range c.Targets {
				quoted = append(quoted, strconv.Quote(t))
			}
			targets = fmt.Sprintf(`,"targets":[%s]`, strings.Join(quoted, ","))
		}
		list = append(list, fmt.Sprintf(`{"principal":%s%s}`, principalJSON(c.Principal), targets))
	}
	add(`"carriers":[%s]`, strings.Join(list, ","))
	list = nil
	for name, v := range r.Attributes {
		if name != "delegates" {
			v = strconv.Quote(v)
		}
		list = append(list, fmt.Sprintf("%q:%s", name, v))
	}
	add(`"attributes":{%s}`, strings.Join(list, ","))
	return "{" + strings.Join(m, ",") + "}"
}

func principalJSON(p string) string {
	if id, reserved := strings.CutPrefix(p, "reserved:"); reserved {
		return fmt.Sprintf(`{"kind":"reserved","module_id":%q}`, id)
	}
	return fmt.Sprintf(`{"kind":%q}`, p)
}
