package rdm_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rdm"
	"github.com/softrnic/softrnic/verbs"
)

const everything = verbs.AccessLocalWrite | verbs.AccessRemote

// ways are the implementations of operations: the serving side, and the transport.
var ways = map[string]rdm.Options{
	"event":  {Emulate: true},
	"poll":   {Emulate: true, Service: rdm.ServePoll},
	"lazy":   {Emulate: true, Service: rdm.ServeCalls, Lazy: true},
	"native": {},
}

func region(t testing.TB, e *rdm.Endpoint, n int, access verbs.AccessFlags) *rdm.Region {
	r, err := e.Register(make([]byte, n), access)
	require.NoError(t, err)
	return r
}

// TestReadWrite checks that reads and writes of all lengths transfer exactly their bytes, with
// every implementation and on any network.
func TestReadWrite(t *testing.T) {
	rng := newRand(t)
	for name, o := range ways {
		for _, faults := range []string{"", faulty(rng)} {
			t.Run(name+faults, func(t *testing.T) {
				a, b := endpoint(t, faults, o), endpoint(t, faults, o)
				ctx := guarded(t)
				const size = 300_000
				mine, theirs := region(t, a, size, verbs.AccessLocalWrite), region(t, b, size, everything)
				p := dial(t, a, b)
				fill(theirs.Bytes(), 1)
				model := append([]byte(nil), theirs.Bytes()...)
				var op rdm.Op
				for _, n := range []int{0, 1, 7, 8, 4000, 4096, 4097, 70_000, 200_001} {
					off, at := rng.IntN(size-n), rng.IntN(size-n)
					before := append([]byte(nil), mine.Bytes()...)
					require.NoError(t, p.Read(&op, mine.At(at, n), theirs.Remote(off)))
					require.NoError(t, op.Wait(ctx))
					copy(before[at:], model[off:off+n])
					require.Equal(t, before, mine.Bytes(), "%d bytes", n)

					fill(mine.Bytes()[:n], n)
					require.NoError(t, p.Write(&op, mine.At(0, n), theirs.Remote(off)))
					require.NoError(t, op.Wait(ctx))
					copy(model[off:], mine.Bytes()[:n])
				}
				require.NoError(t, p.Read(&op, mine.At(0, size), theirs.Remote(0)))
				require.NoError(t, op.Wait(ctx))
				require.Equal(t, model, mine.Bytes())
			})
		}
	}
}

// TestOpsBesideReads checks that an endpoint whose memory is read all the time completes operations of
// its own.
func TestOpsBesideReads(t *testing.T) {
	for name, o := range ways {
		t.Run(name, func(t *testing.T) {
			a, b := endpoint(t, "", o), endpoint(t, "", o)
			ctx := guarded(t)
			const size, window, writes = 64 << 10, 16, 5
			mine, theirs := region(t, a, window*size, everything), region(t, b, size, everything)
			reader, writer := dial(t, a, b), dial(t, b, a)
			var ended atomic.Bool
			wrote := make(chan error, 1)
			go func() {
				defer ended.Store(true)
				var op rdm.Op
				for range writes {
					err := writer.Write(&op, theirs.At(0, 8), mine.Remote(0))
					if err == nil {
						err = op.Wait(ctx)
					}
					if err != nil {
						wrote <- err
						return
					}
				}
				wrote <- nil
			}()
			var ops [window]rdm.Op
			for k := 0; !ended.Load(); k = (k + 1) % window {
				require.NoError(t, ops[k].Wait(ctx))
				require.NoError(t, reader.Read(&ops[k], mine.At(k*size, size), theirs.Remote(0)))
			}
			require.NoError(t, <-wrote)
			for k := range ops {
				require.NoError(t, ops[k].Wait(ctx))
			}
		})
	}
}

