package acp_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/acp"
	"github.com/softrnic/softrnic/acp/acptest"
	"github.com/softrnic/softrnic/rnic"
)

// share registers memory at all ranks and distributes its addresses by starter memory, as programs do.
func share(p *acp.Process, buf []byte) (mine *acp.Region, all []acp.GA, err error) {
	if mine, err = p.Register(buf); err != nil {
		return nil, nil, err
	}
	binary.NativeEndian.PutUint64(p.Starter(), uint64(mine.GA(0)))
	if err = p.Sync(ctx); err != nil {
		return nil, nil, err
	}
	got, err := p.Register(make([]byte, 8*p.Size()))
	if err != nil {
		return nil, nil, err
	}
	for rank := range p.Size() {
		p.Copy(got.GA(8*rank), p.StarterGA(rank), 8, acp.None)
	}
	if err = p.Complete(ctx, acp.All); err != nil {
		return nil, nil, err
	}
	for rank := range p.Size() {
		all = append(all, acp.GA(binary.NativeEndian.Uint64(got.Bytes()[8*rank:])))
	}
	return mine, all, p.Sync(ctx)
}

// TestCopy has rank 0 copy between all pairs of ranks, itself included.
func TestCopy(t *testing.T) {
	for name, impair := range map[string]string{"clean": "", "loss": "loss 1% seed 7"} {
		t.Run(name, func(t *testing.T) {
			const n, ranks = 300_000, 3
			require.NoError(t, acptest.RunOptions(ranks, acptest.Options{RNIC: rnic.Options{Impair: impair}}, func(p *acp.Process) error {
				buf := make([]byte, n*(ranks+1))
				copy(buf, message(n, p.Rank()))
				_, all, err := share(p, buf)
				require.NoError(t, err)
				if p.Rank() == 0 {
					for from := range ranks {
						for to := range ranks {
							p.Copy(all[to].Add(n*(1+from)), all[from], n, acp.None)
						}
					}
				}
				require.NoError(t, p.Complete(ctx, acp.All))
				require.NoError(t, p.Sync(ctx))
				for from := range ranks {
					if !bytes.Equal(buf[n*(1+from):][:n], message(n, from)) {
						return fmt.Errorf("what is of rank %d is something else", from)
					}
				}
				return p.Sync(ctx)
			}))
		})
	}
}

// TestOrder runs a relay of dependent operations between ranks, whose result reveals an operation that starts
// early.
func TestOrder(t *testing.T) {
	const hops = 60
	for name, order := range map[string]acp.Handle{"all": acp.All, "cont": acp.Cont} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, acptest.Run(3, func(p *acp.Process) error {
				buf := make([]byte, 8*(hops+1))
				_, all, err := share(p, buf)
				require.NoError(t, err)
				if p.Rank() == 0 {
					copy(buf, "relay...")
					for i := range hops {
						p.Copy(all[(i+1)%3].Add(8*(i+1)), all[i%3].Add(8*i), 8, order)
					}
					var old uint64
					require.NoError(t, p.Complete(ctx, acp.FetchAdd[uint64](p, &old, all[hops%3].Add(8*hops), 0, order)))
					if got := string(binary.NativeEndian.AppendUint64(nil, old)); got != "relay..." {
						return fmt.Errorf("it brings %q", got)
					}
				}
				return p.Sync(ctx)
			}))
		})
	}
}

// TestHandles checks old handles, handles that were never issued, and operations ordered after a later
// handle.
func TestHandles(t *testing.T) {
	require.NoError(t, acptest.Run(1, func(p *acp.Process) error {
		r, err := p.Register(make([]byte, 64))
		require.NoError(t, err)
		h := p.Copy(r.GA(0), r.GA(32), 32, acp.None)
		if !p.Inquire(h) || !p.Inquire(acp.All) || !p.Inquire(acp.None) {
			t.Error("it is complete")
		}
		require.NoError(t, p.Complete(ctx, h))
		require.ErrorIs(t, p.Complete(ctx, h+1), acp.ErrHandle)
		h = p.Copy(r.GA(0), r.GA(32), 32, h+5)
		require.ErrorIs(t, p.Complete(ctx, h), acp.ErrHandle)
		require.NoError(t, p.Complete(ctx, acp.All), "the error was returned before")
		return nil
	}))
}

