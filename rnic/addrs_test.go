package rnic

import (
	"net/netip"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/hostaddr"
	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/internal/ownaddr"
	"github.com/softrnic/softrnic/verbs"
)

func TestParseAddrs(t *testing.T) {
	for text, want := range map[string][]string{
		"192.0.2.1":                       {"192.0.2.1:4791"},
		"192.0.2.1:5":                     {"192.0.2.1:5"},
		"192.0.2.1:0":                     {"192.0.2.1:0"},
		"192.0.2.1:4791-4793":             {"192.0.2.1:4791", "192.0.2.1:4792", "192.0.2.1:4793"},
		"2001:db8::1,192.0.2.1":           {"[2001:db8::1]:4791", "192.0.2.1:4791"},
		"[2001:db8::1]:7-8,192.0.2.1:9":   {"[2001:db8::1]:7", "[2001:db8::1]:8", "192.0.2.1:9"},
		"fe80::1%eth-0":                   {"[fe80::1%eth-0]:4791"},
		"192.0.2.1:65535-65535,192.0.2.2": {"192.0.2.1:65535", "192.0.2.2:4791"},
		"127.0.0.1/32":                    {"127.0.0.1:4791"},
		"127.0.0.1/32:7-8":                {"127.0.0.1:7", "127.0.0.1:8"},
		"[2001:db8::1/128]:7":             {"[2001:db8::1]:7"},
		"203.0.113.0/24,192.0.2.1":        {"192.0.2.1:4791"}, // no local address in the prefix; other hosts may have one
	} {
		a, err := parseAddrs(text)
		require.NoError(t, err, text)
		list, err := a.candidates(false)
		require.NoError(t, err)
		var got []string
		for _, c := range list {
			got = append(got, c.String())
		}
		require.Equal(t, want, got, text)
		again, err := parseAddrs(hostaddr.Join(a))
		require.NoError(t, err, text)
		require.Equal(t, a, again)
	}
	for _, text := range []string{"", ",", "192.0.2.1,", "host", "1.2.3", "1.2.3.4:x", "1.2.3.4:99999", "[::1", "[1.2.3.4]", "[]", "1.2.3.4:5-4", "1.2.3.4:0-9", "1.2.3.4:5-70000", "1.2.3.4:-5", "1.2.3.4/33", "1.2.3.4/33:1-2", "1.2.3.4/24:", "1.2.3.4/24:2-1", "2001:db8::/64:1-2", "[2001:db8::/64:1-2", "[2001:db8::]/64:1-2", "0.0.0.0", "[::]:1", "224.0.0.1", "0.0.0.0/0"} {
		_, err := hostaddr.Parse(text)
		require.Error(t, err, text)
	}
	a, err := parseAddrs("192.0.2.1, 192.0.2.2:7")
	require.NoError(t, err)
	require.Equal(t, "192.0.2.1,192.0.2.2:7", hostaddr.Join(a))
	list, err := a.candidates(true)
	require.NoError(t, err)
	require.Equal(t, "[192.0.2.1:0 192.0.2.2:7]", sprint(list), "AnyPort is for those without a port")
}

func sprint(list []netip.AddrPort) string {
	s := "["
	for i, a := range list {
		if i > 0 {
			s += " "
		}
		s += a.String()
	}
	return s + "]"
}

// TestAddrsPrefix checks that a prefix selects the local addresses in it.
func TestAddrsPrefix(t *testing.T) {
	_, err := Open(Options{Addrs: "203.0.113.0/24"})
	require.ErrorContains(t, err, "no interface of this machine has an address in 203.0.113.0/24")
	require.True(t, typed(err))

	if runtime.GOOS != "linux" {
		return // there is one loopback address
	}
	within := netip.MustParsePrefix("127.44.0.0/16")
	seen := map[netip.AddrPort]bool{}
	for range 3 {
		dev, err := Open(Options{Addrs: within.String()})
		require.NoError(t, err)
		defer dev.Close()
		require.True(t, within.Contains(dev.Addr().Addr()), dev.Addr())
		require.EqualValues(t, 4791, dev.Addr().Port())
		seen[dev.Addr()] = true
	}
	require.Len(t, seen, 3)
}