// TestAtomics checks that concurrent additions and exchanges are each executed exactly once.
func TestAtomics(t *testing.T) {
	rng := newRand(t)
	for name, o := range ways {
		for _, faults := range []string{"", faulty(rng)} {
			t.Run(name+faults, func(t *testing.T) {
				target := endpoint(t, faults, o)
				r := region(t, target, 64, everything)
				ctx := guarded(t)
				const n, window = 3, 20
				each := 150
				if o.Lazy {
					each = 40 // without a service each waits for a poll of the owner
				}
				var all sync.WaitGroup
				errs := make([]error, n)
				for i := range n {
					e := endpoint(t, faults, o)
					p := dial(t, e, target)
					all.Go(func() {
						errs[i] = func() error {
							var ops [window]rdm.Op
							for k := range each {
								op := &ops[k%window]
								if err := op.Wait(ctx); err != nil {
									return err
								}
								if err := p.FetchAdd(op, r.Remote(8), 5); err != nil {
									return err
								}
							}
							for k := range ops {
								if err := ops[k].Wait(ctx); err != nil {
									return err
								}
							}
							for op, old, won := (&rdm.Op{}), uint64(0), 0; won < 30; {
								if err := p.CompareSwap(op, r.Remote(16), old, old+1); err != nil {
									return err
								}
								if err := op.Wait(ctx); err != nil {
									return err
								}
								if op.Old() == old {
									won++
								}
								old = max(op.Old(), old)
							}
							return nil
						}()
					})
				}
				all.Wait()
				require.NoError(t, errors.Join(errs...))
				require.EqualValues(t, 5*n*each, r.LoadUint64(8))
				require.EqualValues(t, 30*n, r.LoadUint64(16))
			})
		}
	}
}

// TestBadOperations checks that forbidden operations have no effect and return the reason.
func TestBadOperations(t *testing.T) {
	for name, o := range ways {
		t.Run(name, func(t *testing.T) {
			b := endpoint(t, "", o)
			o.Allow = nil
			a := endpoint(t, "", o)
			ctx := guarded(t)
			p := dial(t, a, b)
			mine := region(t, a, 8192, verbs.AccessLocalWrite)
			constant, err := a.Register(make([]byte, 100), 0)
			require.NoError(t, err)
			full := region(t, b, 4096, everything)
			readable := region(t, b, 4096, verbs.AccessRemoteRead)
			private := region(t, b, 4096, verbs.AccessLocalWrite)
			closed := region(t, b, 4096, everything)
			stale := closed.Remote(0)
			require.NoError(t, closed.Close())
			guess := full.Remote(0)
			guess.RKey ^= 0x100
			native := name == "native"
			for what, c := range map[string]struct {
				start func(op *rdm.Op) error
				want  error
			}{
				"stale key":        {func(op *rdm.Op) error { return p.Read(op, mine.At(0, 8), stale) }, rdm.ErrKey},
				"guessed key":      {func(op *rdm.Op) error { return p.Write(op, mine.At(0, 8), guess) }, rdm.ErrKey},
				"no key":           {func(op *rdm.Op) error { return p.Read(op, mine.At(0, 8), private.Remote(0)) }, rdm.ErrKey},
				"beyond the end":   {func(op *rdm.Op) error { return p.Read(op, mine.At(0, 100), full.Remote(4000)) }, rdm.ErrBounds},
				"before the start": {func(op *rdm.Op) error { return p.Read(op, mine.At(0, 8), full.Remote(-1)) }, rdm.ErrBounds},
				"far away": {func(op *rdm.Op) error {
					return p.FetchAdd(op, rdm.Remote{Addr: 1<<64 - 8, RKey: full.Remote(0).RKey}, 1)
				}, rdm.ErrBounds},
				"write":      {func(op *rdm.Op) error { return p.Write(op, mine.At(0, 8), readable.Remote(0)) }, rdm.ErrAccess},
				"long write": {func(op *rdm.Op) error { return p.Write(op, mine.At(0, 8192), full.Remote(0)) }, rdm.ErrBounds},
				"atomic":     {func(op *rdm.Op) error { return p.FetchAdd(op, readable.Remote(0), 1) }, rdm.ErrAccess},
			} {
				var op rdm.Op
				require.NoError(t, c.start(&op), what)
				want := c.want
				if native {
					want = rdm.ErrRemote
				}
				err := op.Wait(ctx)
				require.ErrorIs(t, err, want, what)
				var oe *rdm.OpError
				require.ErrorAs(t, err, &oe, what)
			}
			var op rdm.Op
			require.ErrorIs(t, p.FetchAdd(&op, full.Remote(4), 1), rdm.ErrAlign)
			require.ErrorIs(t, p.Read(&op, constant.At(0, 8), full.Remote(0)), rdm.ErrLocal)
			require.ErrorIs(t, p.Read(&op, mine.At(8190, 8), full.Remote(0)), rdm.ErrLocal)
			require.ErrorIs(t, p.Read(&op, full.At(0, 8), full.Remote(0)), rdm.ErrLocal)
			require.ErrorIs(t, p.Read(&op, rdm.Span{}, full.Remote(0)), rdm.ErrLocal)
			require.Equal(t, make([]byte, 4096), readable.Bytes())

			// and others continue
			full.Bytes()[0] = 9
			require.NoError(t, p.Read(&op, mine.At(0, 1), full.Remote(0)))
			require.NoError(t, op.Wait(ctx))
			require.Equal(t, byte(9), mine.Bytes()[0])
		})
	}
}

