package deploy

import "embed"

//go:embed scopeward.jsonc scopeward.service scopeward@.service scopeward.socket scopeward.service.d subc.service.d
var files embed.FS

// Names of the files.
const (
	SampleConfig   = "scopeward.jsonc"
	Service        = "scopeward.service"
	UserService    = "scopeward@.service"
	Socket         = "scopeward.socket"
	SettingsDropIn = "scopeward.service.d/50-settings.conf"
	RouterDropIn   = "subc.service.d/50-scopeward.conf"
)

// File returns the text of the file called name, one of the names above.
func File(name string) []byte {
	b, err := files.ReadFile(name)
	if err != nil {
		return nil // a name that is no constant of ours
	}
	return b
}
