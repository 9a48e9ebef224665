package sidecar

import (
	"scopeward/proxy"
	"scopeward/sidecar/launch"
)

// registrar is what the proxy tells of registrations, told on to both that keep
// them: the launch table and the healer.
type registrar struct {
	*launch.Table
	healer *healer
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
