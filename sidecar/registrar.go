package sidecar

import (
	"scopeward/proxy"
	"scopeward/sidecar/launch"
)

// registrar is what the proxy tells of connections and registrations, told on to
// both that keep them: the launch table and the healer.
type registrar struct {
	*launch.Table
	healer *healer
}

// Ask lets a Hello go on only when the healer would remember its module.
func (r registrar) Ask(q proxy.Question, reply func(proxy.Answer)) {
	if q.Kind != proxy.AskHello {
		r.Table.Ask(q, reply)
		return
	}
	r.Table.Ask(q, func(a proxy.Answer) {
		if a.Code != "" {
			reply(a)
			return
		}
		r.healer.expect(q.Conn, q.ModuleID, func() { reply(a) })
	})
}

func (r registrar) Registered(id proxy.ConnID, moduleID, nonce string) {
	r.Table.Registered(id, moduleID, nonce)
	r.healer.registered(id, moduleID)
}

func (r registrar) Severed(id proxy.ConnID) { r.healer.severed(id) }

func (r registrar) Unregistered(id proxy.ConnID) {
	r.Table.Unregistered(id)
	r.healer.unregistered(id)
}

func (r registrar) Closed(id proxy.ConnID) {
	r.Table.Closed(id)
	r.healer.closed(id)
}
