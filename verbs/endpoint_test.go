package verbs_test

import (
	"encoding/json"
	"flag"
	"io"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/verbs"
)

// endpoints draws any valid endpoint.
var endpoints = rapid.Custom(func(t *rapid.T) verbs.Endpoint {
	gid := func() verbs.GID {
		if rapid.Bool().Draw(t, "IPv4") {
			a := rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "address")
			return verbs.GIDFromAddr(netip.AddrFrom4([4]byte(a)))
		}
		return verbs.GID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "GID"))
	}()
	for gid.Addr().IsUnspecified() || gid.Addr().IsMulticast() {
		gid[15]++
		gid[0], gid[12] = 0, 10
	}
	return verbs.Endpoint{
		GID:        gid,
		UDPPort:    rapid.Uint16().Draw(t, "port"),
		QPN:        rapid.Uint32Range(1, 0xffffff).Draw(t, "QPN"),
		PSN:        rapid.Uint32Range(0, 0xffffff).Draw(t, "PSN"),
		RecvBuffer: 2 * rapid.Uint32Range(1, 1<<31-1).Draw(t, "buffer"),
		Selective:  rapid.Bool().Draw(t, "selective"),
		MTU:        verbs.MTU(rapid.Uint8Range(0, 5).Draw(t, "MTU")),
		RdAtomic:   rapid.Uint8().Draw(t, "reads and atomics"),
	}
})

func TestEndpointRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := endpoints.Draw(t, "endpoint")
		text, err := e.MarshalText()
		require.NoError(t, err)
		require.NotContains(t, string(text), " ")
		var back verbs.Endpoint
		require.NoError(t, back.UnmarshalText(text))
		require.Equal(t, e, back)

		object, err := json.Marshal(e)
		require.NoError(t, err)
		back = verbs.Endpoint{}
		require.NoError(t, json.Unmarshal(object, &back))
		require.Equal(t, e, back)
	})
}

func TestEndpointForms(t *testing.T) {
	e := verbs.Endpoint{
		GID: verbs.GIDFromAddr(netip.MustParseAddr("10.0.0.1")), UDPPort: 4791,
		QPN: 0x11, PSN: 0x3039, RecvBuffer: 212992, MTU: verbs.MTU4096, RdAtomic: 16,
	}
	require.Equal(t, "gid=10.0.0.1,port=4791,qpn=0x11,psn=0x3039,mtu=4096,rd=16,buffer=212992", e.String())
	object, err := json.Marshal(e)
	require.NoError(t, err)
	require.JSONEq(t, `{"gid":"0000:0000:0000:0000:0000:ffff:0a00:0001","udp_port":4791,
		"qpn":17,"psn":12345,"recv_buffer":212992,"mtu":"4096","rd_atomic":16}`, string(object))

	selective := e
	selective.Selective = true
	require.Equal(t, "gid=10.0.0.1,port=4791,qpn=0x11,psn=0x3039,mtu=4096,rd=16,buffer=212993", selective.String())
	require.Equal(t, e, endpoint("buffer=0x34000,rd=0x10,mtu=4096,psn=12345,qpn=17,port=4791,gid=::ffff:10.0.0.1"))
	least := endpoint("gid=fe80::1,qpn=1,psn=0")
	require.Equal(t, verbs.Endpoint{GID: verbs.GID{0xfe, 0x80, 15: 1}, QPN: 1}, least)
	require.Equal(t, "gid=fe80::1,qpn=0x1,psn=0x0", least.String())
	object, err = json.Marshal(least)
	require.NoError(t, err)
	require.JSONEq(t, `{"gid":"fe80:0000:0000:0000:0000:0000:0000:0001","qpn":1,"psn":0}`, string(object))
}

func TestEndpointIsAFlag(t *testing.T) {
	var e verbs.Endpoint
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.TextVar(&e, "peer", here, "")
	require.NoError(t, flags.Parse([]string{"-peer", there.String()}))
	require.Equal(t, there, e)
	require.Error(t, flags.Parse([]string{"-peer", "10.0.0.1"}))
}

