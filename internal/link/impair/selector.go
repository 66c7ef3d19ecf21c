package impair

import (
	"fmt"
	"strings"
	"sync"

	"github.com/softrnic/softrnic/wire"
)

// A selector is a set of opcodes, optionally restricted to acknowledgements of
// one kind.
type selector struct {
	opcodes [256]bool
	byKind  bool // only with AETHs of this kind
	kind    wire.SyndromeKind
}

// matches reports whether the packet, BTH to ICRC, belongs to the set.
func (s *selector) matches(pkt []byte) bool {
	if !s.opcodes[pkt[0]] {
		return false
	}
	return !s.byKind || wire.Syndrome(pkt[wire.BTHLen]).Kind() == s.kind
}

// lookupSelector returns the shared set with the given name.
func lookupSelector(name string) (*selector, error) {
	if s := selectors()[name]; s != nil {
		return s, nil
	}
	return nil, fmt.Errorf("unknown packets %q; want an opcode such as RC_SEND_ONLY, parts of one such as READ_RESPONSE, SEND_LAST or FIRST, or one of ACK, NAK, RNR, ATOMIC", name)
}

// selectors returns all sets by name, built from wire's table of opcodes.
var selectors = sync.OnceValue(func() map[string]*selector {
	all := make(map[string]*selector)
	add := func(name string, op wire.Opcode) {
		if all[name] == nil {
			all[name] = new(selector)
		}
		all[name].opcodes[op] = true
	}
	for code := range 256 {
		add("", wire.Opcode(code)) // unknown ones as well
		info := wire.Opcode(code).Info()
		if !info.Valid {
			continue
		}
		for _, name := range partialNames(info) {
			add(name, info.Opcode)
		}
	}
	for code := range 256 {
		if info := wire.Opcode(code).Info(); info.Valid {
			exact := new(selector) // a full name selects one opcode, although others begin with it
			exact.opcodes[code] = true
			all[info.Name] = exact
		}
	}
	for name, kind := range map[string]wire.SyndromeKind{"ACK": wire.KindAck, "NAK": wire.KindNAK, "RNR": wire.KindRNR} {
		s := &selector{byKind: true, kind: kind}
		s.opcodes[wire.RCAck] = true
		all[name] = s
	}
	add("ATOMIC", wire.RCCmpSwap)
	add("ATOMIC", wire.RCFetchAdd)
	return all
})

// partialNames returns the names made of parts of an opcode's name: for
// RC_SEND_LAST_IMM these are SEND, SEND_LAST, LAST_IMM and so on.
func partialNames(info *wire.Info) []string {
	class, operation := info.Class.String(), info.Operation.String()
	rest := strings.TrimPrefix(info.Name, class+"_")
	rest = strings.TrimPrefix(rest, operation)
	parts := append([]string{class, operation}, strings.FieldsFunc(rest, func(r rune) bool { return r == '_' })...)
	if class == operation { // CNP
		parts = parts[1:]
	}
	var names []string
	for subset := 1; subset < 1<<len(parts); subset++ {
		var name []string
		for i, part := range parts {
			if subset>>i&1 != 0 {
				name = append(name, part)
			}
		}
		names = append(names, strings.Join(name, "_"))
	}
	return names
}
