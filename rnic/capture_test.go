package rnic

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/gopacket/gopacket/pcapgo"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/qp"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// TestCountersAgreeWithCapture compares the device's counters with a capture of the packets on the
// wire, with injected faults.
func TestCountersAgreeWithCapture(t *testing.T) {
	file := filepath.Join(t.TempDir(), "b.pcapng")
	a := newEnd(t, Options{Impair: "drop 3rd WRITE_ONLY; duplicate 9th WRITE_ONLY; drop 2nd READ_REQUEST", NoSelective: true})
	b := newEnd(t, Options{Capture: file})
	connect(t, a.dev, a.qp, b.dev, b.qp)
	wr := verbs.SendWR{Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled, RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey()}
	for i := range 20 {
		wr.SGList = []verbs.SGE{a.mr.SGE(0, []int{20_000, 100}[i%2])}
		wr.Opcode = []verbs.WROpcode{verbs.WRRDMAWrite, verbs.WRRDMAWrite, verbs.WRRDMARead}[i%3]
		_, err := a.qp.PostSend([]verbs.SendWR{wr})
		require.NoError(t, err)
		a.poll1(t)
	}
	require.ErrorIs(t, b.dev.StartCapture(file), verbs.ErrBusy)
	require.NoError(t, b.dev.Close())
	got := b.dev.Stats()

	var seen qp.Counters
	last := map[wire.PSN]bool{}
	eachPacket(t, file, func(in bool, p *wire.Packet) {
		switch {
		case !in:
			seen.SentPkts++
			if p.Info.Operation == wire.OpAck && p.AETH().Syndrome == wire.NakPSNSequence {
				seen.SendSeqErr++
			}
		default:
			seen.RcvdPkts++
			if last[p.BTH.PSN] && p.Info.Request {
				seen.DuplicateRequest++
			}
			last[p.BTH.PSN] = true
		}
	})
	require.NotZero(t, seen.SentPkts)
	require.Equal(t, seen.SentPkts, got.Counters.SentPkts)
	require.Equal(t, seen.RcvdPkts, got.Counters.RcvdPkts)
	require.Equal(t, seen.SendSeqErr, got.Counters.SendSeqErr)
	require.NotZero(t, got.Counters.SendSeqErr)
	require.NotZero(t, got.Counters.DuplicateRequest)
}

func eachPacket(t *testing.T, file string, f func(in bool, p *wire.Packet)) {
	r, err := os.Open(file)
	require.NoError(t, err)
	defer r.Close()
	ng, err := pcapgo.NewNgReader(r, pcapgo.NgReaderOptions{})
	require.NoError(t, err)
	for {
		data, _, opts, err := ng.ReadPacketDataWithOptions()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
		var p wire.Packet
		require.Equal(t, wire.DropNone, p.Parse(data[28:]))
		require.NotNil(t, opts.Flags)
		f(opts.Flags.Direction == pcapgo.NgEpbFlagDirectionInbound, &p)
	}
}
