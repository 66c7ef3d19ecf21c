package osu

import (
	"time"

	"github.com/softrnic/softrnic/mpi"
)

// A oneSided is one of the operations on windows. Rank 0 accesses the memory of rank 1. If
// synchronization involves rank 1, rank 1 accesses the memory of rank 0 as well.
type oneSided struct {
	name, title   string
	windowed      bool // Options.Window operations per round, each at its own offset
	bidirectional bool // both ranks at the same time
	singleElem    bool // a single element only
	integerOnly   bool // integers only
	hasOrigin     bool // the operation has origin data
	hasResult     bool // the operation returns the previous data

	invoke    func(a *windowAccess, k int) error    // starts the k-th operation of a round
	wantAfter func(iteration, was, brought int) int // returns the element in the window afterwards
}

// afterPut, afterGet and afterSum return the element in a window after an operation.
func afterPut(_, _, brought int) int   { return brought }
func afterGet(_, was, _ int) int       { return was }
func afterSum(_, was, brought int) int { return was + brought }

// afterSwap returns the element after a compare-and-swap, which succeeds every other time.
func afterSwap(iteration, was, brought int) int {
	if compareOffset(iteration) == 0 {
		return brought
	}
	return was
}

// compareOffset returns the difference between the compare value and the element in the window.
func compareOffset(iteration int) int { return iteration % 2 }

func invokePut(a *windowAccess, k int) error { return a.win.Put(a.out[k], a.partner, a.targetPlace(k)) }
func invokeGet(a *windowAccess, k int) error { return a.win.Get(a.in[k], a.partner, a.targetPlace(k)) }

var oneSidedTests = []oneSided{
	{name: "put_latency", title: "MPI_Put Latency", hasOrigin: true, invoke: invokePut, wantAfter: afterPut},
	{name: "get_latency", title: "MPI_Get latency", hasResult: true, invoke: invokeGet, wantAfter: afterGet},
	{name: "put_bw", title: "MPI_Put Bandwidth", windowed: true, hasOrigin: true, invoke: invokePut, wantAfter: afterPut},
	{name: "get_bw", title: "MPI_Get Bandwidth", windowed: true, hasResult: true, invoke: invokeGet, wantAfter: afterGet},
	{name: "put_bibw", title: "MPI_Put Bi-directional Bandwidth", windowed: true, bidirectional: true, hasOrigin: true, invoke: invokePut, wantAfter: afterPut},
	{name: "acc_latency", title: "MPI_Accumulate latency", hasOrigin: true, wantAfter: afterSum,
		invoke: func(a *windowAccess, k int) error {
			return a.win.Accumulate(a.out[k], a.partner, a.targetPlace(k), mpi.Sum)
		}},
	{name: "get_acc_latency", title: "MPI_Get_accumulate latency", hasOrigin: true, hasResult: true, wantAfter: afterSum,
		invoke: func(a *windowAccess, k int) error {
			return a.win.GetAccumulate(a.out[k], a.in[k], a.partner, a.targetPlace(k), mpi.Sum)
		}},
	{name: "fop_latency", title: "MPI_Fetch_and_op latency", singleElem: true, hasOrigin: true, hasResult: true, wantAfter: afterSum,
		invoke: func(a *windowAccess, _ int) error {
			return a.win.FetchAndOp(a.out[0], a.in[0], a.partner, a.peerOffset, mpi.Sum)
		}},
	{name: "cas_latency", title: "MPI_Compare_and_swap latency", singleElem: true, integerOnly: true, hasOrigin: true, hasResult: true, wantAfter: afterSwap,
		invoke: func(a *windowAccess, _ int) error {
			return a.win.CompareAndSwap(a.out[0], a.compare, a.in[0], a.partner, a.peerOffset)
		}},
}

// A windowAccess is a rank's state of a test for one size.
type windowAccess struct {
	r          *runner
	t          *oneSided
	win        *mpi.Win
	partner    int
	peerGroup  *mpi.Group   // group of the partner
	steps      []step       // calls of a round
	operates   bool         // steps contain operations
	isTarget   bool         // the partner's steps contain operations
	out, in    []mpi.Buffer // by slot
	compare    mpi.Buffer
	memory     []byte // accessed by the partner
	peerOffset int    // base displacement at the partner
	data       struct{ out, in, compare []byte }
	slots      int
	size       int // bytes of a slot
}