// TestAllow checks that peers that are not on the list are denied whatever a region permits.
func TestAllow(t *testing.T) {
	for name, o := range ways {
		t.Run(name, func(t *testing.T) {
			reader, stranger := endpoint(t, "", o), endpoint(t, "", o)
			o.Allow = func(at rdm.Addr) (verbs.AccessFlags, bool) {
				if at == reader.Addr() {
					return verbs.AccessRemoteRead, true
				}
				return 0, true
			}
			owner := endpoint(t, "", o)
			r := region(t, owner, 4096, everything)
			ctx := guarded(t)
			mine := region(t, reader, 64, everything)
			p := dial(t, reader, owner)
			var op rdm.Op
			require.NoError(t, p.Read(&op, mine.At(0, 64), r.Remote(0)))
			require.NoError(t, op.Wait(ctx))
			require.NoError(t, p.Write(&op, mine.At(0, 64), r.Remote(0)))
			require.ErrorIs(t, op.Wait(ctx), rdm.ErrDenied)
			require.NoError(t, p.FetchAdd(&op, r.Remote(0), 1))
			require.ErrorIs(t, op.Wait(ctx), rdm.ErrDenied)
			q := dial(t, stranger, owner)
			theirs := region(t, stranger, 64, everything)
			require.NoError(t, q.Read(&op, theirs.At(0, 64), r.Remote(0)))
			require.ErrorIs(t, op.Wait(ctx), rdm.ErrDenied)
		})
	}
}

// TestPeerDies checks that a terminated peer fails the operations on it, and no others.
func TestPeerDies(t *testing.T) {
	for name, o := range ways {
		t.Run(name, func(t *testing.T) {
			dev := device(t, "")
			o.GiveUp = silence
			a, alive, dies := endpoint(t, "", o), endpoint(t, "", o), endpointOn(t, dev, o)
			ctx := guarded(t)
			mine := region(t, a, 100_000, everything)
			r, s := region(t, dies, 100_000, everything), region(t, alive, 100_000, everything)
			p, q := dial(t, a, dies), dial(t, a, alive)
			var ops [3]rdm.Op
			require.NoError(t, p.FetchAdd(&ops[0], r.Remote(0), 1))
			require.NoError(t, ops[0].Wait(ctx))
			require.NoError(t, dev.Close())
			require.NoError(t, p.Read(&ops[0], mine.At(0, 50_000), r.Remote(0)))
			require.NoError(t, p.Write(&ops[1], mine.At(0, 50_000), r.Remote(0)))
			require.NoError(t, p.FetchAdd(&ops[2], r.Remote(0), 1))
			var op rdm.Op
			require.NoError(t, q.Read(&op, mine.At(50_000, 50_000), s.Remote(0)))
			require.NoError(t, op.Wait(ctx))
			for i := range ops {
				require.ErrorIs(t, ops[i].Wait(ctx), rdm.ErrTimeout)
			}
			require.NoError(t, mine.Close(), "nothing uses it any more")
		})
	}
}

// TestTooManyOperations checks that outstanding operations are bounded, and that one is not started
// twice.
func TestTooManyOperations(t *testing.T) {
	a, b := endpoint(t, "", rdm.Options{Ops: 2}), endpoint(t, "", rdm.Options{})
	r := region(t, b, 64, everything)
	p := dial(t, a, b)
	var ops [3]rdm.Op
	started, err := 0, error(nil)
	for ; started < 3 && err == nil; started++ {
		err = p.FetchAdd(&ops[started], r.Remote(0), 1)
	}
	if err != nil { // they may be complete
		require.ErrorIs(t, err, rdm.ErrBusy)
	}
	for i := range ops {
		require.NoError(t, ops[i].Wait(guarded(t)))
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	require.NoError(t, ops[0].Wait(ended), "it is complete")
}
