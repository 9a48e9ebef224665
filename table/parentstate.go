package table

// ParentState is the state of a parent link (section 2).
type ParentState uint8

const (
	// Linked says that the parent is live at the named epoch and permits the link.
	Linked ParentState = iota + 1
	// Pending says that the parent's owner has not synced in this incarnation.
	// The link grants nothing.
	Pending
	// Ended says that the parent is gone, live at another epoch, or does not
	// permit the link. It is final for this link.
	Ended
)

var parentStates = [...]string{Linked: "linked", Pending: "pending", Ended: "ended"}

// String is the state's wire name, "" for a scope without a parent.
func (s ParentState) String() string {
	if int(s) < len(parentStates) {
		return parentStates[s]
	}
	return ""
}
