package mpi_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/mpi/internal/datatype"
)

// These are the rules for ranks, tags, buffers and operations of each call: arguments that MPI 4.1
// allows return no error, all others an error of their class. Sections are those of MPI 4.1.

// messageCall is a call that sends or receives one message.
type messageCall struct {
	name     string
	receives bool
	call     func(c *mpi.Comm, b mpi.Buffer, rank, tag int) (mpi.Status, error)
}

// waitStatus waits for a request and returns its error.
func waitStatus(r *mpi.Request, err error) (mpi.Status, error) {
	if err != nil {
		return mpi.Status{}, err
	}
	return r.Wait()
}

// startAndWait starts a persistent request and waits for it.
func startAndWait(r *mpi.Request, err error) (mpi.Status, error) {
	if err == nil {
		err = r.Start()
	}
	if err != nil {
		return mpi.Status{}, err
	}
	s, err := r.Wait()
	return s, errors.Join(err, r.Free())
}

// receiveRefused receives a message after its receive failed because of its buffer: the message
// must still be there.
func receiveRefused(m *mpi.Message, err error) error {
	if errors.Is(err, mpi.ErrBuffer) {
		_, again := m.Recv(mpi.Of([]byte{0}))
		err = errors.Join(err, again)
	}
	return err
}

// messageCalls are all calls with a rank and a tag (3.2, 3.4, 3.7, 3.8, 3.9, 3.10).
func messageCalls() (list []messageCall) {
	type (
		blocking func(c *mpi.Comm, b mpi.Buffer, rank, tag int) error
		request  func(c *mpi.Comm, b mpi.Buffer, rank, tag int) (*mpi.Request, error)
	)
	for name, f := range map[string]blocking{"Send": (*mpi.Comm).Send, "Ssend": (*mpi.Comm).Ssend, "Rsend": (*mpi.Comm).Rsend, "Bsend": (*mpi.Comm).Bsend} {
		list = append(list, messageCall{name, false, func(c *mpi.Comm, b mpi.Buffer, rank, tag int) (mpi.Status, error) {
			return mpi.Status{Source: mpi.ProcNull, Tag: mpi.AnyTag}, f(c, b, rank, tag)
		}})
	}
	for name, f := range map[string]request{"Isend": (*mpi.Comm).Isend, "Issend": (*mpi.Comm).Issend, "Irsend": (*mpi.Comm).Irsend,
		"Ibsend": (*mpi.Comm).Ibsend, "Irecv": (*mpi.Comm).Irecv} {
		list = append(list, messageCall{name, name == "Irecv", func(c *mpi.Comm, b mpi.Buffer, rank, tag int) (mpi.Status, error) {
			return waitStatus(f(c, b, rank, tag))
		}})
	}
	for name, f := range map[string]request{"SendInit": (*mpi.Comm).SendInit, "SsendInit": (*mpi.Comm).SsendInit, "RsendInit": (*mpi.Comm).RsendInit,
		"BsendInit": (*mpi.Comm).BsendInit, "RecvInit": (*mpi.Comm).RecvInit} {
		list = append(list, messageCall{name, name == "RecvInit", func(c *mpi.Comm, b mpi.Buffer, rank, tag int) (mpi.Status, error) {
			return startAndWait(f(c, b, rank, tag))
		}})
	}
	return append(list,
		messageCall{"Recv", true, (*mpi.Comm).Recv},
		messageCall{"RecvContext", true, func(c *mpi.Comm, b mpi.Buffer, rank, tag int) (mpi.Status, error) {
			var never context.Context // nil, which never completes
			return c.RecvContext(never, b, rank, tag)
		}},
		messageCall{"Sendrecv, sending", false, func(c *mpi.Comm, b mpi.Buffer, rank, tag int) (mpi.Status, error) {
			return c.Sendrecv(b, rank, tag, mpi.Buffer{}, mpi.ProcNull, 0)
		}},
		messageCall{"Sendrecv, receiving", true, func(c *mpi.Comm, b mpi.Buffer, rank, tag int) (mpi.Status, error) {
			return c.Sendrecv(mpi.Buffer{}, mpi.ProcNull, 0, b, rank, tag)
		}},
		messageCall{"SendrecvReplace, sending", false, func(c *mpi.Comm, b mpi.Buffer, rank, tag int) (mpi.Status, error) {
			return c.SendrecvReplace(b, rank, tag, mpi.ProcNull, 0)
		}},
		messageCall{"SendrecvReplace, receiving", true, func(c *mpi.Comm, b mpi.Buffer, rank, tag int) (mpi.Status, error) {
			return c.SendrecvReplace(b, mpi.ProcNull, 0, rank, tag)
		}},
		messageCall{"Mprobe and Recv", true, func(c *mpi.Comm, b mpi.Buffer, rank, tag int) (mpi.Status, error) {
			m, _, err := c.Mprobe(rank, tag)
			if err != nil {
				return mpi.Status{}, err
			}
			s, err := m.Recv(b)
			return s, receiveRefused(m, err)
		}},
		messageCall{"Improbe and Irecv", true, func(c *mpi.Comm, b mpi.Buffer, rank, tag int) (mpi.Status, error) {
			for {
				m, _, ok, err := c.Improbe(rank, tag)
				if err != nil {
					return mpi.Status{}, err
				}
				if ok {
					s, err := waitStatus(m.Irecv(b))
					return s, receiveRefused(m, err)
				}
			}
		}},
		messageCall{"Probe and Recv", true, func(c *mpi.Comm, b mpi.Buffer, rank, tag int) (mpi.Status, error) {
			if _, err := c.Probe(rank, tag); err != nil {
				return mpi.Status{}, err
			}
			return c.Recv(b, rank, tag)
		}},
		messageCall{"Iprobe and Recv", true, func(c *mpi.Comm, b mpi.Buffer, rank, tag int) (mpi.Status, error) {
			for {
				if _, ok, err := c.Iprobe(rank, tag); ok || err != nil {
					if err != nil {
						return mpi.Status{}, err
					}
					return c.Recv(b, rank, tag)
				}
			}
		}},
	)
}

