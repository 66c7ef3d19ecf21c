//go:build interop && linux

package uverbs

import (
	"bytes"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/acp"
	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/mpi/pmi"
	"github.com/softrnic/softrnic/sdp"
	"github.com/softrnic/softrnic/verbs"
)

func openDevice() (verbs.Device, error) { return Open(Options{Name: deviceName()}) }

// grace is the time that ranks may run after another one has failed.
const grace = 10 * time.Second

// TestSDP moves data through a socket of each flow control mode, in both directions.
func TestSDP(t *testing.T) {
	for _, mode := range []sdp.FlowControl{sdp.NIC, sdp.RDMA, sdp.Credit} {
		t.Run(mode.String(), func(t *testing.T) {
			var stacks [2]*sdp.Stack
			for i := range stacks {
				dev, err := openDevice()
				require.NoError(t, err)
				t.Cleanup(func() { require.NoError(t, dev.Close()) })
				stacks[i], err = sdp.New(dev, sdp.Options{FlowControl: mode})
				require.NoError(t, err)
				t.Cleanup(func() { require.NoError(t, stacks[i].Close()) })
			}
			l, err := stacks[0].Listen("sdp", ":0")
			require.NoError(t, err)
			echoed := make(chan error, 1)
			go func() {
				c, err := l.Accept()
				if err == nil {
					_, err = io.Copy(c, c)
					c.Close()
				}
				echoed <- err
			}()
			c, err := stacks[1].Dial("sdp", l.Addr().String())
			require.NoError(t, err)
			data := make([]byte, 300_000)
			for i := range data {
				data[i] = byte(i * 7 >> 4)
			}
			go func() {
				c.Write(data)
				c.(*sdp.Conn).CloseWrite()
			}()
			got, err := io.ReadAll(c)
			require.NoError(t, err)
			require.True(t, bytes.Equal(data, got))
			require.NoError(t, <-echoed)
			require.NoError(t, c.Close())
		})
	}
}

// TestMPI runs three ranks on the device: messages of each protocol, and a reduction.
func TestMPI(t *testing.T) {
	require.NoError(t, pmi.RunLocal(3, grace, func(m pmi.Manager) error {
		w, err := mpi.Init(openDevice, mpi.Options{Manager: m})
		if err != nil {
			return err
		}
		if err := exchangeRanks(w.Comm); err != nil {
			_ = w.Abort(1, err.Error())
			return err
		}
		return w.Finalize()
	}))
}

// exchangeRanks passes messages around a ring, and sums the ranks.
func exchangeRanks(c *mpi.Comm) error {
	next, last := (c.Rank()+1)%c.Size(), (c.Rank()+c.Size()-1)%c.Size()
	for _, n := range []int{1, 2000, 200_000} {
		out, in := bytes.Repeat([]byte{byte(c.Rank() + 1)}, n), make([]byte, n)
		if _, err := c.Sendrecv(mpi.Of(out), next, 1, mpi.Of(in), last, 1); err != nil {
			return err
		}
		if want := bytes.Repeat([]byte{byte(last + 1)}, n); !bytes.Equal(in, want) {
			return fmt.Errorf("rank %d: message of %d bytes differs", c.Rank(), n)
		}
	}
	rank, sum := c.Rank(), 0
	if err := c.Allreduce(mpi.Value(&rank), mpi.Value(&sum), mpi.Sum); err != nil {
		return err
	}
	if want := c.Size() * (c.Size() - 1) / 2; sum != want {
		return fmt.Errorf("rank %d: sum %d, want %d", rank, sum, want)
	}
	return nil
}

// TestACP checks that package acp refuses the device by name: its atomics must be those of the
// processor as well, and rxe's are not.
func TestACP(t *testing.T) {
	err := pmi.RunLocal(2, grace, func(m pmi.Manager) error {
		_, err := acp.Init(openDevice, acp.Options{Manager: m})
		return err
	})
	require.ErrorIs(t, err, verbs.ErrUnsupported)
	require.ErrorContains(t, err, "device atomics are not atomic with processor atomics")
}
