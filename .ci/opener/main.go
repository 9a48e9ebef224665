// Command opener opens one route to a module by the connection file, calls it
// once, and prints what came: the answer's body, or the code of the refusal.
//
//	opener FILE MODULE PROJECT [OWNER REF EPOCH]
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"scopeward/proxy/connfile"
	"scopeward/proxy/handshake"
	"scopeward/proxy/wire"
)

type object = map[string]any

func main() {
	if len(os.Args) != 4 && len(os.Args) != 7 {
		log.Fatal("usage: opener FILE MODULE PROJECT [OWNER REF EPOCH]")
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3], os.Args[4:]); err != nil {
		log.Fatal(err)
	}
}

func run(file, module, project string, scope []string) error {
	f, err := connfile.Read(file)
	if err != nil {
		return err
	}
	conn, err := connfile.Dial(context.Background(), f, handshake.RoleClient)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		return err
	}
	open := object{
		"op": wire.OpRouteOpen, "target": object{"kind": "tool_provider", "module_id": module},
		"identity": object{"project_root": project, "harness": "opener", "session": "s"},
	}
	if len(scope) == 3 {
		epoch, err := strconv.ParseUint(scope[2], 10, 64)
		if err != nil {
			return err
		}
		open["scope"] = object{"owner": object{"kind": "reserved", "module_id": scope[0]}, "ref": scope[1], "scope_epoch": epoch}
	}
	opened, err := ask(conn, wire.Header{Type: wire.Request, Corr: 1}, open)
	if err != nil {
		return err
	}
	var route struct {
		Channel uint16 `json:"route_channel"`
		Epoch   uint32 `json:"route_epoch"`
		Code    string `json:"code"`
	}
	if err := json.Unmarshal(opened.Body, &route); err != nil {
		return err
	}
	if opened.Type == wire.Error {
		fmt.Println(route.Code)
		return nil
	}
	answer, err := ask(conn, wire.Header{Type: wire.Request, Channel: route.Channel, Epoch: route.Epoch, Corr: 2}, object{"n": "1"})
	if err != nil {
		return err
	}
	fmt.Println(string(answer.Body))
	return nil
}

// ask sends a request and returns what answers it.
func ask(conn net.Conn, h wire.Header, body object) (wire.Frame, error) {
	if _, err := conn.Write(wire.AppendFrame(nil, h, wire.MustMarshal(body))); err != nil {
		return wire.Frame{}, err
	}
	for {
		f, err := wire.ReadFrame(conn)
		if err != nil || f.Corr == h.Corr && (f.Type == wire.Response || f.Type == wire.Error) {
			return f, err
		}
	}
}
