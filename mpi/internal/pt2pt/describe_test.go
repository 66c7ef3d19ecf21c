package pt2pt

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi/internal/comm"
	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/deadlock"
	"github.com/softrnic/softrnic/mpi/internal/match"
)

// pair returns the communicator of the ranks 5 and 0 of a job, at rank 0, which is rank 1 there. Its
// receives wait, and no packet leaves the rank.
func pair(t *testing.T, check bool) *Comm {
	c := newSelf(t, check)
	base := &comm.Comm{Usable: c.Usable, Fail: c.Fail}
	base.Init(c.Engine, comm.FirstID, "pair", []int{5, 0}, 1, 2)
	return c.job.NewComm(base)
}

// TestDescribeWait describes waits for messages: their number of bytes is that of the elements also
// with type signatures, and ranks are those of the communicator.
func TestDescribeWait(t *testing.T) {
	b := datatype.Of(make([]int64, longSelf))
	for _, check := range []bool{false, true} {
		for want, start := range map[string]func(c *Comm) (*Request, error){
			"Send(32768 bytes, dest 1, rank 0 of the job, tag 3)":  func(c *Comm) (*Request, error) { return c.Isend(b, 1, 3, Standard) },
			"Ssend(32768 bytes, dest 1, rank 0 of the job, tag 3)": func(c *Comm) (*Request, error) { return c.Isend(b, 1, 3, Synchronous) },
			"Recv(source 1, rank 0 of the job, tag any)":           func(c *Comm) (*Request, error) { return c.Irecv(b, 1, match.Any) },
			"Recv(source any, tag 4)":                              func(c *Comm) (*Request, error) { return c.Irecv(b, match.Any, 4) },
		} {
			r, err := start(pair(t, check))
			require.NoError(t, err)
			d := r.DescribeWait()
			require.Equal(t, want, d.What)
			require.Equal(t, "pair", d.Comm)
			require.True(t, d.Unmet)
			if r.op == opSend {
				require.Equal(t, "receive not posted", d.Why)
			}
			if r.p.Envelope.Source == match.Any {
				require.Equal(t, []int{5, 0}, d.For)
				require.True(t, d.Any)
			} else {
				require.Equal(t, []int{0}, d.For)
			}
		}
	}
}

// TestDescribeRequests describes waits for several requests: done and null ones are left out, and
// persistent ones may be started anew, so that their readiness is unknown.
func TestDescribeRequests(t *testing.T) {
	c := pair(t, false)
	from := func(source int) *Request {
		r, err := c.Irecv(datatype.Buffer{}, source, 1)
		require.NoError(t, err)
		return r
	}
	persistent, err := c.RecvInit(datatype.Buffer{}, 0, 1)
	require.NoError(t, err)
	require.NoError(t, persistent.Start())
	for _, x := range []struct {
		rs        []*Request
		any       bool
		what      string
		need, may []int // ranks that are waited for, ranks to probe
		known     bool
	}{
		{[]*Request{nil, from(0), from(comm.ProcNull)}, true, "Test(Recv(source 0, rank 5 of the job, tag 1))", []int{5}, []int{5}, true},
		{[]*Request{from(1), from(0)}, true, "Test(Recv(source 1, rank 0 of the job, tag 1) and 1 more)", []int{0, 5}, []int{0, 5}, true},
		{[]*Request{from(1), from(match.Any)}, false, "Test(Recv(source 1, rank 0 of the job, tag 1) and 1 more)", []int{0}, []int{0, 5}, true},
		{[]*Request{persistent}, true, "Test(Recv(source 0, rank 5 of the job, tag 1))", []int{5}, []int{5}, false},
	} {
		d := describeRequests("Test", x.rs, x.any, true)
		require.Equal(t, deadlock.Call{What: x.what, Comm: "pair", For: x.need, Any: x.any}, d.Call)
		require.Equal(t, x.may, d.DependsOn)
		require.Equal(t, x.known, d.Ready != nil)
		require.False(t, d.IsReady())
	}
	r := from(1)
	d := describeRequests("Test", []*Request{r}, true, true)
	require.NoError(t, c.Bsend(datatype.Buffer{}, 1, 1)) // an older receive matches it
	require.False(t, d.IsReady())
	for !r.Ready() {
		require.NoError(t, c.Bsend(datatype.Buffer{}, 1, 1))
	}
	require.True(t, d.IsReady())
}
