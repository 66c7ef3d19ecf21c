package experiments

import (
	"context"
	"fmt"

	"github.com/softrnic/softrnic/cmd/bench/internal/sdpbench"
)

// A socket is a target of the experiments with SDP: a pair of connected processes.
type socket struct {
	series string
	sdpbench.Config
	*sdpbench.Pair
}

// sockets are the targets to compare, TCP first.
type sockets []socket

// openSockets opens TCP and, for each of the variants, the three flow control modes. The caller
// must close them, also after an error.
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

// A variant is the configuration of the three flow control modes, and the suffix of their
// series.
type variant struct {
	suffix string
	sdpbench.Config
}

// indexOf returns the index of a series, or -1.
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
