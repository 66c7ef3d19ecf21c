package mpi_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/softrnic/softrnic/mpi"
)

// envRole makes this program a rank, a process of its own.
const envRole = "SOFTRNIC_MPI_TEST"

// envPatient has a rank be silent for as long as it may be by default.
const envPatient = "SOFTRNIC_MPI_TEST_PATIENT"

// victim is the rank that dies.
const victim = 2

// giveUp is how long a rank may be silent in these tests.
const giveUp = 2 * time.Second

// duties are the calls of the ranks while one of them is killed. The victim reports when it is
// ready.
var duties = map[string]func(w mpi.World, ready func()) error{
	// Each rank waits in another way for an idle rank.
	"wait": func(w mpi.World, ready func()) error {
		if w.Rank() == 0 { // who has something of it
			if _, err := w.Recv(mpi.Of([]byte{0}), victim, 1); err != nil {
				return err
			}
		}
		if w.Rank() == victim {
			if err := w.Send(mpi.Of([]byte{1}), 0, 1); err != nil {
				return err
			}
		}
		ready()
		var err error
		switch x := make([]byte, 1<<20); w.Rank() {
		case 0, 5: // 5 has never heard of it
			_, err = w.Recv(mpi.Of(x), victim, 2)
		case 1:
			_, err = w.Recv(mpi.Of(x), mpi.AnySource, mpi.AnyTag)
		case victim:
			select {}
		case 3:
			_, err = w.Probe(victim, 3)
		case 4:
			err = w.Ssend(mpi.Of(x), victim, 4)
		}
		return err
	},
	// Each rank polls in another way for an idle rank.
	"poll": func(w mpi.World, ready func()) error {
		ready()
		var r *mpi.Request
		var err error
		switch x := make([]byte, 1<<20); w.Rank() {
		case 0:
			r, err = w.Irecv(mpi.Of(x), victim, 2)
		case 1:
			r, err = w.Irecv(mpi.Of(x), mpi.AnySource, mpi.AnyTag)
		case victim:
			select {}
		case 3:
			r, err = w.Issend(mpi.Of(x), victim, 4)
		}
		for done := false; !done && err == nil; time.Sleep(time.Millisecond) { // so that others have their turn
			if r == nil {
				_, done, err = w.Iprobe(victim, 3)
			} else {
				_, done, err = r.Test()
			}
		}
		return err
	},
	// All are in the middle of a collective call, or soon will be: by messages, and in
	// memory that they have in common.
	"allreduce": func(w mpi.World, ready func()) error { return allreduces(w, 3000, ready) },
	"shared":    func(w mpi.World, ready func()) error { return allreduces(w, 1000, ready) },
	// All sleep in shared memory until an idle rank publishes its data.
	"asleep": func(w mpi.World, ready func()) error {
		for range 10 {
			if err := w.Barrier(); err != nil {
				return err
			}
		}
		if w.Rank() == victim {
			for mpi.Sleepers(w.Comm) < w.Size()-1 {
				runtime.Gosched()
			}
			ready()
			select {}
		}
		ready()
		return w.Barrier()
	},
	// Two wait for others who wait for the one that is gone: SOFTRNIC_MPI_COLL has made a
	// chain of them.
	"chain": func(w mpi.World, ready func()) error {
		ready()
		if w.Rank() == victim {
			select {}
		}
		return w.Bcast(mpi.Of([]int64{1}), victim)
	},
}

// allreduces is one after the other.
func allreduces(w mpi.World, n int, ready func()) error {
	x, sum := make([]float64, n), make([]float64, n)
	for i := 0; ; i++ {
		if i == 20 {
			ready()
		}
		if err := w.Allreduce(mpi.Of(x), mpi.Of(sum), mpi.Sum); err != nil {
			return err
		}
	}
}

// playRank is a rank's life: it says ready, and how its duty has ended, and stays until
// its input ends.
func playRank(role string) int {
	o := mpi.Options{RDMA: mpi.RDMAOptions{Retries: 3, Connect: hasty}, UD: mpi.UDOptions{GiveUp: giveUp}, TCP: mpi.TCPOptions{GiveUp: giveUp}}
	if os.Getenv(envPatient) != "" {
		o = mpi.Options{}
	}
	w, err := mpi.Init(open, o)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	err = duties[role](w, func() { fmt.Println("ready") })
	fmt.Println(strings.ReplaceAll(fmt.Sprint(errors.Is(err, mpi.ErrLost), " ", err), "\n", "; "))
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}
