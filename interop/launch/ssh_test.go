//go:build interop && linux

package launch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// hosts is the number of hosts of a cluster.
const hosts = 4

// jobTime bounds a job that should succeed.
const jobTime = time.Minute

// cluster is a set of hosts in network namespaces at one switch, each with an sshd. Host
// i from 0 has the addresses 10.77.0.i+1, fd77::i+1 and fe80::77:i+1 on eth0.
type cluster struct {
	dir  string
	pids [hosts]int // of sshd, which hold the namespaces
}

// newCluster starts the hosts, which run until the test ends.
func newCluster(t *testing.T) *cluster {
	c := &cluster{dir: t.TempDir()}
	shell(t, "ip", "link", "set", "lo", "up")
	shell(t, "ip", "link", "add", "switch", "type", "bridge")
	shell(t, "ip", "link", "set", "switch", "up")
	key, hostKey := filepath.Join(c.dir, "key"), filepath.Join(c.dir, "hostkey")
	for _, name := range []string{key, hostKey} {
		shell(t, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", name)
	}
	c.write(t, "sshd_config", fmt.Sprintf("Port 2222\nListenAddress 0.0.0.0\nListenAddress ::\nHostKey %s\nAuthorizedKeysFile %s.pub\nStrictModes no\n"+
		"PidFile none\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\nLogLevel ERROR\nMaxStartups 100\n"+
		"SetEnv SHLVL=1\n", hostKey, key)) // else bash reads the account's .bashrc, which may print something
	public, err := os.ReadFile(hostKey + ".pub")
	require.NoError(t, err)
	c.write(t, "known_hosts", "* "+string(public))
	c.write(t, "ssh_config", fmt.Sprintf("Host node2\n  HostName 10.77.0.2\nHost mute\n  HostName 10.77.0.3\n  Port 2223\nHost *\n  Port 2222\n  User root\n"+
		"  IdentityFile %s\n  IdentitiesOnly yes\n  UserKnownHostsFile %s/known_hosts\n  GlobalKnownHostsFile none\n  StrictHostKeyChecking yes\n", key, c.dir))
	ssh, err := exec.LookPath("ssh")
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(c.dir, "bin"), 0o755))
	c.write(t, "bin/ssh", fmt.Sprintf("#!/bin/sh\nexec %s -F %s/ssh_config \"$@\"\n", ssh, c.dir))
	sshd, err := exec.LookPath("sshd") // sshd requires its absolute path
	require.NoError(t, err)
	for i := range c.pids {
		cmd := startDaemon(t, filepath.Join(c.dir, fmt.Sprintf("sshd%d.log", i+1)), &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL},
			"sh", "-c", fmt.Sprintf("ip link set lo up; exec %s -D -e -f %s/sshd_config", sshd, c.dir))
		c.pids[i] = cmd.Process.Pid
		pid, name, n := strconv.Itoa(cmd.Process.Pid), fmt.Sprintf("host%d", i+1), strconv.Itoa(i+1)
		shell(t, "ip", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", pid)
		shell(t, "ip", "link", "set", name, "master", "switch", "up")
		for _, addr := range []string{"10.77.0." + n + "/24", "fd77::" + n + "/64", "fe80::77:" + n + "/64"} {
			words := []string{"nsenter", "-t", pid, "-n", "ip", "addr", "add", addr, "dev", "eth0"}
			if strings.Contains(addr, ":") {
				words = append(words, "nodad") // without duplicate address detection, which takes a second
			}
			shell(t, words...)
		}
		shell(t, "nsenter", "-t", pid, "-n", "ip", "link", "set", "eth0", "up")
	}
	for i := range c.pids {
		c.waitListen(t, i)
	}
	return c
}

// waitListen waits until the sshd of a host listens.
func (c *cluster) waitListen(t *testing.T, host int) {
	t.Helper()
	const listening = ":08AE " // port 2222 in /proc/net/tcp
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/net/tcp", c.pids[host]))
		if bytes.Contains(b, []byte(listening)) {
			return
		}
		require.True(t, time.Now().Before(deadline), "sshd does not listen: see its log")
	}
}

