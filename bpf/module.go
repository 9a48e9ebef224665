package bpf

import "go.uber.org/fx"

// Module provides an [Attributor] from [Params], by the hooks or else by /proc.
// It is made when the first who needs it is, and closed when the app stops. An
// app whose attribution is off doesn't ask for it.
func Module() fx.Option {
	return fx.Module("bpf", fx.Provide(func(lc fx.Lifecycle, p Params) (*Attributor, error) {
		a, err := OpenAny(p)
		if err != nil {
			return nil, err
		}
		lc.Append(fx.StopHook(a.Close))
		return a, nil
	}))
}
