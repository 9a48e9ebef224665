package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// facts say where and how a run's figures were taken.
type facts struct {
	Date     string            `json:"date"`
	Kernel   string            `json:"kernel"`
	CPU      string            `json:"cpu"`
	Cores    int               `json:"cores"`
	Memory   string            `json:"memory"`
	Go       string            `json:"go"`
	Versions map[string]string `json:"versions"` // what each world ran
	Effort   effort            `json:"effort"`
	Rounds   int               `json:"rounds"` // that were finished
	Span     string            `json:"span"`   // of one relay measurement
	Took     string            `json:"took"`
}

func machineFacts(e effort) facts {
	f := facts{
		Date: time.Now().UTC().Format(time.DateOnly), Cores: runtime.NumCPU(), Go: runtime.Version(),
		CPU: cpuModel(), Versions: make(map[string]string), Effort: e, Span: e.Span.String(),
	}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		f.Kernel = unix.ByteSliceToString(u.Release[:])
	}
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		f.Memory = fmt.Sprintf("%.1f GiB", float64(info.Totalram)*float64(info.Unit)/(1<<30))
	}
	return f
}

func cpuModel() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "model name"); ok {
			return strings.TrimSpace(strings.TrimLeft(rest, "\t :"))
		}
	}
	return runtime.GOARCH
}

func (f facts) write(out io.Writer) error {
	parts := make([]string, 0, len(f.Versions))
	for _, world := range worldNames() {
		if version := f.Versions[world]; version != "" {
			parts = append(parts, world+" "+version)
		}
	}
	_, err := fmt.Fprintf(out, "%s, %d cores of %s, %s, Linux %s, %s.\n%s.\n%d of %d rounds with spans of %s, in %s.\n\n",
		f.Date, f.Cores, f.CPU, f.Memory, f.Kernel, f.Go, strings.Join(parts, "; "),
		f.Rounds, f.Effort.Rounds, f.Span, f.Took)
	return err
}
