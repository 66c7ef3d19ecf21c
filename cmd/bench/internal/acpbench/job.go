package acpbench

import (
	"context"
	"runtime"
	"time"

	"github.com/softrnic/softrnic/acp"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
)

// Config says what a job is.
type Config struct {
	Ranks int
}

// roundTimeout is how long a round may take.
const roundTimeout = time.Minute

// A Job is processes that are ranks, and wait until they are asked for a round. For
// one goroutine.
type Job struct {
	g *proc.Group
}

// Open starts the processes, which join. As far as there are enough, each has a CPU
// of its own. The caller closes the job.
func Open(ctx context.Context, c Config) (*Job, error) {
	specs := make([]proc.Spec, c.Ranks)
	for i := range specs {
		specs[i] = proc.Spec{Name: worker, Role: roleRank}
	}
	g, err := proc.Start(ctx, proc.Options{Pin: c.Ranks <= runtime.NumCPU(), Timeout: roundTimeout}, specs...)
	if err != nil {
		return nil, err
	}
	return &Job{g}, nil
}

// Close ends the processes. Closing twice is safe.
func (j *Job) Close() { j.g.Close() }

func (j *Job) callRanks(ctx context.Context, r request) ([]reply, error) {
	return proc.Call[request, reply](ctx, j.g, r)
}

// Channel says what the two channels between ranks 0 and 1 are like.
type Channel struct {
	SlotSize             int
	SendSlots, RecvSlots int // 2 and 8 unless given, as in the paper
	Imm                  bool
	Copy                 bool // acp.ChannelOptions.Copy
}

func (c Channel) channelOptions(slots int) acp.ChannelOptions {
	return acp.ChannelOptions{SlotSize: c.SlotSize, Slots: slots, Imm: c.Imm, Copy: c.Copy}
}

// PingPong is rounds in which a message goes to rank 1 and back, so many times, in microseconds of half a
// round trip. All of them are recorded in into, if it is not nil.
func (j *Job) PingPong(c Channel, size, iters int, into *measure.Latency) measure.Round {
	return func(ctx context.Context) (float64, error) {
		ranks, err := j.callRanks(ctx, request{Ping: &pingRound{Channel: c, Size: size, Iters: iters}})
		if err != nil {
			return 0, err
		}
		if into != nil {
			into.Merge(ranks[0].Latency)
		}
		return ranks[0].Latency.Median(), nil
	}
}

// Stream is rounds in which so many messages go to rank 1, several under way, in MB/s.
func (j *Job) Stream(c Channel, size, count int) measure.Round {
	return j.figureRounds(request{Stream: &streamRound{Channel: c, Size: size, Count: count}})
}

// Direction is where a copy is from and to.
type Direction string

// The ways, which also are names of series.
const (
	RemoteToLocal  Direction = "remote-to-local"
	LocalToRemote  Direction = "local-to-remote"
	RemoteToRemote Direction = "remote-to-remote" // between ranks 1 and 2
)

// Copies is rounds in which rank 0 makes copies one after the other, in microseconds of one.
func (j *Job) Copies(way Direction, size, iters int) measure.Round {
	return j.figureRounds(request{Copy: &copyRound{Direction: way, Size: size, Iters: iters}})
}

// Connect makes and frees so many channels, one after the other. The first figure is how long it takes the sender
// from the creation until the first message has left, the second how long the receiver takes to free
// its end when the sender has freed its own, both in microseconds, the median.
func (j *Job) Connect(ctx context.Context, c Channel, count int) (connect, free float64, err error) {
	ranks, err := j.callRanks(ctx, request{Connect: &connectRound{Channel: c, Count: count}})
	if err != nil {
		return 0, 0, err
	}
	return ranks[0].Latency.Median(), ranks[1].Latency.Median(), nil
}

// figureRounds is rounds of a request that rank 0 answers with one.
func (j *Job) figureRounds(r request) measure.Round {
	return func(ctx context.Context) (float64, error) {
		ranks, err := j.callRanks(ctx, r)
		if err != nil {
			return 0, err
		}
		return ranks[0].Figure, nil
	}
}
