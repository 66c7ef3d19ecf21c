package mpi_test

import (
	"errors"
	"fmt"
	"log"
	"sync"

	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/mpi/mpitest"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// This is a complete program. Under softrnic mpirun it runs with several ranks.
func Example() {
	w, err := mpi.Init(func() (verbs.Device, error) { return rnic.Open(rnic.Options{}) }, mpi.Options{})
	if err != nil {
		log.Fatal(err)
	}
	x, sum := []float64{1, 2, 3}, make([]float64, 3)
	if err := w.Allreduce(mpi.Of(x), mpi.Of(sum), mpi.Sum); err != nil {
		log.Fatal(err)
	}
	fmt.Println("rank", w.Rank(), "of", w.Size(), "has", sum)
	if err := w.Finalize(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// rank 0 of 1 has [1 2 3]
}

// Each rank has a row of a matrix and gets a column.
func ExampleComm_Alltoall() {
	_ = mpitest.Run(3, func(w mpi.World) error {
		row, column := []int32{int32(10 * w.Rank()), int32(10*w.Rank() + 1), int32(10*w.Rank() + 2)}, make([]int32, 3)
		err := w.Alltoall(mpi.Of(row), mpi.Of(column))
		if w.Rank() == 1 {
			fmt.Println(column)
		}
		return err
	})
	// Output:
	// [1 11 21]
}

// Even and odd ranks get a communicator each.
func ExampleComm_Split() {
	var mu sync.Mutex
	sums := map[string]int{}
	err := mpitest.Run(5, func(w mpi.World) error {
		c, err := w.Split(w.Rank()%2, w.Rank())
		if err != nil {
			return err
		}
		rank, sum := w.Rank(), 0
		if err := c.Reduce(mpi.Value(&rank), mpi.Value(&sum), mpi.Sum, 0); err != nil {
			return err
		}
		if c.Rank() == 0 {
			mu.Lock()
			sums[c.Name()] = sum
			mu.Unlock()
		}
		return c.Free()
	})
	fmt.Println(sums, err)
	// Output:
	// map[world.split(0):6 world.split(1):4] <nil>
}

// A reduction progresses while the program computes and waits for messages.
func ExampleComm_Iallreduce() {
	_ = mpitest.Run(4, func(w mpi.World) error {
		norm, work := float64(w.Rank()), 0
		sum, err := w.Iallreduce(mpi.InPlace, mpi.Value(&norm), mpi.Sum)
		if err != nil {
			return err
		}
		for i := range 1000 { // any computation
			work += i
		}
		if _, err := sum.Wait(); err != nil {
			return err
		}
		if w.Rank() == 0 {
			fmt.Println(norm, work)
		}
		return nil
	})
	// Output:
	// 6 499500
}

// Each rank has a strip of a field with an additional row on either side, which it receives from
// its neighbors in every step. The neighbors beyond the ends of the field are ProcNull.
func ExampleComm_SendInit() {
	_ = mpitest.Run(3, func(w mpi.World) error {
		const columns, rows = 4, 2
		field := make([]float64, (rows+2)*columns)
		row := func(i int) mpi.Buffer { return mpi.Of(field[i*columns : (i+1)*columns]) }
		for i := columns; i < (rows+1)*columns; i++ {
			field[i] = float64(w.Rank() + 1)
		}
		g, err := w.CartCreate([]int{w.Size()}, []bool{false}, false)
		if err != nil {
			return err
		}
		up, down, err := g.Shift(0, 1)
		if err != nil {
			return err
		}
		var halo []*mpi.Request
		for _, keep := range []func() (*mpi.Request, error){
			func() (*mpi.Request, error) { return g.RecvInit(row(0), up, 0) },
			func() (*mpi.Request, error) { return g.RecvInit(row(rows+1), down, 0) },
			func() (*mpi.Request, error) { return g.SendInit(row(1), up, 0) },
			func() (*mpi.Request, error) { return g.SendInit(row(rows), down, 0) },
		} {
			r, err := keep()
			if err != nil {
				return err
			}
			halo = append(halo, r)
		}
		for range 3 {
			if err := mpi.StartAll(halo...); err != nil {
				return err
			}
			if _, err := mpi.WaitAll(halo...); err != nil {
				return err
			}
		}
		if w.Rank() == 1 {
			fmt.Println(field)
		}
		return nil
	})
	// Output:
	// [1 1 1 1 2 2 2 2 2 2 2 2 3 3 3 3]
}

// A rank sends a row in four partitions, as they become ready. The other receives it in two halves and
// adds up the second one while the first one is on its way.
func ExampleComm_PsendInit() {
	_ = mpitest.Run(2, func(w mpi.World) error {
		row := make([]int64, 8)
		if w.Rank() == 0 {
			s, err := w.PsendInit(mpi.Of(row), 4, 1, 0)
			if err != nil {
				return err
			}
			if err := s.Start(); err != nil {
				return err
			}
			for p := 3; p >= 0; p-- {
				row[2*p], row[2*p+1] = int64(p), int64(p)
				if err := s.Pready(p); err != nil {
					return err
				}
			}
			_, err = s.Wait()
			return err
		}
		r, err := w.PrecvInit(mpi.Of(row), 2, 0, 0)
		if err != nil {
			return err
		}
		if err := r.Start(); err != nil {
			return err
		}
		for half := false; !half; {
			if half, err = r.Parrived(1); err != nil {
				return err
			}
		}
		sum := row[4] + row[5] + row[6] + row[7]
		_, err = r.Wait()
		fmt.Println(sum, row)
		return err
	})
	// Output:
	// 10 [0 0 1 1 2 2 3 3]
}

// A column of a matrix is sent from its place in memory and received into a slice.
func ExampleComm_Send() {
	_ = mpitest.Run(2, func(w mpi.World) error {
		const tag = 7
		if w.Rank() == 0 {
			matrix := []int32{
				1, 2, 3,
				4, 5, 6,
			}
			return w.Send(mpi.Strided(matrix[1:], 2, 1, 3), 1, tag)
		}
		column := make([]int32, 10)
		s, err := w.Recv(mpi.Of(column), mpi.AnySource, mpi.AnyTag)
		n := s.Count(mpi.Of(column))
		fmt.Println("rank", s.Source, "has sent", column[:n])
		return err
	})
	// Output:
	// rank 0 has sent [2 5]
}

// The ranks call Bcast with different roots. Without Options.Check they would wait forever, or
// receive other data than expected.
func Example_check() {
	_ = mpitest.RunOptions(3, mpi.Options{Check: true}, func(w mpi.World) error {
		x, root := make([]float64, 4), 0
		if w.Rank() == 2 {
			root = 1
		}
		err := w.Bcast(mpi.Of(x), root)
		if w.Rank() == 0 {
			fmt.Println(errors.Is(err, mpi.ErrMismatch))
			fmt.Println(err)
		}
		return nil
	})
	// Output:
	// true
	// mpi: rank 0 of world: bcast with root 0: calls of the ranks do not match: ranks 0 and 1 called bcast of 4 float64 with root 0; rank 2 called bcast of 4 float64 with root 1
}

// Ranks draw numbers from a counter at rank 0, which makes no call for it, and store them in its
// window.
func ExampleWin() {
	err := mpitest.Run(3, func(w mpi.World) error {
		win, mine, err := mpi.WinAllocate[int64](w.Comm, 4) // the counter, and an element for each number
		if err != nil {
			return err
		}
		if err := win.LockAll(); err != nil {
			return err
		}
		number := int64(0)
		if err := win.FetchAndOp(mpi.Of([]int64{1}), mpi.Value(&number), 0, 0, mpi.Sum); err != nil {
			return err
		}
		if err := win.Flush(0); err != nil {
			return err
		}
		if err := win.Put(mpi.Of([]int64{10 * number}), 0, mpi.At(1+int(number))); err != nil {
			return err
		}
		if err := win.UnlockAll(); err != nil {
			return err
		}
		if err := win.Fence(mpi.NoSucceed); err != nil {
			return err
		}
		if w.Rank() == 0 {
			fmt.Println(mine)
		}
		return win.Free()
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: [3 0 10 20]
}

// Each rank has lines of a length that only it knows, and the previous rank reads them. Address and
// number are sent as messages.
func ExampleWinCreateDynamic() {
	err := mpitest.Run(3, func(w mpi.World) error {
		win, err := mpi.WinCreateDynamic(w.Comm)
		if err != nil {
			return err
		}
		line := make([]float64, w.Rank()+1)
		for i := range line {
			line[i] = float64(10*w.Rank() + i)
		}
		at, err := mpi.WinAttach(win, line) // without communication
		if err != nil {
			return err
		}
		next, before := (w.Rank()+1)%w.Size(), (w.Rank()+w.Size()-1)%w.Size()
		there := make([]int, 2)
		if _, err := w.Sendrecv(mpi.Of([]int{at, len(line)}), before, 0, mpi.Of(there), next, 0); err != nil {
			return err
		}
		if err := win.Lock(mpi.LockShared, next); err != nil {
			return err
		}
		got := make([]float64, there[1])
		if err := win.Get(mpi.Of(got), next, mpi.At(there[0])); err != nil {
			return err
		}
		if err := win.Unlock(next); err != nil {
			return err
		}
		if w.Rank() == 1 {
			fmt.Println(got)
		}
		if err := w.Barrier(); err != nil { // all ranks have read
			return err
		}
		if err := win.Detach(at); err != nil {
			return err
		}
		return win.Free()
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: [20 21 22]
}
