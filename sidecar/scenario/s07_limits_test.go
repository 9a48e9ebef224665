package scenario

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// full is as many records as one owner may have.
func full() []doc {
	list := make([]doc, 10_000)
	for i := range list {
		list[i] = rec(fmt.Sprintf("s%05d", i), 1)
	}
	return list
}

// limit_apply_overflow_commits_nothing
func TestS2_AtTheBoundANewRecordRefusesTheWholeCall(t *testing.T) {
	s := play(t)
	o, c := s.module("owner"), s.client()
	s.module("tool")
	o.sync(1, full()...)
	r := c.opens("tool", scope("owner", "s00001", 1), s.as("owner"))
	o.apply(2, rec("s00000", 2), rec("new", 1)).is("scope_live_limit_exceeded")
	o.apply(2, rec("new", 1), rec("new2", 1), end("s00001", 1)).is("scope_live_limit_exceeded")
	o.reads("owner", "s00000").is("live owner/s00000@1 head authorized")
	c.Quiet()
	r.works()
	o.apply(2, rec("new", 1), end("s00001", 1)).is("new@1 created | ended s00001@1 | s00001@1 ended")
	c.drained(closed("scope_ended", r))
}

// limit_at_the_cap_replace_and_refused, limit_is_per_owner
func TestS2_AtTheBoundAReplacementFitsAndARefusedRecordTakesNoPlace(t *testing.T) {
	s := play(t)
	o := s.module("owner")
	o.sync(1, full()...)
	o.apply(2, rec("s00000", 2)).is("s00000@2 replaced | ended s00000@1")
	o.apply(3, rec("bad", 1, delegates)).is("bad@1 scope_delegates_without_agent")
	o.apply(4, rec("new", 1), end("nope", 1)).is("scope_live_limit_exceeded")
	o.apply(4, rec("s00001", 1, agent("x"))).is("s00001@1 updated")
	s.module("other").sync(1, rec("mine", 1)).is("mine@1 created")
}

// limit_attribute_bytes
func TestS2_AttributesOf4KiBAreTakenOneByteMoreRefusesTheWholeCall(t *testing.T) {
	o := play(t).module("owner")
	const room = 4096 - len(`{"agent_id":""}`)
	o.sync(1, rec("fit", 1, agent(strings.Repeat("x", room)))).is("fit@1 created")
	o.sync(2, rec("keep", 1), rec("big", 1, agent(strings.Repeat("x", room+1)))).is("scope_attributes_too_large").naming("big")
	o.apply(2, rec("utf", 1, agent(strings.Repeat("é", room/2+1)))).is("scope_attributes_too_large")
	o.apply(2, rec("utf", 1, agent(strings.Repeat("é", room/2))), rec("false", 1, agent(strings.Repeat("x", room)), attribute("delegates", false))).
		is("utf@1 created, false@1 created")
}

// limit_attributes_before_the_authority_gate
func TestS2_OversizedAttributesRefuseTheCallOfAnOwnerThatMaySetNone(t *testing.T) {
	p := play(t).module("other")
	p.sync(1, rec("big", 1, agent(strings.Repeat("x", 5000))), rec("fine", 1)).is("scope_attributes_too_large")
	p.sync(1, rec("small", 1, agent("x")), rec("fine", 1)).is("small@1 scope_attribute_not_permitted, fine@1 created")
}

// limit_many_carriers
func TestS2_CarriersAndChildOwnersHaveNoBoundOfTheirOwn(t *testing.T) {
	s := play(t)
	c := s.client()
	s.module("tool")
	list, kids := []any{"direct"}, []string{}
	for i := range 300 {
		list, kids = append(list, fmt.Sprintf("m%d", i)), append(kids, fmt.Sprintf("k%d", i))
	}
	s.module("owner").sync(1, rec("s", 1, carriers(list...), children(kids...))).is("s@1 created")
	require.NotNil(t, c.opens("tool", scope("owner", "s", 1)).stamped("owner/s@1 head authorized"))
}
