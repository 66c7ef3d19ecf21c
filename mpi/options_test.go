package mpi_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/mpi/internal/coll"
	"github.com/softrnic/softrnic/mpi/pmi"
	"github.com/softrnic/softrnic/verbs"
)

// initAlone starts a job of one rank with the options of the environment.
func initAlone(o mpi.Options) (mpi.World, error) {
	o.Manager = pmi.NewLocal(1)[0]
	return mpi.Init(open, o)
}

func TestEnvironment(t *testing.T) {
	for name, value := range map[string]string{
		"SOFTRNIC_MPI_CHECK":         "yes",
		"SOFTRNIC_MPI_COLL":          "alltoall=fast",
		"SOFTRNIC_MPI_CONNECT":       "some",
		"SOFTRNIC_MPI_EAGER":         "1",
		"SOFTRNIC_MPI_FAST":          "1",
		"SOFTRNIC_MPI_FLOW":          "tcp",
		"SOFTRNIC_MPI_NET":           "ether",
		"SOFTRNIC_MPI_ONESIDED":      "sided",
		"SOFTRNIC_MPI_SHARED":        "no",
		"SOFTRNIC_MPI_RAILS":         "9",
		"SOFTRNIC_MPI_RC_LIMIT":      "-1",
		"SOFTRNIC_MPI_RENDEZVOUS":    "vous",
		"SOFTRNIC_MPI_WATCHDOG":      "soon",
		"SOFTRNIC_MPI_REPORT_SIGNAL": "KILL",
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, value)
			_, err := initAlone(mpi.Options{})
			require.ErrorContains(t, err, name+"="+value)
			require.ErrorContains(t, err, "mpi: rank 0 of world: init job of 1 ranks: ")
		})
	}
}

func TestAlgorithmsFromEnvironment(t *testing.T) {
	t.Setenv("SOFTRNIC_MPI_COLL", "alltoall=bruck,bcast=chain")
	w, err := initAlone(mpi.Options{})
	require.NoError(t, err)
	require.Equal(t, coll.Choices{coll.Alltoall: "bruck", coll.Bcast: "chain"}, w.Algorithms())
	require.NoError(t, w.Finalize())
	// Options take precedence.
	w, err = initAlone(mpi.Options{Algorithms: map[string]string{"bcast": "binomial"}})
	require.NoError(t, err)
	require.Equal(t, coll.Choices{coll.Bcast: "binomial"}, w.Algorithms())
	require.NoError(t, w.Finalize())
}

