package install

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/tailscale/hujson"
)

// wrapModule returns text with the module's command wrapped: its program becomes
// ours, and its arguments begin with exec and the program that it was. Everything
// else stays byte for byte. A module that is wrapped already leaves text as it
// is.
func wrapModule(text []byte, id, program, front string) ([]byte, error) {
	m, err := findModule(text, id)
	if err != nil {
		return nil, err
	}
	was, ok := stringOf(m.program)
	if !ok {
		return nil, fmt.Errorf("has a module %q without a program: correct it first", id)
	}
	if was == program {
		return text, nil
	}
	inserted := quoteAll("exec", "--connection-file", front, "--", was)
	var edits []edit
	if m.args == nil {
		edits = append(edits, edit{m.program.EndOffset, m.program.EndOffset, `, "args": [` + inserted + `]`})
	} else {
		list, ok := m.args.Value.(*hujson.Array)
		if !ok {
			return nil, fmt.Errorf("has a module %q whose args are no list: correct it first", id)
		}
		open := m.args.StartOffset + 1
		if len(list.Elements) > 0 {
			inserted += "," // and nothing after it: taking it out again gives back every byte
		}
		edits = append(edits, edit{open, open, inserted})
	}
	return apply(text, append(edits, edit{m.program.StartOffset, m.program.EndOffset, quoteAll(program)})), nil
}

// unwrapAll undoes wrapModule on every module whose program is ours, in a text
// that may have been changed since.
func unwrapAll(text []byte, program string) ([]byte, error) {
	root, err := parse(text)
	if err != nil {
		return nil, err
	}
	list := root.Find("/modules")
	if list == nil {
		return text, nil
	}
	object, ok := list.Value.(*hujson.Object)
	if !ok {
		return text, nil
	}
	var edits []edit
	for _, member := range object.Members {
		m := commandOf(&member.Value)
		if name, ok := stringOf(m.program); !ok || name != program || m.args == nil {
			continue
		}
		args, ok := m.args.Value.(*hujson.Array)
		if !ok {
			continue
		}
		for i := 0; i+1 < len(args.Elements); i++ {
			if s, _ := stringOf(&args.Elements[i]); s != "--" {
				continue
			}
			was, ok := stringOf(&args.Elements[i+1])
			if !ok {
				break
			}
			end := args.Elements[i+1].EndOffset + len(args.Elements[i+1].AfterExtra)
			if i+2 < len(args.Elements) {
				end++ // its comma
			}
			edits = append(edits, edit{m.args.StartOffset + 1, end, ""},
				edit{m.program.StartOffset, m.program.EndOffset, quoteAll(was)})
			break
		}
	}
	return apply(text, edits), nil
}

// command is where a module's command stands in the text.
type command struct{ program, args *hujson.Value }

func findModule(text []byte, id string) (command, error) {
	root, err := parse(text)
	if err != nil {
		return command{}, err
	}
	m := root.Find("/modules/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(id))
	if m == nil {
		return command{}, fmt.Errorf("has no module %q: name one of its modules with --wrap", id)
	}
	return commandOf(m), nil
}

func commandOf(m *hujson.Value) command {
	return command{m.Find("/program"), m.Find("/args")}
}

func parse(text []byte) (hujson.Value, error) {
	root, err := hujson.Parse(bytes.Clone(text))
	if err != nil {
		return root, errors.New("is not JSON with comments: correct it first")
	}
	root.UpdateOffsets()
	return root, nil
}

func stringOf(v *hujson.Value) (string, bool) {
	if v == nil {
		return "", false
	}
	l, ok := v.Value.(hujson.Literal)
	if !ok || l.Kind() != '"' {
		return "", false
	}
	return l.String(), true
}

func quoteAll(list ...string) string {
	quoted := make([]string, len(list))
	for i, s := range list {
		b, err := json.Marshal(s)
		if err != nil { // it is not UTF-8, and was read from JSON
			b = []byte(`""`)
		}
		quoted[i] = string(b)
	}
	return strings.Join(quoted, ", ")
}

// edit replaces the bytes from begin to end.
type edit struct {
	begin, end int
	text       string
}

// apply makes edits that don't overlap.
func apply(text []byte, edits []edit) []byte {
	for len(edits) > 0 {
		last := 0
		for i, e := range edits {
			if e.begin > edits[last].begin {
				last = i
			}
		}
		e := edits[last]
		edits = append(edits[:last:last], edits[last+1:]...)
		text = append(append(append([]byte{}, text[:e.begin]...), e.text...), text[e.end:]...)
	}
	return text
}
