package experiments

import (
	"context"
	"fmt"

	"github.com/softrnic/softrnic/cmd/bench/internal/sdpbench"
)

// A socket is a subject of the experiments with SDP: a pair of processes with
// a connection.
type socket struct {
	series string
	sdpbench.Config
	*sdpbench.Pair
}

// sockets are the subjects that take turns, TCP first.
type sockets []socket

// openSockets opens TCP and, for each of the variants, the three flow controls.
// The caller closes them, also after an error.
func openSockets(ctx context.Context, tcp sdpbench.Config, variants ...variant) (all sockets, err error) {
	tcp.Transport = sdpbench.TCP
	all = append(all, socket{series: string(sdpbench.TCP), Config: tcp})
	for _, v := range variants {
		for _, d := range sdpbench.FlowControls() {
			v.Transport = d
			all = append(all, socket{series: string(d) + v.suffix, Config: v.Config})
		}
	}
	for i := range all {
		if all[i].Pair, err = sdpbench.Open(ctx, all[i].Config); err != nil {
			return all[:i], fmt.Errorf("%s: %w", all[i].series, err)
		}
	}
	return all, nil
}

// A variant is how the three flow controls are opened, and what their series'
// names end with.
type variant struct {
	suffix string
	sdpbench.Config
}

// indexOf is the index of a series.
func (all sockets) indexOf(c sdpbench.Transport, suffix string) int {
	for i := range all {
		if all[i].series == string(c)+suffix {
			return i
		}
	}
	return -1
}

func (all sockets) close() {
	for _, s := range all {
		s.Close()
	}
}
