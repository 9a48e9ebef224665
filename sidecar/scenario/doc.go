// Package scenario is the contract as its users see it: owners, carriers,
// providers and strangers in front of a whole sidecar, with the stub router behind
// it, all in this process. It holds tests only.
//
// Each scNN file plays scenarios of the oracle's file of that name, which has the
// same stories recorded from a router that serves scopes itself. A test's comment
// begins with the scenario's name there; the answers it expects are the recorded
// ones.
package scenario
