package model_test

import (
	"testing"

	"scopeward/table/model"
)

// Cases that random commands met too seldom, or not at all, in their own form.

func TestS2_AnEpochThatOneSweepEndsAndForgetsStaysEndedWhereItIsRemembered(t *testing.T) {
	at := uint64(start + 10)
	records := []model.Record{
		{Ref: "a", Epoch: 1, Kind: "head", Expires: &at},
		{Ref: "b", Epoch: 1, Kind: "head", Expires: &at},
		{Ref: "c", Epoch: 1, Kind: "head", Expires: &at},
	}
	for _, remembers := range []bool{false, true} {
		p := newPair(t, remembers)
		p.do(command{op: "sync", owner: "core", peer: "core.1", launch: 1, generation: 1, records: records})
		p.do(command{op: "clock", ms: 10})
		again := []model.Record{{Ref: "a", Epoch: 1, Kind: "head"}, {Ref: "b", Epoch: 1, Kind: "head"}}
		p.do(command{op: "apply", owner: "core", peer: "core.1", launch: 1, generation: 2, records: again})
	}
}
