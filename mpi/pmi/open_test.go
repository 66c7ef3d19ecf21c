package pmi

import (
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/pmi/server"
	"github.com/softrnic/softrnic/internal/pmi/wire"
)

func environmentOf(pairs []string) map[string]string {
	m := map[string]string{}
	for i := 0; i+1 < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return m
}

func environment(pairs ...string) func(string) string {
	m := environmentOf(pairs)
	return func(name string) string { return m[name] }
}

func TestOpenAlone(t *testing.T) {
	for _, env := range []func(string) string{
		environment(),
		environment("OMPI_COMM_WORLD_RANK", "0", "OMPI_COMM_WORLD_SIZE", "1", "PMIX_RANK", "0"),
		environment("SLURM_PROCID", "0", "SLURM_STEP_NUM_TASKS", "1", "SLURM_NTASKS", "4"),
		environment("SLURM_PROCID", "0", "SLURM_NTASKS", "1"),
		environment("SLURM_PROCID", "0"),
		environment("SLURM_JOB_ID", "7", "SLURM_NTASKS", "4"),                                              // in the shell of salloc
		environment("SLURM_JOB_ID", "7", "SLURM_NTASKS", "4", "SLURM_PROCID", "0", "ENVIRONMENT", "BATCH"), // in a batch script
		environment("SLURM_STEP_ID", "0", "SLURM_STEP_NUM_TASKS", "1", "PMIX_RANK", "0", "SLURM_PROCID", "0"),
		environment("PMI_RANK", "0", "PMI_SIZE", "1"),
	} {
		m, err := openFrom(soon(t), env)
		require.NoError(t, err)
		require.Equal(t, 0, m.Rank())
		require.Equal(t, 1, m.Size())
		require.NoError(t, exchange(soon(t), m, 0, func(int) string { return "alone" }))
		require.NoError(t, m.Finalize())
	}
}

func TestOpenInvalidEnvironment(t *testing.T) {
	for _, c := range []struct {
		name string
		env  []string
	}{
		{"SOFTRNIC_PMI", []string{"SOFTRNIC_PMI", "3"}},
		{"PMI_FD", []string{"PMI_FD", "x"}},
		{"PMI_FD", []string{"PMI_FD", "-1"}},
		{"PMI_RANK", []string{"PMI_FD", "3"}},
		{"PMI_SIZE", []string{"PMI_FD", "3", "PMI_RANK", "0", "PMI_SIZE", "0"}},
		{"PMI_FD", []string{"PMI_FD", "9999", "PMI_RANK", "0", "PMI_SIZE", "2"}},
		{"PMI_ID", []string{"PMI_PORT", "127.0.0.1:1"}},
		{"PMI_PORT", []string{"PMI_PORT", "nowhere", "PMI_ID", "0"}},
		{"OMPI_COMM_WORLD_RANK", []string{"OMPI_COMM_WORLD_RANK", "1", "OMPI_COMM_WORLD_SIZE", "2", "PMIX_RANK", "1"}},
		{"PMIX_RANK", []string{"PMIX_RANK", "1"}},
		{"PMIX_RANK", []string{"PMIX_RANK", "0", "SLURM_PROCID", "0", "SLURM_STEP_NUM_TASKS", "2"}},
		{"PMI_RANK", []string{"PMI_RANK", "1", "PMI_SIZE", "2"}},
		{"PMI_RANK", []string{"PMI_RANK", "0"}},
		{"SLURM_PROCID", []string{"SLURM_PROCID", "0", "SLURM_NTASKS", "4"}},
		{"SLURM_PROCID", []string{"SLURM_PROCID", "0", "SLURM_NPROCS", "4"}},
		{"SLURM_PROCID", []string{"SLURM_PROCID", "1", "SLURM_STEP_NUM_TASKS", "2"}},
		{"SLURM_PROCID", []string{"SLURM_JOB_ID", "7", "SLURM_PROCID", "0", "SLURM_NTASKS", "4"}},
		{"SLURM_PROCID", []string{"SLURM_PROCID", "0", "SLURM_NTASKS", "4", "ENVIRONMENT", "BATCH", "SLURM_STEP_ID", "0"}},
		{"MV2_COMM_WORLD_RANK", []string{"MV2_COMM_WORLD_RANK", "0", "MV2_COMM_WORLD_SIZE", "2"}},
		{"JSM_NAMESPACE_RANK", []string{"JSM_NAMESPACE_RANK", "0", "JSM_NAMESPACE_SIZE", "2"}},
		{"FLUX_TASK_RANK", []string{"FLUX_TASK_RANK", "0", "FLUX_JOB_SIZE", "2"}},
	} {
		_, err := openFrom(soon(t), environment(c.env...))
		require.ErrorIs(t, err, ErrEnvironment, c.name)
		require.ErrorContains(t, err, "pmi: invalid environment: "+c.name+"=")
		if _, rank := environmentOf(c.env)["PMI_FD"]; !rank && c.name != "PMI_ID" && c.name != "PMI_PORT" && c.name != "SOFTRNIC_PMI" {
			require.ErrorContains(t, err, "; use ")
			require.ErrorContains(t, err, "(or unset "+c.name)
		}
	}
}

func TestOpenByPort(t *testing.T) {
	for _, version := range []string{"1", "2"} {
		job, err := server.New(server.Options{Size: 2, ID: "kvs_port"})
		require.NoError(t, err)
		served := make(chan error, 2)
		port, err := server.Listen(server.PortOptions{Address: "127.0.0.1:0", Size: 2, Secret: "s3cret", OnRank: func(rank int, c net.Conn) {
			go func() { served <- job.Serve(rank, c) }()
		}})
		require.NoError(t, err)

		for _, secret := range []string{"", "other"} {
			_, err = openFrom(soon(t), environment("PMI_PORT", port.Addr(), "PMI_ID", "0", envVersion, version, wire.EnvSecret, secret))
			require.ErrorIs(t, err, ErrGone)
		}
		require.Equal(t, uint64(2), port.Rejected())

		var list []Manager
		for _, id := range []string{"0", "1"} {
			m, err := openFrom(soon(t), environment("PMI_PORT", port.Addr(), "PMI_ID", id, envVersion, version, wire.EnvSecret, "s3cret"))
			require.NoError(t, err)
			require.Equal(t, 2, m.Size())
			list = append(list, m)
		}
		everyRank(t, list, func(m Manager) error {
			return exchange(soon(t), m, 0, func(rank int) string { return "by port" })
		})
		everyRank(t, list, Manager.Finalize)
		require.NoError(t, <-served)
		require.NoError(t, <-served)
		require.NoError(t, port.Close())
	}
}

// TestOpenWrongPort connects to a port of another program, which sends nothing, or other data.
func TestOpenWrongPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err == nil {
			c.Write([]byte("220 mail.example.org ESMTP\r\n"))
			c.Close()
		}
		c, err = l.Accept()
		if err == nil {
			defer c.Close()
			c.Read(make([]byte, 100))
			<-t.Context().Done()
		}
	}()
	env := environment("PMI_PORT", l.Addr().String(), "PMI_ID", "0")
	_, err = openFrom(soon(t), env)
	require.Error(t, err)
	ctx, cancel := context.WithCancel(soon(t))
	cancel()
	_, err = openFrom(ctx, env)
	require.ErrorIs(t, err, context.Canceled)
}