// newAccess creates the window. It is collective. A rank that is not a target provides no
// memory.
func (r *runner) newAccess(size int) (*windowAccess, error) {
	a := &windowAccess{r: r, t: r.t.win, partner: r.partner, slots: 1, size: size}
	scripts := a.t.roundScripts(r.o.Sync)
	a.steps, a.operates, a.isTarget = scripts[r.c.Rank()].steps, scripts[r.c.Rank()].operates, scripts[r.partner].operates
	if a.t.windowed {
		a.slots = r.o.Window
	}
	newBuffers := func(wanted bool) (data []byte, list []mpi.Buffer) {
		if wanted {
			data = alignedBytes(a.slots * size)
			for k := range a.slots {
				list = append(list, r.o.Type.bufferOf(data[k*size:][:size]))
			}
		}
		return data, list
	}
	a.data.out, a.out = newBuffers(a.operates && a.t.hasOrigin)
	a.data.in, a.in = newBuffers(a.operates && a.t.hasResult)
	if a.operates && a.t.integerOnly {
		a.data.compare = alignedBytes(size)
		a.compare = r.o.Type.bufferOf(a.data.compare)
	}
	winSize := 0
	if a.isTarget {
		winSize = a.slots * size
	}
	var err error
	if a.peerGroup, err = r.c.Group().Incl(r.partner); err != nil {
		return nil, err
	}
	a.win, a.memory, a.peerOffset, err = r.o.Creation.newWindow(r.c, winSize)
	return a, err
}

// targetPlace returns the target of the k-th operation of a round.
func (a *windowAccess) targetPlace(k int) mpi.Place { return mpi.At(a.peerOffset + k*a.size) }

// measureOneSided measures the time until operations are complete, or their bandwidth.
func (r *runner) measureOneSided(x round) (Row, error) {
	a, err := r.newAccess(x.size)
	if err != nil {
		return Row{}, err
	}
	wrong, err := a.runRounds(x)
	if err != nil {
		return Row{}, err
	}
	if err := a.win.Free(); err != nil {
		return Row{}, err
	}
	if !a.t.windowed {
		return r.latencyRow(x, wrong)
	}
	moved := float64(x.size) * float64(r.o.Window) / 1e6 // MB
	if a.t.bidirectional {
		moved *= 2
	}
	return r.bandwidthRow(x, wrong, moved)
}

// runRounds runs all rounds, in one epoch if they only flush.
func (a *windowAccess) runRounds(x round) (wrong int, err error) {
	flushes := a.operates && a.r.o.Sync.usesFlush()
	if flushes {
		if err := stepLock(a); err != nil {
			return 0, err
		}
	}
	if err := a.r.c.Barrier(); err != nil {
		return 0, err
	}
	share := time.Duration(1)
	if a.operates && a.isTarget && !a.t.bidirectional { // the ranks take turns
		share = 2
	}
	for i := range x.Warmup + x.Iterations {
		if err := a.fillBuffers(i); err != nil {
			return wrong, err
		}
		start := time.Now()
		for _, s := range a.steps {
			if err := s(a); err != nil {
				return wrong, err
			}
		}
		if i >= x.Warmup {
			x.addSample(time.Since(start) / share)
		}
		n, err := a.countErrors(i)
		if err != nil {
			return wrong, err
		}
		wrong += n
	}
	if flushes {
		return wrong, stepUnlock(a)
	}
	return wrong, nil
}

// fillBuffers writes data to validate. The memory of the window belongs to the rank until the
// barrier.
func (a *windowAccess) fillBuffers(i int) error {
	if !a.r.o.Validate {
		return nil
	}
	typ, rank := a.r.o.Type, a.r.c.Rank()
	typ.fillElements(a.memory, i, rank)
	typ.fillElements(a.data.out, i, rank)
	clear(a.data.in)
	if a.data.compare != nil {
		typ.putElement(a.data.compare, 0, testElement(i, a.partner, 0)+compareOffset(i))
	}
	return a.r.c.Barrier()
}

// countErrors returns the number of wrong elements in results and in the window.
func (a *windowAccess) countErrors(i int) (wrong int, err error) {
	if !a.r.o.Validate {
		return 0, nil
	}
	if a.operates && a.r.o.Sync == FlushLocal {
		if err := stepFlush(a); err != nil {
			return 0, err
		}
	}
	if err := a.r.c.Barrier(); err != nil {
		return 0, err
	}
	typ, rank := a.r.o.Type, a.r.c.Rank()
	if a.operates && a.t.hasResult {
		wrong += typ.countWrong(a.data.in, i, a.partner)
	}
	for j := range len(a.memory) / typ.elemSize() {
		want := a.t.wantAfter(i, testElement(i, rank, j), testElement(i, a.partner, j))
		if typ.getElement(a.memory, j) != want {
			wrong++
		}
	}
	return wrong, nil
}