// TestMessageRules makes all calls with all kinds of ranks and tags. Valid ones communicate
// with the rank itself.
func TestMessageRules(t *testing.T) {
	one, wide := 1, int64(1)<<32+3 // not constants: an int may have 32 bits
	const self = 0
	bad := mpi.Indexed([]byte{1}, []mpi.Block{{At: 5, Len: 1}})
	twice := mpi.Indexed([]byte{1, 2}, []mpi.Block{{At: 0, Len: 1}, {At: 0, Len: 1}})
	w := aloneWorld(t)
	for _, x := range messageCalls() {
		for _, c := range []struct {
			name       string
			b          mpi.Buffer
			rank, tag  int
			send, recv error // that is expected
		}{
			{"null process (3.10)", mpi.Of([]byte{1}), mpi.ProcNull, 3, nil, nil},
			{"null process, nothing", mpi.Buffer{}, mpi.ProcNull, 3, nil, nil},
			{"null process, greatest tag", mpi.Buffer{}, mpi.ProcNull, mpi.MaxTag, nil, nil},
			{"null process, any tag", mpi.Buffer{}, mpi.ProcNull, mpi.AnyTag, mpi.ErrTag, nil},
			{"null process, tag below 0", mpi.Buffer{}, mpi.ProcNull, -7, mpi.ErrTag, mpi.ErrTag},
			{"null process, bad buffer", bad, mpi.ProcNull, 0, mpi.ErrBuffer, mpi.ErrBuffer},
			{"self", mpi.Of([]byte{1}), self, 3, nil, nil},
			{"self, nothing", mpi.Buffer{}, self, 3, nil, nil},
			{"self, greatest tag (3.2.3)", mpi.Of([]byte{1}), self, mpi.MaxTag, nil, nil},
			{"self, tag beyond the greatest", mpi.Of([]byte{1}), self, mpi.MaxTag + one, mpi.ErrTag, mpi.ErrTag},
			{"self, tag of 64 bits", mpi.Of([]byte{1}), self, int(wide), mpi.ErrTag, mpi.ErrTag},
			{"self, any tag (3.2.4)", mpi.Of([]byte{1}), self, mpi.AnyTag, mpi.ErrTag, nil},
			{"self, tag below 0", mpi.Of([]byte{1}), self, -2, mpi.ErrTag, mpi.ErrTag},
			{"any source (3.2.4)", mpi.Of([]byte{1}), mpi.AnySource, 3, mpi.ErrRank, nil},
			{"any source, any tag", mpi.Of([]byte{1}), mpi.AnySource, mpi.AnyTag, mpi.ErrRank, nil},
			{"undefined rank", mpi.Of([]byte{1}), mpi.Undefined, 3, mpi.ErrRank, mpi.ErrRank},
			{"rank beyond the last", mpi.Of([]byte{1}), 1, 3, mpi.ErrRank, mpi.ErrRank},
			{"greatest rank", mpi.Of([]byte{1}), math.MaxInt, 3, mpi.ErrRank, mpi.ErrRank},
			{"least rank", mpi.Of([]byte{1}), math.MinInt, 3, mpi.ErrRank, mpi.ErrRank},
			{"in place (6.2 ff.)", mpi.InPlace, self, 3, mpi.ErrBuffer, mpi.ErrBuffer},
			{"bad buffer", bad, self, 3, mpi.ErrBuffer, mpi.ErrBuffer},
			{"one place twice (5.1.11)", twice, self, 3, nil, mpi.ErrBuffer},
		} {
			t.Run(x.name+"/"+c.name, func(t *testing.T) {
				w := must(w.Dup())
				want := c.send
				if x.receives || strings.HasPrefix(x.name, "SendrecvReplace") && errors.Is(c.recv, mpi.ErrBuffer) {
					want = c.recv
				}
				var partner *mpi.Request
				var err error
				size := c.b.Size()
				switch {
				case c.rank == mpi.ProcNull:
					size = 0
				case x.receives: // also if the call fails: the message remains for the next receive
					partner, err = w.Isend(mpi.Of(make([]byte, size)), self, max(0, min(c.tag, mpi.MaxTag)))
				default:
					partner, err = w.Irecv(mpi.Of(make([]byte, size)), mpi.AnySource, mpi.AnyTag)
				}
				require.NoError(t, err)
				s, err := x.call(w, c.b, c.rank, c.tag)
				if want == nil {
					require.NoError(t, err)
					_, err = partner.Wait()
					require.NoError(t, err)
					if c.rank == mpi.ProcNull && x.receives {
						require.Equal(t, mpi.Status{Source: mpi.ProcNull, Tag: mpi.AnyTag}, s, "the status of 3.10")
					}
					if c.rank != mpi.ProcNull && x.receives {
						require.Equal(t, mpi.Status{Source: self, Tag: max(0, c.tag), Bytes: size}, s)
					}
					return
				}
				require.ErrorIs(t, err, want)
				var e *mpi.Error
				require.ErrorAs(t, err, &e)
				switch {
				case c.rank == mpi.ProcNull:
				case x.receives && strings.Contains(strings.ToLower(x.name), "mprobe") && errors.Is(want, mpi.ErrBuffer):
					_, err = partner.Wait()
					require.NoError(t, err)
				case x.receives:
					_, err = w.Recv(mpi.Of(make([]byte, size)), self, mpi.AnyTag)
					require.NoError(t, err, "a failed receive consumes no message")
				default:
					require.True(t, partner.Cancel(), "a failed send sends no message")
				}
			})
		}
	}
	require.NoError(t, w.Finalize())
}