// command returns a command that runs in the network of a host and uses the cluster's ssh.
func (c *cluster) command(ctx context.Context, host int, words ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "nsenter", append([]string{"-t", strconv.Itoa(c.pids[host]), "-n"}, words...)...)
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(c.dir, "bin")+":"+os.Getenv("PATH"))
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// result is the outcome of a job.
type result struct {
	status         int
	stdout, stderr string
	took           time.Duration
}

// runCommand runs a command to its end. It logs the outcome, with a label, if the test fails.
func runCommand(t *testing.T, cmd *exec.Cmd, label string) (r result) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	begin := time.Now()
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	r = result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String(), time.Since(begin)}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s: status %d after %v\n%s%s", label, r.status, r.took, r.stdout, r.stderr)
		}
	})
	return r
}

// mpirun runs a job of a role on host 0.
func (c *cluster) mpirun(t *testing.T, role string, options ...string) result {
	t.Helper()
	command, err := softrnic()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), jobTime)
	defer cancel()
	self, err := os.Executable()
	require.NoError(t, err)
	words := append(append([]string{command, "mpirun"}, options...), self, "rank", role)
	cmd := c.command(ctx, 0, words...)
	return runCommand(t, cmd, strings.Join(options, " "))
}

// runHydra runs a job on two hosts by hydra, which sets no address.
func (c *cluster) runHydra(t *testing.T, net string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), jobTime)
	defer cancel()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := c.command(ctx, 0, "mpiexec.hydra", "-iface", "eth0", "-launcher", "ssh", "-hosts", "10.77.0.1,10.77.0.2", "-ppn", "2", "-n", "4",
		"-genv", "SOFTRNIC_MPI_NET", net, self, "rank", "sum")
	return runCommand(t, cmd, "hydra")
}

// requireSums checks that n ranks exited with status 0, each with an address of its host that
// matches.
func (r result) requireSums(t *testing.T, n int, addr string) {
	t.Helper()
	require.Zero(t, r.status)
	require.Empty(t, r.stderr)
	lines := regexp.MustCompile(`(?m)^rank \d+ of (\d+): sum (\d+), left \d+, addr (.*)$`).FindAllStringSubmatch(r.stdout, -1)
	require.Len(t, lines, n)
	for _, line := range lines {
		require.Equal(t, []string{strconv.Itoa(n), strconv.Itoa(n * (n - 1) / 2)}, line[1:3])
		require.Regexp(t, "^("+addr+")$", line[3])
	}
}

