package operator

import "scopeward/sidecar/operator/api"

// The names and states of a probe's steps.
const (
	stepAccept    = "accept"
	stepHandshake = "handshake"
	stepDescribe  = "describe"
	stepTable     = "table"
	stepAttribute = "attribute"

	stepOK     = "ok"
	stepFailed = "failed"
	stepAbsent = "absent"
)

// progress is the steps so far.
type progress struct{ steps []api.Step }

func (p *progress) step(name string, err error) bool {
	s := api.Step{Name: name, State: stepOK}
	if err != nil {
		s.State, s.Detail = stepFailed, err.Error()
	}
	p.steps = append(p.steps, s)
	return err == nil
}

func (p *progress) absent(name, why string) {
	p.steps = append(p.steps, api.Step{Name: name, State: stepAbsent, Detail: why})
}

// sound says that none of the steps has failed.
func (p *progress) sound(names ...string) bool {
	for _, s := range p.steps {
		for _, name := range names {
			if s.Name == name && s.State == stepFailed {
				return false
			}
		}
	}
	return true
}
