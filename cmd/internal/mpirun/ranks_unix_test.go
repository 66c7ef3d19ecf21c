//go:build unix

package mpirun

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// waitForNext has a rank wait for a message of the next rank, after all ranks have exchanged
// messages. On a host with an address in 198.18.0.0/15 it uses that address.
func waitForNext() error {
	o := mpi.Options{Report: func(text string) { fmt.Print(text) }, UD: mpi.UDOptions{GiveUp: 2 * time.Second}, TCP: mpi.TCPOptions{GiveUp: 2 * time.Second}}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return err
	}
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil && netip.MustParsePrefix("198.18.0.0/15").Contains(p.Addr()) {
			os.Setenv("SOFTRNIC_ADDR", p.Addr().String()+":4791-4799")
			o.TCP.Listen = p.Addr().String() + ":0"
		}
	}
	w, err := mpi.Init(func() (verbs.Device, error) { return rnic.Open(rnic.Options{}) }, o)
	if err != nil {
		return err
	}
	if err := w.Barrier(); err != nil {
		return err
	}
	fmt.Println("ready")
	_, err = w.Recv(mpi.Of([]byte{0}), (w.Rank()+1)%w.Size(), 5)
	if err != nil {
		err = fmt.Errorf("rank %d ends: %s", w.Rank(), strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return err
}

// TestReport checks that a report requested by the user lists the calls in which ranks wait, once
// for each rank.
func TestReport(t *testing.T) {
	signals := make(chan os.Signal, 2)
	stdout, done := start(t, Options{Programs: []Program{program(3, "wait")}, Environ: []string{"SOFTRNIC_MPI_REPORT_SIGNAL=USR1"}, Signals: signals})
	stdout.wait("ready\n", 3)
	signals <- syscall.SIGUSR1
	stdout.wait("What the ranks do:", 1)
	signals <- os.Interrupt
	r := <-done
	require.Equal(t, 130, r.failed(t).Status)
	require.Equal(t, 1, strings.Count(r.stdout, "state of the 3 ranks of the job, queried by rank 0"))
	require.Regexp(t, `rank.* 0.*: (Recv\(source 1, tag 5\) at mpirun/ranks_unix_test.go:|in no call of MPI after barrier #1)`, r.stdout)
	require.NotContains(t, r.stdout, "no reply")
}
