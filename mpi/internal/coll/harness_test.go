package coll_test

import (
	"flag"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/misuse"
	"github.com/softrnic/softrnic/mpi/internal/coll"
)

// These tests check that world detects the faults it should detect.

func TestWorldDetectsDeadlock(t *testing.T) {
	for seed := range uint64(20) {
		w := newWorld(3, rand.New(rand.NewPCG(seed, 0)))
		err := w.run(func(r *rank) error {
			if r.id == 2 {
				return nil
			}
			b := make([]byte, 4)
			if err := r.Wait(r.Irecv(1-r.id, b)); err != nil {
				return err
			}
			return r.Wait(r.Isend(1-r.id, b))
		})
		require.EqualError(t, err, "deadlock:\nrank 0 waits for 4 bytes from rank 1\nrank 1 waits for 4 bytes from rank 0\nrank 2 has returned")
	}
}

func TestWorldDetectsBufferAccess(t *testing.T) {
	for name, c := range map[string]struct {
		body func(r *rank, b []byte) error
		want string
	}{
		"send": {func(r *rank, b []byte) error {
			q := r.Isend(1, b)
			b[0]++
			return r.Wait(q)
		}, "rank 0 touched memory of a request for rank 1 to take 4 bytes"},
		"receive": {func(r *rank, b []byte) error {
			q := r.Irecv(1, b)
			b[0]++
			return r.Wait(q)
		}, "rank 0 touched memory of a request for 4 bytes from rank 1"},
		"overlap": {func(r *rank, b []byte) error {
			return r.Wait(r.Isend(1, b), r.Irecv(1, b))
		}, "touched memory"},
		"length": {func(r *rank, b []byte) error {
			return r.Wait(r.Irecv(1, b[:3]))
		}, "rank 0 expected 3 bytes of 1, 4 arrived"},
		"forgotten": {func(r *rank, b []byte) error {
			r.Isend(1, b)
			return nil
		}, "rank 0 did not wait for rank 1 to take 4 bytes"},
		"twice": {func(r *rank, b []byte) error {
			q := r.Isend(1, b)
			return r.Wait(q, q)
		}, "a second time"},
		"nothing": {func(r *rank, _ []byte) error { return r.Wait() }, "waits for nothing"},
		"scratch": {func(r *rank, _ []byte) error {
			r.memory.Alloc(8)
			return nil
		}, "rank 0 kept 1 pieces of scratch memory"},
	} {
		for seed := range uint64(20) {
			w := newWorld(2, rand.New(rand.NewPCG(seed, 0)))
			err := w.run(func(r *rank) error {
				if r.id == 0 {
					return c.body(r, make([]byte, 4))
				}
				return r.Wait(r.Isend(0, []byte("text")), r.Irecv(0, make([]byte, 4)))
			})
			require.ErrorContains(t, err, c.want, "%s, seed %d", name, seed)
		}
	}
}

// TestWorldCountsRounds checks that rounds count successive messages, of which a rank sends one at
// a time.
func TestWorldCountsRounds(t *testing.T) {
	w := newWorld(3, nil)
	require.NoError(t, w.run(func(r *rank) error {
		switch r.id {
		case 0:
			return r.Wait(r.Isend(1, nil), r.Isend(2, nil))
		case 1:
			if err := r.Wait(r.Irecv(0, nil)); err != nil {
				return err
			}
			return r.Wait(r.Isend(2, nil))
		}
		if err := r.Wait(r.Irecv(0, nil)); err != nil {
			return err
		}
		return r.Wait(r.Irecv(1, nil))
	}))
	require.Equal(t, 3, w.rounds(), "0 to 1, 0 to 2 and 1 to 2, which has to wait for 2's receive")
	require.Equal(t, 3, w.messages)
}

func (r *rank) call(ch coll.Choices) *coll.Call {
	return &coll.Call{Net: r, Memory: &r.memory, Choices: ch}
}

// TestMain reduces the number of calls that rapid draws for each of the many algorithms, unless the
// command line sets it.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "40"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// TestUnusable calls every exported function and method with nil and zero values and with
// arguments out of range: each returns, and with an error where it has one. A Call on a Net
// is called with bad arguments by TestArguments.
func TestUnusable(t *testing.T) {
	s := &misuse.Surface{
		Dir:   ".",
		Funcs: map[string]any{"Algorithms": coll.Algorithms, "Collectives": coll.Collectives, "NewChoices": coll.NewChoices, "ParseChoices": coll.ParseChoices, "ParseCollective": coll.ParseCollective},
		Types: map[string][]misuse.Receiver{
			"Algorithm":  {{Name: "zero", Usable: true, Make: func() any { return &coll.Algorithm{} }}},
			"Call":       {{Name: "without a net", Make: func() any { return &coll.Call{} }}},
			"Choices":    {{Name: "nil", Usable: true, Make: func() any { return coll.Choices(nil) }}},
			"Collective": {{Name: "unknown", Usable: true, Make: func() any { return coll.Collective(200) }}},
		},
		Values: []any{coll.Collective(200), coll.Case{Ranks: -1}, coll.Case{}, "nonsense", "allreduce=nonsense", "nonsense=ring"},
		Errors: []error{coll.ErrArgument, coll.ErrAlgorithm},
	}
	s.Check(t)
}
