// Package config is the sidecar's configuration file: its keys, their defaults,
// and every complaint about it.
//
// The file is JSON with comments and trailing commas, as the router's own is.
// [Load] reads it strictly over [Default], applies the environment and then
// [Config.Validate]; start-up, reload and `scopeward check` share that one path.
// A complaint is an [Error]: one line that names the file, the place, the key
// and what to do about it.
package config
