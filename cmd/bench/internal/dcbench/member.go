package dcbench

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
	"github.com/softrnic/softrnic/cmd/bench/internal/sdpbench"
	"github.com/softrnic/softrnic/datacutter"
)

const (
	worker     = "dcbench"
	roleMember = "member"
)

// runTimeout is the maximum duration of a run. A run that hangs ends with an error that names a
// filter before the parent kills the process.
const runTimeout = 5 * time.Minute

// A request requests one run from all members.
type request struct {
	App      App
	Path     string // of the data set
	UnitSize int
}

// A reply is the result of a member.
type reply struct {
	Report    datacutter.Report
	Messages  uint64
	Processor time.Duration
	Picture   *imageInfo `json:",omitempty"` // set at rank 0
}

// A member is one of the processes.
type member struct {
	*proc.Worker
	network datacutter.Network
	sockets *sdpNetwork // the network, unless that is TCP
}

func init() {
	proc.RegisterArgs(worker, roleMember, func(ctx context.Context, w *proc.Worker, c Config) error {
		m := &member{Worker: w, network: datacutter.NewTCP("")}
		switch c.Transport {
		case sdpbench.TCP:
		case BufferedTCP:
			m.network = bufferedNetwork{m.network}
		default:
			var err error
			if m.sockets, err = openSDPNetwork(c); err != nil {
				return err
			}
			defer m.sockets.close()
			m.network = m.sockets
		}
		return proc.Serve(ctx, w, func(ctx context.Context, r request) (reply, error) {
			// All clusters are open at once, but only one runs: between its runs it holds no memory.
			defer debug.FreeOSMemory()
			return m.runApp(ctx, r)
		})
	})
}

// runApp runs the filters of this process.
func (m *member) runApp(ctx context.Context, r request) (out reply, err error) {
	timeout := fmt.Errorf("dcbench: run timed out after %v", runTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, runTimeout, timeout)
	defer cancel()
	file, err := os.Open(r.Path)
	if err != nil {
		return out, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return out, err
	}
	p, ok := programs[r.App]
	if !ok {
		return out, fmt.Errorf("dcbench: unknown application %q", r.App)
	}
	part, err := p.prepare(file, info.Size(), r.UnitSize, p.placeFilters(m.Size))
	if err != nil {
		return out, err
	}
	before := measure.ProcessorTime()
	if out.Report, err = m.runJob(ctx, part.Job()); err != nil {
		return out, err
	}
	out.Processor = measure.ProcessorTime() - before
	if m.Rank == 0 {
		made, err := part.Picture()
		if err != nil {
			return out, err
		}
		sum := imageInfoOf(made)
		out.Picture = &sum
	}
	if m.sockets != nil {
		// Open connections would disturb the next target.
		if out.Messages, err = m.sockets.endRun(ctx); err != nil {
			return out, fmt.Errorf("dcbench: end connections: %w", err)
		}
	}
	return out, nil
}

// runJob exchanges the node addresses and runs the job.
func (m *member) runJob(ctx context.Context, job datacutter.Job) (datacutter.Report, error) {
	node, err := datacutter.Listen(ctx, m.network)
	if err != nil {
		return datacutter.Report{}, err
	}
	all, err := proc.Exchange(ctx, m.Worker, node.Addr())
	if err != nil {
		node.Close()
		return datacutter.Report{}, err
	}
	addrs := make(map[string]string, len(all))
	for rank, addr := range all {
		addrs[hostName(rank)] = addr
	}
	return node.Run(ctx, job, hostName(m.Rank), addrs)
}
