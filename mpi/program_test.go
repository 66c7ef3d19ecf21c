package mpi_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/mpi"
)

// step is one step of a program that all ranks run.
type step struct {
	name   string // a collective call, or split, free, messages
	on     int    // index of the communicator
	form   int    // blocking, nonblocking, persistent
	t      trial
	colors []int
}

func (s step) String() string {
	return fmt.Sprintf("%s on %d, form %d, %v, colors %v", s.name, s.on, s.form, s.t, s.colors)
}

// program draws the steps of a program for n ranks.
func program(t *rapid.T, n int) (list []step) {
	all := append(slices.Clone(everyName), "split", "split", "free", "messages", "messages")
	for range rapid.IntRange(1, 12).Draw(t, "steps") {
		s := step{name: rapid.SampledFrom(all).Draw(t, "name"), on: rapid.IntRange(0, 3).Draw(t, "on"), form: rapid.IntRange(0, 2).Draw(t, "form")}
		s.t = trial{n: rapid.SampledFrom([]int{0, 1, 2, 9, 100, 1500}).Draw(t, "elements"), strided: rapid.Bool().Draw(t, "strided"),
			inPlace: rapid.Bool().Draw(t, "in place"), root: rapid.IntRange(0, n-1).Draw(t, "root")}
		if s.name == "split" {
			s.colors = rapid.SliceOfN(rapid.IntRange(0, 1), n, n).Draw(t, "colors")
		}
		list = append(list, s)
	}
	return list
}

// run runs a program at one rank. All ranks have the same number of communicators.
func run(w mpi.World, list []step) error {
	comms := []*mpi.Comm{w.Comm}
	for _, s := range list {
		c := comms[s.on%len(comms)]
		s.t.root %= c.Size()
		var err error
		switch s.name {
		case "split":
			var d *mpi.Comm
			if d, err = c.Split(s.colors[w.Rank()], 3*c.Rank()%7); err == nil {
				comms = append(comms, d)
			}
		case "free":
			if last := len(comms) - 1; last > 0 {
				err = comms[last].Free()
				comms = comms[:last]
			}
		case "messages":
			err = messages(c, s.t.n)
		default:
			call := []collectiveCaller{c, formed{c, false}, formed{c, true}}[s.form]
			err = collectives[s.name](call, c.Rank(), c.Size(), s.t)
		}
		if err != nil {
			return fmt.Errorf("%v at %v: %w", s, c, err)
		}
	}
	for _, c := range comms[1:] {
		if err := c.Free(); err != nil {
			return err
		}
	}
	return nil
}

// messages sends nonblocking messages from all ranks to all.
func messages(c *mpi.Comm, n int) error {
	var rs []*mpi.Request
	in := make([][]int64, c.Size())
	for i := range in {
		r := (c.Rank() + i) % c.Size()
		in[r] = make([]int64, n+r)
		got, err := c.Irecv(mpi.Of(in[r]), r, n)
		if err != nil {
			return err
		}
		sent, err := c.Isend(mpi.Of(vector(c.Rank(), r, n+c.Rank())), r, n)
		if err != nil {
			return err
		}
		rs = append(rs, got, sent)
	}
	if _, err := mpi.WaitAll(rs...); err != nil {
		return err
	}
	for r, v := range in {
		if !slices.Equal(v, vector(r, c.Rank(), n+r)) {
			return fmt.Errorf("what rank %d has sent is not what has come", r)
		}
	}
	return nil
}

// crew is a job whose ranks run programs.
type crew struct {
	programs []chan []step
	ends     chan error
}

func newCrew(n int) *crew {
	c := &crew{ends: make(chan error, n)}
	for range n {
		c.programs = append(c.programs, make(chan []step, 1))
	}
	return c
}

// work runs programs at a rank until the channel is closed.
func (c *crew) work(w mpi.World) error {
	for list := range c.programs[w.Rank()] {
		err := run(w, list)
		c.ends <- err
		if err != nil {
			return err
		}
	}
	return nil
}

// run runs a program on all ranks.
func (c *crew) run(list []step) (errs error) {
	for _, p := range c.programs {
		p <- list
	}
	for range c.programs {
		errs = errors.Join(errs, <-c.ends)
	}
	return errs
}

func (c *crew) stop() {
	for _, p := range c.programs {
		close(p)
	}
}

// TestPrograms runs random calls in random order.
func TestPrograms(t *testing.T) {
	const n = 4
	c := newCrew(n)
	left := make(chan struct{})
	go func() {
		defer close(left)
		defer c.stop()
		rapid.Check(t, func(t *rapid.T) { require.NoError(t, c.run(program(t, n))) })
	}()
	job(t, n, checked, func(w mpi.World) error {
		w.LimitContexts(20)
		return c.work(w)
	})
	<-left
}

// TestLoss drops 1 % of all packets.
func TestLoss(t *testing.T) {
	const n, seed = 4, 11
	t.Logf("seed %d", seed)
	var list []step
	for i, name := range append(slices.Clone(everyName), "messages", "split", "messages") {
		list = append(list, step{name: name, form: i % 3, on: i, t: trial{n: []int{3, 2000}[i%2], strided: i%3 == 1, root: i % n}, colors: []int{0, 1, 1, 0}})
	}
	open, faults := impaired(fmt.Sprintf("loss 1%% seed %d", seed))
	jobOn(t, open, n, mpi.Options{Check: true, NoShared: true}, func(w mpi.World) error {
		for range 4 {
			require.NoError(t, run(w, list))
		}
		require.NoError(t, w.Barrier())
		require.NotZero(t, faults().Lost)
		return nil
	})
}
