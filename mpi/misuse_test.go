package mpi_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/misuse"
	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/mpi/pmi"
)

// aloneWorld starts a job of one rank.
func aloneWorld(t *testing.T) mpi.World {
	w, err := mpi.Init(open, mpi.Options{Manager: pmi.NewLocal(1)[0]})
	require.NoError(t, err)
	return w
}

// must returns v and panics if err is not nil.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestMisuse calls every exported function and method with null and freed handles and
// with arguments out of range: each returns, and with an error where it has one.
func TestMisuse(t *testing.T) {
	type pair struct{ A, B int32 }
	w := aloneWorld(t)
	finalized := aloneWorld(t)
	require.NoError(t, finalized.Finalize())
	cart := func() mpi.Cart { return must(w.CartCreate([]int{1}, []bool{true}, false)) }
	win := func() *mpi.Win { return must(mpi.WinCreate(w.Comm, make([]int64, 4))) }
	s := &misuse.Surface{
		Dir: ".",
		Funcs: map[string]any{
			"Address":          mpi.Address[int64],
			"At":               mpi.At,
			"Bools":            mpi.Bools,
			"Bytes":            mpi.Bytes,
			"DimsCreate":       mpi.DimsCreate,
			"Indexed":          mpi.Indexed[int64],
			"NewAttr":          mpi.NewAttr[int],
			"Of":               mpi.Of[int64],
			"OpFunc":           mpi.OpFunc[int64],
			"OpStructs":        mpi.OpStructs[pair],
			"Pairs":            mpi.Pairs[int64],
			"ReduceLocal":      mpi.ReduceLocal,
			"StartAll":         mpi.StartAll,
			"Strided":          mpi.Strided[int64],
			"Structs":          mpi.Structs[pair],
			"TestAll":          mpi.TestAll,
			"TestAny":          mpi.TestAny,
			"TestSome":         mpi.TestSome,
			"Value":            mpi.Value[int64],
			"WaitAll":          mpi.WaitAll,
			"WaitAny":          mpi.WaitAny,
			"WaitSome":         mpi.WaitSome,
			"WinAllocate":      mpi.WinAllocate[int64],
			"WinAttach":        mpi.WinAttach[int64],
			"WinCreate":        mpi.WinCreate[int64],
			"WinCreateDynamic": mpi.WinCreateDynamic,
		},
		Types: map[string][]misuse.Receiver{
			"Buffer": {
				{Name: "live", Make: func() any { return mpi.Of([]int64{1, 2}) }, Usable: true},
				{Name: "zero", Make: func() any { return mpi.Buffer{} }, Usable: true},
				{Name: "bad", Make: func() any { return mpi.Indexed([]int64{1}, []mpi.Block{{At: 5, Len: 1}}) }, Usable: true},
				{Name: "structs", Make: func() any { return mpi.Structs([]pair{{}}) }, Usable: true},
			},
			"Op":    {{Name: "live", Make: func() any { return mpi.Sum }, Usable: true}, {Name: "zero", Make: func() any { return mpi.Op{} }, Usable: true}},
			"Place": {{Name: "live", Make: func() any { return mpi.At(1) }, Usable: true}, {Name: "zero", Make: func() any { return mpi.Place{} }, Usable: true}},
			"Attr":  {{Name: "live", Make: func() any { return mpi.NewAttr[int](nil, nil) }, Usable: true}},
			"Cart": {
				{Name: "null", Make: func() any { return mpi.Cart{} }},
				{Name: "live", Make: func() any { return cart() }, Usable: true},
				{Name: "freed", Make: func() any { c := cart(); _ = c.Free(); return c }},
			},
			"Comm": {
				{Name: "live", Make: func() any { return must(w.Dup()) }, Usable: true},
				{Name: "freed", Make: func() any { c := must(w.Dup()); _ = c.Free(); return c }},
			},
			"Comparison": {{Name: "unknown", Make: func() any { return mpi.Comparison(200) }}, {Name: "negative", Make: func() any { return mpi.Comparison(-1) }}},
			"Flow":       {{Name: "unknown", Make: func() any { return mpi.Flow(200) }, Usable: true}},
			"Error":      {{Name: "live", Make: func() any { return &mpi.Error{} }, Usable: true}},
			"Group":      {{Name: "live", Make: func() any { return w.Group() }, Usable: true}},
			"Message": {
				{Name: "received", Make: func() any {
					must(w.Isend(mpi.Buffer{}, 0, 0))
					m, _, _ := w.Mprobe(0, 0)
					_, _ = m.Recv(mpi.Buffer{})
					return m
				}},
				{Name: "of nobody", Make: func() any { m, _, _ := w.Mprobe(mpi.ProcNull, 0); return m }, Usable: true},
			},
			"Request": {
				{Name: "inactive", Make: func() any { return must(w.RecvInit(mpi.Buffer{}, 0, 0)) }, Usable: true},
				{Name: "freed", Make: func() any { r := must(w.RecvInit(mpi.Buffer{}, 0, 0)); _ = r.Free(); return r }},
				{Name: "inactive barrier", Make: func() any { return must(w.BarrierInit()) }, Usable: true},
				{Name: "done", Make: func() any { r := must(w.Isend(mpi.Buffer{}, mpi.ProcNull, 0)); _, _ = r.Wait(); return r }},
				{Name: "done barrier", Make: func() any { r := must(w.Ibarrier()); _, _ = r.Wait(); return r }},
				{Name: "refused", Make: func() any { r, _ := w.Isend(mpi.Buffer{}, -7, 0); return r }},
			},
			"Stats":  {{Name: "live", Make: func() any { return w.Stats() }, Usable: true}},
			"Status": {{Name: "live", Make: func() any { return mpi.Status{} }, Usable: true}},
			"Win": {
				{Name: "live", Make: func() any { return win() }, Usable: true},
				{Name: "locked", Make: func() any { x := win(); _ = x.Lock(mpi.LockShared, 0); return x }, Usable: true},
				{Name: "dynamic", Make: func() any { return must(mpi.WinCreateDynamic(w.Comm)) }, Usable: true},
				{Name: "freed", Make: func() any { x := win(); _ = x.Free(); return x }},
			},
			"World": {
				{Name: "live", Make: func() any { return w }, Usable: true},
				{Name: "finalized", Make: func() any { return finalized }},
				{Name: "null", Make: func() any { return mpi.World{} }},
			},
		},
		Values: []any{mpi.Indexed([]int64{1}, []mpi.Block{{At: 5, Len: 1}}), &mpi.Request{}},
		Except: map[string]string{
			"Init":                          "joins the job of the process",
			"World.Finalize on live":        "ends the world of this test",
			"World.FinalizeContext on live": "ends the world of this test",
			"World.Abort on live":           "ends the job of this test",
			"World.Abort on finalized":      "ends the job of this test",
		},
		Errors: []error{mpi.ErrComm, mpi.ErrGroup, mpi.ErrRequest, mpi.ErrWin, mpi.ErrFreed, mpi.ErrFinalized, mpi.ErrRank, mpi.ErrTag,
			mpi.ErrBuffer, mpi.ErrRoot, mpi.ErrCount, mpi.ErrOp, mpi.ErrGrid},
		Quiet: map[string]string{
			"Cart.Coords on freed":    "asks nobody",
			"Cart.RankOf on freed":    "asks nobody",
			"Cart.Shift on freed":     "asks nobody",
			"Group.Incl on zero":      "the empty group (MPI 4.1, 7.3)",
			"Group.Excl on zero":      "the empty group (MPI 4.1, 7.3)",
			"Group.RangeIncl on zero": "the empty group (MPI 4.1, 7.3)",
			"Group.RangeExcl on zero": "the empty group (MPI 4.1, 7.3)",
			"Request.Test":            "null, inactive and done requests are done (MPI 4.1, 3.7.3)",
			"Request.Wait":            "null, inactive and done requests are done (MPI 4.1, 3.7.3)",
			"Request.WaitContext":     "null, inactive and done requests are done (MPI 4.1, 3.7.3)",
		},
	}
	s.Check(t)
	require.NoError(t, w.Finalize())
}
