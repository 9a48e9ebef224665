//go:build !watched

package operator

// watch adds nothing: a build for use has no more than its description says.
func (s *Server) watch(map[string]endpoint) {}
