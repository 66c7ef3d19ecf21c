package mpirun

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/internal/hostaddr"
)

func TestParseHosts(t *testing.T) {
	list, err := ParseHosts("node1, node2:4,user@192.0.2.1:2,[2001:db8::1]:3,::1,[::1],user@2001:db8::1,user@[2001:db8::1]:2,fe80::1%eth0,[fe80::1%eth0]:2")
	require.NoError(t, err)
	require.Equal(t, []Host{{"node1", 1}, {"node2", 4}, {"user@192.0.2.1", 2}, {"2001:db8::1", 3}, {"::1", 1}, {"::1", 1}, {"user@2001:db8::1", 1},
		{"user@2001:db8::1", 2}, {"fe80::1%eth0", 1}, {"fe80::1%eth0", 2}}, list)
	for _, text := range []string{"", "a,", "a:0", "a:x", "a:", ":2", "-oProxyCommand=x", "a b", "a;b", "$(x)", "a:99999999", "a:b:2", "slots=2", "user@", "@a", "a@b@c", "a/b",
		"[2001:db8::1", "[node1]:2", "[::1]2", "[::1]:", "[::1]:0", "2001:db8::x:2", "user@-x:0"} {
		_, err := ParseHosts("first," + text)
		var wrong *OptionError
		require.ErrorAs(t, err, &wrong, text)
		require.ErrorContains(t, err, "want HOST or HOST:RANKS")
		require.Regexp(t, "entry [23]: ", err.Error(), text)
	}
}

func TestReadHosts(t *testing.T) {
	list, err := ReadHosts("rack", strings.NewReader("# the rack\nnode1:2\n\nnode2 slots=4 max_slots=8 # big\n  node3\n"))
	require.NoError(t, err)
	require.Equal(t, []Host{{"node1", 2}, {"node2", 4}, {"node3", 1}}, list)
	for text, want := range map[string]string{
		"":                "rack: no host; want HOST, ",
		"a\nis here\n":    `rack:2: unexpected "here"; want HOST, HOST:RANKS or HOST slots=RANKS`,
		"a slots=0":       `rack:1: "slots=0": want 1 to`,
		"a:x":             `rack:1: host "a:x": want a number of ranks`,
		"a slots=1 b=2":   `rack:1: unexpected "b=2"`,
		"a max_slots=two": `rack:1: "max_slots=two": want 1 to`,
		"a:x slots=2":     `rack:1: host "a:x"`,
		"slots=2":         `rack:1: host "slots=2": not a host name`,
	} {
		_, err := ReadHosts("rack", strings.NewReader(text))
		var wrong *OptionError
		require.ErrorAs(t, err, &wrong, text)
		require.ErrorContains(t, err, want)
	}
}

func TestPlace(t *testing.T) {
	seats, nodes := mapRanks(nil, 0, []Program{{N: 2}, {N: 1}})
	require.Equal(t, []placement{{0, 0}, {0, 0}, {0, 1}}, seats)
	require.Equal(t, []string{"localhost"}, nodes)

	seats, nodes = mapRanks([]Host{{"a", 2}, {"b", 1}, {"a", 1}}, 0, []Program{{}})
	require.Equal(t, []placement{{0, 0}, {0, 0}, {1, 0}, {0, 0}}, seats)
	require.Equal(t, []string{"a", "b"}, nodes)

	// Rank r runs on host r/ppn modulo the number of hosts.
	rapid.Check(t, func(t *rapid.T) {
		hosts := []Host{{"a", 3}, {"b", 1}, {"c", 2}}[:rapid.IntRange(1, 3).Draw(t, "hosts")]
		ppn, n := rapid.IntRange(1, 4).Draw(t, "ppn"), rapid.IntRange(1, 40).Draw(t, "n")
		seats, nodes := mapRanks(hosts, ppn, []Program{{N: n}})
		require.Len(t, seats, n)
		for r, s := range seats {
			require.Equal(t, hosts[r/ppn%len(hosts)].Name, nodes[s.node])
		}
	})
}