// elements returns a buffer of n elements, by kind.
var elements = map[datatype.Kind]func(n int) mpi.Buffer{
	datatype.Byte:        func(n int) mpi.Buffer { return mpi.Bytes(make([]byte, n)) },
	datatype.Bool:        func(n int) mpi.Buffer { return mpi.Bools(make([]bool, n)) },
	datatype.Int8:        func(n int) mpi.Buffer { return mpi.Of(make([]int8, n)) },
	datatype.Int16:       func(n int) mpi.Buffer { return mpi.Of(make([]int16, n)) },
	datatype.Int32:       func(n int) mpi.Buffer { return mpi.Of(make([]int32, n)) },
	datatype.Int64:       func(n int) mpi.Buffer { return mpi.Of(make([]int64, n)) },
	datatype.Uint8:       func(n int) mpi.Buffer { return mpi.Of(make([]uint8, n)) },
	datatype.Uint16:      func(n int) mpi.Buffer { return mpi.Of(make([]uint16, n)) },
	datatype.Uint32:      func(n int) mpi.Buffer { return mpi.Of(make([]uint32, n)) },
	datatype.Uint64:      func(n int) mpi.Buffer { return mpi.Of(make([]uint64, n)) },
	datatype.Float32:     func(n int) mpi.Buffer { return mpi.Of(make([]float32, n)) },
	datatype.Float64:     func(n int) mpi.Buffer { return mpi.Of(make([]float64, n)) },
	datatype.Complex64:   func(n int) mpi.Buffer { return mpi.Of(make([]complex64, n)) },
	datatype.Complex128:  func(n int) mpi.Buffer { return mpi.Of(make([]complex128, n)) },
	datatype.PairInt16:   func(n int) mpi.Buffer { return mpi.Pairs(make([]mpi.Pair[int16], n)) },
	datatype.PairInt32:   func(n int) mpi.Buffer { return mpi.Pairs(make([]mpi.Pair[int32], n)) },
	datatype.PairInt64:   func(n int) mpi.Buffer { return mpi.Pairs(make([]mpi.Pair[int64], n)) },
	datatype.PairFloat32: func(n int) mpi.Buffer { return mpi.Pairs(make([]mpi.Pair[float32], n)) },
	datatype.PairFloat64: func(n int) mpi.Buffer { return mpi.Pairs(make([]mpi.Pair[float64], n)) },
	datatype.Struct:      func(n int) mpi.Buffer { return mpi.Structs(make([]struct{ A, B int32 }, n)) },
}

