package acpbench

import (
	"context"
	"runtime"
	"time"

	"github.com/softrnic/softrnic/acp"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
)

// Config describes a job.
type Config struct {
	Ranks    int
	Progress bool // acp.Options.Progress
	Loose    bool // the processes may run on all CPUs
}

// roundTimeout is the maximum duration of a round.
const roundTimeout = time.Minute

// A Job is a set of rank processes that wait for requests. It is used by one goroutine only.
type Job struct{ *proc.Group }

// Open starts the processes and joins them to a job. Each has its own CPU as long as there are
// enough. The caller must close the job.
func Open(ctx context.Context, c Config) (*Job, error) {
	specs := make([]proc.Spec, c.Ranks)
	for i := range specs {
		specs[i] = proc.Spec{Name: worker, Role: roleRank, Args: c}
	}
	g, err := proc.Start(ctx, proc.Options{Pin: !c.Loose && c.Ranks <= runtime.NumCPU(), Timeout: roundTimeout, Ranks: true}, specs...)
	if err != nil {
		return nil, err
	}
	return &Job{g}, nil
}

// A Channel has the parameters of the two channels between ranks 0 and 1.
type Channel struct {
	SlotSize             int
	SendSlots, RecvSlots int // 0 means 2 and 8, as in the paper
	Imm                  bool
	Copy                 bool // acp.ChannelOptions.Copy
}

func (c Channel) channelOptions(slots int) acp.ChannelOptions {
	return acp.ChannelOptions{SlotSize: c.SlotSize, Slots: slots, Imm: c.Imm, Copy: c.Copy}
}

// PingPong returns rounds in which a message goes to rank 1 and back, iters times. The figure
// is the median in microseconds of half a round trip. All times are added to into, unless it is
// nil.
func (j *Job) PingPong(c Channel, size, iters int, into *measure.Latency) measure.Round {
	return measure.MedianRounds(into, func(ctx context.Context) (*measure.Latency, error) {
		first, err := proc.CallFirst[request, reply](ctx, j.Group, request{Ping: &pingRound{Channel: c, Size: size, Iters: iters}})
		return first.Latency, err
	})
}

// Stream returns rounds in which count messages go to rank 1, several of them in flight. The
// figure is the bandwidth in MB/s.
func (j *Job) Stream(c Channel, size, count int) measure.Round {
	return j.figureRounds(request{Stream: &streamRound{Channel: c, Size: size, Count: count}})
}

// A Direction is the source and the destination of a copy.
type Direction string

// The directions, which are also names of series.
const (
	RemoteToLocal  Direction = "remote-to-local"
	LocalToRemote  Direction = "local-to-remote"
	RemoteToRemote Direction = "remote-to-remote" // between ranks 1 and 2
)

// Copies returns rounds in which rank 0 makes copies one after the other. The figure is the
// time of one copy in microseconds.
func (j *Job) Copies(d Direction, size, iters int) measure.Round {
	return j.figureRounds(request{Copy: &copyRound{Direction: d, Size: size, Iters: iters}})
}

// ConnectTimes are medians in microseconds, of the sender and the receiver of a channel.
type ConnectTimes struct {
	Connect [2]float64 // from its creation to the completion of the first message
	Free    [2]float64
}

// Connect creates and frees count channels, one after the other, and returns the times.
func (j *Job) Connect(ctx context.Context, c Channel, count int) (t ConnectTimes, err error) {
	ranks, err := proc.Call[request, reply](ctx, j.Group, request{Connect: &connectRound{Channel: c, Count: count}})
	if err != nil {
		return t, err
	}
	for i := range 2 {
		t.Connect[i], t.Free[i] = ranks[i].Latency.Median(), ranks[i].Free.Median()
	}
	return t, nil
}

// figureRounds returns rounds of a request to which rank 0 replies with the figure.
func (j *Job) figureRounds(r request) measure.Round {
	return func(ctx context.Context) (float64, error) {
		first, err := proc.CallFirst[request, reply](ctx, j.Group, r)
		return first.Figure, err
	}
}
