package mpirun

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestParseHosts(t *testing.T) {
	list, err := ParseHosts("node1, node2:4,user@192.0.2.1:2,[2001:db8::1]:3,::1")
	require.NoError(t, err)
	require.Equal(t, []Host{{"node1", 1}, {"node2", 4}, {"user@192.0.2.1", 2}, {"2001:db8::1", 3}, {"::1", 1}}, list)
	for _, text := range []string{"", "a,", "a:0", "a:x", ":2", "-oProxyCommand=x", "a b", "a;b", "$(x)", "a:99999999"} {
		_, err := ParseHosts(text)
		var wrong *OptionError
		require.ErrorAs(t, err, &wrong, text)
	}
}

func TestReadHosts(t *testing.T) {
	list, err := ReadHosts(strings.NewReader("# the rack\nnode1:2\n\nnode2 slots=4 max_slots=8 # big\n  node3\n"))
	require.NoError(t, err)
	require.Equal(t, []Host{{"node1", 2}, {"node2", 4}, {"node3", 1}}, list)
	for text, want := range map[string]string{
		"":                "no host",
		"a\nb c\n":        `line 2 of the hosts: "c" is not understood`,
		"a slots=0":       "no number",
		"a:x":             "line 1",
		"a slots=1 b=2":   "not understood",
		"a max_slots=two": "no number",
	} {
		_, err := ReadHosts(strings.NewReader(text))
		require.ErrorContains(t, err, want)
	}
}

func TestPlace(t *testing.T) {
	seats, nodes := place(nil, 0, []Program{{N: 2}, {N: 1}})
	require.Equal(t, []seat{{0, 0}, {0, 0}, {0, 1}}, seats)
	require.Equal(t, []string{"localhost"}, nodes)

	seats, nodes = place([]Host{{"a", 2}, {"b", 1}, {"a", 1}}, 0, []Program{{}})
	require.Equal(t, []seat{{0, 0}, {0, 0}, {1, 0}, {0, 0}}, seats)
	require.Equal(t, []string{"a", "b"}, nodes)

	// Rank r of any number is in block r/ppn, of the hosts in turn.
	rapid.Check(t, func(t *rapid.T) {
		hosts := []Host{{"a", 3}, {"b", 1}, {"c", 2}}[:rapid.IntRange(1, 3).Draw(t, "hosts")]
		ppn, n := rapid.IntRange(1, 4).Draw(t, "ppn"), rapid.IntRange(1, 40).Draw(t, "n")
		seats, nodes := place(hosts, ppn, []Program{{N: n}})
		require.Len(t, seats, n)
		for r, s := range seats {
			require.Equal(t, hosts[r/ppn%len(hosts)].Name, nodes[s.node])
		}
	})
}

func TestHere(t *testing.T) {
	o := Options{}
	require.True(t, o.here("localhost"))
	require.True(t, o.here("127.0.0.2"))
	require.True(t, o.here("::1"))
	require.False(t, o.here("192.0.2.1"))
	o.Launch = []string{"rsh"}
	require.True(t, o.here("localhost"))
	require.False(t, o.here("127.0.0.2"))
}

func TestAgentCommand(t *testing.T) {
	o := Options{Agent: []string{"/opt/it's/softrnic", "mpirun", "--agent"}}
	require.Equal(t, o.Agent, o.agentCommand("localhost").Args)
	require.Equal(t, []string{"ssh", "-x", "-T", "-o", "BatchMode=yes", "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3", "node1", `exec '/opt/it'\''s/softrnic' 'mpirun' '--agent'`}, o.agentCommand("node1").Args)
	o.Launch, o.Remote = []string{"rsh", "-q"}, []string{"softrnic"}
	require.Equal(t, []string{"rsh", "-q", "node1", "exec 'softrnic'"}, o.agentCommand("node1").Args)
}

func TestExported(t *testing.T) {
	require.Equal(t, []string{"SOFTRNIC_IMPAIR=loss 1%", "GOMAXPROCS=2"},
		exported([]string{"HOME=/root", "SOFTRNIC_IMPAIR=loss 1%", "SOFTRNIC_ADDR=192.0.2.1", "GOMAXPROCS=2", "SOFTRNIC_PMI_SECRET=x", "GOPATH=/go"}))
}

func TestOptionsWithoutSense(t *testing.T) {
	good := func() Options {
		return Options{Programs: []Program{{N: 1, Args: []string{"true"}}}, Agent: []string{"x"}, Stdout: newText(), Stderr: newText()}
	}
	o := good()
	require.NoError(t, o.check())
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
		require.ErrorContains(t, o.check(), want)
		require.Error(t, Run(t.Context(), o))
	}
}