// kindClass is a class of kinds of elements (6.9.2).
type kindClass string

func classOf(k datatype.Kind) kindClass {
	switch {
	case k == datatype.Byte:
		return "byte"
	case k == datatype.Bool:
		return "logical"
	case k <= datatype.Uint64:
		return "integer"
	case k <= datatype.Float64:
		return "floating point"
	case k <= datatype.Complex128:
		return "complex"
	case k <= datatype.PairFloat64:
		return "pair"
	}
	return "struct"
}

// opRule lists the calls that accept an operation.
type opRule struct {
	op      mpi.Op
	classes []kindClass // nil: all
	// calls to which the rule applies
	collective, accumulate, fetch bool
}

var (
	numbers = []kindClass{"integer", "floating point", "complex"}
	ordered = []kindClass{"integer", "floating point"}
	logical = []kindClass{"integer", "logical"}
	bits    = []kindClass{"integer", "byte"}
	pairs   = []kindClass{"pair"}
	simple  = []kindClass{"byte", "logical", "integer", "floating point", "complex", "pair"}
)

// opRules are the rules of 6.9.2, 6.9.4, 6.9.5 and 12.3.4.
var opRules = []opRule{
	{mpi.Sum, numbers, true, true, true},
	{mpi.Prod, numbers, true, true, true},
	{mpi.Max, ordered, true, true, true},
	{mpi.Min, ordered, true, true, true},
	{mpi.LAnd, logical, true, true, true},
	{mpi.LOr, logical, true, true, true},
	{mpi.LXor, logical, true, true, true},
	{mpi.BAnd, bits, true, true, true},
	{mpi.BOr, bits, true, true, true},
	{mpi.BXor, bits, true, true, true},
	{mpi.MaxLoc, pairs, true, true, true},
	{mpi.MinLoc, pairs, true, true, true},
	{mpi.Replace, simple, false, true, true},
	{mpi.NoOp, simple, false, false, true},
	{mpi.Op{}, nil, false, false, false},
	{mpi.OpFunc("of int64", true, func(in, inout []int64) {}), []kindClass{"int64"}, true, false, false},
	{mpi.OpStructs("of structs", true, func(in, inout []struct{ A, B int32 }) {}), []kindClass{"struct"}, true, false, false},
	{mpi.OpFunc[int64]("of nil", true, nil), nil, false, false, false},
}

// allows reports whether a rule permits an operation on elements of a kind.
func (o opRule) allows(k datatype.Kind) bool {
	for _, c := range o.classes {
		if c == classOf(k) || string(c) == k.String() {
			return true
		}
	}
	return o.classes == nil
}

// TestOperationRules calls every reduction with every operation on every kind of elements.
func TestOperationRules(t *testing.T) {
	require.Len(t, opRules, len(datatype.Ops())+4, "every predefined operation has its rule")
	job(t, 2, mpi.Options{}, func(w mpi.World) error {
		size := w.Size()
		counts := []int{1, 1}
		for _, form := range []struct {
			name string
			c    collectiveCaller
		}{{"blocking", w.Comm}, {"background", formed{w.Comm, false}}, {"persistent", formed{w.Comm, true}}} {
			for _, o := range opRules {
				for k := datatype.Byte; k <= datatype.Struct; k++ {
					one, all := elements[k], elements[k](size)
					for name, err := range map[string]error{
						"Reduce":             form.c.Reduce(one(1), one(1), o.op, 0),
						"Allreduce":          form.c.Allreduce(one(1), one(1), o.op),
						"Allreduce in place": form.c.Allreduce(mpi.InPlace, one(1), o.op),
						"Allreduce of none":  form.c.Allreduce(one(0), one(0), o.op),
						"ReduceScatter":      form.c.ReduceScatter(all, one(1), counts, o.op),
						"ReduceScatterBlock": form.c.ReduceScatterBlock(all, one(1), o.op),
						"Scan":               form.c.Scan(one(1), one(1), o.op),
						"Exscan":             form.c.Exscan(one(1), one(1), o.op),
					} {
						if err := expect(err, o.collective && o.allows(k), mpi.ErrOp); err != nil {
							return fmt.Errorf("%s %s, %v of %v: %w", form.name, name, o.op, k, err)
						}
					}
				}
			}
		}
		return nil
	})
}