func TestHosts(t *testing.T) {
	t.Parallel()
	requirePrograms(t, "openssh-server, openssh-client, iproute2", "sshd", "ssh", "ssh-keygen", "ip", "nsenter")
	c := newCluster(t)
	const ipv4, ipv6 = `10\.77\.0\.\d:4791-5790`, `\[fd77::\d\]:4791-5790`
	all := []string{"--hosts", "10.77.0.1:2,10.77.0.2:2,10.77.0.3:2,10.77.0.4:2"}
	t.Run("jobs", func(t *testing.T) {
		for _, k := range []struct {
			name    string
			ranks   int
			addr    string
			options []string
		}{
			{"two hosts by RDMA", 4, ipv4, []string{"--hosts", "10.77.0.1:2,10.77.0.2:2"}},
			{"two hosts by TCP", 4, ipv4, []string{"--net", "tcp", "--hosts", "10.77.0.1:2,10.77.0.2:2"}},
			{"two hosts by UD", 4, ipv4, []string{"--net", "ud", "--hosts", "10.77.0.1:2,10.77.0.2:2"}},
			{"four hosts by RDMA", 8, ipv4, all},
			{"four hosts by TCP", 8, ipv4, append([]string{"--net", "tcp"}, all...)},
			{"four hosts by UD", 8, ipv4, append([]string{"--net", "ud"}, all...)},
			{"others only", 4, ipv4, []string{"--hosts", "10.77.0.2:2,10.77.0.4:2"}},
			{"one other host", 2, "", []string{"--hosts", "10.77.0.3:2"}},
			{"a name of ssh's own", 4, ipv4, []string{"--hosts", "localhost:2,node2:2"}},
			{"a user", 2, ipv4, []string{"--hosts", hostname + ",root@10.77.0.2"}},
			{"IPv6 by RDMA", 4, ipv6, []string{"--hosts", "[fd77::1]:2,[fd77::2]:2"}},
			{"IPv6 by TCP", 3, ipv6, []string{"--net", "tcp", "--hosts", "fd77::1,fd77::2,fd77::3"}},
			{"link-local addresses by TCP", 4, `\[fe80::77:[12]%eth0\]:4791-5790`, []string{"--net", "tcp", "--hosts", "[fe80::77:1%eth0]:2,[fe80::77:2%eth0]:2"}},
			{"both IP versions", 3, ipv4, []string{"--hosts", "10.77.0.2,[fd77::3],localhost"}},
			{"an own command", 2, ipv4, []string{"--launcher-exec", "ssh -T", "--hosts", "10.77.0.2,10.77.0.3"}},
			{"a prefix", 4, `10\.77\.0\.0/24`, []string{"--addr", "10.77.0.0/24", "--hosts", "10.77.0.1:2,10.77.0.2:2"}},
			{"a list", 4, `10.*`, []string{"--addr", "10.77.0.1,10.77.0.2:5000-5099", "--hosts", "10.77.0.1:2,10.77.0.2:2"}},
			{"a port for all", 4, ipv4, []string{"--pmi-port", "--hosts", "10.77.0.1:2,10.77.0.2:2"}},
		} {
			t.Run(k.name, func(t *testing.T) {
				t.Parallel()
				c.mpirun(t, "sum", k.options...).requireSums(t, k.ranks, k.addr)
			})
		}
		for _, net := range []string{"rdma", "tcp", "ud"} {
			t.Run("under hydra, "+net, func(t *testing.T) {
				t.Parallel()
				requirePrograms(t, "mpich", "mpiexec.hydra")
				c.runHydra(t, net).requireSums(t, 4, ipv4)
			})
			t.Run("a killed rank, "+net, func(t *testing.T) {
				t.Parallel()
				r := c.mpirun(t, "killrank", "--net", net, "--hosts", "10.77.0.1,10.77.0.2:2")
				require.Equal(t, 128+9, r.status)
				require.Regexp(t, `rank 1 on 10\.77\.0\.2 \(pid \d+\) was ended by signal 9 \(killed\)`, r.stderr)
			})
		}
		t.Run("a killed agent", func(t *testing.T) {
			t.Parallel()
			r := c.mpirun(t, "killagent", "--hosts", "10.77.0.1,10.77.0.2:2")
			require.Equal(t, 1, r.status)
			require.Contains(t, r.stderr, "10.77.0.2 was lost with ranks 1 and 2: agent has ended (ssh: exit status 255); 1 rank that still ran was ended")
		})
		t.Run("no such host", func(t *testing.T) {
			t.Parallel()
			r := c.mpirun(t, "sum", "--hosts", "10.77.0.1,10.77.0.2,10.77.0.99:2")
			require.Equal(t, 1, r.status)
			require.Contains(t, r.stderr, "10.77.0.99 cannot be reached, where ranks 2 and 3 should run")
			require.Empty(t, r.stdout) // no rank has run
			require.Less(t, r.took, 12*time.Second)
		})
		t.Run("a host that says nothing", func(t *testing.T) {
			t.Parallel()
			mute := c.command(t.Context(), 2, os.Args[0], "rank", "mute")
			ready, err := mute.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, mute.Start())
			defer func() { _ = mute.Process.Kill(); _ = mute.Wait() }()
			_, err = ready.Read(make([]byte, 1))
			require.NoError(t, err)
			r := c.mpirun(t, "sum", "--launch-timeout", "2", "--hosts", "10.77.0.1,mute")
			require.Equal(t, 1, r.status)
			require.Contains(t, r.stderr, "mute cannot be reached, where rank 1 should run: no reply within 2s")
			require.Less(t, r.took, 6*time.Second)
		})
	})
}

// listenAndSayNothing is the program of a host whose sshd does not respond.
func listenAndSayNothing() int {
	l, err := net.Listen("tcp", ":2223")
	if err != nil {
		return 1
	}
	fmt.Println("listens")
	for {
		if _, err := l.Accept(); err != nil {
			return 1
		}
	}
}

func (c *cluster) write(t *testing.T, name, text string) {
	require.NoError(t, os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o700))
}
