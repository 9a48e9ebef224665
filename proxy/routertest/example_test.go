package routertest_test

import (
	"fmt"

	"scopeward/proxy/routertest"
)

// narrator is a TB for a program that is no test.
type narrator struct{ cleanups []func() }

func (*narrator) Helper() {}

func (*narrator) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func (n *narrator) Cleanup(f func()) { n.cleanups = append(n.cleanups, f) }

func (n *narrator) end() {
	for _, f := range n.cleanups {
		f()
	}
}

func Example() {
	r, err := routertest.NewRouter(routertest.Config{})
	if err != nil {
		panic(err)
	}
	defer r.Close()
	tb := &narrator{}
	defer tb.end()

	owner := r.Launch("owner")
	tool := routertest.DialModule(tb, r.Path())
	tool.Hello("tool")
	tool.Serve()

	client := routertest.Dial(tb, r.Path())
	route := client.Open("tool", routertest.As(owner))
	fmt.Println(string(tool.NextBind().Principal))
	fmt.Println(route.Call("hello"))
	fmt.Println(client.OpenRefused("unknown_module", "nobody").Code())
	// Output:
	// {"kind":"reserved","module_id":"owner"}
	// hello
	// unknown_module
}