// expect compares an error with the expected one.
func expect(err error, ok bool, want ...error) error {
	if ok {
		return err
	}
	for _, w := range want {
		var e *mpi.Error
		if errors.Is(err, w) && errors.As(err, &e) {
			return nil
		}
	}
	return fmt.Errorf("is %v, not one of %v", err, want)
}

// TestAccumulateRules calls every operation on a window that combines elements, with every
// operation on every kind of elements (12.3.4).
func TestAccumulateRules(t *testing.T) {
	w := aloneWorld(t)
	win, _, err := mpi.WinAllocate[byte](w.Comm, 64)
	require.NoError(t, err)
	require.NoError(t, win.LockAll())
	for _, o := range opRules {
		for k := datatype.Byte; k <= datatype.Struct; k++ {
			b, result := elements[k](1), elements[k](1)
			for _, target := range []int{0, mpi.ProcNull} {
				calls := map[string]error{
					"Accumulate":     win.Accumulate(b, target, mpi.At(0), o.op),
					"GetAccumulate":  win.GetAccumulate(b, result, target, mpi.At(0), o.op),
					"FetchAndOp":     win.FetchAndOp(b, result, target, 0, o.op),
					"Raccumulate":    errorOf(waitStatus(win.Raccumulate(b, target, mpi.At(0), o.op))),
					"RgetAccumulate": errorOf(waitStatus(win.RgetAccumulate(b, result, target, mpi.At(0), o.op))),
				}
				for name, err := range calls {
					ok := o.accumulate
					if name != "Accumulate" && name != "Raccumulate" {
						ok = o.fetch
					}
					want := []error{mpi.ErrOp}
					if ok && o.classes == nil || k == datatype.Struct {
						want = append(want, mpi.ErrType)
					}
					require.NoError(t, expect(err, ok && o.allows(k), want...), "%s to %d, %v of %v", name, target, o.op, k)
				}
			}
		}
	}
	for k := datatype.Byte; k <= datatype.Struct; k++ { // integers, bool and bytes: 12.3.4
		for _, target := range []int{0, mpi.ProcNull} {
			ok := classOf(k) == "integer" || classOf(k) == "logical" || classOf(k) == "byte"
			err := win.CompareAndSwap(elements[k](1), elements[k](1), elements[k](1), target, 0)
			require.NoError(t, expect(err, ok, mpi.ErrType), "compare and swap of %v", k)
			for _, n := range []int{0, 2} {
				require.NoError(t, expect(win.CompareAndSwap(elements[k](n), elements[k](n), elements[k](n), target, 0), false, mpi.ErrCount, mpi.ErrType), k)
				require.NoError(t, expect(win.FetchAndOp(elements[k](n), elements[k](n), target, 0, mpi.Replace), false, mpi.ErrCount), k)
			}
		}
	}
	require.NoError(t, win.UnlockAll())
	require.NoError(t, win.Free())
	require.NoError(t, w.Finalize())
}

func errorOf(_ mpi.Status, err error) error { return err }