// TestAddrsOfSeveralHosts opens devices with lists for several hosts: addresses of other hosts are
// skipped, and all ranks of one host find a port.
func TestAddrsOfSeveralHosts(t *testing.T) {
	own, err := hostaddr.Own()
	require.NoError(t, err)
	mine := ownaddr.Host(47)
	lists := map[string]string{
		"addresses":           "203.0.113.7,203.0.113.8," + mine.String(),
		"ranges":              "203.0.113.7:4791-4999,[2001:db8::7]:4791-4999," + mine.String() + ":4791-4999",
		"own address first":   mine.String() + ":4791-4999,203.0.113.7:4791-4999",
		"prefix with ports":   netip.PrefixFrom(mine, 32).String() + ":4791-4999",
		"a prefix elsewhere":  "203.0.113.0/24," + mine.String(),
		"prefix of loopback":  "127.47.0.0/16:4791-4799",
		"prefix without port": "",
	}
	if i := slices.IndexFunc(own, func(ip netip.Addr) bool { return ip.Is4() && !ip.IsLoopback() }); i >= 0 {
		lists["prefix without port"] = netip.PrefixFrom(own[i], 24).Masked().String()
	}
	for name, text := range lists {
		t.Run(name, func(t *testing.T) {
			if text == "" {
				t.Skip("this machine has the loopback interface only")
			}
			seen := map[netip.AddrPort]bool{}
			for range 3 {
				dev, err := Open(Options{Addrs: text})
				require.NoError(t, err)
				defer dev.Close()
				seen[dev.Addr()] = true
			}
			require.Len(t, seen, 3)
		})
	}
	for text, want := range map[string]string{
		"203.0.113.7,203.0.113.8:5000": "203.0.113.7:4791: no interface of this machine has that address",
		"203.0.113.0/24,198.51.0.0/16": "203.0.113.0/24",
	} {
		_, err := Open(Options{Addrs: text})
		require.ErrorContains(t, err, want)
		require.True(t, typed(err))
	}
	held, err := Open(Options{Addr: netip.AddrPortFrom(mine, 4791)})
	require.NoError(t, err)
	defer held.Close()
	_, err = Open(Options{Addrs: "203.0.113.7," + mine.String() + ":4791,203.0.113.8"})
	require.True(t, link.IsAddrInUse(err), "%v", err)
}

// TestAddrEnvironmentForSeveral checks that one variable serves several devices of a process, and
// that the error has a remedy otherwise.
func TestAddrEnvironmentForSeveral(t *testing.T) {
	open := func(env string) (*Device, error) {
		t.Setenv(EnvAddr, env)
		dev, err := Open(Options{})
		if err == nil {
			t.Cleanup(func() { dev.Close() })
		}
		return dev, err
	}
	host := ownaddr.Host(45).String()
	first, err := open(host)
	require.NoError(t, err)
	require.EqualValues(t, 4791, first.Addr().Port())
	second, err := open(host)
	require.NoError(t, err)
	require.Equal(t, first.Addr().Addr(), second.Addr().Addr())
	require.Greater(t, second.Addr().Port(), first.Addr().Port())

	fixed := second.Addr().String()
	_, err = open(fixed)
	require.True(t, link.IsAddrInUse(err))
	require.ErrorContains(t, err, second.Name()+", a device of this process, has this address and port")
	require.ErrorContains(t, err, "can share SOFTRNIC_ADDR="+fixed+" if it is a range of ports ("+host+":4792-4800), a prefix (127.0.0.0/8), or a list of addresses with commas")

	require.NoError(t, second.Close())
	again, err := open(fixed)
	require.NoError(t, err, "a closed device has no address")
	require.Equal(t, fixed, again.Addr().String())
}

// parseAddrs parses a list for Options.addrs.
func parseAddrs(text string) (addrList, error) { return hostaddr.Parse(text) }

// TestAddrForms opens a device with every form of its address, and checks that peers and errors
// have the canonical form.
func TestAddrForms(t *testing.T) {
	for given, want := range map[string]string{
		"127.0.0.1":            "127.0.0.1",
		"::ffff:127.0.0.1":     "127.0.0.1",
		"::ffff:127.0.0.1%any": "127.0.0.1",
		"::1%any":              "::1",
		"::1":                  "::1",
	} {
		for _, o := range []Options{
			{Addr: netip.AddrPortFrom(netip.MustParseAddr(given), 0), AnyPort: true},
			{Addrs: given, AnyPort: true},
		} {
			d, err := Open(o)
			require.NoError(t, err, given)
			require.Equal(t, want, d.Addr().Addr().String(), given)
			gid, err := d.QueryGID(1, 0)
			require.NoError(t, err)
			require.Equal(t, verbs.GIDFromAddr(netip.MustParseAddr(want)), gid.GID)
			port := d.Addr().Port()
			_, err = Open(Options{Addr: netip.AddrPortFrom(netip.MustParseAddr(given), port)})
			require.ErrorContains(t, err, d.Name()+", a device of this process, has this address", given)
			require.NoError(t, d.Close())
		}
	}
	for _, given := range []string{"0.0.0.0", "::", "::ffff:0.0.0.0", "224.0.0.1", "::ffff:224.0.0.1", "ff02::1%lo"} {
		_, err := Open(Options{Addr: netip.AddrPortFrom(netip.MustParseAddr(given), 4791)})
		require.ErrorIs(t, err, verbs.ErrInvalid, given)
	}
}
