//go:build interop && linux

package launch

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// runRank is the program of a rank, which opens its device as the program of the README does. It
// returns the exit status.
func runRank(role string) int {
	if role == "mute" {
		return listenAndSayNothing()
	}
	w, err := mpi.Init(func() (verbs.Device, error) { return rnic.Open(rnic.Options{}) }, mpi.Options{})
	if err == nil {
		err = playRole(w, role)
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

func playRole(w mpi.World, role string) error {
	rank, size := w.Rank(), w.Size()
	x, sum, left := []int64{int64(rank)}, make([]int64, 1), -1
	if err := w.Allreduce(mpi.Of(x), mpi.Of(sum), mpi.Sum); err != nil {
		return err
	}
	// Send a long message to every neighbour, which needs RDMA.
	long := make([]byte, 1<<20)
	if size > 1 {
		if _, err := w.Sendrecv(mpi.Of(long), (rank+1)%size, 1, mpi.Of(make([]byte, len(long))), (rank+size-1)%size, 1); err != nil {
			return err
		}
		if _, err := w.Sendrecv(mpi.Value(&rank), (rank+1)%size, 2, mpi.Value(&left), (rank+size-1)%size, 2); err != nil {
			return err
		}
	}
	switch {
	case role == "sum":
		fmt.Printf("rank %d of %d: sum %d, left %d, addr %s\n", rank, size, sum[0], left, os.Getenv("SOFTRNIC_ADDR"))
		return w.Finalize()
	case rank == 1 && role == "killrank":
		return syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case rank == 1 && role == "killagent":
		return syscall.Kill(os.Getppid(), syscall.SIGKILL)
	case role == "hang":
		fmt.Println("hangs")
	}
	from := time.Now()
	_, err := w.Recv(mpi.Of([]byte{0}), 1, 3) // a message that is never sent
	return fmt.Errorf("waited for %d ms: %w", time.Since(from).Milliseconds(), err)
}
