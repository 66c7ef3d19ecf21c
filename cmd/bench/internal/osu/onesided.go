package osu

import (
	"time"

	"github.com/softrnic/softrnic/mpi"
)

// oneSided is one of the operations on windows. Rank 0 works on the memory of rank
// 1 and, where that has to take part, rank 1 does the same to rank 0.
type oneSided struct {
	name, title string
	windows     bool // as many operations in a row as Options.Window, each at a place of its own
	both        bool // ranks at the same time
	single      bool // of one element
	integer     bool // of no floating-point number
	brings      bool // elements of its own
	fetches     bool // what was there before

	do    func(a *access, k int) error          // the k-th operation in a row
	after func(iteration, was, brought int) int // the element that is there then
}

// Elements that are there after an operation.
func taken(_, _, brought int) int { return brought }
func kept(_, was, _ int) int      { return was }
func sum(_, was, brought int) int { return was + brought }

// swapped is of compares that find what they look for every other time.
func swapped(iteration, was, brought int) int {
	if differs(iteration) == 0 {
		return brought
	}
	return was
}

// differs is by how much what a compare looks for is not what is there.
func differs(iteration int) int { return iteration % 2 }

func put(a *access, k int) error { return a.win.Put(a.out[k], a.partner, a.place(k)) }
func get(a *access, k int) error { return a.win.Get(a.in[k], a.partner, a.place(k)) }

var oneSideds = []oneSided{
	{name: "put_latency", title: "MPI_Put Latency", brings: true, do: put, after: taken},
	{name: "get_latency", title: "MPI_Get latency", fetches: true, do: get, after: kept},
	{name: "put_bw", title: "MPI_Put Bandwidth", windows: true, brings: true, do: put, after: taken},
	{name: "get_bw", title: "MPI_Get Bandwidth", windows: true, fetches: true, do: get, after: kept},
	{name: "put_bibw", title: "MPI_Put Bi-directional Bandwidth", windows: true, both: true, brings: true, do: put, after: taken},
	{name: "acc_latency", title: "MPI_Accumulate latency", brings: true, after: sum,
		do: func(a *access, k int) error { return a.win.Accumulate(a.out[k], a.partner, a.place(k), mpi.Sum) }},
	{name: "get_acc_latency", title: "MPI_Get_accumulate latency", brings: true, fetches: true, after: sum,
		do: func(a *access, k int) error {
			return a.win.GetAccumulate(a.out[k], a.in[k], a.partner, a.place(k), mpi.Sum)
		}},
	{name: "fop_latency", title: "MPI_Fetch_and_op latency", single: true, brings: true, fetches: true, after: sum,
		do: func(a *access, _ int) error { return a.win.FetchAndOp(a.out[0], a.in[0], a.partner, a.there, mpi.Sum) }},
	{name: "cas_latency", title: "MPI_Compare_and_swap latency", single: true, integer: true, brings: true, fetches: true, after: swapped,
		do: func(a *access, _ int) error {
			return a.win.CompareAndSwap(a.out[0], a.compare, a.in[0], a.partner, a.there)
		}},
}

// access is a rank's part of a test for a size.
type access struct {
	r       *runner
	t       *oneSided
	win     *mpi.Win
	partner int
	other   *mpi.Group   // of the partner
	steps   []step       // of a round
	acts    bool         // there are operations among them
	acted   bool         // and among the partner's
	out, in []mpi.Buffer // by place
	compare mpi.Buffer
	memory  []byte // that the partner works on
	there   int    // where the partner's begins
	data    struct{ out, in, compare []byte }
	places  int
	size    int // of each
}

