package install

import (
	"fmt"
	"os"
	"path"
	"strings"

	"scopeward/deploy"
)

// What the sample configuration names and an instance has elsewhere.
const (
	sampleRouterFile = "/run/subc/subc-connection.json"
	sampleFolder     = "/run/scopeward/"
)

// passwd is where an instance's user is looked up, inside the root.
const passwd = "/etc/passwd"

// configPath is where the configuration goes.
func (in Params) configPath() string {
	if in.Instance == "" {
		return ConfigPath
	}
	return "/etc/scopeward/" + in.Instance + ".jsonc"
}

// config is the configuration that is written where there is none: the sample, for
// an instance with its own router's file and its own folder.
func (p *Plan) config(in Params) ([]byte, error) {
	sample := deploy.File(deploy.SampleConfig)
	if in.Instance == "" {
		return sample, nil
	}
	router, err := p.routerFile(in.Instance)
	if err != nil {
		return nil, err
	}
	text := strings.ReplaceAll(string(sample), `"`+sampleRouterFile+`"`, fmt.Sprintf("%q", router))
	return []byte(strings.ReplaceAll(text, sampleFolder, "/run/scopeward-"+in.Instance+"/")), nil
}

// routerFile is where the router of a user's session publishes itself: the first
// that is there of what its clients look at, else the runtime folder's.
func (p *Plan) routerFile(user string) (string, error) {
	users, err := p.read(passwd)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(users)) {
		f := strings.Split(strings.TrimRight(line, "\n"), ":")
		if len(f) != 7 || f[0] != user {
			continue
		}
		found := path.Join("/run/user", f[2], "subc-connection.json")
		if home := path.Join(f[5], ".local/share/cortexkit/run/subc-connection.json"); !p.there(found) && p.there(home) {
			found = home
		}
		return found, nil
	}
	return "", paramsError("--instance %q is no user in %s: name the router's user, or write /etc/scopeward/%s.jsonc by hand", user, passwd, user)
}

func (p *Plan) there(path string) bool {
	_, err := os.Stat(p.at(path))
	return err == nil
}
