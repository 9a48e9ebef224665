package admission

import "scopeward/table"

// Admit decides.
func Admit(t *table.Table, a Ask) Decision { return Decision{} }

// Explain decides and reserves nothing.
func Explain(t *table.Table, a Ask) Decision { return Decision{} }

// Commit settles an admitted bind.
func Commit(t *table.Table, admitted Decision) Decision { return Decision{} }
