package table

import (
	"cmp"

	"github.com/go-json-experiment/json/jsontext"
)

// MaxCarrierTargets is how many modules a targeted carrier may list. It lists at
// least one.
const MaxCarrierTargets = 16

// Carrier is one entry of a record's carriers: a principal, other than the
// owner, that may open routes under the scope.
type Carrier struct {
	Principal Principal
	// Targeted entries reach the modules in Targets only, 1 to
	// [MaxCarrierTargets] of them. A bare entry reaches every module.
	Targeted bool
	Targets  Set[ModuleID]
}

// Compare orders carriers by principal, bare before targeted, then by targets.
func (c Carrier) Compare(d Carrier) int {
	return cmp.Or(
		c.Principal.Compare(d.Principal),
		cmp.Compare(rank(c.Targeted), rank(d.Targeted)),
		c.Targets.Compare(d.Targets),
	)
}

func rank(b bool) int {
	if b {
		return 1
	}
	return 0
}

// MarshalJSONTo writes {"principal"} or {"principal","targets"}.
func (c Carrier) MarshalJSONTo(enc *jsontext.Encoder) error {
	return enc.WriteValue(c.appendJSON(nil))
}

func (c Carrier) appendJSON(b []byte) []byte {
	b = c.Principal.appendJSON(append(b, `{"principal":`...))
	if c.Targeted {
		b = appendArray(append(b, `,"targets":`...), c.Targets.sorted, ModuleID.appendJSON)
	}
	return append(b, '}')
}

// permits says whether an entry of c's opens the way to module.
func (c Carrier) permits(p Principal, module ModuleID) bool {
	return c.Principal == p && (!c.Targeted || c.Targets.Contains(module))
}

var carrierMembers = members{"principal", "targets"}

// carrier reads a carrier. It says too whether its list of targets keeps the
// bounds: they count entries as they were sent.
func (r *reader) carrier() (c Carrier, inBounds bool, err error) {
	inBounds = true
	s, err := r.object(carrierMembers, false, func(i int) (err error) {
		if i == 0 {
			c.Principal, err = r.principal()
			return err
		}
		if r.null() {
			return nil
		}
		r.moduleList = r.moduleList[:0]
		err = r.array(func() error {
			id, err := r.string()
			r.moduleList = append(r.moduleList, ModuleID(id))
			return err
		})
		n := len(r.moduleList)
		inBounds = n >= 1 && n <= MaxCarrierTargets
		c.Targeted, c.Targets = true, readSet(r, r.moduleSet.copy(r.moduleList, r.left))
		return err
	})
	if err != nil {
		return Carrier{}, false, err
	}
	return c, inBounds, carrierMembers.require(s, 0)
}