// TestFastAndFlow checks which of the fast path and a flow control applies, and that Init names both if they
// conflict.
func TestFastAndFlow(t *testing.T) {
	for _, c := range []struct {
		fastVar, flowVar string
		fast             bool
		flow             mpi.Flow
		wantFast         bool
		wantFlow         mpi.Flow
		err              string
	}{
		{},
		{flowVar: "rdma", wantFlow: mpi.FlowRDMA},
		{flowVar: "rdma", flow: mpi.FlowNIC, wantFlow: mpi.FlowNIC},
		{flowVar: "rdma", fast: true, wantFast: true},
		{flowVar: "rdma", fastVar: "off", wantFlow: mpi.FlowRDMA},
		{flowVar: "shared", fastVar: "on", wantFast: true},
		{flowVar: "rdma", fastVar: "on", err: "SOFTRNIC_MPI_FAST=on: SOFTRNIC_MPI_FLOW is rdma, want shared"},
		{flow: mpi.FlowNIC, fastVar: "on", err: "SOFTRNIC_MPI_FAST=on: Options.RDMA.Flow is nic, want shared"},
		{flow: mpi.FlowNIC, fast: true, err: "Options.RDMA: Fast with Flow nic, want shared"},
	} {
		t.Run(fmt.Sprintf("%s %s %v %v", c.fastVar, c.flowVar, c.fast, c.flow), func(t *testing.T) {
			t.Setenv("SOFTRNIC_MPI_FAST", c.fastVar)
			t.Setenv("SOFTRNIC_MPI_FLOW", c.flowVar)
			w, err := initAlone(mpi.Options{RDMA: mpi.RDMAOptions{Fast: c.fast, Flow: c.flow}})
			if c.err != "" {
				require.EqualError(t, err, "mpi: rank 0 of world: init job of 1 ranks: "+c.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.wantFast, w.Options().RDMA.Fast)
			require.Equal(t, c.wantFlow, w.Options().RDMA.Flow)
			require.NoError(t, w.Finalize())
		})
	}
}

func TestCheckFromEnvironment(t *testing.T) {
	t.Setenv("SOFTRNIC_MPI_CHECK", "1")
	job(t, 2, mpi.Options{}, func(w mpi.World) error {
		require.ErrorIs(t, w.Bcast(mpi.Value(new(int)), w.Rank()), mpi.ErrMismatch)
		return nil
	})
}

// TestOptionsOutOfRange checks that Init names the field that is out of range, the value and
// the range.
func TestOptionsOutOfRange(t *testing.T) {
	for want, o := range map[string]mpi.Options{
		"Options.RCLimit: -1 out of range [0, 2147483647]":                                              {RCLimit: -1},
		"Options.OneSided: 9 out of range [0, 1]":                                                       {OneSided: 9},
		"Options.RDMA.Eager: 1 out of range [64, 1048576]":                                              {RDMA: mpi.RDMAOptions{Eager: 1}},
		"Options.RDMA.Eager: 1073741824 out of range [64, 1048576]":                                     {RDMA: mpi.RDMAOptions{Eager: 1 << 30}},
		"Options.RDMA.Flow: 4 out of range [0, 3]":                                                      {RDMA: mpi.RDMAOptions{Flow: 4}},
		"Options.RDMA: Fast with Flow nic, want shared":                                                 {RDMA: mpi.RDMAOptions{Fast: true, Flow: mpi.FlowNIC}},
		"Options.RDMA.Rendezvous: 9 out of range [0, 2]":                                                {RDMA: mpi.RDMAOptions{Rendezvous: 9}},
		"Options.RDMA.Credits: 65536 out of range [1, 16384]":                                           {RDMA: mpi.RDMAOptions{Credits: 1 << 16}},
		"Options.RDMA.Receives: -1 out of range [1, 16384]":                                             {RDMA: mpi.RDMAOptions{Receives: -1}},
		"Options.RDMA.FastSize: 5 out of range [64, 65536]":                                             {RDMA: mpi.RDMAOptions{FastSize: 5}},
		"Options.RDMA.Rails: 9 out of range [1, 8]":                                                     {RDMA: mpi.RDMAOptions{Rails: 9}},
		"Options.RDMA.Retries: 16 out of range [1, 15]":                                                 {RDMA: mpi.RDMAOptions{Retries: 16}},
		"Options.RDMA.Connect: verbs: invalid argument: ConnectOptions.Retries: 9 out of range [-1, 7]": {RDMA: mpi.RDMAOptions{Connect: verbs.ConnectOptions{Retries: 9}}},
		"Options.UD.Packets: -1 out of range [1, 1048576]":                                              {UD: mpi.UDOptions{Packets: -1}},
		"Options.UD.GiveUp: 1ns, want at least 1s":                                                      {UD: mpi.UDOptions{GiveUp: 1}},
		"Options.TCP.Eager: 1 out of range [64, 1048576]":                                               {TCP: mpi.TCPOptions{Eager: 1}},
		"Options.GiveUp: -1ns, want at least 1s":                                                        {GiveUp: -1},
		"Options.Net: 9 out of range [0, 3]":                                                            {Net: 9},
		`Options.Algorithms: coll: algorithm: unknown algorithm "x"`:                                    {Algorithms: map[string]string{"bcast": "x"}},
	} {
		_, err := initAlone(o)
		require.ErrorContains(t, err, want)
	}
}

// TestGiveUp checks the times of all fabrics for several values of GiveUp: the sum of the longest
// pause between probes, the silence, and a polling interval of half a second is not longer than it.
func TestGiveUp(t *testing.T) {
	for give, want := range map[time.Duration]struct {
		timeout uint8
		retries int
	}{0: {16, 11}, time.Second: {12, 1}, 3 * time.Second: {14, 3}, 20 * time.Second: {17, 15}, time.Hour: {24, 15}} {
		ud, tcp, timeout, retries, pause := mpi.GiveUps(mpi.Options{GiveUp: give})
		if give == 0 {
			give = 10 * time.Second
		}
		require.Equal(t, ud, tcp)
		require.LessOrEqual(t, ud+pause, give+time.Second/2, give)
		require.Equal(t, verbs.AckTimeout(want.timeout), timeout, give)
		require.Equal(t, want.retries, retries, give)
		require.LessOrEqual(t, 7*time.Second<<want.timeout>>16, ud, give)
	}
	// Options take precedence.
	o := mpi.Options{GiveUp: time.Minute}
	o.UD.GiveUp, o.RDMA.Connect.AckTimeout = time.Second, verbs.AckTimeout(9)
	ud, tcp, timeout, _, _ := mpi.GiveUps(o)
	require.Equal(t, time.Second, ud)
	require.Equal(t, 45*time.Second, tcp)
	require.Equal(t, verbs.AckTimeout(9), timeout)
	t.Setenv("SOFTRNIC_MPI_GIVE_UP", "0.1s")
	_, err := initAlone(mpi.Options{})
	require.ErrorContains(t, err, "SOFTRNIC_MPI_GIVE_UP=0.1s: want a duration such as 30s, at least 1s")
}
