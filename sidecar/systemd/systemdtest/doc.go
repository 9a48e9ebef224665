// Package systemdtest is a service manager for tests, in the manner of
// net/http/httptest: a notify socket, a descriptor store that throws out what
// polls with an error, and children that inherit both as systemd's would.
package systemdtest
