package table

import (
	"fmt"
	"strconv"
	"strings"
)

// The tests write a record on one line:
//
//	ref@epoch [head|worker|ephemeral] [agent=A] [delegates] [flow=F] [run=R]
//	  [expires=MS] [proof=HEX] [idle] [parent=OWNER/REF@EPOCH]
//	  [carrier=P] [carrier=P->m1,m2] [child=P]
//
// where P is reserved:id, direct or unverified, and a bare id is reserved:id. A
// line that begins with "end" names a session to end. One that begins with "{"
// is JSON as it stands.

// syncBody is a scope.sync body of terse lines.
func syncBody(generation uint64, lines ...string) string {
	records, _ := terse(lines)
	return fmt.Sprintf(`{"op":"scope.sync","generation":%d,"scopes":[%s]}`, generation, strings.Join(records, ","))
}

// applyBody is a scope.apply body of terse lines.
func applyBody(generation uint64, lines ...string) string {
	records, ends := terse(lines)
	return fmt.Sprintf(`{"op":"scope.apply","generation":%d,"upsert":[%s],"end":[%s]}`,
		generation, strings.Join(records, ","), strings.Join(ends, ","))
}

func terse(lines []string) (records, ends []string) {
	for _, line := range lines {
		if rest, isEnd := strings.CutPrefix(line, "end "); isEnd {
			ref, epoch := splitEpoch(rest)
			ends = append(ends, fmt.Sprintf(`{"ref":%s,"scope_epoch":%s}`, appendString(nil, ref), epoch))
			continue
		}
		records = append(records, terseRecord(line))
	}
	return records, ends
}

func terseRecord(line string) string {
	if strings.HasPrefix(line, "{") {
		return line
	}
	words := strings.Fields(line)
	ref, epoch := splitEpoch(words[0])
	kind := "head"
	var members, attributes, carriers, children []string
	for _, word := range words[1:] {
		name, value, _ := strings.Cut(word, "=")
		quoted := string(appendString(nil, value))
		switch name {
		case "head", "worker", "ephemeral":
			kind = name
		case "agent", "flow", "run":
			attributes = append(attributes, fmt.Sprintf(`"%s_id":%s`, name, quoted))
		case "delegates":
			attributes = append(attributes, `"delegates":true`)
		case "expires":
			members = append(members, `"expires_at_ms":`+value)
		case "proof":
			members = append(members, `"bind_proof_sha256":"`+strings.Repeat(value, 64/len(value))+`"`)
		case "idle":
			members = append(members, `"replace_only_if_idle":true`)
		case "parent":
			owner, rest, _ := strings.Cut(value, "/")
			ref, epoch := splitEpoch(rest)
			members = append(members, fmt.Sprintf(`"parent":{"owner":%s,"ref":%s,"scope_epoch":%s}`,
				tersePrincipal(owner), appendString(nil, ref), epoch))
		case "carrier":
			carriers = append(carriers, terseCarrier(value))
		case "child":
			children = append(children, tersePrincipal(value))
		default:
			panic("no such word: " + word)
		}
	}
	if len(attributes) > 0 {
		members = append(members, `"attributes":{`+strings.Join(attributes, ",")+`}`)
	}
	if len(carriers) > 0 {
		members = append(members, `"carriers":[`+strings.Join(carriers, ",")+`]`)
	}
	if len(children) > 0 {
		members = append(members, `"child_owners":[`+strings.Join(children, ",")+`]`)
	}
	members = append([]string{
		fmt.Sprintf(`"ref":%s`, appendString(nil, ref)), `"scope_epoch":` + epoch, `"kind":"` + kind + `"`,
	}, members...)
	return "{" + strings.Join(members, ",") + "}"
}

func terseCarrier(value string) string {
	who, targets, targeted := strings.Cut(value, "->")
	if !targeted {
		return `{"principal":` + tersePrincipal(who) + `}`
	}
	list := []string{}
	for _, m := range strings.Split(targets, ",") {
		if m != "" {
			list = append(list, strconv.Quote(m))
		}
	}
	return fmt.Sprintf(`{"principal":%s,"targets":[%s]}`, tersePrincipal(who), strings.Join(list, ","))
}

func tersePrincipal(s string) string { return string(parsePrincipal(s).appendJSON(nil)) }

// parsePrincipal reads reserved:id, direct, unverified, or a bare id.
func parsePrincipal(s string) Principal {
	switch s {
	case "direct":
		return Principal{Kind: Direct}
	case "unverified":
		return Principal{Kind: Unverified}
	}
	return ReservedPrincipal(strings.TrimPrefix(s, "reserved:"))
}

func splitEpoch(s string) (ref, epoch string) {
	at := strings.LastIndexByte(s, '@')
	return s[:at], s[at+1:]
}
