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

// envRole is the variable that makes this program a rank in a process of its own.
const envRole = "SOFTRNIC_MPI_TEST"

// envPatient is the variable that keeps the default of Options.GiveUp.
const envPatient = "SOFTRNIC_MPI_TEST_PATIENT"

// victim is the rank that is killed or stopped.
const victim = 2

// giveUp is Options.GiveUp in these tests.
const giveUp = 2 * time.Second

// duties are the calls of the ranks while one of them is killed. The victim reports when it is
// ready.
var duties = map[string]func(w mpi.World, ready func()) error{
	// Each rank waits in a different call for an idle rank.
	"wait": func(w mpi.World, ready func()) error {
		if w.Rank() == 0 { // which has looked up its memory
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
		case 0, 5: // 5 has not communicated with it
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
	// Each rank polls in a different call for an idle rank.
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
		for done := false; !done && err == nil; time.Sleep(time.Millisecond) { // so that other processes run
			if r == nil {
				_, done, err = w.Iprobe(victim, 3)
			} else {
				_, done, err = r.Test()
			}
		}
		return err
	},
	// All ranks are in a collective call or start one soon: by messages, and in shared memory.
	"allreduce": func(w mpi.World, ready func()) error { // by messages
		return repeatAllreduce(func(x, sum mpi.Buffer) error {
			r, err := w.Iallreduce(x, sum, mpi.Sum)
			if err == nil {
				_, err = r.Wait()
			}
			return err
		}, 3000, ready)
	},
	"shared": func(w mpi.World, ready func()) error { return repeatShared(w, 1000, ready) },
	"parts":  func(w mpi.World, ready func()) error { return repeatShared(w, 30000, ready) },
	// All ranks sleep in shared memory until an idle rank publishes its data.
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
	// Two ranks wait for ranks that wait for the killed one: SOFTRNIC_MPI_COLL selects an algorithm
	// with a chain.
	"chain": func(w mpi.World, ready func()) error {
		ready()
		if w.Rank() == victim {
			select {}
		}
		return w.Bcast(mpi.Of([]int64{1}), victim)
	},
}

// repeatAllreduce calls Allreduce until it fails.
func repeatAllreduce(call func(x, sum mpi.Buffer) error, n int, ready func()) error {
	x, sum := make([]float64, n), make([]float64, n)
	for i := 0; ; i++ {
		if i == 20 {
			ready()
		}
		if err := call(mpi.Of(x), mpi.Of(sum)); err != nil {
			return err
		}
	}
}

// repeatShared is repeatAllreduce in shared memory.
func repeatShared(w mpi.World, n int, ready func()) error {
	return repeatAllreduce(func(x, sum mpi.Buffer) error { return w.Allreduce(x, sum, mpi.Sum) }, n, ready)
}

// playRank runs a duty in a rank. It prints a line when it is ready and one with the error, and
// exits when its input ends.
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
