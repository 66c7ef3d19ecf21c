package ifwatch

import (
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// message encodes an rtnetlink message: header, struct and attributes. All fields are in native
// byte order.
func message(kind uint16, seq uint32, body []byte, attrs ...[]byte) []byte {
	b := make([]byte, syscall.NLMSG_HDRLEN)
	b = append(b, body...)
	for _, a := range attrs {
		b = append(b, a...)
	}
	binary.NativeEndian.PutUint32(b[0:], uint32(len(b)))
	binary.NativeEndian.PutUint16(b[4:], kind)
	binary.NativeEndian.PutUint32(b[8:], seq)
	return b
}

func attr(kind uint16, value []byte) []byte {
	b := binary.NativeEndian.AppendUint16(nil, uint16(4+len(value)))
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = append(b, value...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

// link encodes a struct ifinfomsg: family, pad, type, index, flags, change.
func link(kind uint16, index int, flags uint32, mtu uint32) []byte {
	b := []byte{0, 0, 1, 0}
	b = binary.NativeEndian.AppendUint32(b, uint32(index))
	b = binary.NativeEndian.AppendUint32(b, flags)
	b = binary.NativeEndian.AppendUint32(b, 0xffffffff)
	return message(kind, 0, b, attr(syscall.IFLA_IFNAME, []byte("eth0\x00")), attr(syscall.IFLA_MTU, binary.NativeEndian.AppendUint32(nil, mtu)))
}

// addr encodes a struct ifaddrmsg: family, prefix length, flags, scope, index.
func addr(kind uint16, index int, prefix string, attrs ...uint16) []byte {
	p := netip.MustParsePrefix(prefix)
	b := []byte{syscall.AF_INET, byte(p.Bits()), 0, 0}
	if p.Addr().Is6() {
		b[0] = syscall.AF_INET6
	}
	b = binary.NativeEndian.AppendUint32(b, uint32(index))
	var list [][]byte
	for _, a := range attrs {
		value := p.Addr().AsSlice()
		if a == syscall.IFA_ADDRESS && len(attrs) > 1 {
			value[len(value)-1]++ // the other end of a point-to-point link
		}
		list = append(list, attr(a, value))
	}
	return message(kind, 0, b, list...)
}

const (
	running = syscall.IFF_UP | syscall.IFF_RUNNING
	newLink = syscall.RTM_NEWLINK
	delLink = syscall.RTM_DELLINK
	newAddr = syscall.RTM_NEWADDR
	delAddr = syscall.RTM_DELADDR
)

// TestTable checks the state of an address after each message.
func TestTable(t *testing.T) {
	const local, address = syscall.IFA_LOCAL, syscall.IFA_ADDRESS
	up := State{HasAddr: true, Up: true, MTU: 1500}
	down := State{HasAddr: true, MTU: 1500}
	gone := State{MTU: 1500}
	type step struct {
		message []byte
		want    State
	}
	for _, c := range []struct {
		ip    string
		steps []step
	}{
		{"192.0.2.1", []step{
			{addr(newAddr, 2, "192.0.2.1/24", address, local), up},
			{link(newLink, 2, syscall.IFF_UP, 1500), down}, // no carrier
			{link(newLink, 2, syscall.IFF_RUNNING, 1500), down},
			{link(newLink, 2, running, 9000), State{HasAddr: true, Up: true, MTU: 9000}},
			{link(newLink, 2, running, 1500), up},
			{link(newLink, 3, 0, 1400), up}, // another interface
			{addr(newAddr, 3, "198.51.100.1/24", local), up},
			{addr(delAddr, 2, "192.0.2.2/24", local), up},
			{addr(newAddr, 3, "192.0.2.2/24", local), up}, // on our subnet
			{addr(delAddr, 2, "192.0.2.1/24", local), gone},
			{addr(newAddr, 3, "192.0.2.1/24", local), State{HasAddr: true, MTU: 1400}}, // moved
			{link(newLink, 3, running, 1400), State{HasAddr: true, Up: true, MTU: 1400}},
			{addr(newAddr, 2, "192.0.2.1/24", local), State{HasAddr: true, Up: true, MTU: 0}}, // twice: either
			{addr(delAddr, 3, "192.0.2.1/24", local), up},
			{link(delLink, 2, running, 1500), gone},
		}},
		{"127.0.0.7", []step{
			{addr(newAddr, 2, "127.0.0.1/8", local), up}, // lies in it
			{link(newLink, 2, 0, 1500), down},
			{addr(delAddr, 2, "127.0.0.1/8", local), gone},
		}},
		{"fe80::1%eth0", []step{
			{addr(newAddr, 2, "fe80::1/64", address), up},
			{addr(newAddr, 3, "fe80::1/64", address), up},
			{addr(delAddr, 2, "fe80::1/64", address), gone}, // the other interface's is another address
			{addr(newAddr, 2, "fe80::1/64", address), up},
		}},
	} {
		t.Run(c.ip, func(t *testing.T) {
			w := &Watcher{table: newTable(netip.MustParseAddr(c.ip), 2), last: up, onChange: func(State) {}}
			w.handleMessages(link(newLink, 2, running, 1500))
			require.Equal(t, up, w.last, "nothing is known before a dump of addresses")
			w.table.startAddrDump()
			for i, s := range c.steps {
				w.handleMessages(s.message)
				if i == 0 {
					require.Equal(t, up, w.last)
					w.table.endAddrDump()
					w.handleMessages(nil)
				}
				if s.want.MTU == 0 {
					require.True(t, w.last.Usable(), i)
					continue
				}
				require.Equal(t, s.want, w.last, "step %d", i)
			}
		})
	}
}

// TestDumpReplaces drops messages: entries that are missing in the next dump are removed, and the
// end of a dump does not undo changes that arrived while it ran.
func TestDumpReplaces(t *testing.T) {
	up := State{HasAddr: true, Up: true, MTU: 1500}
	w := &Watcher{table: newTable(netip.MustParseAddr("192.0.2.1"), 2), last: up, onChange: func(State) {}}
	w.handleMessages(link(newLink, 2, running, 1500))
	ours := addr(newAddr, 2, "192.0.2.1/24", syscall.IFA_LOCAL)
	done := func(dump ...[]byte) {
		w.table.startAddrDump()
		w.phase, w.seq = dumpAddrs, w.seq+1
		for _, m := range append(dump, message(syscall.NLMSG_DONE, w.seq, make([]byte, 4))) {
			w.handleMessages(m)
		}
	}
	done(ours)
	require.Equal(t, up, w.last)
	done()
	require.False(t, w.last.HasAddr)
	done(ours)
	require.Equal(t, up, w.last)
	done(ours, addr(delAddr, 2, "192.0.2.1/24", syscall.IFA_LOCAL))
	require.False(t, w.last.HasAddr)
}

// golden reads testdata/rtnetlink.txt: messages by the command that caused them.
func golden(t testing.TB) (commands []string, messages [][][]byte) {
	t.Helper()
	text, err := os.ReadFile("testdata/rtnetlink.txt")
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if command, ok := strings.CutPrefix(line, "# ip "); ok {
			commands, messages = append(commands, command), append(messages, nil)
		}
		if b, err := hex.DecodeString(line); err == nil {
			messages[len(messages)-1] = append(messages[len(messages)-1], b)
		}
	}
	require.Len(t, commands, 5)
	return commands, messages
}

// TestGolden applies recorded messages of a kernel.
func TestGolden(t *testing.T) {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		t.Skip("messages of a little-endian machine")
	}
	up := State{HasAddr: true, Up: true, MTU: 9000}
	want := map[string][]State{ // after each command
		"192.0.2.1": {{}, {}, up, up, {MTU: 9000}},
		"fe80::1":   {{}, {}, {}, up, up},
		"127.0.0.2": {{}, up, up, up, up},
	}
	commands, messages := golden(t)
	for ip, states := range want {
		w := &Watcher{table: newTable(netip.MustParseAddr(ip), 1), onChange: func(State) {}}
		w.table.startAddrDump()
		w.table.endAddrDump()
		for i, list := range messages {
			for _, m := range list {
				w.handleMessages(m)
			}
			require.Equal(t, states[i], w.last, "%s: ip %s", ip, commands[i])
		}
	}
}

// FuzzHandle handles any bytes as messages of the kernel.
func FuzzHandle(f *testing.F) {
	_, messages := golden(f)
	for _, list := range messages {
		for _, m := range list {
			f.Add(m)
		}
	}
	f.Add(link(newLink, 2, running, 1500))
	f.Add(addr(newAddr, 2, "192.0.2.1/24", syscall.IFA_LOCAL))
	f.Add(addr(newAddr, 2, "fe80::1/64", syscall.IFA_ADDRESS))
	f.Add(message(syscall.NLMSG_DONE, 0, make([]byte, 4)))
	f.Fuzz(func(t *testing.T, b []byte) {
		w := &Watcher{table: newTable(netip.MustParseAddr("192.0.2.1"), 2), seq: 1, onChange: func(State) {}}
		w.table.startAddrDump()
		w.table.endAddrDump()
		w.handleMessages(b)
		w.table.startAddrDump()
		w.handleMessages(b)
	})
}