// TestWindowRules makes every call on a window with a target (12.3, 12.5).
func TestWindowRules(t *testing.T) {
	w := aloneWorld(t)
	win, _, err := mpi.WinAllocate[int64](w.Comm, 4)
	require.NoError(t, err)
	b, result := mpi.Of([]int64{1}), mpi.Of([]int64{1})
	operations := map[string]func(b mpi.Buffer, target int) error{
		"Put":            func(b mpi.Buffer, target int) error { return win.Put(b, target, mpi.At(0)) },
		"Get":            func(b mpi.Buffer, target int) error { return win.Get(b, target, mpi.At(0)) },
		"Accumulate":     func(b mpi.Buffer, target int) error { return win.Accumulate(b, target, mpi.At(0), mpi.Sum) },
		"GetAccumulate":  func(b mpi.Buffer, target int) error { return win.GetAccumulate(b, result, target, mpi.At(0), mpi.Sum) },
		"FetchAndOp":     func(b mpi.Buffer, target int) error { return win.FetchAndOp(b, result, target, 0, mpi.Sum) },
		"CompareAndSwap": func(b mpi.Buffer, target int) error { return win.CompareAndSwap(b, b, result, target, 0) },
		"Rput":           func(b mpi.Buffer, target int) error { return errorOf(waitStatus(win.Rput(b, target, mpi.At(0)))) },
		"Rget":           func(b mpi.Buffer, target int) error { return errorOf(waitStatus(win.Rget(b, target, mpi.At(0)))) },
		"Raccumulate": func(b mpi.Buffer, target int) error {
			return errorOf(waitStatus(win.Raccumulate(b, target, mpi.At(0), mpi.Sum)))
		},
		"RgetAccumulate": func(b mpi.Buffer, target int) error {
			return errorOf(waitStatus(win.RgetAccumulate(b, result, target, mpi.At(0), mpi.Sum)))
		},
	}
	locks := map[string]func(target int) error{
		"Lock":       func(target int) error { return errors.Join(win.Lock(mpi.LockShared, target), win.Unlock(target)) },
		"Lock alone": func(target int) error { return errors.Join(win.Lock(mpi.LockExclusive, target), win.Unlock(target)) },
		"Lock, NoCheck": func(target int) error {
			return errors.Join(win.Lock(mpi.LockExclusive, target, mpi.NoCheck), win.Unlock(target))
		},
		"Flush": func(target int) error {
			return errors.Join(win.Lock(mpi.LockShared, target), win.Flush(target), win.FlushLocal(target), win.Unlock(target))
		},
	}
	for _, c := range []struct {
		name   string
		target int
		want   error
	}{
		{"self", 0, nil},
		{"null process (12.3)", mpi.ProcNull, nil},
		{"any source", mpi.AnySource, mpi.ErrRank},
		{"undefined", mpi.Undefined, mpi.ErrRank},
		{"beyond the last", 1, mpi.ErrRank},
		{"greatest", math.MaxInt, mpi.ErrRank},
		{"least", math.MinInt, mpi.ErrRank},
	} {
		for name, f := range locks {
			require.NoError(t, expect(f(c.target), c.want == nil, c.want), "%s of %s", name, c.name)
		}
		require.NoError(t, win.LockAll())
		for name, f := range operations {
			require.NoError(t, expect(f(b, c.target), c.want == nil, c.want), "%s to %s", name, c.name)
			require.ErrorIs(t, f(mpi.InPlace, c.target), mpi.ErrBuffer, "%s to %s in place", name, c.name)
		}
		for name, f := range map[string]func(int) error{"Flush": win.Flush, "FlushLocal": win.FlushLocal} {
			require.NoError(t, expect(f(c.target), c.want == nil, c.want), "%s of %s", name, c.name)
		}
		require.NoError(t, win.UnlockAll())
	}
	// An epoch of the null process must be started before it is used or ended.
	require.ErrorIs(t, win.Unlock(mpi.ProcNull), mpi.ErrEpoch)
	require.ErrorIs(t, win.Flush(mpi.ProcNull), mpi.ErrEpoch)
	require.NoError(t, win.Lock(mpi.LockShared, mpi.ProcNull))
	require.ErrorIs(t, win.Lock(mpi.LockShared, mpi.ProcNull), mpi.ErrEpoch)
	require.ErrorIs(t, win.Fence(), mpi.ErrEpoch)
	require.ErrorIs(t, win.LockAll(), mpi.ErrEpoch)
	require.ErrorIs(t, win.Free(), mpi.ErrEpoch)
	require.NoError(t, win.Lock(mpi.LockShared, 0))
	require.NoError(t, win.Unlock(0))
	require.NoError(t, win.Put(b, mpi.ProcNull, mpi.At(math.MaxInt>>23)))
	require.NoError(t, win.Unlock(mpi.ProcNull))
	require.ErrorIs(t, win.Lock(0, mpi.ProcNull), mpi.ErrEpoch)
	require.NoError(t, win.Free())
	require.NoError(t, w.Finalize())
}
