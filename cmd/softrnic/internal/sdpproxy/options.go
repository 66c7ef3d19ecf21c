package sdpproxy

import (
	"cmp"
	"io"
	"net"
	"time"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/option"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/rdmacm"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/sockets"
	"github.com/softrnic/softrnic/sdp"
)

// DefaultDialTimeout is the time to connect to Options.To, after which the client is reset.
const DefaultDialTimeout = 4 * time.Second

// Options describe the two sides of a proxy.
type Options struct {
	rdmacm.DeviceSource

	Listen sockets.Addr // address to accept connections at
	To     sockets.Addr // address to forward them to
	SDP    sdp.Options  // of connections by SDP; KeepAlive is sockets.KeepAlive by default

	DialTimeout time.Duration // bounds the time of a connection to To; the default is DefaultDialTimeout
	Grace       time.Duration // time of open connections after the end of ctx, 5 s by default

	Log       io.Writer      // receives a line for each failed connection; may be nil
	Verbose   bool           // also a line for each client that has disconnected
	Listening func(net.Addr) // is called with the listener's address; may be nil
	Ending    func(open int) // is called with the number of open connections when accepting ends; may be nil
}

func (o *Options) validate() error {
	switch {
	case o.Listen.Network == "":
		return option.Errorf("--listen", "missing; give the address to listen at, for example tcp:localhost:8080")
	case o.To.Network == "":
		return option.Errorf("--to", "missing; give the address to connect to, for example sdp:192.0.2.1:7471")
	case o.To.Host == "":
		return option.Errorf("--to", "%v: host is missing", o.To)
	case o.To.Port == 0:
		return option.Errorf("--to", "%v: port is missing", o.To)
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

// Totals are the counters at the end.
type Totals struct {
	Connections uint64 `json:"connections"` // accepted
	Failed      uint64 `json:"failed"`      // of these, not connected or ended abnormally
	Cut         uint64 `json:"cut"`         // of these, aborted at the end of the proxy
	BytesTo     uint64 `json:"bytes_to"`    // forwarded to Options.To
	BytesFrom   uint64 `json:"bytes_from"`  // forwarded to clients
}