func TestEndpointRefuses(t *testing.T) {
	for text, says := range map[string]string{
		"":                                        "not of the form name=value",
		"10.0.0.1":                                `"10.0.0.1" is not of the form name=value`,
		"gid=10.0.0.1":                            "qpn is missing",
		"qpn=1,psn=1":                             "gid is missing",
		"gid=10.0.0.1,qpn=1":                      "psn is missing",
		"gid=10.0.0.1,qpn=1,psn=1,psn=1":          `"psn" is there twice`,
		"gid=10.0.0.1,qpn=1,psn=1,":               "not of the form",
		"gid=10.0.0.1,qpn=1,psn=1,lid=1":          "unknown name; want gid",
		"gid=10.0.0.1,qpn=1,psn=1,port=65536":     "not a number of 16 bits",
		"gid=10.0.0.1,qpn=1,psn=-1":               "not a number of 32 bits",
		"gid=10.0.0.1,qpn=0x,psn=1":               "not a number of 32 bits",
		"gid=10.0.0.1,qpn=1_0,psn=1":              "not a number of 32 bits",
		"gid=10.0.0.1,qpn=1,psn=1,rd=256":         "not a number of 8 bits",
		"gid=10.0.0.1,qpn=0,psn=1":                "from 1 to 0xffffff",
		"gid=10.0.0.1,qpn=0x1000000,psn=1":        "from 1 to 0xffffff",
		"gid=10.0.0.1,qpn=1,psn=0x1000000":        "24 bits",
		"gid=10.0.0.1,qpn=1,psn=1,mtu=1500":       "want 256, 512, 1024, 2048 or 4096",
		"gid=0.0.0.0,qpn=1,psn=1":                 "no address",
		"gid=::,qpn=1,psn=1":                      "no address",
		"gid=224.0.0.1,qpn=1,psn=1":               "multicast",
		"gid=fe80::1%eth0,qpn=1,psn=1":            "without a zone",
		"gid=" + strings.Repeat("x", 1<<16) + ",": "without a zone",
	} {
		e := here
		err := e.UnmarshalText([]byte(text))
		require.ErrorIs(t, err, verbs.ErrInvalid, text)
		require.ErrorContains(t, err, says)
		require.Less(t, len(err.Error()), 600)
		require.Equal(t, here, e, "unchanged on error")
	}
	for _, object := range []string{`{}`, `"gid=10.0.0.1,qpn=1,psn=1"`, `{"gid":"x","qpn":1,"psn":1}`, `{"gid":"10.0.0.1","qpn":-1}`, `[`} {
		e := here
		require.Error(t, json.Unmarshal([]byte(object), &e), object)
		require.Equal(t, here, e, "unchanged on error")
	}
	_, err := verbs.Endpoint{}.MarshalText()
	require.ErrorIs(t, err, verbs.ErrInvalid)
	_, err = json.Marshal(verbs.Endpoint{})
	require.ErrorIs(t, err, verbs.ErrInvalid)
	_, err = verbs.Endpoint{GID: here.GID, QPN: 1, MTU: 6}.MarshalText()
	require.ErrorContains(t, err, "the MTU must be 256")
}

// FuzzEndpoint checks that an accepted endpoint is valid and survives formatting and parsing.
func FuzzEndpoint(f *testing.F) {
	f.Add(here.String())
	f.Add("gid=fe80::1,qpn=1,psn=0")
	f.Add("gid=::ffff:1.2.3.4,qpn=0xffffff,psn=0xffffff,mtu=0,port=0,buffer=0")
	f.Add("gid=1.2.3.4,qpn=1,psn=1,psn=1")
	f.Fuzz(func(t *testing.T, text string) {
		var e, back verbs.Endpoint
		if e.UnmarshalText([]byte(text)) != nil {
			require.Zero(t, e)
			return
		}
		again, err := e.MarshalText()
		require.NoError(t, err)
		require.NoError(t, back.UnmarshalText(again))
		require.Equal(t, e, back)
	})
}

func TestLocalEndpoint(t *testing.T) {
	dev := fakeDevice{
		port: verbs.PortAttr{MaxMTU: verbs.MTU4096, ActiveMTU: verbs.MTU2048, UDPPort: 4791, RecvBuffer: 1 << 20},
		gid:  here.GID,
	}
	qp := &fakeQP{num: 0x17, typ: verbs.UC}
	e, err := verbs.LocalEndpoint(dev, qp, 0xabcdef)
	require.NoError(t, err)
	require.Equal(t, verbs.Endpoint{
		GID: here.GID, UDPPort: 4791, QPN: 0x17, PSN: 0xabcdef, RecvBuffer: 1 << 20, MTU: verbs.MTU2048,
	}, e)

	qp.typ = verbs.RC
	for serves, want := range map[int]uint8{0: 0, 4: 4, 16: 16, 128: 16} {
		dev.serves = serves
		e, err = verbs.LocalEndpoint(dev, qp, 0)
		require.NoError(t, err)
		require.Equal(t, want, e.RdAtomic, "the default of Connect, if the device serves as many")
	}

	_, err = verbs.LocalEndpoint(dev, qp, 1<<24)
	require.ErrorIs(t, err, verbs.ErrInvalid)
	require.ErrorContains(t, err, "QP 0x17: describe local endpoint")
	dev.gid = verbs.GID{}
	_, err = verbs.LocalEndpoint(dev, qp, 0)
	require.ErrorContains(t, err, "bind the peer's device")
	dev.failure = verbs.ErrClosed
	_, err = verbs.LocalEndpoint(dev, qp, 0)
	require.ErrorIs(t, err, verbs.ErrClosed)
}
