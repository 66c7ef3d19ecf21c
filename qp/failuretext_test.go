package qp

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// failures are failing requests, each with the words that its error must contain at one end,
// requester a or responder b, and its status.
var failures = []struct {
	name   string
	opts   []option
	run    func(p *pair)
	status verbs.WCStatus
	at     byte
	words  []string
}{
	{"wrong key, at the requester", nil, func(p *pair) { p.storyWrite(p.b.key+1, p.b.base, 8) }, verbs.WCRemAccessErr, 'a', []string{"peer responded", "key 0x"}},
	{"wrong key, at the responder", nil, func(p *pair) { p.storyWrite(p.b.key+1, p.b.base, 8) }, verbs.WCRemAccessErr, 'b', []string{"rejected the peer's request", "no such key"}},
	{"outside the region", nil, func(p *pair) { p.storyWrite(p.b.key, p.b.base+regionBytes, 8) }, verbs.WCRemAccessErr, 'b', []string{"range outside the region"}},
	{"no permission", []option{withAccess(verbs.AccessRemoteRead)}, func(p *pair) { p.storyWrite(p.b.key, p.b.base, 8) }, verbs.WCRemInvReqErr, 'a', []string{"does not permit the operation"}},
	{"no permission, at the responder", []option{withAccess(verbs.AccessRemoteRead)}, func(p *pair) { p.storyWrite(p.b.key, p.b.base, 8) }, verbs.WCRemInvReqErr, 'b', []string{"does not permit remote writes"}},
	{"receive too short", nil, func(p *pair) { p.b.recv(1, 0, 4); p.storySend(8) }, verbs.WCLocLenErr, 'b', []string{"longer than the 4 bytes"}},
	{"receive too short, at the requester", nil, func(p *pair) { p.b.recv(1, 0, 4); p.storySend(8) }, verbs.WCRemInvReqErr, 'a', []string{"longer than the peer's receive"}},
	{"flushed", nil, func(p *pair) { p.storySend(8); p.storySend(8); _ = p.modify(p.a, verbs.StateErr) }, verbs.WCWRFlushErr, 'a', []string{"first failed completion"}},
	{"no receive", []option{withAttr(func(a *verbs.QPAttr) { a.RNRRetry = 0 })}, func(p *pair) { p.storySend(8) }, verbs.WCRNRRetryExcErr, 'a', []string{"receives too late, or too few"}},
	{"never heard", nil, func(p *pair) { p.storySend(8); p.loseAll() }, verbs.WCRetryExcErr, 'a', []string{"has never responded", "firewall", "port 4791"}},
	{"heard before", nil, func(p *pair) {
		p.b.recv(1, 0, 8)
		p.storySend(8)
		p.exchange()
		p.a.takeCompletions()
		p.storySend(8)
		p.loseAll()
	}, verbs.WCRetryExcErr, 'a', []string{"its process or host has terminated"}},
	{"bad lkey", nil, func(p *pair) {
		p.a.post(p.now, verbs.SendWR{Opcode: verbs.WRSend, SGList: []verbs.SGE{{Addr: 1, Length: 8, LKey: 1}}})
	}, verbs.WCLocProtErr, 'a', []string{"lkey is not"}},
	{"local length", nil, func(p *pair) {
		p.a.post(p.now, verbs.SendWR{Opcode: verbs.WRSend, SGList: []verbs.SGE{{Addr: p.a.base + regionBytes, Length: 8, LKey: p.a.key}}})
	}, verbs.WCLocProtErr, 'a', []string{"exceeds the region"}},
	{"UC local protection", []option{ofType(verbs.UC)}, func(p *pair) {
		p.a.post(p.now, verbs.SendWR{Opcode: verbs.WRSend, SGList: []verbs.SGE{{Addr: 1, Length: 8, LKey: 1}}})
	}, verbs.WCLocProtErr, 'a', []string{"lkey is not"}},
	{"misaligned atomic", nil, func(p *pair) {
		p.a.post(p.now, verbs.SendWR{Opcode: verbs.WRAtomicFetchAdd, SGList: []verbs.SGE{p.a.sge(0, 8)}, RemoteAddr: p.b.base + 1, RKey: p.b.key})
	}, verbs.WCRemInvReqErr, 'b', []string{"multiple of 8"}},
}

func (p *pair) storyWrite(key uint32, addr uint64, n int) {
	p.b.recv(1, 0, 64)
	p.a.post(p.now, verbs.SendWR{Opcode: verbs.WRRDMAWrite, SGList: []verbs.SGE{p.a.sge(0, n)}, RemoteAddr: addr, RKey: key})
}

func (p *pair) storySend(n int) {
	p.a.post(p.now, verbs.SendWR{Opcode: verbs.WRSend, SGList: []verbs.SGE{p.a.sge(0, n)}})
}

// loseAll advances the time, with all packets lost, until a has failed.
func (p *pair) loseAll() {
	for p.a.State() == verbs.StateRTS {
		p.drain(p.a)
		p.advanceToDeadline(p.a)
	}
}

// TestFailureTexts checks the text of every failure: short, no sentence twice, and none that
// confuses the two ends.
func TestFailureTexts(t *testing.T) {
	for _, s := range failures {
		t.Run(s.name, func(t *testing.T) {
			p := connect(t, s.opts...)
			s.run(p)
			p.exchange()
			n := map[byte]*node{'a': p.a, 'b': p.b}[s.at]
			var texts []string
			for i := range n.wcs {
				if n.wcs[i].Status == s.status {
					texts = append(texts, n.wcs[i].Err().Error())
				}
			}
			for _, why := range n.whys {
				if why != nil { // an event replaces the completion if no receive was in use
					texts = append(texts, (&verbs.CompletionError{QPN: n.Num(), Status: s.status, Failure: why}).Error())
				}
			}
			require.NotEmpty(t, texts)
			for _, text := range texts {
				require.LessOrEqual(t, len(text), 272, text)
				for _, word := range s.words {
					require.Contains(t, text, word)
				}
				if s.at == 'b' {
					require.NotContains(t, text, "the peer refused")
					require.NotContains(t, text, "responder")
				}
				seen := map[string]bool{}
				for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == ':' || r == ';' }) {
					require.False(t, seen[part], text)
					seen[part] = true
				}
			}
		})
	}
}

// TestCausesAreShort checks the length of the cause of every syndrome for every operation.
func TestCausesAreShort(t *testing.T) {
	for op := verbs.WRRDMAWrite; op <= verbs.WRBindMW; op++ {
		w := &sendWQE{op: op, remote: 8}
		for _, cause := range []string{invalidCause(w), accessCause(w), rejectionCause(wire.NakRemoteAccess), rejectionCause(wire.NakInvalidRequest)} {
			require.LessOrEqual(t, len(cause), 175, cause)
		}
	}
}
