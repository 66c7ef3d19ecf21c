package mad_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/wire/mad"
)

// widths has the fields with fewer bits than their type, by name.
var widths = map[string]int{
	"VendorID": 24, "QPN": 24, "RemoteQPN": 24, "LocalEECN": 24, "RemoteEECN": 24, "StartingPSN": 24,
	"RemoteResponseTimeout": 5, "LocalResponseTimeout": 5, "MaxCMRetries": 4, "Transport": 2, "ExtendedTransport": 3,
	"RetryCount": 3, "RNRRetry": 3, "MTU": 4, "FlowLabel": 20, "PacketRate": 6, "SL": 4, "AckTimeout": 5,
	"TargetAckDelay": 5, "Failover": 2, "Message": 2, "ServiceTimeout": 5,
}

// drawFields draws the fields of a message; private is the length of its private data.
func drawFields(t *rapid.T, v reflect.Value, private int) {
	for i := range v.NumField() {
		f, name := v.Field(i), v.Type().Field(i).Name
		bits, ok := widths[name]
		switch f.Kind() {
		case reflect.Bool:
			f.SetBool(rapid.Bool().Draw(t, name))
		case reflect.Slice:
			n := private
			if name == "Info" {
				n = rapid.IntRange(0, 72).Draw(t, "length of Info")
			}
			f.SetBytes(rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, name))
		case reflect.Array:
			for k := range f.Len() {
				f.Index(k).SetUint(uint64(rapid.Byte().Draw(t, name)))
			}
		case reflect.Struct:
			drawFields(t, f, 0)
		default:
			if !ok {
				bits = f.Type().Bits()
			}
			f.SetUint(rapid.Uint64Range(0, 1<<bits-1).Draw(t, name))
		}
	}
}

// TestFieldsRoundTrip checks that each field of every message survives encoding and decoding at its
// full width.
func TestFieldsRoundTrip(t *testing.T) {
	for _, c := range []struct {
		attr    mad.Attr
		m       mad.Message
		private int
	}{
		{mad.AttrREQ, &mad.REQ{}, mad.REQPrivateLen},
		{mad.AttrREP, &mad.REP{}, mad.REPPrivateLen},
		{mad.AttrRTU, &mad.RTU{}, mad.RTUPrivateLen},
		{mad.AttrREJ, &mad.REJ{}, mad.REJPrivateLen},
		{mad.AttrMRA, &mad.MRA{}, mad.MRAPrivateLen},
		{mad.AttrDREQ, &mad.DREQ{}, mad.DREQPrivateLen},
		{mad.AttrDREP, &mad.DREP{}, mad.DREPPrivateLen},
		{mad.AttrSIDRReq, &mad.SIDRReq{}, mad.SIDRReqPrivateLen},
		{mad.AttrSIDRRep, &mad.SIDRRep{}, mad.SIDRRepPrivateLen},
		{mad.AttrLAP, &mad.LAP{}, 0},
		{mad.AttrAPR, &mad.APR{}, 0},
	} {
		t.Run(c.attr.String(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				drawFields(t, reflect.ValueOf(c.m).Elem(), c.private)
				h := mad.Header{TID: rapid.Uint64().Draw(t, "tid"), Attr: c.attr, UDPPort: rapid.Uint16().Draw(t, "port"),
					Modifier: rapid.Uint32().Draw(t, "modifier")}
				var b [mad.Size]byte
				mad.Put(&b, h, c.m)
				got, body, drop := mad.Parse(b[:])
				require.Equal(t, mad.DropNone, drop)
				require.Equal(t, h, got)
				require.Equal(t, c.m, body)
			})
		})
	}
}
