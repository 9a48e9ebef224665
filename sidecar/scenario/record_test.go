package scenario

import "scopeward/proxy/routertest"

type doc = routertest.Doc

// member changes a record under construction.
type member func(doc)

// rec is a scope record. Its kind is head unless kind says otherwise.
func rec(ref string, epoch uint64, members ...member) doc {
	d := doc{"ref": ref, "scope_epoch": epoch, "kind": "head"}
	for _, m := range members {
		m(d)
	}
	return d
}

func with(name string, value any) member { return func(d doc) { d[name] = value } }

func kind(k string) member     { return with("kind", k) }
func expires(ms uint64) member { return with("expires_at_ms", ms) }
func proof(hash string) member { return with("bind_proof_sha256", hash) }
func idle(d doc)               { d["replace_only_if_idle"] = true }
func agent(id string) member   { return attribute("agent_id", id) }
func flow(id string) member    { return attribute("flow_id", id) }
func run(id string) member     { return attribute("run_id", id) }
func delegates(d doc)          { attribute("delegates", true)(d) }
func attribute(name string, v any) member {
	return func(d doc) {
		a, _ := d["attributes"].(doc)
		if a == nil {
			a = doc{}
			d["attributes"] = a
		}
		a[name] = v
	}
}

func parent(owner, ref string, epoch uint64) member {
	return with("parent", routertest.Selector(owner, ref, epoch))
}

func children(owners ...string) member {
	list := make([]doc, len(owners))
	for i, o := range owners {
		list[i] = principal(o)
	}
	return with("child_owners", list)
}

// carriers lists who may open: a name stands for any module, to(..) for listed
// ones.
func carriers(list ...any) member {
	entries := make([]doc, len(list))
	for i, c := range list {
		if name, ok := c.(string); ok {
			c = doc{"principal": principal(name)}
		}
		entries[i] = c.(doc)
	}
	return with("carriers", entries)
}

func to(name string, targets ...string) doc {
	return doc{"principal": principal(name), "targets": append([]string{}, targets...)}
}

func principal(name string) doc {
	if name == "direct" {
		return routertest.Direct()
	}
	return routertest.Reserved(name)
}

// ending is an entry of scope.apply's end.
type ending doc

func end(ref string, epoch uint64) ending { return ending{"ref": ref, "scope_epoch": epoch} }