// newAccess makes the window, which all ranks do together. Who is not worked on
// brings no memory.
func (r *runner) newAccess(size int) (*access, error) {
	a := &access{r: r, t: r.t.win, partner: r.partner, places: 1, size: size}
	scripts := a.t.scripts(r.o.Sync)
	a.steps, a.acts, a.acted = scripts[r.c.Rank()].steps, scripts[r.c.Rank()].operates, scripts[r.partner].operates
	if a.t.windows {
		a.places = r.o.Window
	}
	pieces := func(wanted bool) (data []byte, list []mpi.Buffer) {
		if wanted {
			data = memory(a.places * size)
			for k := range a.places {
				list = append(list, r.o.Type.of(data[k*size:][:size]))
			}
		}
		return data, list
	}
	a.data.out, a.out = pieces(a.acts && a.t.brings)
	a.data.in, a.in = pieces(a.acts && a.t.fetches)
	if a.acts && a.t.integer {
		a.data.compare = memory(size)
		a.compare = r.o.Type.of(a.data.compare)
	}
	room := 0
	if a.acted {
		room = a.places * size
	}
	var err error
	if a.other, err = r.c.Group().Incl(r.partner); err != nil {
		return nil, err
	}
	a.win, a.memory, a.there, err = r.o.Creation.window(r.c, room)
	return a, err
}

// place is that of the k-th operation in a row.
func (a *access) place(k int) mpi.Place { return mpi.At(a.there + k*a.size) }

// oneSided is how long operations take until they are known to be done, or how much
// they move.
func (r *runner) oneSided(x round) (Row, error) {
	a, err := r.newAccess(x.size)
	if err != nil {
		return Row{}, err
	}
	wrong, err := a.rounds(x)
	if err != nil {
		return Row{}, err
	}
	if err := a.win.Free(); err != nil {
		return Row{}, err
	}
	if !a.t.windows {
		return r.latencyRow(x, wrong)
	}
	moved := float64(x.size) * float64(r.o.Window) / 1e6 // MB
	if a.t.both {
		moved *= 2
	}
	return r.bandwidthRow(x, wrong, moved)
}

// rounds does all rounds, in one epoch if they only flush.
func (a *access) rounds(x round) (wrong int, err error) {
	flushes := a.acts && a.r.o.Sync.flushes()
	if flushes {
		if err := lock(a); err != nil {
			return 0, err
		}
	}
	if err := a.r.c.Barrier(); err != nil {
		return 0, err
	}
	share := time.Duration(1)
	if a.acts && a.acted && !a.t.both { // one after the other
		share = 2
	}
	for i := range x.Warmup + x.Iterations {
		if err := a.prepare(i); err != nil {
			return wrong, err
		}
		start := time.Now()
		for _, s := range a.steps {
			if err := s(a); err != nil {
				return wrong, err
			}
		}
		if i >= x.Warmup {
			x.add(time.Since(start) / share)
		}
		n, err := a.check(i)
		if err != nil {
			return wrong, err
		}
		wrong += n
	}
	if flushes {
		return wrong, unlock(a)
	}
	return wrong, nil
}

// prepare makes data to be looked at. Memory is the rank's own until the barrier.
func (a *access) prepare(i int) error {
	if !a.r.o.Validate {
		return nil
	}
	typ, rank := a.r.o.Type, a.r.c.Rank()
	typ.fill(a.memory, i, rank)
	typ.fill(a.data.out, i, rank)
	clear(a.data.in)
	if a.data.compare != nil {
		typ.put(a.data.compare, 0, element(i, a.partner, 0)+differs(i))
	}
	return a.r.c.Barrier()
}

// check counts elements that are wrong, of what was fetched and of what is there.
func (a *access) check(i int) (wrong int, err error) {
	if !a.r.o.Validate {
		return 0, nil
	}
	if a.acts && a.r.o.Sync == FlushLocal {
		if err := flush(a); err != nil {
			return 0, err
		}
	}
	if err := a.r.c.Barrier(); err != nil {
		return 0, err
	}
	typ, rank := a.r.o.Type, a.r.c.Rank()
	if a.acts && a.t.fetches {
		wrong += typ.check(a.data.in, i, a.partner)
	}
	for j := range len(a.memory) / typ.size() {
		want := a.t.after(i, element(i, rank, j), element(i, a.partner, j))
		if typ.get(a.memory, j) != want {
			wrong++
		}
	}
	return wrong, nil
}