// TestBadAddresses mixes each kind of invalid address with valid operations. The error names the operation,
// and the others are executed, on the same connection as well.
func TestBadAddresses(t *testing.T) {
	require.NoError(t, acptest.Run(2, func(p *acp.Process) error {
		mine, all, err := share(p, make([]byte, 1000))
		require.NoError(t, err)
		gone, err := p.Register(make([]byte, 1000))
		require.NoError(t, err)
		binary.NativeEndian.PutUint64(p.Starter()[8:], uint64(gone.GA(0)))
		require.NoError(t, p.Sync(ctx))
		if p.Rank() == 0 {
			p.Copy(mine.GA(0), p.StarterGA(1).Add(8), 8, acp.None)
			require.NoError(t, p.Complete(ctx, acp.All))
			theirs := acp.GA(binary.NativeEndian.Uint64(mine.Bytes()))
			require.NoError(t, p.Complete(ctx, p.Copy(theirs, mine.GA(0), 100, acp.None)), "it is known from now on")
			if err := p.Sync(ctx); err != nil { // rank 1 unregisters it
				return err
			}
			require.NoError(t, p.Sync(ctx))
			for i, c := range []struct {
				to, from acp.GA
				n        int
				want     error
			}{
				{theirs, mine.GA(0), 8, acp.ErrRegion},
				{theirs.Add(1 << 20), mine.GA(0), 8, acp.ErrRegion},
				{mine.GA(0), all[1].Add(993), 8, acp.ErrRange},
				{mine.GA(993), all[1], 8, acp.ErrRange},
				{acp.Null, mine.GA(0), 8, acp.ErrRegion},
				{mine.GA(0), acp.Null, 8, acp.ErrRegion},
				{mine.GA(0), all[1] + 77<<44, 8, acp.ErrRank},
				{mine.GA(0), all[1] + 9<<32, 8, acp.ErrRegion},
				{mine.GA(0) + 9<<32, all[1], 8, acp.ErrRegion},
				{mine.GA(0), all[1], -1, acp.ErrLength},
				{p.StarterGA(1).Add(-8), mine.GA(0), 8, acp.ErrRange},
				{theirs, all[1], 8, acp.ErrRegion},
			} {
				var count uint64
				good := acp.FetchAdd[uint64](p, nil, all[1].Add(800), 1, acp.None)
				bad := p.Copy(c.to, c.from, c.n, acp.None)
				acp.FetchAdd[uint64](p, &count, all[1].Add(800), 1, acp.None)
				err := p.Complete(ctx, acp.All)
				require.ErrorIs(t, err, c.want, "case %d", i)
				var e *acp.Error
				require.True(t, errors.As(err, &e))
				require.Equal(t, bad, e.Handle, "case %d: %v", i, err)
				require.Equal(t, good+1, bad)
				require.EqualValues(t, 2*i+1, count, "those around it are done once")
			}
			for _, h := range []acp.Handle{acp.FetchAdd[uint64](p, nil, all[1].Add(804), 1, acp.None), acp.FetchAdd[uint32](p, nil, all[1].Add(2), 1, acp.None)} {
				require.ErrorIs(t, p.Complete(ctx, h), acp.ErrAlign)
			}
			if s := p.Stats(); s.Connects > 0 { // over RC
				require.Positive(t, s.Repaired, "an adapter has refused something")
			}
			return p.Sync(ctx)
		}
		require.NoError(t, p.Sync(ctx))
		require.NoError(t, gone.Close())
		require.NoError(t, gone.Close(), "the second time")
		require.NoError(t, p.Sync(ctx))
		return p.Sync(ctx)
	}))
}
