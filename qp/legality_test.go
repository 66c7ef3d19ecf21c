package qp

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// inState returns a pair whose a is in state s.
func inState(t *testing.T, typ verbs.QPType, s verbs.QPState) *pair {
	p := unconnected(t, ofType(typ))
	o := newOptions([]option{ofType(typ)})
	p.modifyTo(p.b, p.a, p.psn[1], p.psn[0], o, verbs.StateRTS)
	p.modifyTo(p.a, p.b, p.psn[0], p.psn[1], o, min(s, verbs.StateRTS))
	switch s {
	case verbs.StateSQD, verbs.StateErr:
		require.NoError(t, p.modify(p.a, s))
	case verbs.StateSQE:
		wr := p.toPeer(p.send(99, 0, 8))
		wr.SGList[0].LKey = 0xbad
		p.a.post(p.now, wr)
		p.drain(p.a)
		require.Equal(t, []string{"99 LOC_PROT_ERR"}, p.a.takeCompletions())
	}
	require.Equal(t, s, p.a.State())
	p.a.raised()
	return p
}

// requestFor returns a work request with this opcode that is valid on every service that has it.
func (p *pair) requestFor(op verbs.WROpcode) verbs.SendWR {
	win := p.a.mem.window(p.a.key)
	wr := p.toPeer(p.write(1, 0, 4096, 8))
	wr.Opcode = op
	switch op {
	case verbs.WRBindMW:
		wr.Bind = verbs.BindMW{RKey: win, Addr: p.a.base, Length: 8}
	case verbs.WRLocalInv:
		p.a.mem.regions[win].bound = p.a.Num()
		wr.InvKey = win
	case verbs.WRSendWithInv:
		wr.InvKey = p.b.mem.window(p.b.key)
		p.b.mem.regions[wr.InvKey].bound = p.b.Num()
	}
	return wr
}

// postRequest returns the result of posting the request, in the words of the table.
func (p *pair) postRequest(t *testing.T, request string) string {
	before := *p.a.sqState()
	n, err := p.postByName(t, request)
	if err != nil {
		require.Zero(t, n)
		require.Equal(t, before, *p.a.sqState(), "nothing was queued")
		for word, sentinel := range map[string]error{"state": verbs.ErrState, "no": verbs.ErrUnsupported} {
			if errors.Is(err, sentinel) {
				return word
			}
		}
		return err.Error()
	}
	require.Equal(t, 1, n)
	p.exchange()
	switch {
	case p.completed(verbs.WCWRFlushErr):
		return "flush"
	case p.completed(verbs.WCSuccess) || request == "RECV" && p.a.rq.len() == 1:
		return "ok"
	}
	require.NoError(t, p.modify(p.a, verbs.StateRTS))
	p.exchange()
	if p.completed(verbs.WCSuccess) {
		return "hold"
	}
	return "lost"
}

// completed reports whether a has exactly one completion, with this status.
func (p *pair) completed(status verbs.WCStatus) bool {
	return len(p.a.wcs) == 1 && p.a.wcs[0].Status == status
}

// sqState is the state that posting changes.
func (n *node) sqState() *[2]ring { return &[2]ring{n.sq.ring, n.rq.ring} }

func (p *pair) postByName(t *testing.T, request string) (int, error) {
	if request == "RECV" {
		return p.a.PostRecv([]verbs.RecvWR{{WRID: 1, SGList: []verbs.SGE{p.a.sge(0, 100)}}})
	}
	p.b.recv(2, 0, 100)
	for op := verbs.WRRDMAWrite; op <= verbs.WRSendWithInv; op++ {
		if op.String() == request {
			return p.a.PostSend(p.now, []verbs.SendWR{p.requestFor(op)})
		}
	}
	require.Fail(t, "no such request", request)
	return 0, nil
}

// TestLegality checks every work request in every state of every service against the table, which
// must be complete.
func TestLegality(t *testing.T) {
	file, err := os.ReadFile("testdata/legality.txt")
	require.NoError(t, err)
	services := map[string]verbs.QPType{"RC": verbs.RC, "UC": verbs.UC, "UD": verbs.UD, "GSI": verbs.GSI}
	rows := map[string]bool{}
	for _, line := range strings.Split(string(file), "\n") {
		f := strings.Fields(line)
		if len(f) == 0 || f[0] == "#" || f[0] == "service" {
			continue
		}
		require.Len(t, f, 2+len(stateNames), line)
		rows[f[0]+f[1]] = true
		for s, want := range f[2:] {
			if want == "-" {
				continue
			}
			p := inState(t, services[f[0]], verbs.QPState(s))
			require.Equal(t, want, p.postRequest(t, f[1]), "%s %s in %s", f[0], f[1], stateNames[s])
		}
	}
	require.Len(t, rows, 4*11)
}

func TestPKeyMatch(t *testing.T) {
	for _, c := range []struct {
		a, b uint16
		want bool
	}{
		{0xFFFF, 0xFFFF, true},
		{0xFFFF, 0x7FFF, true},  // full and limited
		{0x7FFF, 0x7FFF, false}, // two limited members
		{0xFFFF, 0x1234, false},
		{0x9234, 0x1234, true},
		{0x8000, 0x8000, false}, // partition 0 does not exist
		{0x8000, 0x0000, false},
	} {
		require.Equal(t, c.want, pkeyMatch(c.a, c.b), "%#x %#x", c.a, c.b)
		require.Equal(t, c.want, pkeyMatch(c.b, c.a), "%#x %#x", c.b, c.a)
	}
}