func TestIsLocalHost(t *testing.T) {
	own, err := os.Hostname()
	require.NoError(t, err)
	addrs, err := hostaddr.Own()
	require.NoError(t, err)
	o := Options{}
	for _, name := range []string{"localhost", "127.0.0.2", "::1", own, strings.ToUpper(own)} {
		require.True(t, o.isLocal(name), name)
	}
	for _, ip := range addrs {
		require.True(t, o.isLocal(ip.String()), ip)
	}
	for _, name := range []string{"192.0.2.1", "2001:db8::1", "fe80::1%lo", "fe80::1", own + "x", "other-" + own, own + ".invalid", "root@" + own} {
		require.False(t, o.isLocal(name), name)
	}
	o.Allocation = &Allocation{Here: "n7"}
	require.True(t, o.isLocal("n7"))
	o.Launch = []string{"rsh"}
	require.True(t, o.isLocal("localhost"))
	require.False(t, o.isLocal("127.0.0.2"))
	require.False(t, o.isLocal(own))
}

func TestAgentCommand(t *testing.T) {
	t.Setenv("SSH_CONNECTION", "192.0.2.9 1 192.0.2.1 22")
	t.Setenv("SOFTRNIC_ADDR", "192.0.2.1")
	o := Options{Agent: []string{"/opt/it's/softrnic", "mpirun", "--agent"}}
	require.Equal(t, o.Agent, o.agentCommand("localhost").Args)
	require.Contains(t, o.agentCommand("localhost").Env, "SOFTRNIC_ADDR=192.0.2.1")
	require.NotContains(t, o.agentCommand("localhost").Env, "SSH_CONNECTION=192.0.2.9 1 192.0.2.1 22")
	ssh := []string{"ssh", "-x", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3"}
	require.Equal(t, append(ssh, "node1", `exec '/opt/it'\''s/softrnic' 'mpirun' '--agent'`), o.agentCommand("node1").Args)
	require.NotContains(t, strings.Join(o.agentCommand("node1").Env, " "), "192.0.2.1")
	o.Allocation = &Allocation{command: func(host string, agent []string) []string { return append([]string{"srun", host}, agent...) }}
	require.Equal(t, append([]string{"srun", "node1"}, o.Agent...), o.agentCommand("node1").Args)
	o.Launch, o.Remote = []string{"rsh", "-q"}, []string{"softrnic"}
	require.Equal(t, []string{"rsh", "-q", "node1", "exec 'softrnic'"}, o.agentCommand("node1").Args)
}

func TestExported(t *testing.T) {
	require.Equal(t, []string{"SOFTRNIC_IMPAIR=loss 1%", "GOMAXPROCS=2"},
		exportedEnviron([]string{"HOME=/root", "SOFTRNIC_IMPAIR=loss 1%", "SOFTRNIC_ADDR=192.0.2.1", "GOMAXPROCS=2", "SOFTRNIC_PMI_SECRET=x", "GOPATH=/go"}))
}

func TestInvalidOptions(t *testing.T) {
	good := func() Options {
		return Options{Programs: []Program{{N: 1, Args: []string{"true"}}}, Agent: []string{"x"}, Stdout: newText(), Stderr: newText()}
	}
	o := good()
	require.NoError(t, o.validate())
	for want, spoil := range map[string]func(*Options){
		"no program":         func(o *Options) { o.Programs = nil },
		"no program to":      func(o *Options) { o.Programs[0].Args = nil },
		"-1 times":           func(o *Options) { o.Programs[0].N = -1 },
		"want NAME=VALUE":    func(o *Options) { o.Environ = []string{"x"} },
		"set by mpirun":      func(o *Options) { o.Programs[0].Environ = []string{"PMI_RANK=1"} },
		"none can be negati": func(o *Options) { o.PPN = -1 },
		"Agent":              func(o *Options) { o.Agent = nil },
		"70000 times":        func(o *Options) { o.Programs[0].N = 70000 },
	} {
		o := good()
		spoil(&o)
		require.ErrorContains(t, o.validate(), want)
		require.Error(t, Run(t.Context(), o))
	}
}
