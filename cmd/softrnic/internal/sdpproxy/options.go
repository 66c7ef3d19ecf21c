package sdpproxy

import (
	"cmp"
	"io"
	"net"
	"time"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/rdmacm"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/sockets"
	"github.com/softrnic/softrnic/sdp"
)

// DefaultDialTimeout is the time after which a client is reset if the other side does not
// answer.
const DefaultDialTimeout = 4 * time.Second

// Options say what to pass on.
type Options struct {
	rdmacm.DeviceSource

	Listen sockets.Addr // where connections come in
	To     sockets.Addr // where they are passed on to
	SDP    sdp.Options  // of connections by SDP; KeepAlive is sockets.KeepAlive by default

	DialTimeout time.Duration // how long a connection to To may take, DefaultPatience by default
	Grace       time.Duration // how long connections go on after the end, 5 s by default

	Log       io.Writer      // gets a line for each connection that fails; may be nil
	Verbose   bool           // a line also for each client that has gone
	Listening func(net.Addr) // hears where connections come in; may be nil
	Ending    func(open int) // hears that no more are taken, and how many there are; may be nil
}

func (o *Options) validate() error {
	switch {
	case o.Listen.Network == "":
		return rdmacm.Refuse("--listen", "missing; give the address to listen at, for example tcp:localhost:8080")
	case o.To.Network == "":
		return rdmacm.Refuse("--to", "missing; give the address to connect to, for example sdp:192.0.2.1:7471")
	case o.To.Host == "":
		return rdmacm.Refuse("--to", "%v names no host", o.To)
	case o.To.Port == 0:
		return rdmacm.Refuse("--to", "%v names no port", o.To)
	}
	if o.Listen.Network == sockets.TCP && o.To.Network == sockets.TCP {
		return nil // no adapter
	}
	return o.DeviceSource.Check()
}

func (o *Options) setDefaults() {
	o.DialTimeout = cmp.Or(o.DialTimeout, DefaultDialTimeout)
	o.Grace = cmp.Or(o.Grace, 5*time.Second)
	if o.Log == nil {
		o.Log = io.Discard
	}
	if o.Listening == nil {
		o.Listening = func(net.Addr) {}
	}
	if o.Ending == nil {
		o.Ending = func(int) {}
	}
}

// Totals are what has been done at the end.
type Totals struct {
	Connections uint64 `json:"connections"` // that came in
	Failed      uint64 `json:"failed"`      // of these, not connected or not ended well
	Cut         uint64 `json:"cut"`         // of these, ended because the proxy did
	BytesTo     uint64 `json:"bytes_to"`    // passed on to Options.To
	BytesFrom   uint64 `json:"bytes_from"`  // and back
}
