//go:build unix

package agent

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/internal/mpirun/frame"
	"github.com/softrnic/softrnic/internal/hostaddr"
)

func TestAddressOfRanks(t *testing.T) {
	own := "" // an address of this host that is not loopback
	list, err := hostaddr.Own()
	require.NoError(t, err)
	for _, ip := range list {
		if ip.Is4() && !ip.IsLoopback() {
			own = ip.String()
		}
	}
	for _, c := range []struct {
		name, ssh string
		spec      frame.Spec
		want      string
		note      bool
	}{
		{name: "one host", ssh: "192.0.2.9 5 192.0.2.1 22"},
		{name: "by ssh", ssh: "192.0.2.9 5 192.0.2.1 22", spec: frame.Spec{Peers: []string{"203.0.113.2"}}, want: "192.0.2.1:4791-5790"},
		{name: "by ssh, IPv6", ssh: "2001:db8::9 5 2001:db8::1 22", spec: frame.Spec{Peers: []string{"2001:db8::2"}}, want: "[2001:db8::1]:4791-5790"},
		{name: "by ssh, link-local", ssh: "fe80::9%eth0 5 fe80::1%eth0 22", spec: frame.Spec{Peers: []string{"fe80::2%eth0"}}, want: "[fe80::1%eth0]:4791-5790"},
		{name: "by ssh, mapped", ssh: "::ffff:192.0.2.9 5 ::ffff:192.0.2.1 22", spec: frame.Spec{Peers: []string{"203.0.113.2"}}, want: "192.0.2.1:4791-5790"},
		{name: "all on loopback", ssh: "127.0.0.1 5 127.0.0.11 22", spec: frame.Spec{Peers: []string{"127.0.0.12"}}, want: "127.0.0.11:4791-5790"},
		{name: "nonsense", ssh: "x y z", spec: frame.Spec{Peers: []string{"127.0.0.12"}}},
		{name: "the user's name", spec: frame.Spec{Here: "192.0.2.1", Peers: []string{"203.0.113.2"}}, want: "192.0.2.1:4791-5790"},
		{name: "no route", spec: frame.Spec{Peers: []string{"fe80::1%no-such"}}, note: true},
		{name: "the other family", ssh: "192.0.2.9 5 192.0.2.1 22", spec: frame.Spec{Family: 6, Peers: []string{"203.0.113.2"}}, note: true},
		{name: "peers here", spec: frame.Spec{Peers: []string{own, "127.0.0.1"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("SSH_CONNECTION", c.ssh)
			var out bytes.Buffer
			a := &agent{out: frame.NewWriter(&out), spec: c.spec}
			a.findAddress()
			require.Equal(t, c.want, a.addr)
			require.Equal(t, c.note, bytes.Contains(out.Bytes(), []byte("no route to the other hosts")), out.String())
		})
	}
	a := &agent{addr: "192.0.2.1:4791-5790", spec: frame.Spec{Size: 2}}
	for given, want := range map[string]string{
		"":                          "192.0.2.1:4791-5790",
		"192.0.2.7":                 "192.0.2.7:4791-5790",
		"192.0.2.7:5000,2001:db8::": "192.0.2.7:5000,[2001:db8::]:4791-5790",
		"192.0.2.0/24,127.0.0.0/8":  "192.0.2.0/24,127.0.0.0/8",
		"nonsense":                  "nonsense",
	} {
		require.Equal(t, want, a.addressFor([]string{"SOFTRNIC_ADDR=other", "SOFTRNIC_ADDR=" + given}), given)
	}
	a.spec.Size = 1
	require.Equal(t, "192.0.2.7", a.addressFor([]string{"SOFTRNIC_ADDR=192.0.2.7"}))
}
